-- Servers that take mail from us for others. The one that SENDWRIGHT_DELIVERY names has no row.
CREATE TABLE relays (
  name TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  port INTEGER NOT NULL,
  -- starttls, implicit or none.
  tls TEXT NOT NULL,
  -- 1: its certificate need not verify, also for the login.
  allow_unverified INTEGER NOT NULL,
  -- Null: it wants no login.
  mechanism TEXT,
  username TEXT,
  password_sealed BLOB,
  -- Token URL, client id, scope and grant; null: the login has no tokens.
  oauth_json TEXT,
  client_secret_sealed BLOB,
  refresh_token_sealed BLOB,
  -- Limits; null: none of its own.
  connections INTEGER,
  messages_per_connection INTEGER,
  messages_per_second REAL,
  messages_per_day INTEGER,
  max_message_size INTEGER,
  -- What it changes in messages.
  alters_return_path INTEGER NOT NULL,
  alters_message_id INTEGER NOT NULL,
  -- Ids of the accounts whose messages may ask for it; null: all may.
  offered_json TEXT,
  -- Changes with each change of where and how to connect.
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

-- One row: the ordered list of rules that choose a relay, or direct delivery.
CREATE TABLE relay_rules (
  id INTEGER NOT NULL PRIMARY KEY,
  rules_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);

-- Messages that a relay was given on a day (UTC), where that is limited.
CREATE TABLE relay_days (
  name TEXT NOT NULL,
  -- Start of the day, Unix milliseconds.
  day_at INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (name, day_at)
);
