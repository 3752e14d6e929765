/**
 * Makes rows of days, weeks and months from those of shorter units, when their time has passed (decision 71).
 *
 * 1. `figure_places.written` moves to the end: from now on counting adds to the rows of all intervals before it.
 * 2. Interval by interval, each row is set to the sum of the shorter ones, some scopes at a time. An event that is
 *    counted before or after that is in both. So it may be repeated, and begins again after a crash.
 * 3. `until` follows: queries read the rows.
 */
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, VALUE_NAMES } from '../counters.ts'
import { after, type RowUnit, startOf } from '../intervals.ts'
import { onConflictSet, ROW_KEY, WAIT_FOR_COUNTING } from './figure-rows.ts'
import { type LongUnit, placesOf } from './places.ts'
import { SPLIT_NUMBERS, SPLITS, type Split, type SplitName, UNIT_NUMBERS } from './splits.ts'
import { makeTagPairs } from './tag-pairs.ts'

/** Events that are counted later than this are added to rows that exist: correct, but more work. */
const GRACE_MS = HOUR_MS
/** Scopes per transaction: about 30,000 rows of a day's hours, 30 ms of SQLite's only writer. */
const SCOPES = 50
const SHORTER: Readonly<Record<LongUnit, RowUnit>> = { day: 'hour', week: 'day', month: 'day' }

/** Stops early when `signal` aborts; the next run continues. `now`: Unix milliseconds. */
export async function rollUp(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  await makeUnit(store, 'day', startOf('day', now - GRACE_MS), signal)
  // Weeks and months are made from days, which have to be complete.
  for (const unit of ['week', 'month'] as const) {
    const { until } = await placesOf(store)
    await makeUnit(store, unit, startOf(unit, until.day), signal)
  }
}

/** Makes the rows of all intervals before `end`. */
async function makeUnit(store: Store, unit: LongUnit, end: number, signal?: AbortSignal): Promise<void> {
  await store.commit([place('written', unit, end)])
  while (!signal?.aborted) {
    const { until } = await placesOf(store)
    const start = await nextStart(store, unit, until[unit])
    if (start === null || start >= end) {
      await store.commit([place('until', unit, end)])
      return
    }
    await makeRows(store, unit, start, signal)
    if (unit === 'day') await makeTagPairs(store, start, signal)
    if (!signal?.aborted) await store.commit([place('until', unit, after(unit, start))])
  }
}

/** The first interval that begins at `until` or later and has events; null: there is none. */
async function nextStart(store: Store, unit: LongUnit, until: number): Promise<number | null> {
  const from = startOf(unit, until) >= until ? until : after(unit, startOf(unit, until))
  // Every event is in a row without values of its account.
  const [row] = await store.read({
    sql: `SELECT min(first) AS first FROM (
        SELECT (SELECT min(start_at) FROM figures
          WHERE scope = no AND split = ${SPLIT_NUMBERS.none} AND unit = ? AND start_at >= ?) AS first
        FROM figure_scopes WHERE domain_name = '') AS firsts`,
    values: [UNIT_NUMBERS[SHORTER[unit]], from],
  })
  const first = row?.['first'] ?? null
  return first === null ? null : startOf(unit, Number(first))
}

async function makeRows(store: Store, unit: LongUnit, start: number, signal?: AbortSignal): Promise<void> {
  const end = after(unit, start)
  const [last] = await store.read({ sql: 'SELECT max(no) AS no FROM figure_scopes', values: [] })
  for (let scope = 0; scope < Number(last?.['no'] ?? 0); scope += SCOPES) {
    if (signal?.aborted) return
    await store.commit([
      { sql: WAIT_FOR_COUNTING, values: [] },
      ...sums(unit).map((sql) => ({ sql, values: [start, scope, scope + SCOPES, start, end] })),
    ])
  }
}

const place = (column: 'written' | 'until', unit: LongUnit, time: number): Statement => ({
  sql: `UPDATE figure_places SET ${column} = ? WHERE unit = ? AND ${column} < ?`,
  values: [time, UNIT_NUMBERS[unit], time],
})

/** A statement for each split that has rows of the unit, of domains or of accounts. */
function sums(unit: LongUnit): string[] {
  return SPLITS.flatMap((split) =>
    [
      { units: split.ofDomain, scopes: `domain_name <> ''` },
      { units: split.ofAccount, scopes: `domain_name = ''` },
    ].flatMap(({ units, scopes }) => {
      const at = units.indexOf(unit)
      if (at > 0) return sumsOf(split, { unit, scopes, source: split.name, sourceUnit: SHORTER[unit] })
      // Lists of tags are left to tag-pairs.ts.
      const isMade = at === 0 && split.source !== undefined && split.source !== 'all'
      return isMade ? sumsOf(split, { unit, scopes, source: split.source, sourceUnit: unit }) : []
    }),
  )
}

interface Sums {
  unit: LongUnit
  /** Condition of SQL. */
  scopes: string
  source: SplitName | undefined
  sourceUnit: RowUnit
}

function sumsOf({ name, values: kept }: Split, { unit, scopes, source = name, sourceUnit }: Sums): string {
  const values = VALUE_NAMES.map((value) => (kept.includes(value) ? value : `''`)).join(', ')
  return `INSERT INTO figures (${ROW_KEY}, ${COUNTERS.join(', ')})
    SELECT scope, ${SPLIT_NUMBERS[name]}, ${UNIT_NUMBERS[unit]}, CAST(? AS BIGINT), ${values}, ${COUNTERS.map((counter) => `sum(${counter})`).join(', ')}
    FROM figure_scopes CROSS JOIN figures
    WHERE no > ? AND no <= ? AND ${scopes} AND scope = no AND split = ${SPLIT_NUMBERS[source]}
      AND unit = ${UNIT_NUMBERS[sourceUnit]} AND start_at >= ? AND start_at < ?
    GROUP BY ${['scope', ...kept].join(', ')}
    ${onConflictSet()}`
}
