-- Facts of this installation, by name; `secret-mark` proves that a process has the secret that sealed what is stored.
CREATE TABLE installation (
  name TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
);

-- only postgres
-- Unix milliseconds by the database's clock, for leases. The time of the statement, not of the call, so that an index
-- can be searched with it.
CREATE FUNCTION time_from_now(after_ms bigint) RETURNS bigint LANGUAGE sql STABLE
  AS 'SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint + after_ms';
-- all
