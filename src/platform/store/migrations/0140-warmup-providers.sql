-- Unix milliseconds since when no stage is completed; null: the warm-up goes on.
ALTER TABLE ip_warmups ADD COLUMN paused_at INTEGER;

-- The warm-up of an address with one provider. Its 24 hours are those of the address.
CREATE TABLE ip_warmup_providers (
  ip TEXT NOT NULL,
  -- A site that the shaping names; `*`: all others together.
  provider TEXT NOT NULL,
  -- From 1, and never after that of the address.
  stage INTEGER NOT NULL,
  stage_started_at INTEGER NOT NULL,
  -- Sent, or granted to a process, and kept away in the present 24 hours.
  window_used INTEGER NOT NULL,
  window_diverted INTEGER NOT NULL,
  -- Both of these in the 24 hours before.
  wanted_before INTEGER NOT NULL,
  -- Sent before the present 24 hours.
  sent_before INTEGER NOT NULL,
  -- The hour of UTC that the next two count in.
  hour_started_at INTEGER NOT NULL,
  hour_used INTEGER NOT NULL,
  hour_diverted INTEGER NOT NULL,
  PRIMARY KEY (ip, provider)
);
