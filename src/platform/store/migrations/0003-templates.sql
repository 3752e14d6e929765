-- Templates of a domain (`scope` is its id) or of the account (`scope` is empty). Names are in lower case.
CREATE TABLE templates (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope TEXT NOT NULL,
  domain_id TEXT REFERENCES domains (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, scope, name)
);
CREATE INDEX templates_domain ON templates (domain_id);

-- Exactly one version of a template is active as soon as it has any.
CREATE TABLE template_versions (
  id TEXT NOT NULL PRIMARY KEY,
  template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  content TEXT NOT NULL,
  mjml TEXT NOT NULL,
  headers_json TEXT NOT NULL,
  comment TEXT NOT NULL,
  active INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (template_id, tag)
);
