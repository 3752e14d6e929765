-- SQLite: what finds events is written in bulk, a moment behind them (decision 45). An event then costs its own row,
-- instead of a place in six b-trees, five of which every commit wrote a page of.
--
-- event_keys and event_tag_keys are what queries read on both databases: the index, and behind it the events that are
-- not in it yet.

-- only sqlite
-- Every event up to the place below.
CREATE TABLE event_index (
  seq INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  event TEXT NOT NULL,
  timestamp_us INTEGER NOT NULL,
  message_id TEXT,
  recipient_hash INTEGER,
  -- 16,384 events each.
  segment INTEGER GENERATED ALWAYS AS (seq >> 14) VIRTUAL
);
-- Each of them ends in seq.
CREATE INDEX event_index_time ON event_index (account_id, domain_name, timestamp_us);
CREATE INDEX event_index_domain ON event_index (domain_name);
CREATE INDEX event_index_event ON event_index (domain_name, event, timestamp_us);
CREATE INDEX event_index_message ON event_index (message_id, timestamp_us);
-- Hashes are spread at random: over all events each would have a page of its own to write. So they are in order within
-- segments, and a search looks into each segment of its time.
CREATE INDEX event_index_recipient ON event_index (segment, recipient_hash, timestamp_us);

-- Between which times the events of a segment lie; some of them may be gone.
CREATE TABLE event_segments (
  segment INTEGER PRIMARY KEY,
  low_us INTEGER NOT NULL,
  high_us INTEGER NOT NULL
);

-- One row: the last event that is indexed.
CREATE TABLE event_index_place (seq INTEGER NOT NULL);

INSERT INTO event_index (seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash)
  SELECT seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash FROM events ORDER BY seq;
INSERT INTO event_segments
  SELECT segment, min(timestamp_us), max(timestamp_us) FROM event_index GROUP BY segment;
INSERT INTO event_index_place SELECT coalesce(max(seq), 0) FROM events;

DROP INDEX events_time;
DROP INDEX events_commit;
DROP INDEX events_event;
DROP INDEX events_recipient;
DROP INDEX events_message;
DROP TRIGGER event_tags_add;

CREATE TRIGGER event_index_remove AFTER DELETE ON events BEGIN
  DELETE FROM event_index WHERE seq = OLD.seq;
END;

CREATE VIEW event_keys AS
  SELECT seq, 0 AS tx, account_id, domain_name, event, timestamp_us, message_id, recipient_hash FROM event_index
  UNION ALL
  -- The casts keep SQLite from reading all events to make an index of its own over what a join compares.
  SELECT seq, 0 AS tx, CAST(account_id AS TEXT) AS account_id, CAST(domain_name AS TEXT) AS domain_name,
    CAST(event AS TEXT) AS event, timestamp_us, message_id, recipient_hash FROM events
  WHERE seq > (SELECT seq FROM event_index_place);

CREATE VIEW event_tag_keys AS
  SELECT domain_name, tag, event, timestamp_us, seq FROM event_tags
  UNION ALL
  SELECT domain_name, CAST(value AS TEXT) AS tag, event, timestamp_us, seq
  FROM events CROSS JOIN json_each(tags_json)
  WHERE seq > (SELECT seq FROM event_index_place);

-- only postgres
CREATE VIEW event_keys AS
  SELECT seq, tx, account_id, domain_name, event, timestamp_us, message_id, recipient_hash FROM events;
CREATE VIEW event_tag_keys AS SELECT domain_name, tag, event, timestamp_us, seq FROM event_tags;
-- all
