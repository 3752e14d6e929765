"""Sends a mail with Django and Anymail, both Debian's: python3 with-anymail.py JOB-FILE"""

import json
import sys

import django
from django.conf import settings
from django.core.mail import EmailMultiAlternatives

job = json.load(open(sys.argv[1], encoding="utf-8"))
settings.configure(
    EMAIL_BACKEND="anymail.backends.mailgun.EmailBackend",
    INSTALLED_APPS=["anymail"],
    ANYMAIL={
        "MAILGUN_API_URL": f"{job['url']}/v3",
        "MAILGUN_API_KEY": job["key"],
        "MAILGUN_SENDER_DOMAIN": job["domain"],
    },
)
django.setup()

mail = job["mail"]
message = EmailMultiAlternatives(mail["subject"], mail["text"], job["from"], [mail["to"]])
message.attach_alternative(mail["html"], "text/html")
message.attach(mail["file"]["name"], mail["file"]["content"], "text/plain")
message.tags = [mail["tag"]]
message.send()
status = message.anymail_status
assert status.status == {"queued"} and status.message_id, status
