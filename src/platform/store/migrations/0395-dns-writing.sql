-- Where the records of an account's domains can be written, and the credentials for that.
CREATE TABLE dns_providers (
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- rfc2136, cloudflare, route53, desec or hetzner.
  kind TEXT NOT NULL,
  -- What is no secret: server, name of the key, address of the interface.
  settings_json TEXT NOT NULL,
  secret_sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- What was written for a domain, and what stood there before.
CREATE TABLE dns_changes (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- The change that this one took back; null: it wrote the records of the domain.
  undoes TEXT,
  -- writing, done, failed or undone.
  state TEXT NOT NULL,
  -- By set: records that went and came, and whether that is known to have happened.
  changes_json TEXT NOT NULL,
  -- Why it failed; null: it did not.
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX dns_changes_domain ON dns_changes (domain_id, created_at);
-- One at a time.
CREATE UNIQUE INDEX dns_changes_writing ON dns_changes (domain_id) WHERE state = 'writing';
