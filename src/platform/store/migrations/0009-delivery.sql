-- Finding what is due, per destination and sending domain. The first index answers "what is due" without a
-- look at the rows; the second one leaps from one (destination, sending domain) to the next, however many rows
-- each has.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (due_at, id, recipient_domain, domain_id, account_id)
  WHERE state IN ('scheduled', 'queued');
CREATE INDEX deliveries_waiting ON deliveries (recipient_domain, domain_id, due_at, id)
  WHERE state IN ('scheduled', 'queued');

-- A paused delivery is due when its window ends, and keeps here when it would have been due.
ALTER TABLE deliveries ADD COLUMN paused_due_at INTEGER;

-- The SMTP dialogue of an attempt; `lines_json` is a bounded list of [milliseconds, direction, line].
CREATE TABLE transcripts (
  delivery_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  mx_host TEXT NOT NULL,
  lines_json TEXT NOT NULL,
  PRIMARY KEY (delivery_id, attempt)
);
CREATE INDEX transcripts_age ON transcripts (started_at);

-- Replies on demand of the built-in inbox, in order; one row holds the whole list.
CREATE TABLE inbox_faults (
  id INTEGER NOT NULL PRIMARY KEY,
  faults_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);

-- MTA-STS policies that were fetched (RFC 8461 §3.2): kept over a restart, so that a lost answer cannot
-- downgrade a domain that had a policy.
CREATE TABLE mta_sts_policies (
  domain TEXT NOT NULL PRIMARY KEY,
  policy_id TEXT NOT NULL,
  policy_text TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);

-- Sessions per day, policy and result, for TLS reports (RFC 8460 §4).
CREATE TABLE tls_results (
  day TEXT NOT NULL,
  policy_domain TEXT NOT NULL,
  policy_type TEXT NOT NULL,
  mx_host TEXT NOT NULL,
  result_type TEXT NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (day, policy_domain, policy_type, mx_host, result_type)
);
