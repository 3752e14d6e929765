-- 0: bulk mail of the domain gets no List-Unsubscribe of its own accord (tracking.md rule 15).
ALTER TABLE tracking_settings ADD COLUMN unsubscribe_on_bulk INTEGER NOT NULL DEFAULT 1;
