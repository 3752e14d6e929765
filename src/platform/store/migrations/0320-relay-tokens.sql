-- Access tokens that we have for relays, and what they are renewed with.
CREATE TABLE relay_tokens (
  -- Digest of relay, token server, client, grant and the refresh token that was given: another login has a row of its own.
  login TEXT NOT NULL PRIMARY KEY,
  relay TEXT NOT NULL,
  -- Of the relay, when the token or the failure came: they do not count for a later one.
  revision INTEGER NOT NULL,
  -- Null: none yet.
  access_sealed BLOB,
  obtained_at INTEGER,
  expires_at INTEGER,
  -- The one that the token server gave last; null: the relay's own still counts.
  refresh_sealed BLOB,
  -- Grows with each token that is stored.
  generation INTEGER NOT NULL,
  -- Why there was no token last time; null: there was one.
  failure TEXT,
  failed_at INTEGER,
  -- The token server is not asked before.
  retry_at INTEGER,
  -- The process that asks the token server now, and until when no other one does.
  taken_by TEXT,
  taken_until INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
