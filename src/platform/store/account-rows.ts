/**
 * Removes the rows of one account from tables of any size, a portion at a time with a pause after each, so that no other
 * account waits for more than one portion. The functions for that may be called again after a failure.
 */

import type { Transaction } from 'kysely'
import { pause } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Schema } from './schema.ts'
import type { SqlValue, Statement, Store } from './store.ts'

/** About 10 ms of SQLite's only writer. */
export const PORTION = 500
/** Rows looked at in one step of a pass; hardly any of them belong to the account. */
const PASS_PORTION = 2_000
/** The writer is idle for others at least half of the time. */
const PAUSE_MS = 10

export interface RowParts {
  store: Store
  clock: Clock
}

type Column<T extends keyof Schema> = keyof Schema[T] & string

/** For a table with an index that begins with `column`. `key`: the columns of its primary key. */
export function removeIndexedRows<T extends keyof Schema>(
  parts: RowParts,
  table: T,
  key: readonly Column<T>[],
  column: Column<T>,
  value: SqlValue,
  signal: AbortSignal,
): Promise<void> {
  const columns = key.join(', ')
  const rows = `SELECT ${columns} FROM ${table} WHERE ${column} = ? LIMIT ${PORTION}`
  return inPortions(parts, `DELETE FROM ${table} WHERE (${columns}) IN (${rows})`, [value], signal)
}

/** Repeats a statement that affects up to `PORTION` rows until there are fewer. */
export async function inPortions(
  { store, clock }: RowParts,
  sql: string,
  values: readonly SqlValue[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const [result] = await store.commit([{ sql, values }])
    if ((result?.affected ?? 0) < PORTION) return
    await pause(clock, PAUSE_MS, signal)
    signal.throwIfAborted()
  }
}

/**
 * For a table that has no index by account, since every insert would pay for it: one pass over all of it in the order of
 * `key`, a text column that its primary key begins with.
 */
export async function removeRowsInPass<T extends keyof Schema>(
  { store, clock }: RowParts,
  table: T,
  key: Column<T>,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const portion = `SELECT ${key} AS k FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${PASS_PORTION}`
  const end = `SELECT max(k) AS last FROM (${portion}) AS portion`
  const remove = `DELETE FROM ${table} WHERE ${key} > ? AND ${key} <= ? AND account_id = ?`
  for (let after = ''; ; ) {
    const [row] = await store.read({ sql: end, values: [after] })
    const last = (row?.['last'] ?? null) as string | null
    if (last === null) return
    await store.commit([{ sql: remove, values: [after, last, accountId] }])
    after = last
    await pause(clock, PAUSE_MS, signal)
    signal.throwIfAborted()
  }
}

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

/**
 * The `account_id` of mail of the service itself, such as invitations. There is no such account: nobody reads these
 * messages or their events over the API (decision 59).
 */
export const SYSTEM_ACCOUNT_ID = 'system'
