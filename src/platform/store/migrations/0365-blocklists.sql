-- Blocklists that the service watches. Times are Unix milliseconds.

-- The blocklists that have the address, where that is why it is left for the provider; null: the provider's replies are.
ALTER TABLE ip_blocks ADD COLUMN listed_by TEXT;

-- An address or registrable domain in a list that it is looked up in.
CREATE TABLE blocklist_checks (
  list TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- The last usable answer; null: none yet.
  checked_at INTEGER,
  next_at INTEGER NOT NULL,
  -- Null: it is not listed.
  listed_since INTEGER,
  -- The last answer that said so.
  listed_at INTEGER,
  -- The list's code for it, such as 127.0.0.2; '' unless listed.
  code TEXT NOT NULL,
  -- Answers in a row that it is listed no more.
  misses INTEGER NOT NULL,
  PRIMARY KEY (list, subject)
);
CREATE INDEX blocklist_checks_due ON blocklist_checks (list, next_at);

-- Whether the test entries of a list were as they must be, for each kind of subject.
CREATE TABLE blocklist_states (
  list TEXT NOT NULL,
  -- ipv4, ipv6 or domain.
  kind TEXT NOT NULL,
  -- Why its answers do not count; '': they do.
  fault TEXT NOT NULL,
  checked_at INTEGER NOT NULL,
  PRIMARY KEY (list, kind)
);

-- Destinations whose refusals have named a list.
CREATE TABLE blocklist_users (
  list TEXT NOT NULL,
  -- As in the names of lanes.
  site TEXT NOT NULL,
  provider TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (list, site)
);

-- What was listed and delisted, for each account that has it.
CREATE TABLE blocklist_events (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- ip or domain.
  kind TEXT NOT NULL,
  -- The address, or the domain of the account.
  subject TEXT NOT NULL,
  list TEXT NOT NULL,
  -- listed or delisted.
  event TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX blocklist_events_account ON blocklist_events (account_id, kind, id);
CREATE INDEX blocklist_events_created ON blocklist_events (created_at);
