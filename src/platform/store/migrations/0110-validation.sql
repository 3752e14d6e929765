-- Validation of addresses (validation.md).

-- Lists of addresses that are being validated, or were. A preview is one too.
CREATE TABLE validation_jobs (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- bulk, preview
  kind TEXT NOT NULL,
  -- Given by the caller; a deleted job has '@' and its own id, which no caller can give.
  list_id TEXT NOT NULL,
  -- Whose members are validated; null: those of a file.
  mailing_list_id TEXT,
  -- The file, while it is needed.
  blob TEXT,
  -- created (its addresses are being read), processing, uploaded (done), failed, canceled, deleted
  status TEXT NOT NULL,
  -- 1: addresses and file of a job that has ended early are to be removed.
  dropping INTEGER NOT NULL,
  -- Rows of the file, or members.
  quantity INTEGER NOT NULL,
  -- Key of the last member read.
  read_up_to TEXT NOT NULL,
  -- Distinct addresses, and how many of them are done.
  addresses INTEGER NOT NULL,
  done INTEGER NOT NULL,
  -- Number of the last address done.
  done_up_to INTEGER NOT NULL,
  -- Claims since the last step that was committed.
  tries INTEGER NOT NULL,
  -- JSON: how many have which result and risk.
  counts_json TEXT NOT NULL,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  -- Time of the last step: jobs take turns.
  stepped_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
);
CREATE UNIQUE INDEX validation_jobs_name ON validation_jobs (account_id, kind, list_id);
CREATE INDEX validation_jobs_newest ON validation_jobs (account_id, kind, id);
CREATE INDEX validation_jobs_due ON validation_jobs (stepped_at, id) WHERE status IN ('created', 'processing');
CREATE INDEX validation_jobs_dropping ON validation_jobs (id) WHERE dropping = 1;
CREATE INDEX validation_jobs_ended ON validation_jobs (ended_at) WHERE ended_at IS NOT NULL;

-- The distinct addresses of a job, numbered in the order of their first appearance, with gaps.
CREATE TABLE validation_addresses (
  job_id TEXT NOT NULL,
  no INTEGER NOT NULL,
  -- Of the address in lower case.
  hash TEXT NOT NULL,
  address TEXT NOT NULL,
  -- JSON; null: not done yet.
  result_json TEXT,
  PRIMARY KEY (job_id, no)
);
CREATE UNIQUE INDEX validation_addresses_once ON validation_addresses (job_id, hash);

-- What receiving servers said about an address ('address a@b') or to all of a domain ('domain b'), and until when a
-- server is not asked again ('server mx.b').
CREATE TABLE validation_probes (
  key TEXT NOT NULL PRIMARY KEY,
  result TEXT NOT NULL,
  until_at INTEGER NOT NULL
);
CREATE INDEX validation_probes_age ON validation_probes (until_at);

-- How often an account has used what is no mail, by day.
CREATE TABLE feature_usage (
  account_id TEXT NOT NULL,
  -- Midnight UTC, Unix milliseconds.
  day_at INTEGER NOT NULL,
  -- A name of metrics-logs.md section 3.
  metric TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (account_id, day_at, metric)
);
