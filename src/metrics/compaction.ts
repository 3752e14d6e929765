/**
 * The end of the time for which figures are kept (metrics-logs.md section 4). Rows of narrow splits are removed: the same
 * counts are in rows of a longer unit. Rows of all values exist once, so they become rows of the longer unit.
 */
import type { SqlValue, Statement, Store } from '../store/store.ts'
import { COUNTERS } from './counters.ts'
import { onConflictAdd, ROW_KEY, WAIT_FOR_COUNTING } from './figure-rows.ts'
import { startOf } from './intervals.ts'
import { KEPT_MS } from './removal.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS, VALUE_NAMES } from './splits.ts'

/** Scopes that are looked at in one read. */
const SCOPES = 200
/** Rows per transaction: the writer is blocked for a few milliseconds. */
const CHUNK = 500
const OLDEST = (unit: number) =>
  `(SELECT min(start_at) FROM figures WHERE scope = no AND split = ${SPLIT_NUMBERS.all} AND unit = ${unit})`

/** Stops early when `signal` aborts; the next run continues. `now`: Unix milliseconds. */
export async function compactFigures(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  for (const [unit, longer] of [
    ['hour', 'day'],
    ['day', 'month'],
  ] as const) {
    const before = startOf(longer, now - KEPT_MS[unit])
    let scope = -1
    while (!signal?.aborted) {
      const rows = await store.read({
        sql: `SELECT no, ${OLDEST(UNIT_NUMBERS[unit])} AS oldest FROM figure_scopes WHERE no > ? ORDER BY no LIMIT ${SCOPES}`,
        values: [scope],
      })
      for (const { no, oldest } of rows) {
        scope = Number(no)
        if (oldest !== null && Number(oldest) < before)
          await compactScope(store, { scope, unit, longer, before }, signal)
      }
      if (rows.length < SCOPES) break
    }
  }
}

interface Task {
  scope: number
  unit: 'hour' | 'day'
  longer: 'day' | 'month'
  before: number
}

const VALUES = VALUE_NAMES.join(', ')
const WHERE = `scope = ? AND split = ${SPLIT_NUMBERS.all} AND unit = ? AND start_at = ?`

async function compactScope(
  store: Store,
  { scope, unit, longer, before }: Task,
  signal?: AbortSignal,
): Promise<void> {
  const oldest = `SELECT start_at, ${VALUES} FROM figures
    WHERE scope = ? AND split = ${SPLIT_NUMBERS.all} AND unit = ? AND start_at < ?
    ORDER BY start_at, ${VALUES} LIMIT ${CHUNK}`
  while (!signal?.aborted) {
    const rows = await store.read({ sql: oldest, values: [scope, UNIT_NUMBERS[unit], before] })
    const start = rows[0]?.['start_at']
    if (start === undefined) return
    const last = rows.findLast((row) => row['start_at'] === start) as Record<string, SqlValue>
    const chunk = [
      scope,
      UNIT_NUMBERS[unit],
      Number(start),
      ...VALUE_NAMES.map((name) => last[name] as string),
    ]
    await store.commit(moves(chunk, UNIT_NUMBERS[longer], startOf(longer, Number(start))))
  }
}

/** Adds the rows up to the last one of the chunk to those of the longer unit, and removes them. */
function moves(chunk: readonly SqlValue[], unit: number, start: number): Statement[] {
  const upTo = `${WHERE} AND (${VALUES}) <= (${VALUE_NAMES.map(() => '?').join(', ')})`
  return [
    { sql: WAIT_FOR_COUNTING, values: [] },
    {
      sql: `INSERT INTO figures (${ROW_KEY}, ${COUNTERS.join(', ')})
        SELECT scope, split, CAST(? AS BIGINT), CAST(? AS BIGINT), ${VALUES}, ${COUNTERS.join(', ')} FROM figures
        WHERE ${upTo} ${onConflictAdd(COUNTERS)}`,
      values: [unit, start, ...chunk],
    },
    { sql: `DELETE FROM figures WHERE ${upTo}`, values: chunk },
  ]
}
