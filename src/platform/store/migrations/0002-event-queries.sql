-- What the event queries need (docs/decisions: event pages). Every event carries its place in the order in
-- which commits became final: (tx, seq). On SQLite the only writer commits in the order of seq, and tx is 0.
-- On PostgreSQL tx is the writing transaction; rows below the oldest running one are final.

ALTER TABLE events ADD COLUMN tx INTEGER NOT NULL DEFAULT 0;
-- JSON array of the tags in lower case; null: none.
ALTER TABLE events ADD COLUMN tags_json TEXT;
-- 32 bits of the domain and the recipient in lower case (recipientHash in src/watching/events/event.ts): an index over the
-- addresses themselves is three times as large, and its random pages are most of what an event costs.
-- Null on rows of schema version 1, which a query by recipient does not find.
ALTER TABLE events ADD COLUMN recipient_hash INTEGER;

DROP INDEX events_domain_time;
DROP INDEX events_message;
CREATE INDEX events_time ON events (account_id, domain_name, timestamp_us, seq);
CREATE INDEX events_commit ON events (domain_name, tx, seq);
CREATE INDEX events_event ON events (domain_name, event, timestamp_us, seq);
CREATE INDEX events_recipient ON events (recipient_hash, timestamp_us, seq);
CREATE INDEX events_message ON events (message_id, timestamp_us, seq);

-- One narrow row per tag of an event, kept by triggers, so that no writer of events can forget it.
-- only sqlite
CREATE TABLE event_tags (
  domain_name TEXT NOT NULL,
  tag TEXT NOT NULL,
  event TEXT NOT NULL,
  timestamp_us INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (domain_name, tag, event, timestamp_us, seq)
) WITHOUT ROWID;

CREATE TRIGGER event_tags_add AFTER INSERT ON events WHEN NEW.tags_json IS NOT NULL BEGIN
  INSERT OR IGNORE INTO event_tags
    SELECT NEW.domain_name, value, NEW.event, NEW.timestamp_us, NEW.seq FROM json_each(NEW.tags_json);
END;

CREATE TRIGGER event_tags_remove AFTER DELETE ON events WHEN OLD.tags_json IS NOT NULL BEGIN
  DELETE FROM event_tags WHERE domain_name = OLD.domain_name AND event = OLD.event
    AND timestamp_us = OLD.timestamp_us AND seq = OLD.seq
    AND tag IN (SELECT value FROM json_each(OLD.tags_json));
END;

UPDATE events SET tags_json = CASE WHEN json_array_length(payload_json, '$.tags') > 0
    THEN lower(json_extract(payload_json, '$.tags')) END;

INSERT OR IGNORE INTO event_tags SELECT domain_name, tag.value, event, timestamp_us, seq
  FROM events, json_each(events.tags_json) AS tag WHERE tags_json IS NOT NULL;

-- only postgres
ALTER TABLE events ALTER COLUMN tx SET DEFAULT pg_current_xact_id()::text::bigint;

CREATE TABLE event_tags (
  domain_name TEXT NOT NULL,
  tag TEXT NOT NULL,
  event TEXT NOT NULL,
  timestamp_us INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (domain_name, tag, event, timestamp_us, seq)
);

CREATE FUNCTION event_tags_add() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_tags
    SELECT NEW.domain_name, value, NEW.event, NEW.timestamp_us, NEW.seq
    FROM jsonb_array_elements_text(NEW.tags_json::jsonb) AS value
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE FUNCTION event_tags_remove() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM event_tags WHERE domain_name = OLD.domain_name AND event = OLD.event
    AND timestamp_us = OLD.timestamp_us AND seq = OLD.seq
    AND tag IN (SELECT value FROM jsonb_array_elements_text(OLD.tags_json::jsonb) AS value);
  RETURN NULL;
END $$;

CREATE TRIGGER event_tags_add AFTER INSERT ON events FOR EACH ROW
  WHEN (NEW.tags_json IS NOT NULL) EXECUTE FUNCTION event_tags_add();
CREATE TRIGGER event_tags_remove AFTER DELETE ON events FOR EACH ROW
  WHEN (OLD.tags_json IS NOT NULL) EXECUTE FUNCTION event_tags_remove();

UPDATE events SET tags_json = CASE WHEN payload_json::jsonb -> 'tags' <> '[]'::jsonb
    THEN lower((payload_json::jsonb -> 'tags')::text) END;

INSERT INTO event_tags SELECT domain_name, tag, event, timestamp_us, seq
  FROM events, jsonb_array_elements_text(events.tags_json::jsonb) AS tag WHERE tags_json IS NOT NULL
  ON CONFLICT DO NOTHING;
-- all
