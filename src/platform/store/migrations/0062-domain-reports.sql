-- Reports of receivers about a domain (own-operations.md section 12).
CREATE TABLE domain_reports (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  -- dmarc, tls, complaint
  type TEXT NOT NULL,
  -- Domain of the header From; '' if there is none. A complaint has the provider here.
  sender TEXT NOT NULL,
  -- 1: SPF or DKIM proved the sender.
  authenticated INTEGER NOT NULL,
  organization TEXT NOT NULL,
  contact TEXT NOT NULL,
  -- The sender's.
  report_id TEXT NOT NULL,
  begin_at INTEGER NOT NULL,
  end_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  -- Messages or sessions.
  passed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  -- JSON: the rows with the most messages.
  rows_json TEXT NOT NULL
);

CREATE UNIQUE INDEX domain_reports_once
  ON domain_reports (domain_id, type, authenticated, sender, report_id);
CREATE INDEX domain_reports_in_order ON domain_reports (domain_id, begin_at, id);
CREATE INDEX domain_reports_of_type ON domain_reports (domain_id, type, begin_at, id);
CREATE INDEX domain_reports_by_age ON domain_reports (begin_at);

-- Sums of authenticated reports by day.
CREATE TABLE domain_report_totals (
  domain_id TEXT NOT NULL,
  type TEXT NOT NULL,
  -- Midnight UTC.
  day_at INTEGER NOT NULL,
  -- Source address, type of failure or provider; '' is all, 'other' those beyond the bound of a day.
  name TEXT NOT NULL,
  account_id TEXT NOT NULL,
  passed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  quarantined INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  PRIMARY KEY (domain_id, type, day_at, name)
);

CREATE INDEX domain_report_totals_by_age ON domain_report_totals (day_at);
