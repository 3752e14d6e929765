-- The workspace of Slack that notices of an account go to, with the token of an app there (alerts.md section 6).
CREATE TABLE alert_slack (
  account_id TEXT NOT NULL PRIMARY KEY,
  -- JSON; the token in it is a secret.
  workspace_sealed BLOB NOT NULL,
  updated_at INTEGER NOT NULL
);
