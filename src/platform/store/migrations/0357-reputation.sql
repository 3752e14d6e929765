-- What large receivers publish of the mail of this service, and the credentials that it is read with (reputation.md).
CREATE TABLE reputation_sources (
  -- `google` or `snds`.
  name TEXT PRIMARY KEY,
  -- The credentials without their secrets, JSON.
  settings_json TEXT NOT NULL,
  -- The secrets, JSON.
  secrets_sealed BLOB NOT NULL,
  -- Grows with each change: what was read with other credentials decides nothing.
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- SNDS: the newest day that was read, as its first millisecond in UTC; null: none yet.
  read_through INTEGER,
  -- End of the last complete read; null: none yet.
  read_at INTEGER,
  -- It is not read before.
  next_at INTEGER NOT NULL,
  -- Reads in a row that failed, since when, and why the last one did. 0 and null: the last one did not.
  failures INTEGER NOT NULL,
  failing_since INTEGER,
  failed_at INTEGER,
  failure TEXT
);

-- Gmail Postmaster Tools, by domain and day. Rates are from 0 to 1; null: Gmail names none, because the day had little mail.
CREATE TABLE gmail_days (
  domain_id TEXT NOT NULL,
  -- First millisecond in UTC, as in the other tables.
  day INTEGER NOT NULL,
  spam_rate REAL,
  spf_rate REAL,
  dkim_rate REAL,
  dmarc_rate REAL,
  tls_rate REAL,
  error_rate REAL,
  -- [{ "type", "reason", "rate" }], without those of 0.
  errors_json TEXT NOT NULL,
  -- [{ "id", "rate" }] of feedback loops.
  loops_json TEXT NOT NULL,
  PRIMARY KEY (domain_id, day)
);
CREATE INDEX gmail_days_day ON gmail_days (day);

-- Domains of this service that are listed in Gmail Postmaster Tools.
CREATE TABLE gmail_domains (
  domain_id TEXT PRIMARY KEY,
  -- [{ "requirement", "status" }].
  compliance_json TEXT NOT NULL,
  -- The newest day that was asked for; null: none yet.
  read_through INTEGER,
  read_at INTEGER NOT NULL,
  -- Why nothing could be read; null: it could.
  failure TEXT
);

-- Microsoft SNDS, by address and day.
CREATE TABLE snds_days (
  ip TEXT NOT NULL,
  day INTEGER NOT NULL,
  recipients INTEGER NOT NULL,
  -- GREEN, YELLOW, RED, or what else SNDS writes.
  filter_result TEXT NOT NULL,
  -- As SNDS writes it, such as `< 0.1%`.
  complaint_rate TEXT NOT NULL,
  trap_hits INTEGER NOT NULL,
  -- As SNDS writes it; empty: no hits.
  trap_period TEXT NOT NULL,
  PRIMARY KEY (ip, day)
);
CREATE INDEX snds_days_day ON snds_days (day);

-- Ranges of addresses that SNDS says are blocked, by its last answer.
CREATE TABLE snds_blocks (
  first_ip TEXT NOT NULL,
  last_ip TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (first_ip, last_ip)
);
