/**
 * One change at a time to the domains and DKIM keys of one family of names: a limit on keys, the last active key,
 * a parent that signs for a child are rules over several rows, which no unique index holds.
 */
import { sql, type Transaction } from 'kysely'
import type { Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'

/** Sets these locks apart from others in the database ("dkim" in ASCII). */
const LOCK_CLASS = 0x64_6b_69_6d

/**
 * Waits until no other transaction holds the family of `name`, and holds it to the end of this one. To be called
 * before the first read, which then sees what the others left. A domain and all that may sign for it share their
 * last two labels, so one lock covers them, whoever's they are. SQLite has one writer and needs none.
 */
export async function lockNames(store: Store, tx: Transaction<Schema>, name: string): Promise<void> {
  if (store.kind === 'sqlite') return
  const family = name.split('.').slice(-2).join('.')
  await sql`SELECT pg_advisory_xact_lock(${LOCK_CLASS}::int, hashtext(${family}))`.execute(tx)
}
