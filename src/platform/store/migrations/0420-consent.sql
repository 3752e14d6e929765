-- What a list shows to people, and how they come onto it (decision 228). `title`: names it as a topic on the preference
-- page and on the form; empty: it is none. `language`: of the confirmation mail. `is_opt_in`: added members are asked
-- first, unless the call says otherwise. `is_form_open`: strangers may ask for a confirmation mail by the hosted form.
-- `form_redirect`: where the form leads; null: to a page. `confirm_days`: how long a member may wait. `confirm_template`:
-- stored template of the mail; null: the built-in text. `mails_count` confirmation mails were asked for on the day
-- `mails_day` (days since 1970, UTC).
ALTER TABLE lists ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE lists ADD COLUMN language TEXT NOT NULL DEFAULT 'en';
ALTER TABLE lists ADD COLUMN is_opt_in INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lists ADD COLUMN is_form_open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lists ADD COLUMN form_redirect TEXT;
ALTER TABLE lists ADD COLUMN confirm_days INTEGER NOT NULL DEFAULT 7;
ALTER TABLE lists ADD COLUMN confirm_template TEXT;
ALTER TABLE lists ADD COLUMN mails_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lists ADD COLUMN mails_count INTEGER NOT NULL DEFAULT 0;

-- A pending member has an id, which the link of its mail names, and is not subscribed. It waits until `pending_until`.
-- `pending_mail_at`: when its mail is due; null: the mail was accepted. `pending_source`: who asked, as in
-- consent_trail. `is_rejoining`: it was a member before, and stays one when it does not confirm.
ALTER TABLE list_members ADD COLUMN pending_id TEXT;
ALTER TABLE list_members ADD COLUMN pending_until INTEGER;
ALTER TABLE list_members ADD COLUMN pending_mail_at INTEGER;
ALTER TABLE list_members ADD COLUMN pending_source TEXT;
ALTER TABLE list_members ADD COLUMN is_rejoining INTEGER NOT NULL DEFAULT 0;
CREATE INDEX list_members_pending ON list_members (pending_id) WHERE pending_id IS NOT NULL;
CREATE INDEX list_members_pending_until ON list_members (pending_until) WHERE pending_until IS NOT NULL;
CREATE INDEX list_members_pending_mail ON list_members (pending_mail_at) WHERE pending_mail_at IS NOT NULL;

-- The last confirmation mail to an address for a list; outlives the member for a day, so that taking part in a list and
-- leaving it does not make room for another mail.
CREATE TABLE confirmation_mails (
  address_key TEXT NOT NULL,
  list_id TEXT NOT NULL,
  mailed_at INTEGER NOT NULL,
  PRIMARY KEY (address_key, list_id)
);
CREATE INDEX confirmation_mails_age ON confirmation_mails (mailed_at);

-- How and when an address came onto a list or left it, some rows for each address. Either `list_id` and `list_address`
-- (as it was) or `topic` is set: a tag of the domain, `*` for all its mail. `called_by`: user or key. `expires_at`: only
-- of addresses that have not agreed, which anybody may enter; cleared when they agree.
CREATE TABLE consent_trail (
  account_id TEXT NOT NULL,
  address_key TEXT NOT NULL,
  id TEXT NOT NULL,
  list_id TEXT,
  list_address TEXT,
  domain_name TEXT NOT NULL,
  topic TEXT,
  action TEXT NOT NULL,
  source TEXT NOT NULL,
  ip TEXT,
  user_agent TEXT,
  called_by TEXT,
  at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (account_id, address_key, id)
);
CREATE INDEX consent_trail_expires ON consent_trail (expires_at) WHERE expires_at IS NOT NULL;

-- `is_confirmed`: the members of the upload are asked first. `called_by`: user or key.
ALTER TABLE list_uploads ADD COLUMN is_confirmed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE list_uploads ADD COLUMN called_by TEXT;

-- Page of topics behind the unsubscribe links of the domain, as JSON {isActive, topics: [{tag, title}]}; null: none. It is
-- a column, and not a table, because it is read with the other settings for each message.
ALTER TABLE tracking_settings ADD COLUMN preferences_json TEXT;
