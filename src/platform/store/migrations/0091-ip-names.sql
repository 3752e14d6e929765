-- When DNS was last right about a sending address: name, EHLO and SPF. Unix milliseconds.
CREATE TABLE ip_names (
  ip TEXT NOT NULL PRIMARY KEY,
  good_at INTEGER NOT NULL
);
