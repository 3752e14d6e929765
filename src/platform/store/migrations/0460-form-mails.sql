-- Confirmation mails that forms of lists have asked for on the day `day` (days since 1970, UTC), by subject: a keyed digest
-- of a mailbox, of an account, or of a domain of recipients of an account.
CREATE TABLE form_mails (
  subject TEXT PRIMARY KEY,
  day INTEGER NOT NULL,
  mails INTEGER NOT NULL
);
CREATE INDEX form_mails_day ON form_mails (day);
