-- For the checks of the service itself (alerts.md section 5): refusals of the last hour, and webhook endpoints that fail.
-- Both hold only rows of failures.
CREATE INDEX classified_failures_critical ON classified_failures (failed_at, rule_id, provider) WHERE critical = 1;
CREATE INDEX outgoing_posts_failing ON outgoing_posts (lane, created_at) WHERE attempts > 0;
