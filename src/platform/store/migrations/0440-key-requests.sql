-- The last calls of each API key: some of each ten seconds, without bodies and secrets (decision 240).
CREATE TABLE key_requests (
  -- Ordered by time.
  id TEXT NOT NULL PRIMARY KEY,
  -- Of the key, also when it acted for a subaccount.
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  method TEXT NOT NULL,
  -- With {name} for parts that could be an address.
  path TEXT NOT NULL,
  operation TEXT NOT NULL,
  -- How the parameters came: query, form, multipart or json.
  form TEXT NOT NULL,
  -- Declared parameters by name; null: the value is not kept.
  given_json TEXT NOT NULL,
  status INTEGER NOT NULL,
  -- The error in words; null: there was none.
  message TEXT,
  duration_ms INTEGER NOT NULL,
  remote_address TEXT NOT NULL,
  request_id TEXT NOT NULL,
  -- The subaccount that the key acted for.
  acted_for TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX key_requests_key ON key_requests (key_id, id);
CREATE INDEX key_requests_account ON key_requests (account_id);
CREATE INDEX key_requests_acted_for ON key_requests (acted_for) WHERE acted_for IS NOT NULL;
