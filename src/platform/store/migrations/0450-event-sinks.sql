-- Where the operator has all events sent, besides webhooks. The place of each is its row in event_followers, "sink:<name>".
CREATE TABLE event_sinks (
  name TEXT NOT NULL PRIMARY KEY,
  -- http, s3, syslog, stdout, nats, amqp or kafka.
  kind TEXT NOT NULL,
  -- What is no secret: address, topic, format, filters.
  settings_json TEXT NOT NULL,
  secret_sealed BLOB,
  -- Events that it has taken, and when the last ones.
  sent INTEGER NOT NULL DEFAULT 0,
  sent_at INTEGER,
  -- Events that were too old when it could have had them, and from when the first and the last one are.
  skipped INTEGER NOT NULL DEFAULT 0,
  skipped_from INTEGER,
  skipped_to INTEGER,
  -- Since when it takes nothing, and why; null: it does.
  failing_since INTEGER,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
