-- Figures that an account shows to whoever has a link, until `expires_at`. `digest`: keyed digest of the link's token, which is not
-- stored. `query_json`: what is counted, as in a request for metrics. `key_id`, `user_id`: who made the link.
CREATE TABLE shared_figures (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  title TEXT NOT NULL,
  query_json TEXT NOT NULL,
  key_id TEXT NOT NULL,
  user_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX shared_figures_digest ON shared_figures (digest);
CREATE INDEX shared_figures_account ON shared_figures (account_id, id);
CREATE INDEX shared_figures_expiry ON shared_figures (expires_at);
