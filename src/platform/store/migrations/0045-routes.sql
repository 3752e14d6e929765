-- Rules for received mail, of an account (routes-inbound.md section 1).
CREATE TABLE routes (
  -- 24 hex digits
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  priority INTEGER NOT NULL,
  description TEXT NOT NULL,
  expression TEXT NOT NULL,
  -- JSON array of text, sealed: URLs may hold passwords.
  actions_sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX routes_in_order ON routes (account_id, priority, created_at, id);
