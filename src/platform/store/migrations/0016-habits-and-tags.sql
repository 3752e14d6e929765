-- When people open and click (messages.md rules 44 and 45): their own events alone, without those of programs, and
-- few of them beside the accepted and delivered ones, to which this index costs nothing.
-- only sqlite
CREATE INDEX events_human ON events (recipient_hash, event, timestamp_us, recipient, domain_name, account_id)
  WHERE event IN ('opened', 'clicked') AND json_extract(payload_json, '$."client-info".bot') = '';
-- only postgres
CREATE INDEX events_human ON events (recipient_hash, event, timestamp_us, recipient, domain_name, account_id)
  WHERE event IN ('opened', 'clicked') AND (payload_json::json -> 'client-info' ->> 'bot') = '';
-- all

-- The tags that a domain has used, counted against its limit (messages.md rule 33).
CREATE TABLE tags (
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  tag_key TEXT NOT NULL,
  -- The first spelling seen.
  tag TEXT NOT NULL,
  first_seen INTEGER NOT NULL,
  PRIMARY KEY (domain_id, tag_key)
);
CREATE INDEX tags_account ON tags (account_id, tag_key);
