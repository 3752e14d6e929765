-- `password`, or `oidc`: then the user has no password here.
ALTER TABLE users ADD COLUMN auth_method TEXT NOT NULL DEFAULT 'password';

-- Who a user is at the OpenID Connect provider.
CREATE TABLE user_identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id TEXT NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
  linked_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
);

-- Sign-ins that were completed, until they are too old to be completed again: each is valid once.
CREATE TABLE oidc_sign_ins (
  digest TEXT NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
);
CREATE INDEX oidc_sign_ins_expiry ON oidc_sign_ins (expires_at);
