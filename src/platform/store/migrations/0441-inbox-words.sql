-- The beginning of a captured message's text, and the names of its files, in lower case, for searches. Not a column of inbox: a
-- search would read past the bytes of each message. Without a row: captured before, or without text.
CREATE TABLE inbox_words (
  inbox_id TEXT NOT NULL PRIMARY KEY REFERENCES inbox (id) ON DELETE CASCADE,
  words TEXT NOT NULL
);
