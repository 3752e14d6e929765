-- `page_template`: stored template of the list's pages, which are its form and what the link of a confirmation mail leads to
-- (decision 261); null: the built-in pages.
ALTER TABLE lists ADD COLUMN page_template TEXT;
