-- A mail that is sent to a list again, because its sender got no reply, is distributed once: `post_key` is a hash of its
-- author and its Message-Id. NULL for posts by API and submission.
ALTER TABLE list_expansions ADD COLUMN post_key TEXT;
CREATE UNIQUE INDEX list_expansions_post ON list_expansions (list_id, post_key);
