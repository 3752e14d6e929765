-- Periodic jobs that one of several processes runs at a time. Times of `lease_until` and `next_run_at` are by the
-- clock of leases, the others by the clock of the process that ran the job.
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  lease_owner TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  next_run_at INTEGER NOT NULL,
  last_started_at INTEGER NOT NULL,
  last_ended_at INTEGER,
  last_error TEXT
);
