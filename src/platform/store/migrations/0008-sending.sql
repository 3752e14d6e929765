-- What a mailing list adds to the copy that goes through it; NULL for direct recipients.
ALTER TABLE deliveries ADD COLUMN list_json TEXT;

-- How many deliveries of a domain wait, and which to drop.
CREATE INDEX deliveries_of_domain ON deliveries (domain_id, state) WHERE state IN ('scheduled', 'queued', 'sending');

-- Copies of delivered mail to be posted to an archive. `head` is the exact header block as sent; the body is
-- composed again from the delivery, to the same bytes.
CREATE TABLE archive_outbox (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  delivery_id TEXT NOT NULL,
  url TEXT NOT NULL,
  head TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX archive_outbox_due ON archive_outbox (due_at, id) WHERE state = 'waiting';
CREATE INDEX archive_outbox_delivery ON archive_outbox (delivery_id);

-- Queues that had too many messages: no sending until then.
CREATE TABLE disabled_queues (
  domain_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (domain_id, queue)
);

-- Answers to repeat. Without a status the first call is still running.
CREATE TABLE idempotency_keys (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  status INTEGER,
  body TEXT,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- Retention looks for messages by age.
CREATE INDEX messages_created ON messages (created_at, id);
