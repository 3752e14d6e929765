-- Who asked for an export: its rights are asked again with each step. The key, or of a session without one the user; both empty: the
-- operator, on the machine itself, and what was asked for before these columns.
ALTER TABLE exports ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE exports ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
