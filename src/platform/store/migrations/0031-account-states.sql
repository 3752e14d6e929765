-- open, disabled or closed; the first account is always open.
ALTER TABLE accounts ADD COLUMN status TEXT NOT NULL DEFAULT 'open';
-- Why it is disabled: {reason, note}; null: it is not.
ALTER TABLE accounts ADD COLUMN disabled_json TEXT;
-- Features that differ from their defaults: {name: boolean}.
ALTER TABLE accounts ADD COLUMN features_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE accounts ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE accounts SET updated_at = created_at;
CREATE INDEX accounts_parent ON accounts (parent_id, name);
