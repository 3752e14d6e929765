-- Addresses on warm-up. Times are Unix milliseconds.
CREATE TABLE ip_warmups (
  ip TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- From 1.
  stage INTEGER NOT NULL,
  plan_started_at INTEGER NOT NULL,
  stage_started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- The 24 hours that the limit of the stage counts in, and what is used of it.
  window_started_at INTEGER NOT NULL,
  window_used INTEGER NOT NULL,
  -- Sent in earlier windows of the stage.
  stage_used INTEGER NOT NULL,
  -- Messages sent from the address in all when the stage began.
  start_volume INTEGER NOT NULL,
  -- The hour of UTC that the next two count in: messages sent, or granted to a process, and kept away.
  hour_started_at INTEGER NOT NULL,
  hour_used INTEGER NOT NULL,
  hour_diverted INTEGER NOT NULL,
  -- Completed stages: [{first_updated_at, completed_at, limit}].
  history_json TEXT NOT NULL
);
CREATE INDEX ip_warmups_account ON ip_warmups (account_id, ip);
CREATE INDEX ip_warmups_window ON ip_warmups (window_started_at);
