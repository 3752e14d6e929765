-- Sets of an account's dedicated addresses.
CREATE TABLE ip_pools (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX ip_pools_account ON ip_pools (account_id, created_at, id);

-- An address is in one pool at most.
CREATE TABLE ip_pool_members (
  ip TEXT NOT NULL PRIMARY KEY,
  pool_id TEXT NOT NULL,
  linked_at INTEGER NOT NULL
);
CREATE INDEX ip_pool_members_pool ON ip_pool_members (pool_id);

-- Pools that a parent lets subaccounts use: one for each at most.
CREATE TABLE ip_pool_delegations (
  subaccount_id TEXT NOT NULL PRIMARY KEY,
  pool_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX ip_pool_delegations_pool ON ip_pool_delegations (pool_id, subaccount_id);

CREATE INDEX domains_pool ON domains (sending_pool_id, id) WHERE sending_pool_id IS NOT NULL;
