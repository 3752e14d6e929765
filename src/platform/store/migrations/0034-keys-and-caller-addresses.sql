-- For the removal of keys that expired long ago.
CREATE INDEX api_keys_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

-- At most one key per account that may only validate addresses; a new one replaces it.
CREATE TABLE public_keys (
  account_id TEXT NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
  -- Shown to the caller that uses the key.
  id TEXT NOT NULL,
  secret_hmac TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
);

-- Addresses that API keys and SMTP logins of an account may be used from; none: any.
CREATE TABLE caller_addresses (
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  -- An address or CIDR network in canonical form.
  address TEXT NOT NULL,
  description TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, address)
);

-- Features that the account has switched on.
ALTER TABLE account_settings ADD COLUMN webhooks_redact_pii INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account_settings ADD COLUMN ai_insights INTEGER NOT NULL DEFAULT 0;
