"""Reads reports by means of its own: one line of JSON for each file, with the sums that test/corpora/reports.ts compares.

usage: reports.py FOLDER
"""

import email
import email.policy
import io
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib


def unpack(content):
    if content[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(content)
    if content[:4] == b"PK\x03\x04":
        archive = zipfile.ZipFile(io.BytesIO(content))
        return archive.read(archive.namelist()[0])
    return content


def reports(content, name):
    """The unpacked parts that look like a report."""
    parts = [content]
    if name.endswith(".eml"):
        mail = email.message_from_bytes(content, policy=email.policy.compat32)
        parts = [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
    unpacked = [unpack(part) for part in parts if part]
    return [one for one in unpacked if re.match(rb"\s*(\xef\xbb\xbf)?\s*(<\?xml|<!--|<\w*:?feedback|\{)", one)]


def local(element):
    return element.tag.rsplit("}", 1)[-1]


def child(element, *path):
    for name in path:
        element = next((one for one in element if local(one) == name), None) if element is not None else None
    return "" if element is None or element.text is None else element.text.strip()


def sums_of_rows(rows):
    sums = {}
    for count, disposition, dkim, spf, source in rows:
        disposition = disposition.lower() if disposition.lower() in ("quarantine", "reject") else "none"
        keys = ["rows", "messages", disposition, "source " + source]
        amounts = [1, count, count, count]
        for name, result in (("dkim", dkim), ("spf", spf)):
            if result.lower() == "pass":
                keys.append(name)
                amounts.append(count)
        for key, amount in zip(keys, amounts):
            sums[key] = sums.get(key, 0) + amount
    return sums


def of_xml(content):
    policy = ("row", "policy_evaluated")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError:
        # Not well-formed: the simple elements can still be found in the text.
        text = content.decode("utf-8", "replace")
        records = re.findall(r"<record>.*?</record>", text, re.S)
        one = lambda record, tag: (re.search(rf"<{tag}>(.*?)</{tag}>", record, re.S) or [0, ""])[1].strip()
        rows = [
            (int(one(r, "count")), one(r, "disposition"), one(r, "dkim"), one(r, "spf"), one(r, "source_ip"))
            for r in records
        ]
        return {"domain": one(text, "domain"), "id": one(text, "report_id"), **sums_of_rows(rows)}
    records = [one for one in root if local(one) == "record"]
    rows = [
        (
            int(child(record, "row", "count")),
            child(record, *policy, "disposition"),
            child(record, *policy, "dkim"),
            child(record, *policy, "spf"),
            child(record, "row", "source_ip"),
        )
        for record in records
    ]
    return {
        "domain": child(root, "policy_published", "domain"),
        "id": child(root, "report_metadata", "report_id"),
        **sums_of_rows(rows),
    }


def of_json(content):
    report = json.loads(content)
    policies = report["policies"]
    sums = [one.get("summary", {}) for one in policies]
    details = [detail for one in policies for detail in one.get("failure-details", [])]
    return {
        "domain": ",".join(one["policy"]["policy-domain"].lower() for one in policies),
        "id": report["report-id"],
        "successful": sum(int(one.get("total-successful-session-count", 0)) for one in sums),
        "failed": sum(int(one.get("total-failure-session-count", 0)) for one in sums),
        "failures": len(details),
        "failed in detail": sum(int(one.get("failed-session-count", 0)) for one in details),
    }


for path in sorted(pathlib.Path(sys.argv[1]).rglob("*")):
    if path.is_dir():
        continue
    found = None
    try:
        texts = reports(path.read_bytes(), path.name)
        if texts:
            found = of_json(texts[0]) if texts[0].lstrip()[:1] == b"{" else of_xml(texts[0])
    except Exception as error:  # what cannot be read at all is compared as null
        print(f"{path.name}: {error}", file=sys.stderr)
    print(json.dumps({"file": str(path.relative_to(sys.argv[1])), "report": found}))
