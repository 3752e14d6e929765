-- Copies of received mail that routes have forwarded: one of each mail to each address within a day (routes-inbound.md
-- section 4 rule 4). `mail` and `address` are digests; `mail` is of the account and the mail. Unix milliseconds.
CREATE TABLE forwarded_copies (
  mail TEXT NOT NULL,
  address TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (mail, address)
);
CREATE INDEX forwarded_copies_age ON forwarded_copies (expires_at);
