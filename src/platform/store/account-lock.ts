/** Changes of an account's rows that must not run side by side. */
import type { Transaction } from 'kysely'
import type { Schema } from './schema.ts'
import type { Statement, Store } from './store.ts'

/** A transaction with the account's row locked: for limits that count rows, and rules that need "the last one". */
export function lockedAccount<T>(
  store: Store,
  accountId: string,
  run: (tx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return store.transaction(async (tx) => {
    // SQLite has one writer at a time.
    if (store.kind === 'postgres')
      await tx.selectFrom('accounts').select('id').where('id', '=', accountId).forUpdate().execute()
    return run(tx)
  })
}

/**
 * For a unit of `commit`: other units with this statement, and `lockedAccount`, wait until the unit has ended. Statements
 * after it see what those wrote.
 */
export const accountLockStatements = (store: Pick<Store, 'kind'>, accountId: string): Statement[] =>
  // SQLite has one writer at a time.
  store.kind === 'postgres'
    ? [{ sql: 'SELECT id FROM accounts WHERE id = ? FOR UPDATE', values: [accountId] }]
    : []
