-- People who sign in to the dashboard.
CREATE TABLE users (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  -- In lower case. Used to sign in, so it is unique in the whole installation.
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  -- One user per account, who stays an admin and cannot be removed.
  is_master INTEGER NOT NULL,
  is_disabled INTEGER NOT NULL,
  -- argon2id; null until the invitation is accepted.
  password_hash TEXT,
  password_updated_at INTEGER,
  -- Sessions and login links of an older epoch have ended.
  session_epoch INTEGER NOT NULL,
  -- Secret of the authenticator app; `pending`: not confirmed yet.
  totp_sealed BLOB,
  totp_pending_sealed BLOB,
  totp_created_at INTEGER,
  -- Time step of the last accepted code: no code is valid twice.
  totp_step INTEGER NOT NULL,
  -- Attempts at codes since a time.
  totp_failures INTEGER NOT NULL,
  totp_failures_since INTEGER NOT NULL,
  opened_ip TEXT,
  last_sign_in_at INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX users_account ON users (account_id, created_at, id);
CREATE UNIQUE INDEX users_master ON users (account_id) WHERE is_master = 1;

-- Invitations and password resets; only the digest of the mailed token.
CREATE TABLE user_tokens (
  digest TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  purpose TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE INDEX user_tokens_user ON user_tokens (user_id, purpose);

-- Codes that replace those of the authenticator app, each valid once.
CREATE TABLE recovery_codes (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  digest TEXT NOT NULL,
  PRIMARY KEY (user_id, digest)
);

-- Networks from which a user has signed in (decision 50).
CREATE TABLE user_places (
  login TEXT NOT NULL REFERENCES users (email) ON DELETE CASCADE,
  network TEXT NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (login, network)
);

-- Settings of an account; null: the default.
CREATE TABLE account_settings (
  account_id TEXT NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
  inactive_session_seconds INTEGER,
  absolute_session_seconds INTEGER,
  logout_redirect_url TEXT
);

ALTER TABLE sessions ADD COLUMN user_id TEXT REFERENCES users (id) ON DELETE CASCADE;
ALTER TABLE sessions ADD COLUMN user_epoch INTEGER;
CREATE INDEX sessions_user ON sessions (user_id);
ALTER TABLE login_links ADD COLUMN user_id TEXT REFERENCES users (id) ON DELETE CASCADE;
ALTER TABLE login_links ADD COLUMN user_epoch INTEGER;
CREATE INDEX login_links_user ON login_links (user_id);
ALTER TABLE api_keys ADD COLUMN user_id TEXT REFERENCES users (id) ON DELETE SET NULL;
CREATE INDEX api_keys_user ON api_keys (user_id);

-- 1: mail of the service itself, which may contain links that set passwords.
ALTER TABLE inbox ADD COLUMN restricted INTEGER NOT NULL DEFAULT 0;
