-- A list keeps its id when its address changes. `address_key` is the form in which addresses are compared.
-- Whoever writes members raises `version` in the same transaction, so that a plan made from older rows fails.
-- `header_id` is the value of List-Id; `header_key` the same in lower case, as it is compared.
CREATE TABLE lists (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  domain_name TEXT NOT NULL,
  address TEXT NOT NULL,
  address_key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  access_level TEXT NOT NULL,
  reply_preference TEXT NOT NULL,
  header_id TEXT NOT NULL,
  header_key TEXT NOT NULL,
  members_count INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX lists_account ON lists (account_id, address_key);
CREATE INDEX lists_header_key ON lists (header_key);

-- Outlives its list while a post is still being expanded, hence no reference.
CREATE TABLE list_members (
  list_id TEXT NOT NULL,
  address_key TEXT NOT NULL,
  address TEXT NOT NULL,
  name TEXT NOT NULL,
  vars_json TEXT NOT NULL,
  subscribed INTEGER NOT NULL,
  PRIMARY KEY (list_id, address_key)
);

-- Uploads that are worked off in the background; `done` of the entries are. States: running, done.
CREATE TABLE list_uploads (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  list_id TEXT NOT NULL,
  format TEXT NOT NULL,
  is_upsert INTEGER NOT NULL,
  subscribed INTEGER NOT NULL,
  entries_json TEXT NOT NULL,
  done INTEGER NOT NULL,
  upserted_count INTEGER NOT NULL,
  failed_count INTEGER NOT NULL,
  state TEXT NOT NULL,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX list_uploads_state ON list_uploads (state, id);

-- Posts on their way from one message to a delivery per member: members up to `position` (an address key) have
-- theirs. `exclude_json` lists the keys that get their copy in another way; `headers_json` is what every copy is
-- sent with, kept here because the list may change or go before the last copy has left. States: running, done.
CREATE TABLE list_expansions (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  message_pk TEXT NOT NULL REFERENCES messages (id),
  list_id TEXT NOT NULL,
  list_address TEXT NOT NULL,
  list_header_id TEXT NOT NULL,
  headers_json TEXT NOT NULL,
  exclude_json TEXT NOT NULL,
  position TEXT NOT NULL,
  copies INTEGER NOT NULL,
  state TEXT NOT NULL,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX list_expansions_state ON list_expansions (state, id);
CREATE INDEX list_expansions_list ON list_expansions (list_id, state);
CREATE INDEX list_expansions_message ON list_expansions (message_pk);
