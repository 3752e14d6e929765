-- SMTP logins of a domain. The password is kept as argon2id; null: none is set, nobody can log in.
CREATE TABLE credentials (
  login TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  domain_id TEXT NOT NULL,
  password_hash TEXT,
  is_system INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX credentials_domain ON credentials (domain_id, login);
