-- Answers under an Idempotency-Key are sealed from now on. Those of the last day, in plain text, are dropped: a call
-- that is repeated across the upgrade acts again.
-- only sqlite
-- Their bytes are overwritten instead of left behind in free pages.
PRAGMA secure_delete = ON;
-- all
DELETE FROM idempotency_keys;
DROP TABLE idempotency_keys;
-- only sqlite
PRAGMA secure_delete = OFF;
-- all
CREATE TABLE idempotency_keys (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  -- A MAC of method, path and everything the request carried.
  digest TEXT NOT NULL,
  -- NULL while the first call runs.
  status INTEGER,
  -- JSON, bound to account and key.
  body_sealed BLOB,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- NULL: written by the service itself, or by an earlier version.
ALTER TABLE audit ADD COLUMN request_id TEXT;
-- The account whose caller acted for this one; NULL: its own.
ALTER TABLE audit ADD COLUMN parent_account_id TEXT;
-- Of the answer. NULL: the process ended before the outcome was known.
ALTER TABLE audit ADD COLUMN status INTEGER;
CREATE INDEX audit_action ON audit (account_id, action, id);
CREATE INDEX audit_key ON audit (account_id, key_id, id);
CREATE INDEX audit_subject ON audit (account_id, subject, id);
