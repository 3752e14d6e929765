-- The network, /20 or /48, that the first mail of the domain came from on that day: one sender brings few new domains, so that
-- mail from invented domains leaves room for others. Empty: written before it was kept.
ALTER TABLE dmarc_policies ADD COLUMN network TEXT NOT NULL DEFAULT '';
