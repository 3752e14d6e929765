-- Types are SQLite's; for PostgreSQL TEXT becomes text collate "C" (byte order, as SQLite compares),
-- INTEGER bigint, REAL double precision, BLOB bytea, SEQUENCE a rising integer primary key. Times are Unix milliseconds unless a name says otherwise.
-- Flags are 0 or 1. Columns named *_json hold JSON text.

CREATE TABLE accounts (
  id TEXT NOT NULL PRIMARY KEY,
  parent_id TEXT,
  name TEXT NOT NULL,
  signing_key_sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  secret_hmac TEXT NOT NULL UNIQUE,
  secret_end TEXT NOT NULL,
  description TEXT NOT NULL,
  domain_name TEXT,
  requestor TEXT,
  user_name TEXT,
  expires_at INTEGER,
  disabled_reason TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX api_keys_account ON api_keys (account_id);

-- One-time links and browser sessions; only digests of the secrets are kept.
CREATE TABLE login_links (
  digest TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  expires_at INTEGER NOT NULL
);
CREATE TABLE sessions (
  digest TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);

CREATE TABLE domains (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  state TEXT NOT NULL,
  disabled_json TEXT,
  spam_action TEXT NOT NULL,
  wildcard INTEGER NOT NULL,
  require_tls INTEGER NOT NULL,
  skip_verification INTEGER NOT NULL,
  use_automatic_sender_security INTEGER NOT NULL,
  encrypt_incoming_message INTEGER NOT NULL,
  web_prefix TEXT NOT NULL,
  web_scheme TEXT NOT NULL,
  message_ttl_seconds INTEGER NOT NULL,
  archive_to TEXT,
  mailfrom_host TEXT NOT NULL,
  dkim_authority TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX domains_account ON domains (account_id, name);

CREATE TABLE dkim_keys (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  authority TEXT NOT NULL,
  selector TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  private_key_sealed BLOB NOT NULL,
  public_record TEXT NOT NULL,
  active INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (authority, selector)
);

-- One accepted call. Its content is in `content`, or in the blob store when `content_blob` names it.
CREATE TABLE messages (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  message_id TEXT NOT NULL,
  summary_json TEXT NOT NULL,
  options_json TEXT NOT NULL,
  content_kind TEXT NOT NULL,
  content BLOB,
  content_blob TEXT,
  blobs_json TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX messages_by_message_id ON messages (message_id);

-- One message to one recipient. Final states: delivered, bounced, expired, suppressed, rejected, cancelled.
-- Any other has a due time and a reason. `lease_token` fences: an outcome counts only under the token that
-- the delivery was claimed with.
CREATE TABLE deliveries (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  message_pk TEXT NOT NULL REFERENCES messages (id),
  recipient TEXT NOT NULL,
  recipient_domain TEXT NOT NULL,
  recipient_header TEXT NOT NULL,
  variables_json TEXT,
  state TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_owner TEXT,
  lease_token TEXT,
  lease_until INTEGER,
  reason TEXT NOT NULL,
  last_code INTEGER,
  last_reply TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (due_at, id) WHERE state IN ('scheduled', 'queued');
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE state = 'sending';
CREATE INDEX deliveries_of_message ON deliveries (message_pk, id);

-- Events are never changed. `seq` is the order of writing within one database; `timestamp_us` what clients see.
CREATE TABLE events (
  seq SEQUENCE,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  event TEXT NOT NULL,
  timestamp_us INTEGER NOT NULL,
  recipient TEXT,
  message_id TEXT,
  payload_json TEXT NOT NULL
);
CREATE INDEX events_domain_time ON events (account_id, domain_name, timestamp_us, id);
CREATE INDEX events_message ON events (message_id);

-- Captured mail (delivery mode capture).
CREATE TABLE inbox (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  delivery_id TEXT,
  storage_key TEXT,
  received_at INTEGER NOT NULL,
  envelope_from TEXT NOT NULL,
  envelope_to_json TEXT NOT NULL,
  from_header TEXT NOT NULL,
  to_header TEXT NOT NULL,
  subject TEXT NOT NULL,
  message_id TEXT NOT NULL,
  tags_json TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  authentication_json TEXT NOT NULL,
  raw BLOB,
  raw_blob TEXT
);
CREATE INDEX inbox_newest ON inbox (account_id, id);
