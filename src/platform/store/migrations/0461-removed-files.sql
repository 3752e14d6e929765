-- Files that an erasure of a person has removed, by the name of the blob: each node removes what it has of them on its own
-- disk, as its only place or as a copy. Kept for so long that a node that was away sees them.
CREATE TABLE removed_files (
  name TEXT PRIMARY KEY,
  removed_at INTEGER NOT NULL
);
CREATE INDEX removed_files_age ON removed_files (removed_at);
