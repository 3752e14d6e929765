/** Ways to commit that several areas use. */
import type { Schema } from './schema.ts'
import { type SqlValue, StaleWrite, type Statement, type Store } from './store.ts'

/** Repeats a statement that affects up to `rowsMax` rows until there are fewer, or `signal` aborts. */
export async function commitInChunks(
  store: Pick<Store, 'commit'>,
  statement: Statement,
  rowsMax: number,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted) {
    const [result] = await store.commit([statement])
    if ((result?.affected ?? 0) < rowsMax) return
  }
}

/** Rows of a table of any size that may go. */
interface RemovedRows {
  from: keyof Schema
  /** The columns of its primary key. */
  key: string
  /** A condition with a `?` for each of `values`; may end with the order of an index. */
  where: string
  values: readonly SqlValue[]
}

/** Rows removed in one transaction: it blocks the writer for some milliseconds. */
const REMOVED_AT_A_TIME = 1_000

/** Removes the rows, a portion in each transaction. Ends early when `signal` aborts; the next call continues. */
export function removeRows(
  store: Pick<Store, 'commit'>,
  { from, key, where, values }: RemovedRows,
  signal?: AbortSignal,
): Promise<void> {
  const rows = `SELECT ${key} FROM ${from} WHERE ${where} LIMIT ${REMOVED_AT_A_TIME}`
  const sql = `DELETE FROM ${from} WHERE (${key}) IN (${rows})`
  return commitInChunks(store, { sql, values }, REMOVED_AT_A_TIME, signal)
}

/** False: one of them was stale, and nothing was written. */
export async function commitUnlessStale(
  store: Pick<Store, 'commit'>,
  statements: readonly Statement[],
): Promise<boolean> {
  try {
    await store.commit(statements)
    return true
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
}

/** For `catch`: rejects with another error where a write was stale. */
export const ifStale =
  (fault: (stale: StaleWrite) => Error) =>
  (error: unknown): never => {
    throw error instanceof StaleWrite ? fault(error) : error
  }
