-- Why the mailbox of a seed could not be read at the last look; '' where it could.
ALTER TABLE placement_seeds ADD COLUMN problem TEXT NOT NULL DEFAULT '';
-- JSON: what the operator's scorer says of the message; null: none is set, or it gave no score.
ALTER TABLE placement_tests ADD COLUMN spam_json TEXT;
