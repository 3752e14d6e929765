-- Passkeys of users (WebAuthn).
CREATE TABLE passkeys (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  -- As its authenticator names it, in base64url; unique in the whole installation.
  credential_id TEXT NOT NULL UNIQUE,
  -- COSE_Key, RFC 9052 §7.
  public_key BLOB NOT NULL,
  -- Of signatures, as the authenticator counts them; 0: it does not count.
  counter INTEGER NOT NULL,
  -- How a browser reaches the authenticator, such as `internal,hybrid`.
  transports TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
);
CREATE INDEX passkeys_user ON passkeys (user_id, created_at);

-- Challenges that were met, until they expire: each is valid once.
CREATE TABLE met_challenges (
  digest TEXT NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
);
CREATE INDEX met_challenges_expiry ON met_challenges (expires_at);

-- How many passkeys the user has.
ALTER TABLE users ADD COLUMN passkeys INTEGER NOT NULL DEFAULT 0;
-- When the OpenID Connect provider last said who the user is.
ALTER TABLE users ADD COLUMN provider_sign_in_at INTEGER;
-- Of dates in the dashboard; null: English, and the zone of the browser.
ALTER TABLE users ADD COLUMN language TEXT;
ALTER TABLE users ADD COLUMN time_zone TEXT;

-- When the user last showed a password or passkey in this session; null: not at all, as with a login link.
ALTER TABLE sessions ADD COLUMN proved_at INTEGER;
