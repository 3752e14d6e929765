-- Whom the event is about and the subject of its message, as the webhook says them (masked where the account masks personal data in
-- webhooks); null: the event has none, or the attempt is older than this column.
ALTER TABLE webhook_attempts ADD COLUMN recipient TEXT;
ALTER TABLE webhook_attempts ADD COLUMN subject TEXT;
