-- What later events (opens, clicks, complaints, late bounces) need of a message and its deliveries once those are
-- removed. Written when they are removed, not on the way of a message.
CREATE TABLE past_messages (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  domain_name TEXT NOT NULL,
  message_id TEXT NOT NULL,
  summary_json TEXT NOT NULL,
  removed_at INTEGER NOT NULL
);
CREATE INDEX past_messages_age ON past_messages (removed_at, id);

-- One per delivery that a server had in hand. `provider`, `sending_ip` and `headers_json` (To, From and Subject, as
-- far as the copy's differ from the message's) are those of its delivered event, null without one.
CREATE TABLE past_deliveries (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  message_pk TEXT NOT NULL,
  recipient TEXT NOT NULL,
  recipient_domain TEXT NOT NULL,
  recipient_header TEXT NOT NULL,
  variables_json TEXT,
  list_json TEXT,
  state TEXT NOT NULL,
  provider TEXT,
  sending_ip TEXT,
  delivered_at INTEGER,
  headers_json TEXT,
  removed_at INTEGER NOT NULL
);
CREATE INDEX past_deliveries_age ON past_deliveries (removed_at, id);

-- Not null: an unsubscribe link added this tag. JSON list of [tag, undo_json] that it replaced, for its undoing.
ALTER TABLE unsubscribe_tags ADD COLUMN undo_json TEXT;
-- 1: unsubscribed by the list's link; any other change of the member makes it 0 again.
ALTER TABLE list_members ADD COLUMN by_link INTEGER NOT NULL DEFAULT 0;
