-- 1: the SPF record of mailfrom_host was valid at the last check; else return paths have the domain itself. Hosts that were
-- chosen before keep their use until then (domains.md rule 16).
ALTER TABLE domains ADD COLUMN return_path_valid INTEGER NOT NULL DEFAULT 0;
UPDATE domains SET return_path_valid = 1 WHERE mailfrom_host <> name;
