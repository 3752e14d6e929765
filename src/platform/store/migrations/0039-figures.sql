-- Counters by all dimensions of metrics-logs.md section 2 (decision 66). They replace the table `counters`, whose
-- rows are kept: what it did not record is absent.

-- What counters belong to: a domain, or an account as a whole (the name is empty).
CREATE TABLE figure_scopes (
  no SEQUENCE,
  account_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  UNIQUE (account_id, domain_name)
);

-- One row for each combination of values in an interval; src/watching/metrics/count/splits.ts says which combinations are kept, and
-- src/watching/metrics/count/counters.ts what each count is. A count of 0 is null. An empty value: the event has none.
CREATE TABLE figures (
  scope INTEGER NOT NULL,
  -- Which of the values below are set: a number of src/watching/metrics/count/splits.ts.
  split INTEGER NOT NULL,
  -- 0 hour, 1 day, 2 month
  unit INTEGER NOT NULL,
  -- Unix milliseconds, in UTC.
  start_at INTEGER NOT NULL,
  -- In lower case; a JSON list where all values are set.
  tag TEXT NOT NULL,
  recipient_domain TEXT NOT NULL,
  provider TEXT NOT NULL,
  ip TEXT NOT NULL,
  pool TEXT NOT NULL,
  country TEXT NOT NULL,
  device TEXT NOT NULL,
  bot TEXT NOT NULL,
  accepted_incoming INTEGER,
  accepted_outgoing INTEGER,
  delivered_smtp INTEGER,
  delivered_http INTEGER,
  delivered_optimized INTEGER,
  delivered_first INTEGER,
  delivered_later INTEGER,
  failed_temporary INTEGER,
  failed_temporary_espblock INTEGER,
  rate_limited INTEGER,
  failed_permanent INTEGER,
  failed_suppress_bounce INTEGER,
  failed_suppress_unsubscribe INTEGER,
  failed_suppress_complaint INTEGER,
  failed_bounce INTEGER,
  failed_soft INTEGER,
  failed_delayed_bounce INTEGER,
  failed_old INTEGER,
  failed_permanent_espblock INTEGER,
  failed_webhook INTEGER,
  failed_optimized INTEGER,
  stored INTEGER,
  opened INTEGER,
  opened_unique INTEGER,
  clicked INTEGER,
  clicked_unique INTEGER,
  unsubscribed INTEGER,
  complained INTEGER,
  accepted_listed INTEGER,
  PRIMARY KEY (scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot)
-- only sqlite
) WITHOUT ROWID;
-- only postgres
);
-- all

INSERT INTO figure_scopes (account_id, domain_name) SELECT DISTINCT account_id, domain_name FROM counters;
INSERT INTO figure_scopes (account_id, domain_name) SELECT DISTINCT account_id, '' FROM counters;

INSERT INTO figures (scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot,
  accepted_incoming, accepted_outgoing, delivered_smtp, delivered_http, delivered_optimized,
  failed_temporary, failed_temporary_espblock,
  failed_permanent, failed_suppress_bounce, failed_suppress_unsubscribe, failed_suppress_complaint,
  failed_bounce, failed_delayed_bounce, failed_webhook, failed_optimized,
  stored, opened, opened_unique, clicked, clicked_unique, unsubscribed, complained, accepted_listed)
-- Split 0 is mail as a whole, 1 that with a tag; unit 2 is the month.
SELECT no, CASE WHEN tag = '' THEN 0 ELSE 1 END, CASE unit WHEN 'hour' THEN 0 WHEN 'day' THEN 1 ELSE 2 END, start_at,
  tag, '', '', '', '', '', '', '',
  nullif(sum(accepted_incoming), 0), nullif(sum(accepted_outgoing), 0),
  nullif(sum(delivered_smtp), 0), nullif(sum(delivered_http), 0), nullif(sum(delivered_optimized), 0),
  nullif(sum(failed_temporary), 0), nullif(sum(failed_temporary_espblock), 0),
  nullif(sum(failed_permanent), 0), nullif(sum(failed_suppress_bounce), 0),
  nullif(sum(failed_suppress_unsubscribe), 0), nullif(sum(failed_suppress_complaint), 0),
  nullif(sum(failed_bounce), 0), nullif(sum(failed_delayed_bounce), 0), nullif(sum(failed_webhook), 0),
  nullif(sum(failed_optimized), 0), nullif(sum(stored), 0), nullif(sum(opened), 0), nullif(sum(opened_unique), 0),
  nullif(sum(clicked), 0), nullif(sum(clicked_unique), 0), nullif(sum(unsubscribed), 0), nullif(sum(complained), 0),
  nullif(sum(accepted_listed), 0)
FROM counters JOIN figure_scopes ON figure_scopes.account_id = counters.account_id
  AND (figure_scopes.domain_name = counters.domain_name OR figure_scopes.domain_name = '')
WHERE figure_scopes.domain_name <> '' OR tag = '' OR unit <> 'hour'
GROUP BY no, unit, start_at, tag;

DROP TABLE counters;
