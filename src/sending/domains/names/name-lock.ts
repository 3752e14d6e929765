/**
 * Serialises changes to the domains and DKIM keys of one family of names. The limit on keys, the last active key
 * and a parent that signs for a child are rules over several rows, which no unique index can enforce.
 */
import { sql } from 'kysely'
import { LOCK_PREFIX } from '../../../platform/store/pods/pod.ts'
import { NAMES_LOCK_CLASS } from '../../../platform/store/postgres/advisory-locks.ts'
import type { Store, Tx } from '../../../platform/store/store.ts'

/**
 * Waits until no other transaction holds the lock on the family of `name`, and holds it until this one ends. Must
 * be called before the first read, which then sees what the others committed. A domain and all that may sign for it
 * share their last two labels, so one lock covers them, whichever account owns them. SQLite has one writer and
 * needs no lock.
 */
export async function lockNames(store: Store, tx: Tx, name: string): Promise<void> {
  if (store.kind === 'sqlite') return
  const family = name.split('.').slice(-2).join('.')
  await sql`SELECT pg_advisory_xact_lock(${NAMES_LOCK_CLASS}::int, hashtext(${sql.raw(LOCK_PREFIX)} || ${family}))`.execute(
    tx,
  )
}
