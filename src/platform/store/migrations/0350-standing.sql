-- What was sent and what came of it, by account, domain and hour, for the judgement of senders. Written with the counters,
-- in the commit that moves their position. Kept when the domain is deleted, so that making it again begins nothing anew.
CREATE TABLE standing_counts (
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  hour_at INTEGER NOT NULL,
  -- Delivered, or refused for good; without test mode and forwarded mail.
  sent INTEGER NOT NULL,
  -- Hard bounces, those that came back later included, and those of them that say that there is no such user.
  bounced INTEGER NOT NULL,
  unknown_users INTEGER NOT NULL,
  complained INTEGER NOT NULL,
  -- Delivered to an address of spam_traps.
  trapped INTEGER NOT NULL,
  -- When the first of them was counted.
  first_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, domain_name, hour_at)
);
CREATE INDEX standing_counts_hour ON standing_counts (hour_at);

-- Accounts and domains that are or were stopped.
CREATE TABLE standings (
  account_id TEXT NOT NULL,
  -- Empty: the account as a whole.
  domain_name TEXT NOT NULL,
  -- warned: reported only; slowed; held; good: released.
  state TEXT NOT NULL,
  -- Which figure was too high; empty for good.
  code TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- The figures by which it was judged.
  figures_json TEXT NOT NULL,
  -- Messages that may be attempted in a minute while it is slowed.
  per_minute INTEGER,
  since_at INTEGER NOT NULL,
  -- When it ends by itself; null for good.
  until_at INTEGER,
  -- Addresses that a mail about it has gone to.
  told_json TEXT NOT NULL,
  is_told INTEGER NOT NULL,
  -- For good: all that was held is due again.
  is_settled INTEGER NOT NULL,
  PRIMARY KEY (account_id, domain_name)
);

-- Which figures stop a sender. The row with an empty account is for all without one of their own.
CREATE TABLE standing_policies (
  account_id TEXT NOT NULL PRIMARY KEY,
  policy TEXT NOT NULL,
  -- Those of the policy `custom`; null otherwise.
  limits_json TEXT,
  -- Messages on the first day of a new account; 0: no budget. Only in the row for all.
  new_account_daily INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

-- Addresses that only a sender with a bad list writes to, named by the operator.
CREATE TABLE spam_traps (
  address TEXT NOT NULL PRIMARY KEY,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

-- Messages of a day of accounts with a daily budget, as relay_days counts those of relays.
CREATE TABLE account_days (
  name TEXT NOT NULL,
  day_at INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (name, day_at)
);
