-- Tags as lists show them (tags-stats.md sections 1 and 2): descriptions, and when they were last used.
ALTER TABLE tags ADD COLUMN description TEXT NOT NULL DEFAULT '';
-- Unix milliseconds, at most an hour late; 0, as in first_seen: no message has carried it yet.
ALTER TABLE tags ADD COLUMN last_seen INTEGER NOT NULL DEFAULT 0;

-- Of the accepted events that are still kept.
UPDATE tags SET last_seen = coalesce((
  SELECT max(timestamp_us) / 1000 FROM event_tags
  WHERE domain_name = (SELECT name FROM domains WHERE id = tags.domain_id)
    AND event_tags.tag = tags.tag_key AND event = 'accepted'), first_seen);

-- One row for each tag that an account has used on any of its domains; written with the rows of `tags`.
CREATE TABLE account_tags (
  account_id TEXT NOT NULL,
  tag_key TEXT NOT NULL,
  tag TEXT NOT NULL,
  -- Its own; those of the domains are in `tags`.
  description TEXT NOT NULL DEFAULT '',
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (account_id, tag_key)
-- only sqlite
) WITHOUT ROWID;
-- only postgres
);
-- all
CREATE INDEX account_tags_last ON account_tags (account_id, last_seen, tag_key);
CREATE INDEX account_tags_first ON account_tags (account_id, first_seen, tag_key);

INSERT INTO account_tags (account_id, tag_key, tag, first_seen, last_seen)
  SELECT account_id, tag_key, min(tag), min(first_seen), max(last_seen) FROM tags GROUP BY account_id, tag_key;
