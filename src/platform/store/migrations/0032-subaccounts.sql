-- Names of subaccounts that are not closed are unique within their parent.
CREATE UNIQUE INDEX accounts_child_name ON accounts (parent_id, name)
  WHERE parent_id IS NOT NULL AND status <> 'closed';

-- Subaccounts whose state has changed: their mail is held or released, or what they had is removed. The row goes when
-- that is done.
CREATE TABLE account_changes (
  account_id TEXT NOT NULL PRIMARY KEY,
  changed_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL
);
CREATE INDEX account_changes_due ON account_changes (due_at);

-- Empty: deleted before this column was added.
ALTER TABLE domain_deletions ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
CREATE INDEX domain_deletions_account ON domain_deletions (account_id);

-- Mail of accounts that may not send. No other delivery has an entry.
CREATE INDEX deliveries_held ON deliveries (account_id, id)
  WHERE reason = 'account-held' AND state IN ('scheduled', 'queued');
