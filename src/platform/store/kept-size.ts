/** The space that the rows of a table may take: beyond it the oldest ones go, in portions. */
import { commitInChunks } from './commits.ts'
import type { Store } from './store.ts'

export interface SizedTable {
  name: string
  /** Columns of its primary key. */
  key: string
  /** Column that grows with time and leads an index. */
  age: string
  /** Texts that make most of a row. */
  texts: readonly string[]
  /** The rest of a row, with its index entries; bytes. */
  rowBytes: number
}

/** Rows from which the average size is estimated. */
const SAMPLE_ROWS = 1_000
/** Rows removed at a time, so that other writes are not delayed long. */
const CHUNK = 500

/**
 * Removes the oldest rows beyond `bytesMax` (null: no limit), as estimated from the newest ones. Ends early when `signal` aborts; the next run
 * continues. `only`: a further condition on what is removed, with its one value.
 */
export async function removeBeyond(
  store: Pick<Store, 'read' | 'commit'>,
  { name, key, age, texts, rowBytes }: SizedTable,
  bytesMax: number | null,
  signal?: AbortSignal,
  only?: { sql: string; value: number },
): Promise<void> {
  if (bytesMax === null) return
  const size = texts.map((text) => `COALESCE(octet_length(${text}), 0)`).join(' + ')
  const newest = `SELECT ${size} AS bytes FROM ${name} ORDER BY ${age} DESC LIMIT ${SAMPLE_ROWS}`
  const [average] = await store.read({
    sql: `SELECT avg(bytes) AS bytes FROM (${newest}) AS newest`,
    values: [],
  })
  const rowsMax = Math.floor(bytesMax / (Number(average?.['bytes'] ?? 0) + rowBytes))
  const firstBeyond = `SELECT ${age} AS age FROM ${name} ORDER BY ${age} DESC LIMIT 1 OFFSET ${rowsMax}`
  const [beyond] = await store.read({ sql: firstBeyond, values: [] })
  if (beyond === undefined) return
  const oldest = `SELECT ${key} FROM ${name} WHERE ${age} <= ?${only ? ` AND ${only.sql}` : ''}
    ORDER BY ${age} LIMIT ${CHUNK}`
  const values = [beyond['age'] as string | number, ...(only ? [only.value] : [])]
  const sql = `DELETE FROM ${name} WHERE (${key}) IN (${oldest})`
  await commitInChunks(store, { sql, values }, CHUNK, signal)
}
