-- Figures of days and months are made from those of shorter units when their time has passed (decision 71). One row for
-- each of these units: 1 day, 2 month, as in `figures`.
CREATE TABLE figure_places (
  unit INTEGER NOT NULL PRIMARY KEY,
  -- Events of intervals that begin before this time are added to rows of this unit as well. Unix milliseconds.
  written INTEGER NOT NULL,
  -- Rows of intervals that begin before this time are complete, so that queries read them.
  until INTEGER NOT NULL
);

-- Up to now each event was added to the rows of all units.
INSERT INTO figure_places (unit, written, until)
  SELECT 1, coalesce(max(start_at) + 1, 0), coalesce(max(start_at) + 1, 0) FROM figures WHERE unit = 1;
INSERT INTO figure_places (unit, written, until)
  SELECT 2, coalesce(max(start_at) + 1, 0), coalesce(max(start_at) + 1, 0) FROM figures WHERE unit = 2;
