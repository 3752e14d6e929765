-- Greylisting of received mail (routes-inbound.md section 5 rule 11): networks that have come back once, and first
-- attempts that have to be repeated. `key`: the network, or a digest of the attempt. Times are Unix milliseconds.
CREATE TABLE greylist (
  key TEXT NOT NULL PRIMARY KEY,
  since_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX greylist_age ON greylist (expires_at);
