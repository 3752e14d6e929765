-- What waits, by account, in the order in which it was accepted: lists and actions of the queue read nothing else.
CREATE INDEX deliveries_queued ON deliveries (account_id, id) WHERE state IN ('scheduled', 'queued');
