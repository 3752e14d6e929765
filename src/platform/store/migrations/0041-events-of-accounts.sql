-- Logs are lists over all domains of accounts (metrics-logs.md section 5): the events of an account by name, in order of
-- time (decision 67).
-- only sqlite
CREATE INDEX event_index_account ON event_index (account_id, event, timestamp_us);
-- only postgres
CREATE INDEX events_account ON events (account_id, event, timestamp_us, seq);
-- all
