-- Exports and erasures of what is stored about one person (people.md). Rows are removed after 90 days, archives after a week.
CREATE TABLE person_tasks (
  id TEXT NOT NULL PRIMARY KEY,
  -- Who asked; the task is listed there.
  account_id TEXT NOT NULL,
  -- 1: of all accounts; 0: of this account and its subaccounts.
  everywhere INTEGER NOT NULL,
  -- export, erase
  kind TEXT NOT NULL,
  dry_run INTEGER NOT NULL,
  -- queued, running, done, failed
  state TEXT NOT NULL,
  -- The address, sealed; null: it is not needed any more.
  address_sealed BLOB,
  -- The keyed hash that stands for it.
  address_hash TEXT NOT NULL,
  -- JSON: how far it is (src/carry/person/work.ts).
  position_json TEXT NOT NULL,
  -- JSON: by store, how many entries were found, and what became of them.
  counts_json TEXT NOT NULL,
  -- JSON: names of the pieces of the archive.
  blobs_json TEXT NOT NULL,
  -- JSON: the report; null: not done.
  report_json TEXT,
  -- Why it failed; empty: it has not.
  fault TEXT NOT NULL,
  tries INTEGER NOT NULL,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL,
  stepped_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
);
CREATE INDEX person_tasks_newest ON person_tasks (account_id, created_at, id);
CREATE INDEX person_tasks_due ON person_tasks (stepped_at, id) WHERE state IN ('queued', 'running');
CREATE INDEX person_tasks_age ON person_tasks (created_at);
