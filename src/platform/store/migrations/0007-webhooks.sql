-- POSTs that have to leave, one row per event and URL, written in the transaction of what they tell and removed
-- with their last attempt. `lane` is a digest of the URL: the rows of one lane wait for each other, lanes do not.
-- `subject` is what the kind tells about: of a webhook the event's id. `account_id` owns the URL.
CREATE TABLE outgoing_posts (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  account_id TEXT NOT NULL,
  lane TEXT NOT NULL,
  url TEXT NOT NULL,
  subject TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX outgoing_posts_lane ON outgoing_posts (lane, due_at, id);

-- Which process works on a lane. The token fences: an outcome counts only under the token of its lane.
CREATE TABLE outgoing_leases (
  lane TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  token TEXT NOT NULL,
  until_at INTEGER NOT NULL
);

-- Webhooks of a domain, one row per type and URL; `position` is the order in which they are listed.
CREATE TABLE domain_webhooks (
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  event_type TEXT NOT NULL,
  url TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (account_id, domain_name, event_type, url)
);

CREATE TABLE account_webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  event_types_json TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX account_webhooks_account ON account_webhooks (account_id);

-- Counts the changes of both tables: tells other processes when to read them again, and its lock puts changes
-- in an order.
CREATE TABLE webhook_changes (
  id INTEGER NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL
);
INSERT INTO webhook_changes (id, version) VALUES (1, 0);

-- What each attempt came to; kept for some days. `domain_name` is the event's.
CREATE TABLE webhook_attempts (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  url TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL,
  status_code INTEGER,
  error TEXT,
  response TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  next_attempt_at INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX webhook_attempts_newest ON webhook_attempts (account_id, id);
CREATE INDEX webhook_attempts_failed ON webhook_attempts (account_id, id) WHERE status <> 'ok';
