-- Deliveries in test mode, which count in the other columns too: health checks of domains leave them out.
ALTER TABLE figures ADD COLUMN test_delivered INTEGER;
