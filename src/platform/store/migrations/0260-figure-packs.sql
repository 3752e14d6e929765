-- Counts by all values, many in one value (decision 153): src/watching/metrics/count/packs.ts has the layout. Several rows of one interval
-- add up.
CREATE TABLE figure_packs (
  scope INTEGER NOT NULL,
  -- What the entries count, as in `figures`: 0 hours, 1 a day, 2 a month.
  unit INTEGER NOT NULL,
  -- Start of the month, or of the day that the hours are in. Unix milliseconds, in UTC.
  start_at INTEGER NOT NULL,
  -- A random number.
  part INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  packed BLOB NOT NULL,
  PRIMARY KEY (scope, unit, start_at, part)
-- only sqlite
-- The packs of a domain's day are together: merging them writes few pages.
) WITHOUT ROWID;
-- only postgres
);
-- all

-- Unit 4: whether counting writes packs, 1 in `until`. Nodes of the release before read none; while any runs, rows of all
-- values are written. `written` is the time of this migration.
-- only sqlite
INSERT INTO figure_places (unit, written, until) VALUES (4, 0, 1);
-- only postgres
INSERT INTO figure_places (unit, written, until)
  SELECT 4, time_from_now(0), CASE WHEN EXISTS (SELECT 1 FROM nodes) THEN 0 ELSE 1 END;
-- all
