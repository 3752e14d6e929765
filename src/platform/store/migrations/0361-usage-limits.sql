-- Limits of what is no mail, which accounts set for themselves and their subaccounts (alerts.md section 7). The columns are
-- those of alerts.
CREATE TABLE usage_limits (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  account_group TEXT,
  metric TEXT NOT NULL,
  comparator TEXT NOT NULL,
  limit_text TEXT NOT NULL,
  dimension TEXT NOT NULL,
  channels_json TEXT NOT NULL,
  filters_json TEXT NOT NULL,
  period TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_checked_at INTEGER,
  UNIQUE (account_id, name)
);

-- What the limits count, by the hour. Nobody can delete what was used.
CREATE TABLE usage_hours (
  account_id TEXT NOT NULL,
  metric TEXT NOT NULL,
  hour_at INTEGER NOT NULL,
  domain_name TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (account_id, metric, hour_at, domain_name)
);
CREATE INDEX usage_hours_age ON usage_hours (hour_at);
