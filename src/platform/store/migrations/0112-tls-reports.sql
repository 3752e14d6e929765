-- TLS reports that this service sends (RFC 8460). The record that asks for them is at the recipients' domain, which is not
-- the policy's where that is DANE; what was counted without it nobody has read.
DROP TABLE tls_results;
CREATE TABLE tls_results (
  day TEXT NOT NULL,
  recipient_domain TEXT NOT NULL,
  policy_domain TEXT NOT NULL,
  policy_type TEXT NOT NULL,
  mx_host TEXT NOT NULL,
  result_type TEXT NOT NULL,
  -- '' where the system chose it.
  sending_ip TEXT NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (day, recipient_domain, policy_domain, policy_type, mx_host, result_type, sending_ip)
);

-- What was reported, by day, recipients' domain and receiver. A row is written in the transaction that hands the report to
-- the queue of mail or of POSTs: so each is sent once.
CREATE TABLE tls_reports (
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  -- mailto: or https:; '' stands for the domain as a whole: all its receivers have a row.
  uri TEXT NOT NULL,
  id TEXT NOT NULL,
  -- Of a POST that is not over: the report, gzip.
  content BLOB,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (day, domain, uri)
);
CREATE UNIQUE INDEX tls_reports_id ON tls_reports (id);
