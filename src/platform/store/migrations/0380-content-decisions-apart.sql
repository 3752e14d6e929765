-- What was decided on contents that the content check had held. A decision is for messages that are held later, too. The columns
-- `decision` and `decided_at` of `content_holds` are not used any more.
CREATE TABLE content_decisions (
  digest TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- `released` or `dropped`.
  decision TEXT NOT NULL,
  -- Unix milliseconds.
  decided_at INTEGER NOT NULL
);
CREATE INDEX content_decisions_account ON content_decisions (account_id, digest);
CREATE INDEX content_decisions_age ON content_decisions (decided_at, digest);
INSERT INTO content_decisions (digest, account_id, decision, decided_at)
  SELECT digest, min(account_id), min(decision), max(decided_at) FROM content_holds
  WHERE decision IS NOT NULL GROUP BY digest;

-- How often deliveries of the message were held: who removes the row names the count that it has seen.
ALTER TABLE content_holds ADD COLUMN holds INTEGER NOT NULL DEFAULT 1;
