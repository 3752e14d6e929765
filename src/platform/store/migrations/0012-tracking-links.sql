-- Targets of clicks that are too long to stand in a link themselves. `id` follows from account and URL.
-- `used_at`: the last day on which a mail with it was sent, in Unix milliseconds; the row is kept long after.
CREATE TABLE tracking_links (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  url TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL
);
CREATE INDEX tracking_links_age ON tracking_links (used_at);
