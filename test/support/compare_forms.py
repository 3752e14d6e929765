"""
Compares posted forms of received mail with what Python's email package reads from the same mail.

    compare_forms.py FILE

FILE: a JSON list of {"raw": base64 of the mail as it was sent, "fields": [[name, text | {"name", "type", "base64"}]]}.
Prints {"fields": how many were compared, "differences": [{"at", "field", "posted", "read"}]}.

Where the package leaves a choice, the rules of docs/api/routes-inbound.md section 6 are applied: what is a body and what a file,
and that text of no known character set is UTF-8, or else Windows-1252.
"""
import base64
import codecs
import json
import re
import sys
from email import message_from_bytes
from email.header import decode_header, ecre
from email.message import Message

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
LOST = re.compile("\ufffd+")


def decoded(data, charset):
    """Text of bytes; runs of lost characters count as one, because decoders differ in their number."""
    charset = (charset or "").strip().lower()
    try:
        codecs.lookup(charset)
        known = charset not in ("", "ascii", "us-ascii")
    except (LookupError, ValueError):
        known = False
    if known:
        return LOST.sub("\ufffd", data.decode(charset, "replace"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(bytes([byte]).decode("cp1252") if byte not in b"\x81\x8d\x8f\x90\x9d" else chr(byte) for byte in data)


def header_text(raw):
    """The unfolded value as text; bytes above 127 came as surrogates."""
    data = re.sub("\r?\n", "", raw).encode("ascii", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def words_decoded(text):
    if not ecre.search(text):
        return text
    try:
        parts = decode_header(text)
    except Exception:
        return text
    joined = ""
    for value, charset in parts:
        if isinstance(value, str):
            joined += value
        elif charset is None:
            joined += value.decode("raw-unicode-escape")
        else:
            joined += decoded(value, charset.split("*")[0])
    return joined


def header_value(raw):
    return LOST.sub("\ufffd", CONTROLS.sub(" ", words_decoded(header_text(raw)))).strip()


def title_case(name):
    return re.sub("(^|-)([a-z])", lambda match: match[1] + match[2].upper(), name.lower())


class Part:
    """A leaf of the mail; messages within it are not opened."""

    def __init__(self, message):
        self.message = message
        # Its parameters as text, whatever bytes they came in.
        fields = Message()
        for name, raw in message.raw_items():
            if name.lower() in ("content-type", "content-disposition") and name not in fields:
                fields[name] = header_text(raw)
        fields.set_default_type(message.get_default_type())
        self.type = fields.get_content_type()
        self.charset = fields.get_content_charset()
        self.disposition = fields.get_content_disposition()
        name = fields.get_filename()
        self.name = CONTROLS.sub(" ", words_decoded(name)).strip() if name else ""
        found = re.search("<([^<>]+)>", message.get("Content-ID", ""))
        self.cid = found[1] if found else None

    def is_message(self):
        return self.type.startswith("message/") and self.message.is_multipart()

    def data(self):
        return self.message.get_payload(decode=True) or b""

    def is_attached(self):
        return self.disposition == "attachment" or self.name != ""

    def is_body(self):
        return self.type in ("text/plain", "text/html") and not self.is_attached()

    def is_other_text(self):
        return self.type.startswith("text/") and not self.is_body() and not self.is_attached() and self.cid is None


def leaves(message):
    if message.is_multipart() and message.get_content_maintype() != "message":
        for part in message.get_payload():
            yield from leaves(part)
    else:
        yield Part(message)


def structure(message):
    """Everything that the package has read from a message, so that two can be compared."""
    payload = message.get_payload()
    if isinstance(payload, list):
        payload = [structure(part) for part in payload]
    elif payload is not None:
        payload = payload.rstrip("\r\n")
    return [list(message.raw_items()), payload, message.preamble, message.epilogue]


def expected_form(message):
    """Fields without those that the service adds, and the parts that are files."""
    headers = [(name, header_value(raw)) for name, raw in message.raw_items()]
    first = {name.lower(): value for name, value in reversed(headers)}
    parts = list(leaves(message))
    files = [part for part in parts if not part.is_body() and not part.is_other_text()]
    form = {
        "from": first.get("from", ""),
        "subject": first.get("subject", ""),
        "message-headers": [list(header) for header in headers],
        "headers": [[title_case(name), value] for name, value in headers],
        "attachment-count": str(len(files)) if files else None,
    }
    for kind, name in (("text/plain", "body-plain"), ("text/html", "body-html")):
        texts = [decoded(part.data(), part.charset) for part in parts if part.is_body() and part.type == kind]
        form[name] = "\n".join(texts) if texts else None
    if form["body-plain"] is None and form["body-html"] is None:
        form["body-plain"] = ""
    others = [part for part in parts if part.is_other_text()]
    form["others"] = [["body-" + part.type[5:], decoded(part.data(), part.charset)] for part in others]
    ids = {"<%s>" % part.cid: "attachment-%d" % at for at, part in enumerate(files, 1) if part.cid}
    form["content-id-map"] = ids or None
    return form, files


OWN = {"x-service-incoming", "x-envelope-from", "received", "authentication-results"}


def posted_form(fields, added):
    """The same from a form; `added`: how many fields the service has put on top of the header."""
    texts = {name: LOST.sub("\ufffd", value) for name, value in fields if isinstance(value, str)}
    names = [name for name, _ in fields]
    at = names.index("recipient")
    headers = json.loads(texts["message-headers"])
    top = [name.lower() for name, _ in headers[:added]]
    assert set(top) <= OWN, top
    ids = texts.get("content-id-map")
    form = {name: texts.get(name) for name in ("from", "subject", "body-plain", "body-html", "attachment-count")}
    form["message-headers"] = [[name, LOST.sub("\ufffd", value)] for name, value in headers[added:]]
    form["headers"] = [[name, LOST.sub("\ufffd", value)] for name, value in fields[added:at]]
    form["others"] = [
        [name, LOST.sub("\ufffd", value)]
        for name, value in fields[at:]
        if name.startswith("body-") and name not in ("body-plain", "body-html")
    ]
    form["content-id-map"] = json.loads(ids) if ids else None
    files = [[name, value] for name, value in fields if not isinstance(value, str)]
    return form, files


def compare(sample):
    """Pairs of (field, posted, read)."""
    raw = base64.b64decode(sample["raw"])
    message = message_from_bytes(raw)
    read, parts = expected_form(message)
    added = len(json.loads(dict((n, v) for n, v in sample["fields"] if n == "message-headers")["message-headers"])) - len(
        read["message-headers"]
    )
    posted, files = posted_form(sample["fields"], added)
    if read["body-plain"] is None:
        # Made from HTML: not the parser's.
        del read["body-plain"]
    for name, value in read.items():
        yield name, posted.get(name), value
    yield "number of files", len(files), len(parts)
    for at, ((name, file), part) in enumerate(zip(files, parts), 1):
        yield "name of the field", name, "attachment-%d" % at
        yield name + " name", file["name"], part.name or "noname"
        yield name + " type", file["type"], part.type
        content = base64.b64decode(file["base64"])
        if part.is_message():
            # The package has it parsed: what was posted must parse to the same.
            outer = message_from_bytes(b"Content-Type: " + part.type.encode() + b"\r\n\r\n" + content)
            yield name, structure(outer)[1], structure(part.message)[1]
        else:
            yield name, content.hex(), part.data().hex()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        samples = json.load(file)
    compared, differences = 0, []
    for at, sample in enumerate(samples):
        for field, posted, read in compare(sample):
            compared += 1
            if posted != read:
                differences.append({"at": at, "field": field, "posted": posted, "read": read})
    json.dump({"fields": compared, "differences": differences}, sys.stdout, ensure_ascii=True, default=repr)


main()
