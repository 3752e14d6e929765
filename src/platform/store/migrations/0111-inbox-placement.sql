-- Inbox placement (validation.md section 6): lists of seeds, tests, and what became of each seed's copy.
CREATE TABLE seed_lists (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- Names the list, as its id does; receives no mail.
  target_email TEXT NOT NULL,
  -- JSON list.
  sending_domains_json TEXT NOT NULL,
  -- Commas between addresses, and between providers; empty: all.
  seed_filter TEXT NOT NULL,
  provider_filter TEXT NOT NULL,
  remote_id TEXT NOT NULL,
  is_auto INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_result_at INTEGER
);
CREATE UNIQUE INDEX seed_lists_target ON seed_lists (account_id, target_email);

CREATE TABLE placement_tests (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  list_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- With its angle brackets; null: nothing was sent.
  message_id TEXT,
  -- processing, completed
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- Of the page that needs no key.
  share_id TEXT NOT NULL,
  shared INTEGER NOT NULL,
  share_until INTEGER NOT NULL
);
CREATE INDEX placement_tests_newest ON placement_tests (account_id, created_at, id);
CREATE INDEX placement_tests_list ON placement_tests (list_id, created_at);
CREATE INDEX placement_tests_open ON placement_tests (created_at) WHERE status = 'processing';
CREATE INDEX placement_tests_age ON placement_tests (created_at);
CREATE UNIQUE INDEX placement_tests_share ON placement_tests (share_id);

CREATE TABLE placement_seeds (
  test_id TEXT NOT NULL,
  address TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- pending, delivered, missing
  state TEXT NOT NULL,
  -- inbox, spam, or the name of another folder; '' while it is not found.
  destination TEXT NOT NULL,
  category TEXT NOT NULL,
  -- From the test to the receiver's time of arrival.
  seconds INTEGER,
  -- JSON: what the receiver's header fields say.
  facts_json TEXT NOT NULL,
  PRIMARY KEY (test_id, address)
);
