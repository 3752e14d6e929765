-- The processes that share a PostgreSQL database. Times are by the clock of leases. A row is removed when its process
-- stops, or when another one finds that it has given no sign of life (nodes/).
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  roles_json TEXT NOT NULL,
  -- IP addresses that it can send from.
  addresses_json TEXT NOT NULL,
  version TEXT NOT NULL,
  -- running, stopping
  state TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
);
