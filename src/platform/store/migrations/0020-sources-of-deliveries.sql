-- Which of its account's source addresses a delivery leaves from, decided at acceptance ('' where there is no
-- choice). With the two domains it names the lane, so what is due can be found per lane.
ALTER TABLE deliveries ADD COLUMN source_key TEXT NOT NULL DEFAULT '';
UPDATE deliveries SET source_key = sending_pool || '#0'
  WHERE sending_pool IS NOT NULL AND state IN ('scheduled', 'queued', 'sending');
ALTER TABLE deliveries DROP COLUMN sending_pool;

DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (due_at, id, recipient_domain, domain_id, source_key, account_id)
  WHERE state IN ('scheduled', 'queued');
DROP INDEX deliveries_waiting;
CREATE INDEX deliveries_waiting ON deliveries (recipient_domain, domain_id, source_key, due_at, id)
  WHERE state IN ('scheduled', 'queued');
