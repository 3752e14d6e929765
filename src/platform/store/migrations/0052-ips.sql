-- Addresses that mail is sent from, in canonical form: what the configurations of all processes name.
CREATE TABLE ips (
  ip TEXT NOT NULL PRIMARY KEY,
  is_dedicated INTEGER NOT NULL,
  -- Null: shared, or dedicated and given to no account.
  account_id TEXT,
  is_enabled INTEGER NOT NULL,
  -- 1: a warm-up starts when it is assigned to a domain or pool for the first time.
  warms_when_assigned INTEGER NOT NULL,
  -- Of the last check; null: none yet. `rdns` is the confirmed name, '' without one.
  rdns TEXT NOT NULL,
  is_bound INTEGER,
  is_confirmed INTEGER,
  fault TEXT NOT NULL,
  checked_at INTEGER,
  -- When a process had it in its configuration last.
  seen_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX ips_account ON ips (account_id);

-- Counts the changes of everything that says which address mail leaves from, except the settings of domains: tells
-- processes when to read it again, and its lock puts changes in an order.
CREATE TABLE ip_changes (
  id INTEGER NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL
);
INSERT INTO ip_changes (id, version) VALUES (1, 0);

-- Accounts that may not send from shared addresses.
CREATE TABLE shared_ip_exclusions (
  account_id TEXT NOT NULL PRIMARY KEY
);

-- The domains that have an address of their own, by address: a copy of domains.sending_ips_json.
CREATE TABLE domain_ips (
  domain_id TEXT NOT NULL,
  ip TEXT NOT NULL,
  account_id TEXT NOT NULL,
  PRIMARY KEY (domain_id, ip)
);
CREATE INDEX domain_ips_ip ON domain_ips (ip, account_id, domain_id);
-- only sqlite
INSERT INTO domain_ips (domain_id, ip, account_id)
  SELECT DISTINCT domains.id, one.value, account_id FROM domains, json_each(sending_ips_json) AS one
  WHERE sending_ips_json IS NOT NULL;
-- only postgres
INSERT INTO domain_ips (domain_id, ip, account_id)
  SELECT DISTINCT domains.id, one.value, account_id
  FROM domains, json_array_elements_text(sending_ips_json::json) AS one(value)
  WHERE sending_ips_json IS NOT NULL;
-- all

-- Changes of many domains, made a portion at a time. The row goes when all is done.
CREATE TABLE ip_tasks (
  -- The reference id of the answer.
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  params_json TEXT NOT NULL,
  -- Id of the last domain that was looked at; '' at first.
  position TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Of the last step: the one longest ago is next.
  updated_at INTEGER NOT NULL
);
CREATE INDEX ip_tasks_next ON ip_tasks (updated_at, id);
CREATE INDEX ip_tasks_account ON ip_tasks (account_id);
