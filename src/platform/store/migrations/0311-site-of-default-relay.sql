-- The relay of SENDWRIGHT_DELIVERY is the site relay:default; relay is the inbox alone. An operator's orders hold for both.
INSERT INTO delivery_overrides (site, paused_at, pause_reason, pause_until, connections, rate, limits_until)
  SELECT 'relay:default', paused_at, pause_reason, pause_until, connections, rate, limits_until
  FROM delivery_overrides WHERE site = 'relay';
