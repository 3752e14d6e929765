-- Addresses that sandbox domains of an account may send to, once their owners have agreed.
CREATE TABLE sandbox_recipients (
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  -- In lower case.
  address TEXT NOT NULL,
  is_activated INTEGER NOT NULL,
  -- Of the token in the newest mail, which voids older ones; null: it was used.
  token_digest TEXT,
  token_expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, address)
);
CREATE UNIQUE INDEX sandbox_recipients_token ON sandbox_recipients (token_digest);

-- Mails to addresses that have not agreed, of the last day.
CREATE TABLE sandbox_mails (
  account_id TEXT NOT NULL,
  address TEXT NOT NULL,
  sent_at INTEGER NOT NULL
);
CREATE INDEX sandbox_mails_account ON sandbox_mails (account_id, sent_at);
CREATE INDEX sandbox_mails_address ON sandbox_mails (address, sent_at);
