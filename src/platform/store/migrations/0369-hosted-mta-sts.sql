-- The MTA-STS policy that the service publishes for a domain whose mail comes here (RFC 8461): none at all, one that says
-- so, or one of mail hosts.
ALTER TABLE domains ADD COLUMN mta_sts TEXT NOT NULL DEFAULT 'off';
-- Seconds for which senders keep the policy.
ALTER TABLE domains ADD COLUMN mta_sts_max_age INTEGER NOT NULL DEFAULT 604800;
