-- Copies that an archive took, of mail delivered in the interval (metrics-logs.md section 3, archived_count). Only rows of
-- mail as a whole have the count. A count of 0 is null, as in the other columns.
ALTER TABLE figures ADD COLUMN archived INTEGER;
-- The domain that a copy is counted for; empty for rows of before: they are counted for the account alone.
ALTER TABLE archive_outbox ADD COLUMN domain_name TEXT NOT NULL DEFAULT '';
