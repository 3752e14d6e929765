-- How many days an account, or one of its domains, keeps data of a kind: messages, events or dialogues. Without a row the
-- service's settings hold. An empty domain_id: all domains of the account that have no row of their own.
CREATE TABLE retention_settings (
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  days INTEGER NOT NULL,
  PRIMARY KEY (account_id, domain_id, kind)
);
CREATE INDEX retention_settings_kind ON retention_settings (kind, days);
