"""Verifies DKIM signatures with dkimpy, a verifier that shares no code with ours.

Usage: dkim-verify.py RECORDS.json FILE...   (RECORDS: name of a TXT record to its text)
Prints one line per file: its name and pass or fail for each of its signatures, joined by commas.
"""
import json
import sys

import dkim

with open(sys.argv[1], encoding="utf-8") as handle:
    RECORDS = json.load(handle)


def text_record(name, timeout=5):
    return RECORDS.get(name.decode().rstrip(".").lower(), "").encode()


for path in sys.argv[2:]:
    with open(path, "rb") as handle:
        message = handle.read()
    signatures = sum(1 for name, _ in dkim.rfc822_parse(message)[0] if name.lower() == b"dkim-signature")
    results = []
    for index in range(signatures):
        try:
            results.append("pass" if dkim.DKIM(message).verify(index, dnsfunc=text_record) else "fail")
        except dkim.DKIMException as error:
            results.append("error:" + str(error).replace(" ", "_"))
    print(path, ",".join(results))
