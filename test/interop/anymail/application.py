"""
A Django application that takes received mail through Anymail's inbound webhook, as its documentation sets it up.

    application.py ADDRESS SIGNING_KEY

Prints one JSON object per line: first the versions and the port, then what Anymail read from each mail that it accepted.
"""
import base64
import json
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

import anymail
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.dispatch import receiver
from django.urls import include, re_path

address, signing_key = sys.argv[1:3]

settings.configure(
    ALLOWED_HOSTS=["*"],
    ANYMAIL={"MAILGUN_WEBHOOK_SIGNING_KEY": signing_key},
    DEBUG=False,
    INSTALLED_APPS=["anymail"],
    LOGGING_CONFIG=None,
    ROOT_URLCONF=__name__,
    SECRET_KEY="not secret",
    USE_TZ=True,
)
urlpatterns = [re_path(r"^anymail/", include("anymail.urls"))]
django.setup()

from anymail.signals import inbound  # noqa: E402 (needs the settings)


def tell(value):
    print(json.dumps(value, ensure_ascii=True), flush=True)


def described(part):
    return {
        "name": part.get_filename(),
        "type": part.get_content_type(),
        "base64": base64.b64encode(part.get_content_bytes()).decode("ascii"),
    }


@receiver(inbound)
def on_mail(sender, event, esp_name, **_):
    message = event.message
    tell(
        {
            "esp": esp_name,
            "type": event.event_type,
            "id": event.event_id,
            "timestamp": int(event.timestamp.timestamp()),
            "envelope_sender": message.envelope_sender,
            "envelope_recipient": message.envelope_recipient,
            "from": str(message.from_email) if message.from_email else None,
            "to": [str(address) for address in message.to],
            "subject": message.subject,
            "date": message.date.isoformat() if message.date else None,
            "message_id": message["Message-ID"],
            "custom": message.get_all("X-Custom"),
            "text": message.text,
            "html": message.html,
            "stripped_text": message.stripped_text,
            "stripped_html": message.stripped_html,
            "spam_detected": message.spam_detected,
            "spam_score": message.spam_score,
            "attachments": [described(part) for part in message.attachments],
            "inline_attachments": {cid: described(part) for cid, part in message.inline_attachments.items()},
        }
    )


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_):
        pass


with make_server(address, 0, get_wsgi_application(), handler_class=QuietHandler) as server:
    versions = {"django": django.get_version(), "anymail": anymail.__version__, "python": sys.version.split()[0]}
    tell({"versions": versions, "port": server.server_port})
    server.serve_forever()
