-- Certificates of tracking hosts. `chain` (PEM) and `key_sealed` are the pair in use, NULL before the first.
-- `requested`: 1 while a caller waits for the order (K6, K7), 0 for renewals. `due_at`: when to order next, NULL:
-- not by itself. `claim` and `claimed_until`: who is ordering now. `orders_json`: times of the last orders.
CREATE TABLE certificates (
  host TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  chain TEXT,
  key_sealed BLOB,
  expires_at INTEGER,
  issued_at INTEGER,
  requested INTEGER NOT NULL,
  error TEXT,
  due_at INTEGER,
  attempts INTEGER NOT NULL,
  orders_json TEXT NOT NULL,
  claim TEXT,
  claimed_until INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX certificates_due ON certificates (due_at);
CREATE INDEX certificates_domain ON certificates (domain_id);

-- Answers to HTTP-01 challenges under way (RFC 8555 section 8.3): any node may be asked.
CREATE TABLE acme_challenges (
  token TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  answer TEXT NOT NULL,
  ends_at INTEGER NOT NULL
);
CREATE INDEX acme_challenges_host ON acme_challenges (host);
CREATE INDEX acme_challenges_end ON acme_challenges (ends_at);

-- The service's account with each certificate authority; `url` is NULL until it was registered.
CREATE TABLE acme_accounts (
  directory TEXT NOT NULL PRIMARY KEY,
  key_sealed BLOB NOT NULL,
  url TEXT,
  contact TEXT NOT NULL
);
