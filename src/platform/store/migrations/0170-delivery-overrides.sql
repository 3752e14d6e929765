-- What an operator has ordered for mail to a site: to send nothing, or other limits than those of the shaping. Times are
-- Unix milliseconds.
CREATE TABLE delivery_overrides (
  -- As in the names of lanes; for a pause also a recipients' domain.
  site TEXT NOT NULL PRIMARY KEY,
  -- Null: not paused.
  paused_at INTEGER,
  pause_reason TEXT NOT NULL DEFAULT '',
  -- Null: until somebody ends it.
  pause_until INTEGER,
  -- Null: as the shaping says.
  connections INTEGER,
  -- `300/1m`, or `none` for no limit. Null: as the shaping says.
  rate TEXT,
  -- Null: until somebody ends them.
  limits_until INTEGER
);

-- Mail that such a pause keeps. No other delivery has an entry.
CREATE INDEX deliveries_site_paused ON deliveries (id)
  WHERE reason = 'provider-paused' AND state IN ('scheduled', 'queued');
