-- What waits, by account, in the order in which it was accepted: lists and actions of the queue read nothing else. No other
-- statement uses it: the order of the states is theirs (mail/queue/waiting-rows.ts).
CREATE INDEX deliveries_queued ON deliveries (account_id, id) WHERE state IN ('queued', 'scheduled');
