-- For the most frequent replies that no rule knows (own-operations.md section 11): a small part of the failures.
CREATE INDEX classified_failures_unknown ON classified_failures (failed_at) WHERE rule_id = 'unclassified';
