/**
 * Makes the day's rows of pairs of a tag and a country or provider, of accounts. They are kept because reading them from
 * rows of all values takes a second for each ten days; they are made when the day is over because counting them at once
 * would write a fifth more rows.
 *
 * Rows of all values have lists of tags and are many, so they are read in parts (figure-reader.ts) and added up here. An
 * event of the day that is counted meanwhile may be missing in the sums; it changes the account's row of the day, on which
 * the transactions that set the sums depend. Then the account is read again.
 */
import { BadRequest } from '../../../base/process/errors.ts'
import { type SqlValue, StaleWrite, type Statement, type Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counts, noCounts, VALUE_NAMES, type ValueName } from '../counters.ts'
import type { Dimension, FigureRow } from '../figures.ts'
import { after } from '../intervals.ts'
import { createFigures } from './figure-reader.ts'
import { onConflictSet, ROW_KEY, WAIT_FOR_COUNTING } from './figure-rows.ts'
import { SPLIT_NUMBERS, type Split, TAG_PAIRS, UNIT_NUMBERS } from './splits.ts'

/** While older events are counted without end, the pairs of their days are left to the rows of all values. */
const TRIES_MAX = 5
const ROWS_PER_STATEMENT = 32
/** The writer is blocked for a few milliseconds. */
const STATEMENTS_PER_COMMIT = 16

/** What is read, and the values of rows of figures that it is. */
const DIMENSIONS = ['tag', 'country', 'recipient_provider'] as const satisfies readonly Dimension[]
const VALUES = ['tag', 'country', 'provider'] as const satisfies readonly ValueName[]

interface Task {
  accountId: string
  scope: number
  /** Beginning of the day, in Unix milliseconds. */
  start: number
}

/** `start`: of the day, in Unix milliseconds. May be repeated; stops early when `signal` aborts. */
export async function makeTagPairs(store: Store, start: number, signal?: AbortSignal): Promise<void> {
  const accounts = await store.read({
    sql: `SELECT no, account_id FROM figure_scopes WHERE domain_name = '' AND EXISTS
      (SELECT 1 FROM figures WHERE scope = no AND split = ${SPLIT_NUMBERS.tag} AND unit = ${UNIT_NUMBERS.day} AND start_at = ?)`,
    values: [start],
  })
  for (const { no, account_id } of accounts) {
    if (signal?.aborted) return
    await makePairsOf(store, { accountId: String(account_id), scope: Number(no), start })
  }
}

async function makePairsOf(store: Store, task: Task): Promise<void> {
  for (let left = TRIES_MAX; left > 0; left--) {
    const unchanged = await dayUnchanged(store, task)
    // The account was deleted.
    if (unchanged === null) return
    try {
      const rows = await readRows(store, task)
      for (const split of TAG_PAIRS)
        await setRows(store, task, { unchanged, split, rows: pairsOf(split, rows) })
      return
    } catch (error) {
      if (error instanceof BadRequest) break
      if (!(error instanceof StaleWrite)) throw error
    }
  }
  // Too many pairs, or too many late events: queries do not rely on the pairs of this day.
  const sql = 'UPDATE figure_scopes SET pairs_since = ? WHERE no = ?'
  await store.commit([{ sql, values: [after('day', task.start), task.scope] }])
}

const DAY_KEY = `scope = ? AND split = ${SPLIT_NUMBERS.none} AND unit = ${UNIT_NUMBERS.day} AND start_at = ?`

/** Fails its transaction if mail of the day was counted since; null: the account has no mail of that day. */
async function dayUnchanged(store: Store, { scope, start }: Task): Promise<Statement | null> {
  const [row] = await store.read({
    sql: `SELECT ${COUNTERS.map((name) => `coalesce(${name}, 0) AS ${name}`).join(', ')} FROM figures WHERE ${DAY_KEY}`,
    values: [scope, start],
  })
  if (!row) return null
  return {
    sql: `UPDATE figures SET stored = stored WHERE ${DAY_KEY} ${COUNTERS.map((name) => `AND coalesce(${name}, 0) = ?`).join(' ')}`,
    values: [scope, start, ...COUNTERS.map((name) => Number(row[name]))],
    expectRows: 1,
  }
}

/** Both pairs are made of these. */
function readRows(store: Store, { accountId, start }: Task): Promise<FigureRow[]> {
  return createFigures(store).read({
    accountIds: [accountId],
    startMs: start,
    endMs: after('day', start),
    resolution: 'day',
    dimensions: DIMENSIONS,
    filter: [],
  })
}

interface PairRow {
  values: Partial<Record<ValueName, string>>
  counts: Counts
}

function pairsOf({ values: kept }: Split, rows: readonly FigureRow[]): PairRow[] {
  const pairs = new Map<string, PairRow>()
  for (const row of rows) {
    const values: PairRow['values'] = {}
    for (const [at, name] of VALUES.entries())
      if (kept.includes(name)) values[name] = storedValue(name, row.values[at] as string)
    const key = Object.values(values).join('\n')
    const pair = pairs.get(key) ?? { values, counts: noCounts() }
    for (const name of COUNTERS) pair.counts[name] += row.counts[name]
    pairs.set(key, pair)
  }
  return [...pairs.values()]
}

async function setRows(
  store: Store,
  task: Task,
  { split, unchanged, rows }: { split: Split; unchanged: Statement; rows: readonly PairRow[] },
): Promise<void> {
  const statements: Statement[] = []
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT)
    statements.push(setStatement(task, split, rows.slice(at, at + ROWS_PER_STATEMENT)))
  for (let at = 0; at < statements.length; at += STATEMENTS_PER_COMMIT) {
    const some = statements.slice(at, at + STATEMENTS_PER_COMMIT)
    await store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }, unchanged, ...some])
  }
}

function setStatement({ scope, start }: Task, split: Split, rows: readonly PairRow[]): Statement {
  const values: SqlValue[] = []
  for (const row of rows) {
    values.push(scope, SPLIT_NUMBERS[split.name], UNIT_NUMBERS.day, start)
    for (const name of VALUE_NAMES) values.push(row.values[name] ?? '')
    for (const name of COUNTERS) values.push(row.counts[name] || null)
  }
  const one = `(${Array<string>(4 + VALUE_NAMES.length + COUNTERS.length).fill('?')})`
  return {
    sql: `INSERT INTO figures (${ROW_KEY}, ${COUNTERS.join(', ')})
      VALUES ${Array<string>(rows.length).fill(one).join(', ')} ${onConflictSet()}`,
    values,
  }
}

const storedValue = (name: ValueName, value: string) =>
  name === 'country' && value === 'Unknown' ? '' : value
