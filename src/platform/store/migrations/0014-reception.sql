-- Reports that came for a delivery after it was delivered, so that each counts once.
CREATE TABLE delivery_reports (
  delivery_id TEXT NOT NULL,
  -- bounce, complaint
  kind TEXT NOT NULL,
  -- Enhanced status code of a bounce; '' if it has none.
  status TEXT NOT NULL,
  account_id TEXT NOT NULL,
  -- The event that tells of it.
  event_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (delivery_id, kind, status)
);

-- What is over time is removed by the next report.
CREATE INDEX delivery_reports_by_age ON delivery_reports (created_at);

-- Is this a host of ours? Asked by whoever connects.
CREATE INDEX domains_by_mailfrom_host ON domains (mailfrom_host);
