-- What the event sink inserts, one JSON object of a line each. Nothing is stored here: the views below take it apart.
CREATE TABLE IF NOT EXISTS incoming (json String) ENGINE = Null;

-- One row for each event. A repeat has the same id and time, and replaces the row: read with FINAL.
CREATE TABLE IF NOT EXISTS events (
  id String,
  at DateTime64(6, 'UTC'),
  event LowCardinality(String),
  account LowCardinality(String),
  domain LowCardinality(String),
  recipient String,
  recipient_domain LowCardinality(String),
  provider LowCardinality(String),
  message_id String,
  tags Array(LowCardinality(String)),
  severity LowCardinality(String),
  reason LowCardinality(String),
  code UInt16,
  reply String,
  json String CODEC(ZSTD(3))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (domain, event, at, id)
TTL toDateTime(at) + INTERVAL 1 YEAR;

CREATE MATERIALIZED VIEW IF NOT EXISTS incoming_events TO events AS
SELECT
  JSONExtractString(json, 'id') AS id,
  fromUnixTimestamp64Micro(toInt64(round(JSONExtractFloat(json, 'timestamp') * 1000000)), 'UTC') AS at,
  JSONExtractString(json, 'event') AS event,
  JSONExtractString(json, 'account', 'id') AS account,
  JSONExtractString(json, 'domain', 'name') AS domain,
  JSONExtractString(json, 'recipient') AS recipient,
  JSONExtractString(json, 'recipient-domain') AS recipient_domain,
  JSONExtractString(json, 'recipient-provider') AS provider,
  JSONExtractString(json, 'message', 'headers', 'message-id') AS message_id,
  JSONExtract(json, 'tags', 'Array(String)') AS tags,
  JSONExtractString(json, 'severity') AS severity,
  JSONExtractString(json, 'reason') AS reason,
  toUInt16(JSONExtractUInt(json, 'delivery-status', 'code')) AS code,
  JSONExtractString(json, 'delivery-status', 'message') AS reply,
  json
FROM incoming;

-- Counts for each hour: read with uniqExactMerge(events). Ids are counted, so a repeat counts once.
CREATE TABLE IF NOT EXISTS hours (
  hour DateTime('UTC'),
  account LowCardinality(String),
  domain LowCardinality(String),
  provider LowCardinality(String),
  event LowCardinality(String),
  severity LowCardinality(String),
  events AggregateFunction(uniqExact, String)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (domain, event, severity, provider, account, hour)
TTL hour + INTERVAL 3 YEAR;

CREATE MATERIALIZED VIEW IF NOT EXISTS incoming_hours TO hours AS
SELECT
  toStartOfHour(fromUnixTimestamp64Micro(toInt64(round(JSONExtractFloat(json, 'timestamp') * 1000000)), 'UTC')) AS hour,
  JSONExtractString(json, 'account', 'id') AS account,
  JSONExtractString(json, 'domain', 'name') AS domain,
  JSONExtractString(json, 'recipient-provider') AS provider,
  JSONExtractString(json, 'event') AS event,
  JSONExtractString(json, 'severity') AS severity,
  uniqExactState(JSONExtractString(json, 'id')) AS events
FROM incoming
GROUP BY hour, account, domain, provider, event, severity;
