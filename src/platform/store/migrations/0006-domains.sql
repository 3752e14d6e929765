-- `dkim_authority` is the chosen one; `signing_authority` the former one, which signs until the chosen one has an
-- active key. `dkim_unverified`: the authority changed and its records were not looked at for this domain since.
-- `verified`: what the last look at DNS said, kept apart from `state` because a disablement hides it.
ALTER TABLE domains ADD COLUMN signing_authority TEXT;
ALTER TABLE domains ADD COLUMN dkim_unverified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN tracking_valid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN sending_ips_json TEXT;
ALTER TABLE domains ADD COLUMN sending_pool_id TEXT;
CREATE INDEX domains_authority ON domains (dkim_authority);

-- What DNS returned for the records of a domain at the last look; the check of a DKIM record is with its key.
-- `state_since`: since when the domain has been verified or not; the pace of background checks follows from it.
CREATE TABLE domain_dns (
  domain_id TEXT NOT NULL PRIMARY KEY,
  checks_json TEXT NOT NULL,
  state_since INTEGER NOT NULL,
  next_check_at INTEGER NOT NULL
);
CREATE INDEX domain_dns_due ON domain_dns (next_check_at);

-- `next_selector`: the name that takes over once DNS has it. `activates`: the first valid check makes the key sign.
-- `managed`: belongs to automatic sender security.
ALTER TABLE dkim_keys ADD COLUMN next_selector TEXT;
ALTER TABLE dkim_keys ADD COLUMN check_json TEXT;
ALTER TABLE dkim_keys ADD COLUMN activates INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dkim_keys ADD COLUMN managed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX dkim_keys_account ON dkim_keys (account_id, authority);

-- Domains on their way out: no longer listed, their name taken until everything of theirs is gone.
CREATE TABLE domain_deletions (
  domain_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  domain_json TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL
);

-- A domain without a row has the defaults. `clicks`: no, yes or htmlonly. A footer of NULL is the default one.
CREATE TABLE tracking_settings (
  domain_id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  opens INTEGER NOT NULL,
  opens_at_top INTEGER NOT NULL,
  clicks TEXT NOT NULL,
  unsubscribe INTEGER NOT NULL,
  html_footer TEXT,
  text_footer TEXT
);

-- Automatic sender security. `sid` names the domain within the DKIM zone. `rotation_json`: a rotation under way.
CREATE TABLE sender_security (
  domain_id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  sid TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  active_selector TEXT,
  rotation_enabled INTEGER NOT NULL,
  rotation_interval TEXT NOT NULL,
  rotated_at INTEGER NOT NULL,
  grace_until INTEGER,
  rotation_json TEXT
);
