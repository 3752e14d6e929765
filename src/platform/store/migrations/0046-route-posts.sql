-- POSTs of received mail to URLs that are not done; the queue's rows (outgoing_posts) name them.
CREATE TABLE route_posts (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  message_pk TEXT NOT NULL,
  -- Envelope recipient.
  recipient TEXT NOT NULL,
  -- forward, notify
  kind TEXT NOT NULL,
  -- Sealed: it may hold a password.
  url_sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

-- A message is kept until its last POST is done.
CREATE INDEX route_posts_by_message ON route_posts (message_pk);
CREATE INDEX route_posts_by_domain ON route_posts (domain_id, id);
