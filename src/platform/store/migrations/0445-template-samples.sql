-- Variables that previews and tests of a version are rendered with: a JSON object, `{}` if it has none.
ALTER TABLE template_versions ADD COLUMN sample_json TEXT NOT NULL DEFAULT '{}';
