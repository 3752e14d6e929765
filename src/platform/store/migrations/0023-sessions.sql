-- Sessions and links carry the key that they came from, and end with it. The rows from before do not say which key that
-- was, so they end here: whoever was signed in signs in again.
DROP TABLE login_links;
DROP TABLE sessions;

-- key_id in both: null for what the operator made on the machine.
CREATE TABLE login_links (
  digest TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  key_id TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX login_links_account ON login_links (account_id, created_at);
CREATE INDEX login_links_key ON login_links (key_id);

CREATE TABLE sessions (
  -- Shown; the secret is kept as a digest only.
  id TEXT NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  key_id TEXT REFERENCES api_keys (id) ON DELETE CASCADE,
  -- Of the browser when it signed in.
  remote_address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX sessions_account ON sessions (account_id, created_at);
CREATE INDEX sessions_key ON sessions (key_id);

-- From which networks an SMTP login was right (decision 50).
CREATE TABLE login_places (
  login TEXT NOT NULL REFERENCES credentials (login) ON DELETE CASCADE,
  network TEXT NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (login, network)
);
