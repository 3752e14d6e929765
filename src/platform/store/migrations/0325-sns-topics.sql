-- Topics of Amazon SNS whose notifications of bounces and complaints are taken (relays.md section 3).
CREATE TABLE sns_topics (
  -- Amazon Resource Name.
  arn TEXT PRIMARY KEY,
  -- Last part of the URL that SNS posts to: who does not know it cannot make the service read a body.
  token TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  -- Unix milliseconds of the last confirmation; null: not subscribed, or unsubscribed since.
  confirmed_at INTEGER,
  -- Timestamp of the last message about the subscription, as signed: what is not later is a repetition. 0: there was none.
  subscription_at INTEGER NOT NULL
);
