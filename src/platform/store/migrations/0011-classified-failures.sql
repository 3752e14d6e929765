-- One row per failed attempt (bounce-classification.md), written with its event. Narrow, since statistics read many.
CREATE TABLE classified_failures (
  id SEQUENCE,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  recipient_domain TEXT NOT NULL,
  provider TEXT NOT NULL,
  sending_ip TEXT,
  -- Lower-case tags in order, as JSON array; null: none.
  tags_json TEXT,
  rule_id TEXT NOT NULL,
  entity TEXT NOT NULL,
  category TEXT NOT NULL,
  -- PERMANENT, TEMPORARY
  severity TEXT NOT NULL,
  critical INTEGER NOT NULL,
  -- The reply, addresses masked.
  sample TEXT NOT NULL,
  failed_at INTEGER NOT NULL
);
CREATE INDEX classified_failures_time ON classified_failures (failed_at);
CREATE INDEX classified_failures_account ON classified_failures (account_id, failed_at);
-- The newest reply of each rule, without reading the rows between.
CREATE INDEX classified_failures_rule ON classified_failures (account_id, rule_id, id);
