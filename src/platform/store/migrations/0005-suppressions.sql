-- Who must not be sent to, per sending domain, and the allowlist beside it. `kind`: bounces, complaints,
-- unsubscribes, whitelists. `address` is in lower case; in the allowlist it may be a bare domain.
-- The key serves the check before an attempt as well as pages in the order of the addresses.
-- `detail`: error text of a bounce, reason of an allowlist entry. `event_id`: the event that made the record,
-- null for records given by a caller. After `expires_at` a record counts no more.
CREATE TABLE suppressions (
  domain_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  account_id TEXT NOT NULL,
  code TEXT NOT NULL,
  detail TEXT NOT NULL,
  event_id TEXT,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (domain_id, kind, address)
);

-- What an unsubscribe covers; tag_key is the tag in lower case, '*' means all mail of the domain and then
-- stands alone.
CREATE TABLE unsubscribe_tags (
  domain_id TEXT NOT NULL,
  address TEXT NOT NULL,
  tag_key TEXT NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (domain_id, address, tag_key)
);

-- Only domains that have set a policy; without a row the first hard bounce suppresses for ever.
CREATE TABLE suppression_policies (
  domain_id TEXT NOT NULL PRIMARY KEY,
  hard_bounces_to_suppress INTEGER NOT NULL,
  soft_bounces_to_suppress INTEGER NOT NULL,
  window_days INTEGER NOT NULL,
  lifetime_days INTEGER NOT NULL
);

-- Bounces that a policy may still count; only of domains that have one. `severity`: hard, soft.
CREATE TABLE counted_bounces (
  event_id TEXT NOT NULL PRIMARY KEY,
  domain_id TEXT NOT NULL,
  address TEXT NOT NULL,
  severity TEXT NOT NULL,
  bounced_at INTEGER NOT NULL
);
CREATE INDEX counted_bounces_address ON counted_bounces (domain_id, address, bounced_at);

-- Uploaded CSV files until all of their rows are taken in.
CREATE TABLE suppression_imports (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  blob TEXT NOT NULL,
  rows_done INTEGER NOT NULL,
  rows_bad INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);

-- Changes made through the API: who, what, when, from where.
CREATE TABLE audit (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  remote_address TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail_json TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX audit_newest ON audit (account_id, id);
