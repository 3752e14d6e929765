-- How much space each kind of data took, measured at intervals (own-operations.md section 6). `kind` 'free': what was
-- free on the disk of `node` and within the database. `row_count`: approximate. `at` is in Unix milliseconds.
CREATE TABLE size_samples (
  node TEXT NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  PRIMARY KEY (node, at, kind)
);

-- For removing those that no policy counts any more.
CREATE INDEX counted_bounces_age ON counted_bounces (bounced_at);

-- For removing old captured mail.
CREATE INDEX inbox_age ON inbox (received_at);
