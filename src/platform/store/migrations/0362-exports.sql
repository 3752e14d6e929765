-- Lists of an account that are written into files, or were (exports.md). Rows and files are removed after a day.
CREATE TABLE exports (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- As given.
  url TEXT NOT NULL,
  -- JSON document of a query by POST; empty: the list is read by GET.
  body TEXT NOT NULL,
  -- Row of the rights table that reading the list needs, and the role that asked for it.
  area TEXT NOT NULL,
  role TEXT NOT NULL,
  -- requested, processing, complete, failed
  status TEXT NOT NULL,
  -- Path and query of the next page.
  next_page TEXT NOT NULL,
  -- Records written, and bytes of the file as stored.
  records INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- JSON: names of the pieces of the file, each a member of one gzip file (RFC 1952 §2.2).
  blobs_json TEXT NOT NULL,
  -- Why it failed; empty: it has not.
  fault TEXT NOT NULL,
  -- Claims since the last step that was committed.
  tries INTEGER NOT NULL,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  -- Time of the last step: exports take turns.
  stepped_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX exports_newest ON exports (account_id, created_at, id);
CREATE INDEX exports_due ON exports (stepped_at, id) WHERE status IN ('requested', 'processing');
CREATE INDEX exports_age ON exports (created_at);
