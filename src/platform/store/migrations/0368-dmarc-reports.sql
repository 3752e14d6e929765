-- What receivers of mail here report to the domains of its authors (RFC 9990): mail of a day by the domain whose DMARC
-- record applied. The rows of a domain go when its day is reported.
CREATE TABLE dmarc_policies (
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  -- Its registrable domain, which bounds what one owner can make us keep.
  root TEXT NOT NULL,
  -- The record as it was last seen that day.
  record TEXT NOT NULL,
  PRIMARY KEY (day, domain)
);

CREATE TABLE dmarc_results (
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  -- SHA-256 of the row, base64url.
  row_hash TEXT NOT NULL,
  row_json TEXT NOT NULL,
  messages INTEGER NOT NULL,
  PRIMARY KEY (day, domain, row_hash)
);

-- What was sent, by day, domain and receiver, as tls_reports: a row is written in the transaction that accepts the mail.
CREATE TABLE dmarc_reports (
  day TEXT NOT NULL,
  domain TEXT NOT NULL,
  -- mailto:; '' stands for the domain as a whole: all its receivers have a row.
  uri TEXT NOT NULL,
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (day, domain, uri)
);
