-- Limits on the recipients that an account may send to in a calendar month of UTC, and how many it has sent to since.
CREATE TABLE message_limits (
  account_id TEXT NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
  -- Null: the limit was deleted, but the stop still holds.
  monthly_limit INTEGER,
  -- The month of all columns below: its start in Unix milliseconds.
  month_at INTEGER NOT NULL,
  -- Accepted recipients, those of subaccounts included.
  used INTEGER NOT NULL,
  -- The limit was reached and nobody has lifted the stop since.
  is_stopped INTEGER NOT NULL,
  -- The highest of 0, 80, 90 and 100 percent that is used, and the highest that mail was sent about.
  reached_percent INTEGER NOT NULL,
  notified_percent INTEGER NOT NULL,
  -- When `used` has to be counted again, because other processes may have learned of the limit late; null: it is exact.
  recount_at INTEGER
);
CREATE INDEX message_limits_notices ON message_limits (account_id) WHERE reached_percent > notified_percent;
CREATE INDEX message_limits_recounts ON message_limits (recount_at) WHERE recount_at IS NOT NULL;

-- What deleted domains have sent: their counters are removed.
CREATE TABLE removed_usage (
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  month_at INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  PRIMARY KEY (account_id, month_at, domain_id)
);
CREATE INDEX removed_usage_month ON removed_usage (month_at);

-- Copies of mailing lists, which are a part of `accepted_incoming`.
ALTER TABLE counters ADD COLUMN accepted_listed INTEGER NOT NULL DEFAULT 0;

-- Rate limits of single accounts; 0: off.
CREATE TABLE account_rate_limits (
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- only postgres
-- Token buckets that processes share (decision 64). Without a log: after a crash of the server all buckets are full.
CREATE UNLOGGED TABLE rate_buckets (
  bucket TEXT NOT NULL PRIMARY KEY,
  -- Free ones; below 0 it is a debt.
  tokens REAL NOT NULL,
  -- Held by processes.
  leased REAL NOT NULL,
  -- Unix milliseconds.
  filled_at INTEGER NOT NULL
);
CREATE INDEX rate_buckets_age ON rate_buckets (filled_at);

-- Exchanges what a process holds of a bucket for new tokens. `held`: what it got last time; `unspent`: the rest of that,
-- negative if it has spent more. Grants at least `cost` tokens and up to `wanted`, or none if fewer than `needed` are free.
CREATE FUNCTION lease_tokens(
  name text, at_ms bigint, size float8, per_ms float8, held float8, unspent float8,
  needed float8, cost float8, wanted float8, OUT granted float8, OUT free float8
) LANGUAGE plpgsql AS $$
DECLARE
  known rate_buckets%ROWTYPE;
  elapsed float8;
  others float8;
BEGIN
  INSERT INTO rate_buckets VALUES (name, size, 0, at_ms) ON CONFLICT (bucket) DO NOTHING;
  SELECT * INTO known FROM rate_buckets WHERE bucket = name FOR UPDATE;
  elapsed := GREATEST(0, at_ms - known.filled_at);
  -- Leases of processes that were killed.
  others := CASE WHEN elapsed > 10000 THEN 0 ELSE GREATEST(0, known.leased - held) END;
  free := LEAST(size - others, known.tokens + elapsed * per_ms + unspent);
  granted := CASE WHEN wanted > 0 AND free >= needed THEN GREATEST(cost, LEAST(wanted, FLOOR(free))) ELSE 0 END;
  free := free - granted;
  UPDATE rate_buckets SET tokens = free, leased = others + granted, filled_at = GREATEST(at_ms, known.filled_at)
    WHERE bucket = name;
END $$;
-- all
