/** Changes of an account's rows that must not run side by side. */
import type { Transaction } from 'kysely'
import type { Schema } from './schema.ts'
import type { Store } from './store.ts'

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
