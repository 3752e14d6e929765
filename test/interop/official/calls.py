"""Makes the calls of Mailgun's Python client: python3 calls.py URL KEY DOMAIN NEW-DOMAIN

The package `mailgun` is taken from Python's path. What is printed and read: see libraries.ts.
"""

import json
import platform
import sys
import time

import requests
from mailgun.client import Client
from mailgun._version import __version__

url, key, domain, new_domain = sys.argv[1:5]
client = Client(auth=("api", key), api_url=url)


def call(name, response_of, expected=200):
    """Makes one call; returns the parsed response."""
    print(json.dumps({"call": name}), flush=True)
    sys.stdin.readline()
    response = response_of()
    assert response.status_code == expected, f"{name}: {response.status_code} {response.text}"
    return response.json()


def wait_for(name, response_of, found_in):
    """Repeats a call until the response holds what is looked for."""
    for _ in range(200):
        found = found_in(call(name, response_of))
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{name}: not found")


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


# Sending
sent = call("messages.create", lambda: client.messages.create(domain=domain, data={
    "from": f"Shop <shop@{domain}>",
    "to": ["alice@example.org", "nobody@example.org"],
    "subject": "Größe 17",
    "text": "Dear %recipient.name%",
    "html": "<p>Dear <b>%recipient.name%</b></p>",
    "o:tag": ["order", "python"],
    "o:tracking": True,
    "v:order": "17",
    "recipient-variables": json.dumps(
        {"alice@example.org": {"name": "Alice"}, "nobody@example.org": {"name": "Nobody"}}),
}, files=[("attachment", ("note.txt", b"Packed by Ann.\n"))]))
equal(sent["message"], "Queued. Thank you.")
mime = call("mimemessage.create", lambda: client.mimemessage.create(domain=domain, data={
    "from": f"shop@{domain}", "to": "bob@example.org", "subject": "Hello"},
    files={"message": f"From: shop@{domain}\r\nTo: bob@example.org\r\nSubject: MIME\r\n\r\nHello\r\n".encode()}))
equal(mime["message"], "Queued. Thank you.")
call("messages.create, test mode", lambda: client.messages.create(domain=domain, data={
    "from": f"shop@{domain}", "to": "carol@example.org", "subject": "Test", "text": "Test", "o:testmode": True}))

# Events
delivered = wait_for("events.get", lambda: client.events.get(domain=domain, filters={
    "event": "delivered", "recipient": "alice@example.org", "limit": 5}), lambda page: page["items"])[0]
equal(delivered["tags"], ["order", "python"])
equal(delivered["user-variables"], {"order": "17"})
failed = wait_for("events.get, failed", lambda: client.events.get(domain=domain, filters={
    "event": "failed", "severity": "permanent"}), lambda page: page["items"])[0]
equal(failed["recipient"], "nobody@example.org")
# domains_messages.get asks for a path that no version of the API has; resendmessage refuses other hosts than the vendor's.

# Domains
call("domainlist.get", lambda: client.domainlist.get())
created = call("domains.create", lambda: client.domains.create(data={"name": new_domain}))
equal(created["domain"]["name"], new_domain)
call("domains.get", lambda: client.domains.get(domain=new_domain))
call("domains.put", lambda: client.domains.put(domain=new_domain, data={
    "name": new_domain, "spam_action": "disabled"}))
call("domains.put, verify", lambda: client.domains.put(domain=new_domain, verify=True))
call("domains_connection.put", lambda: client.domains_connection.put(
    domain=new_domain, data={"require_tls": "true", "skip_verification": "false"}))
call("domains_connection.get", lambda: client.domains_connection.get(domain=new_domain))
call("domains_tracking_open.put", lambda: client.domains_tracking_open.put(
    domain=new_domain, data={"active": "yes"}))
call("domains_tracking_click.put", lambda: client.domains_tracking_click.put(
    domain=new_domain, data={"active": "yes"}))
call("domains_tracking_unsubscribe.put", lambda: client.domains_tracking_unsubscribe.put(
    domain=new_domain, data={"active": "yes", "html_footer": "<a href='%unsubscribe_url%'>x</a>",
                             "text_footer": "%unsubscribe_url%"}))
call("domains_tracking.get", lambda: client.domains_tracking.get(domain=new_domain))
call("domains_webprefix.put", lambda: client.domains_webprefix.put(
    domain=new_domain, data={"web_prefix": "python"}))
call("domains_dkimselector.put", lambda: client.domains_dkimselector.put(
    domain=new_domain, data={"dkim_selector": "s2"}))
call("domains_dkimauthority.put", lambda: client.domains_dkimauthority.put(
    domain=new_domain, data={"self": "true"}))
call("domains_sendingqueues.get", lambda: client.domains_sendingqueues.get(domain=new_domain))
call("dkim_keys.get", lambda: client.dkim_keys.get(filters={"limit": "10"}))
call("dkim_keys.create", lambda: client.dkim_keys.create(
    data={"signing_domain": new_domain, "selector": "python", "bits": "2048"}))
call("domains_credentials.create", lambda: client.domains_credentials.create(
    domain=new_domain, data={"login": "ann", "password": "long enough 17"}))
call("domains_credentials.get", lambda: client.domains_credentials.get(domain=new_domain))
call("domains_credentials.put", lambda: client.domains_credentials.put(
    domain=new_domain, login=f"ann@{new_domain}", data={"password": "longer than before"}))
call("domains_credentials.delete", lambda: client.domains_credentials.delete(
    domain=new_domain, login=f"ann@{new_domain}"))

# Suppressions
for kind, address, data in (
    ("bounces", "bounce_address", {"code": 550, "error": "Gone"}),
    ("complaints", "complaint_address", {}),
    ("unsubscribes", "unsubscribe_address", {"tag": "*"}),
    ("whitelists", "whitelist_address", {}),
):
    endpoint = getattr(client, kind)
    one = {address: "dora@example.org"}
    call(f"{kind}.create", lambda: endpoint.create(domain=domain, data={"address": "dora@example.org", **data}))
    if kind != "whitelists":
        call(f"{kind}.create, JSON", lambda: endpoint.create(
            domain=domain, data=[{"address": "eve@example.org", **data}],
            headers={"Content-Type": "application/json"}))
    found = call(f"{kind}.get, one", lambda: endpoint.get(domain=domain, **one))
    equal(found.get("address", found.get("value")), "dora@example.org")
    page = call(f"{kind}.get", lambda: endpoint.get(domain=domain))
    assert page["items"] and page["paging"]["next"]
    csv = b"address\nfred@example.org\n"
    call(f"{kind}_import.create", lambda: getattr(client, f"{kind}_import").create(
        domain=domain, files={"file": ("list.csv", csv, "text/csv")}), 202)
    call(f"{kind}.delete, one", lambda: endpoint.delete(domain=domain, **one))
    call(f"{kind}.delete", lambda: endpoint.delete(domain=domain))

# Templates
call("templates.create", lambda: client.templates.create(domain=domain, data={
    "name": "welcome", "description": "First mail", "template": "<p>Hello {{name}}</p>", "tag": "v1",
    "engine": "handlebars"}))
call("templates.create, version", lambda: client.templates.create(
    domain=domain, template_name="welcome", versions=True,
    data={"tag": "v2", "template": "<p>Hi {{name}}</p>", "active": "yes"}))
call("templates.get", lambda: client.templates.get(domain=domain, filters={"limit": 1}))
one = call("templates.get, one", lambda: client.templates.get(
    domain=domain, template_name="welcome", filters={"active": "yes"}))
equal(one["template"]["version"]["tag"], "v2")
call("templates.put", lambda: client.templates.put(
    domain=domain, template_name="welcome", data={"description": "Second"}))
call("templates.get, versions", lambda: client.templates.get(
    domain=domain, template_name="welcome", versions=True))
call("templates.get, version", lambda: client.templates.get(
    domain=domain, template_name="welcome", versions=True, tag="v1"))
call("templates.put, version", lambda: client.templates.put(
    domain=domain, template_name="welcome", versions=True, tag="v1", data={"comment": "changed"}))
call("templates.put, copy", lambda: client.templates.put(
    domain=domain, template_name="welcome", versions=True, tag="v1", copy=True, new_tag="v3"))
call("messages.create, template", lambda: client.messages.create(domain=domain, data={
    "from": f"shop@{domain}", "to": "alice@example.org", "subject": "Welcome", "template": "welcome",
    "t:variables": json.dumps({"name": "Alice"})}))
call("templates.delete, version", lambda: client.templates.delete(
    domain=domain, template_name="welcome", versions=True, tag="v3"))
call("templates.delete", lambda: client.templates.delete(domain=domain, template_name="welcome"))
call("account_templates.create", lambda: client.account_templates.create(
    data={"name": "account", "template": "Hello {{name}}", "tag": "v1"}))
call("account_templates.get", lambda: client.account_templates.get(template_name="account"))
call("account_templates.delete", lambda: client.account_templates.delete(template_name="account"))

# Mailing lists
address = f"news@{domain}"
call("lists.create", lambda: client.lists.create(data={"address": address, "description": "News"}))
call("lists.put", lambda: client.lists.put(address=address, data={"description": "Weekly"}))
call("lists.get", lambda: client.lists.get(address=address))
call("lists_pages.get", lambda: client.lists_pages.get())
call("lists_members.create", lambda: client.lists_members.create(address=address, data={
    "subscribed": True, "address": "alice@example.org", "name": "Alice", "vars": json.dumps({"age": 26})}))
call("lists_members.create, multiple", lambda: client.lists_members.create(address=address, multiple=True, data={
    "upsert": True, "members": json.dumps([{"address": "bob@example.org"}, {"address": "carol@example.org"}])}))
member = call("lists_members.get, one", lambda: client.lists_members.get(
    address=address, member_address="alice@example.org"))
equal(member["member"]["vars"], {"age": 26})
call("lists_members.get", lambda: client.lists_members.get(address=address))
call("lists_members_pages.get", lambda: client.lists_members_pages.get(address=address))
call("lists_members.put", lambda: client.lists_members.put(
    address=address, member_address="alice@example.org", data={"subscribed": False}))
call("lists_members.delete", lambda: client.lists_members.delete(
    address=address, member_address="alice@example.org"))
call("lists.delete", lambda: client.lists.delete(address=address))

# Webhooks
hook = "https://hooks.example/mail"
call("domains_webhooks.create", lambda: client.domains_webhooks.create(
    domain=domain, data={"id": "clicked", "url": [hook]}))
call("domains_webhooks.get", lambda: client.domains_webhooks.get(domain=domain))
one = call("domains_webhooks.get, one", lambda: client.domains_webhooks.get(domain=domain, webhook_name="clicked"))
equal(one["webhook"]["urls"], [hook])
call("domains_webhooks.put", lambda: client.domains_webhooks.put(
    domain=domain, webhook_name="clicked", data=[("url", hook), ("url", f"{hook}2")]))
call("domains_webhooks.delete", lambda: client.domains_webhooks.delete(domain=domain, webhook_name="clicked"))

# Routes
route = call("routes.create", lambda: client.routes.create(data={
    "priority": 1, "description": "Support", "expression": f"match_recipient('support@{domain}')",
    "action": ["forward('https://hooks.example/in')", "stop()"]}))["route"]["id"]
call("routes.get", lambda: client.routes.get(filters={"skip": 0, "limit": 1}))
call("routes.get, one", lambda: client.routes.get(route_id=route))
call("routes_match.get", lambda: client.routes_match.get(filters={"address": f"support@{domain}"}))
call("routes.put", lambda: client.routes.put(route_id=route, data={"priority": 2}))
call("routes.delete", lambda: client.routes.delete(route_id=route))

# Figures
call("stats_total.get", lambda: client.stats_total.get(
    domain=domain, filters={"event": ["accepted", "delivered", "failed"], "duration": "1d"}))
metrics = call("analytics_metrics.create", lambda: client.analytics_metrics.create(data=json.dumps({
    "duration": "1d", "dimensions": ["time"], "metrics": ["accepted_count", "delivered_count"],
    "include_aggregates": True})))
assert metrics["aggregates"]["metrics"]["accepted_count"] >= 4
call("analytics_usage_metrics.create", lambda: client.analytics_usage_metrics.create(data=json.dumps({
    "duration": "1d", "dimensions": ["time"], "metrics": ["processed_count"]})))
call("analytics_logs.create", lambda: client.analytics_logs.create(data=json.dumps({
    "duration": "1d", "events": ["delivered"], "pagination": {"sort": "timestamp:asc", "limit": 5}})))
call("tags.get", lambda: client.tags.get(domain=domain))
call("tags.get, one", lambda: client.tags.get(domain=domain, tag_name="order"))
call("tags.put", lambda: client.tags.put(domain=domain, tag_name="order", data={"description": "Orders"}))
call("tags_stats.get", lambda: client.tags_stats.get(domain=domain, tag_name="order", filters={
    "event": "accepted"}))
call("tags_stats_aggregates_countries.get", lambda: client.tags_stats_aggregates_countries.get(
    domain=domain, tag_name="order"))
call("analytics_tags.create", lambda: client.analytics_tags.create(data=json.dumps(
    {"pagination": {"sort": "lastseen:desc", "limit": 10}, "include_metrics": True})))
call("analytics_tags.update", lambda: client.analytics_tags.update(data=json.dumps(
    {"tag": "order", "description": "All orders"})))
call("analytics_tags_limits.get", lambda: client.analytics_tags_limits.get())
call("tags.delete", lambda: client.tags.delete(domain=domain, tag_name="order"))

# The account
call("ips.get", lambda: client.ips.get())
call("domains_ips.get", lambda: client.domains_ips.get(domain=domain))
call("ippools.get", lambda: client.ippools.get())
call("keys.get", lambda: client.keys.get())
call("domains.delete", lambda: client.domains.delete(domain=new_domain))

print(json.dumps({"versions": {"mailgun": __version__, "requests": requests.__version__,
                               "python": platform.python_version()}}), flush=True)
client.close()
