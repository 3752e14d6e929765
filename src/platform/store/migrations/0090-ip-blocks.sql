-- Addresses that a provider blocks, and those that it blocked lately. Times are Unix milliseconds.
CREATE TABLE ip_blocks (
  ip TEXT NOT NULL,
  -- As in the names of lanes.
  site TEXT NOT NULL,
  -- As people know it.
  provider TEXT NOT NULL,
  -- The reply that began the present pause, addresses of people masked.
  reply TEXT NOT NULL,
  since_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL,
  pause_ms INTEGER NOT NULL,
  -- Pauses in a row.
  times INTEGER NOT NULL,
  -- Null: the address is closed for the provider, or being tried.
  cleared_at INTEGER,
  PRIMARY KEY (ip, site)
);
