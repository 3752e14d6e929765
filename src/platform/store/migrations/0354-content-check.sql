-- Messages that the content check keeps for a person. Times are Unix milliseconds.
CREATE TABLE content_holds (
  message_pk TEXT NOT NULL PRIMARY KEY,
  -- Of the account and the content: one decision is for all messages of the same.
  digest TEXT NOT NULL,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  -- Such as `score 15.3`.
  reason TEXT NOT NULL,
  held_at INTEGER NOT NULL,
  -- `released` or `dropped`; null: nobody has decided.
  decision TEXT,
  decided_at INTEGER
);
CREATE INDEX content_holds_digest ON content_holds (digest, message_pk);
CREATE INDEX content_holds_account ON content_holds (account_id, digest);
CREATE INDEX content_holds_decided ON content_holds (decided_at, message_pk) WHERE decided_at IS NOT NULL;

-- Their deliveries. No other delivery has an entry.
CREATE INDEX deliveries_content_held ON deliveries (message_pk, id)
  WHERE reason = 'content-held' AND state IN ('scheduled', 'queued');

-- What the content check said, by the hour.
CREATE TABLE content_checks (
  account_id TEXT NOT NULL,
  -- Start of the hour, Unix milliseconds.
  hour INTEGER NOT NULL,
  domain_name TEXT NOT NULL,
  checked INTEGER NOT NULL,
  -- Tagged, held or refused.
  bad INTEGER NOT NULL,
  PRIMARY KEY (account_id, hour, domain_name)
);
CREATE INDEX content_checks_age ON content_checks (hour);
