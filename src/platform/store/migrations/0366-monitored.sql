-- What accounts say of the domains and addresses that are looked up in blocklists. Times are Unix milliseconds.

-- Domains besides the sending domains, and sending domains that are not monitored.
CREATE TABLE monitored_domains (
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- 1: a sending domain that the account has removed.
  is_removed INTEGER NOT NULL,
  -- The text of the TXT record that verifies it.
  txt_record TEXT NOT NULL,
  -- Null: not verified.
  verified_at INTEGER,
  -- DNS is asked again at this time, and not after `looked_until`; null: it is not being verified.
  next_look_at INTEGER,
  looked_until INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
);
CREATE INDEX monitored_domains_due ON monitored_domains (next_look_at);

-- Addresses that an account has described or removed.
CREATE TABLE monitored_ips (
  account_id TEXT NOT NULL,
  ip TEXT NOT NULL,
  ip_pool TEXT NOT NULL,
  description TEXT NOT NULL,
  is_removed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, ip)
);
