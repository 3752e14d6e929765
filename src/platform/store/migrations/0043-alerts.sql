-- Alerts on sending metrics (alerts.md).
CREATE TABLE alerts (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  account_group TEXT,
  metric TEXT NOT NULL,
  comparator TEXT NOT NULL,
  -- As given: `.99`, `0.05`.
  limit_text TEXT NOT NULL,
  dimension TEXT NOT NULL,
  channels_json TEXT NOT NULL,
  filters_json TEXT NOT NULL,
  -- `1h`, `7d`
  period TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Increases with every change: a check writes nothing for an alert that was changed meanwhile.
  updated_at INTEGER NOT NULL,
  last_checked_at INTEGER,
  UNIQUE (account_id, name)
);

-- One row per alert and dimension value from its first true check on, until some days after it has ended.
CREATE TABLE alert_hits (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- The id of the alert, or the name of one of the service's own checks.
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  metric TEXT NOT NULL,
  comparator TEXT NOT NULL,
  limit_text TEXT NOT NULL,
  dimension TEXT NOT NULL,
  dimension_value TEXT NOT NULL,
  latest_value TEXT NOT NULL,
  -- Of the service's own checks: what is wrong and what to do. Empty for others.
  advice TEXT NOT NULL,
  triggered INTEGER NOT NULL,
  -- Checks in a row for which it was false.
  misses INTEGER NOT NULL,
  -- Since when the condition has held; the check that saw it first may have been later.
  since_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- Null while triggered.
  expires_at INTEGER
);
CREATE UNIQUE INDEX alert_hits_open ON alert_hits (source, dimension_value) WHERE triggered = 1;
CREATE INDEX alert_hits_source ON alert_hits (source);
CREATE INDEX alert_hits_newest ON alert_hits (account_id, created_at, id);
CREATE INDEX alert_hits_expired ON alert_hits (expires_at) WHERE expires_at IS NOT NULL;

-- Where the notices of an event type go.
CREATE TABLE alert_settings (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  channel TEXT NOT NULL,
  -- JSON; the URLs in it are secrets.
  settings_sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX alert_settings_account ON alert_settings (account_id, created_at, id);

-- Notices that have not been delivered yet, written with the change of the hit that they are about. Mail is sent by a
-- job, the others are posted by the queue of `outgoing_posts`, whose `subject` is the id.
CREATE TABLE alert_notices (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  hit_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  -- Null: mail to the account's admins.
  setting_id TEXT,
  -- Of mail; else empty.
  recipient TEXT NOT NULL,
  content_json TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX alert_notices_mail ON alert_notices (due_at, id) WHERE channel = 'email';
CREATE INDEX alert_notices_hit ON alert_notices (hit_id);
CREATE INDEX alert_notices_setting ON alert_notices (setting_id) WHERE setting_id IS NOT NULL;
CREATE INDEX alert_notices_account ON alert_notices (account_id);
CREATE INDEX alert_notices_age ON alert_notices (created_at);
