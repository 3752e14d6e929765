-- What became of mail, counted per hour, day and month (tags-stats.md sections 3 to 6), and how far the counting is.

-- Readers of all events in the order of their commits: everything up to this place, itself included, is taken into
-- account. It moves in the transaction of what the reader made of the events.
CREATE TABLE event_followers (
  name TEXT NOT NULL PRIMARY KEY,
  tx INTEGER NOT NULL,
  seq INTEGER NOT NULL
);
INSERT INTO event_followers VALUES ('counters', 0, 0);
-- On SQLite the primary key gives this order.
-- only postgres
CREATE INDEX events_order ON events (tx, seq);
-- all

-- One row per interval in which something happened; src/watching/metrics/count/counters.ts says what each column counts.
CREATE TABLE counters (
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  -- In lower case; empty: all mail of the domain, with tags or without.
  tag TEXT NOT NULL,
  -- hour, day, month
  unit TEXT NOT NULL,
  -- Unix milliseconds, in UTC.
  start_at INTEGER NOT NULL,
  accepted_incoming INTEGER NOT NULL,
  accepted_outgoing INTEGER NOT NULL,
  delivered_smtp INTEGER NOT NULL,
  delivered_http INTEGER NOT NULL,
  delivered_optimized INTEGER NOT NULL,
  failed_temporary INTEGER NOT NULL,
  failed_temporary_espblock INTEGER NOT NULL,
  failed_permanent INTEGER NOT NULL,
  failed_suppress_bounce INTEGER NOT NULL,
  failed_suppress_unsubscribe INTEGER NOT NULL,
  failed_suppress_complaint INTEGER NOT NULL,
  failed_bounce INTEGER NOT NULL,
  failed_delayed_bounce INTEGER NOT NULL,
  failed_webhook INTEGER NOT NULL,
  failed_optimized INTEGER NOT NULL,
  stored INTEGER NOT NULL,
  opened INTEGER NOT NULL,
  opened_unique INTEGER NOT NULL,
  clicked INTEGER NOT NULL,
  clicked_unique INTEGER NOT NULL,
  unsubscribed INTEGER NOT NULL,
  complained INTEGER NOT NULL,
  PRIMARY KEY (account_id, domain_name, tag, unit, start_at)
-- only sqlite
) WITHOUT ROWID;
-- only postgres
);
-- all
-- Sums over the domains of an account.
CREATE INDEX counters_account ON counters (account_id, unit, start_at) WHERE tag = '';
-- For the end of their time.
CREATE INDEX counters_age ON counters (unit, start_at);

-- Opens and clicks of the last days that counted as unique: one per message, recipient and bot class in seven days.
CREATE TABLE counted_visits (
  -- Digest of what makes it one (src/watching/metrics/count/unique-visits.ts).
  visit TEXT NOT NULL PRIMARY KEY,
  counted_at INTEGER NOT NULL
-- only sqlite
) WITHOUT ROWID;
-- only postgres
);
-- all
CREATE INDEX counted_visits_age ON counted_visits (counted_at);
