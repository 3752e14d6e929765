-- A late bounce tells which attempt had delivered; for rows from before, the first.
ALTER TABLE past_deliveries ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1;
