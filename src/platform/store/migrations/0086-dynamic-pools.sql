-- Sets of an account's dedicated addresses for its domains by their reputation, and which set a domain is in.
ALTER TABLE domains ADD COLUMN dynamic_pool_id TEXT;
CREATE INDEX domains_dynamic_pool ON domains (dynamic_pool_id, id) WHERE dynamic_pool_id IS NOT NULL;

-- All three bands of an account, or none.
CREATE TABLE dynamic_pools (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- dynamic_good, dynamic_poor, dynamic_new
  band TEXT NOT NULL
);
CREATE UNIQUE INDEX dynamic_pools_account ON dynamic_pools (account_id, band);

-- An address is in one pool at most, these and those of ip_pool_members together.
CREATE TABLE dynamic_pool_members (
  ip TEXT NOT NULL PRIMARY KEY,
  pool_id TEXT NOT NULL,
  added_at INTEGER NOT NULL
);
CREATE INDEX dynamic_pool_members_pool ON dynamic_pool_members (pool_id);

-- Enrolled domains. Times are Unix milliseconds, rates are millionths.
CREATE TABLE dynamic_pool_domains (
  domain_id TEXT NOT NULL PRIMARY KEY,
  -- Of the domain, and the one that has the pools: the same, or its parent.
  account_id TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  name TEXT NOT NULL,
  band TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  -- 1: checks leave it where it is.
  is_pinned INTEGER NOT NULL,
  next_check_at INTEGER NOT NULL,
  -- Checks in a row whose result was not the poor band.
  clean_checks INTEGER NOT NULL,
  -- Of the last check; NULL where there is nothing to divide by.
  processed INTEGER NOT NULL,
  bounce_ppm INTEGER,
  complaint_ppm INTEGER
);
CREATE INDEX dynamic_pool_domains_owner ON dynamic_pool_domains (owner_id, name);
CREATE INDEX dynamic_pool_domains_account ON dynamic_pool_domains (account_id, name);
CREATE INDEX dynamic_pool_domains_due ON dynamic_pool_domains (next_check_at) WHERE is_pinned = 0;

-- Changes of bands. A deleted domain's stay.
CREATE TABLE dynamic_pool_history (
  id TEXT NOT NULL PRIMARY KEY,
  owner_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  account_name TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  -- '': not enrolled.
  new_band TEXT NOT NULL,
  prev_band TEXT NOT NULL,
  reason TEXT NOT NULL,
  processed INTEGER,
  bounce_ppm INTEGER,
  complaint_ppm INTEGER,
  -- system, or the id of a user or key
  initiated_by TEXT NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX dynamic_pool_history_owner ON dynamic_pool_history (owner_id, at, id);
CREATE INDEX dynamic_pool_history_account ON dynamic_pool_history (account_id, at, id);
CREATE INDEX dynamic_pool_history_domain ON dynamic_pool_history (owner_id, domain_name, at, id);
CREATE INDEX dynamic_pool_history_at ON dynamic_pool_history (at);

-- Enrolments of all domains of an account: one at a time.
CREATE TABLE dynamic_pool_tasks (
  account_id TEXT NOT NULL PRIMARY KEY,
  with_subaccounts INTEGER NOT NULL,
  initiated_by TEXT NOT NULL,
  -- The id of the last domain that was looked at.
  position TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);
