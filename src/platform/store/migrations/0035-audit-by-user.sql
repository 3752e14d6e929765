-- The user whose session or key made the change; null: none.
ALTER TABLE audit ADD COLUMN user_id TEXT;
CREATE INDEX audit_user ON audit (account_id, user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_address ON audit (account_id, remote_address, id);
