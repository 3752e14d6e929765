/** Writes rows of figures. */
import type { Counts, FigureValues } from '../store/counter-rows.ts'
import type { SqlValue, Statement } from '../store/store.ts'
import { COUNTERS, type Counter } from './counters.ts'
import { VALUE_NAMES } from './splits.ts'

export interface FigureKey extends FigureValues {
  account_id: string
  /** Empty: the account as a whole. */
  domain_name: string
  split: number
  unit: number
  start_at: number
}

export interface RowOfCounts {
  key: FigureKey
  counts: { [Name in keyof Counts]: number }
}

/** The columns that a row of figures is found by. */
export const ROW_KEY = ['scope', 'split', 'unit', 'start_at', ...VALUE_NAMES].join(', ')

/** Waits for a counting transaction in progress, which might add to a row between two statements. */
export const WAIT_FOR_COUNTING = `UPDATE event_followers SET seq = seq WHERE name = 'counters'`

/**
 * A deleted domain and a closed account get no scope, and without a scope no rows: their last events arrive after they
 * were deleted.
 */
export function createScope(account: string, domain: string): Statement {
  const exists = 'EXISTS (SELECT 1 FROM figure_scopes WHERE account_id = ? AND domain_name = ?)'
  if (domain === '')
    return {
      sql: `INSERT INTO figure_scopes (account_id, domain_name)
        SELECT id, '' FROM accounts WHERE id = ? AND status <> 'closed' AND NOT ${exists}`,
      values: [account, account, domain],
    }
  return {
    sql: `INSERT INTO figure_scopes (account_id, domain_name)
      SELECT account_id, name FROM domains WHERE account_id = ? AND name = ? AND NOT ${exists}`,
    values: [account, domain, account, domain],
  }
}

/** Most rows have counts of one or two of these groups; the others are not named in their statement. */
const GROUPS: readonly (readonly Counter[])[] = [
  COUNTERS.filter((name) => /^(accepted|delivered)_/.test(name)),
  COUNTERS.filter((name) => /^(failed|rate)_/.test(name)),
  COUNTERS.filter((name) => !/^(accepted|delivered|failed|rate)_/.test(name)),
]

/** Adds to counts of a row or creates it. `increments` names the counters; null leaves a count as it is. */
export function onConflictAdd(counters: readonly Counter[]): string {
  const added = counters.map(
    (name) =>
      `${name} = CASE WHEN excluded.${name} IS NULL THEN figures.${name} ELSE coalesce(figures.${name}, 0) + excluded.${name} END`,
  )
  return `ON CONFLICT (${ROW_KEY}) DO UPDATE SET ${added.join(', ')}`
}

/** Sets the counts of a row or creates it. */
export const onConflictSet = () =>
  `ON CONFLICT (${ROW_KEY}) DO UPDATE SET ${COUNTERS.map((name) => `${name} = excluded.${name}`).join(', ')}`

function countersIn(bits: number): Counter[] {
  return GROUPS.flatMap((group, at) => (bits & (1 << at) ? group : []))
}

const bitsOf = ({ counts }: RowOfCounts): number =>
  GROUPS.reduce((bits, group, at) => (group.some((name) => counts[name] !== 0) ? bits | (1 << at) : bits), 0)

/** Rows of one statement: 1,300 values. A power of two, so that few texts are prepared. */
const ROWS_MAX = 32

/** Adds to these rows, each of which has a count that is not 0. The rows are distinct. */
export function addStatements(rows: readonly RowOfCounts[]): Statement[] {
  const groups = new Map<number, RowOfCounts[]>()
  for (const row of rows) {
    const bits = bitsOf(row)
    const group = groups.get(bits)
    if (group) group.push(row)
    else groups.set(bits, [row])
  }
  return [...groups].sort(([a], [b]) => a - b).flatMap(([bits, group]) => statementsOf(bits, group))
}

function statementsOf(bits: number, rows: readonly RowOfCounts[]): Statement[] {
  const counters = countersIn(bits)
  const statements: Statement[] = []
  for (let from = 0; from < rows.length; ) {
    let size = ROWS_MAX
    while (size > rows.length - from) size /= 2
    const values: SqlValue[] = []
    for (const { key, counts } of rows.slice(from, from + size)) {
      values.push(key.account_id, key.domain_name, key.split, key.unit, key.start_at)
      for (const name of VALUE_NAMES) values.push(key[name])
      for (const name of counters) values.push(counts[name] || null)
    }
    statements.push({ sql: addText(bits, size), values })
    from += size
  }
  return statements
}

const texts = new Map<string, string>()

function addText(bits: number, rows: number): string {
  const name = `${bits} ${rows}`
  let text = texts.get(name)
  if (text === undefined) {
    text = makeText(countersIn(bits), rows)
    texts.set(name, text)
  }
  return text
}

/** Without the casts PostgreSQL would take the parameters for text; those of the first row hold for all. */
function makeText(counters: readonly Counter[], rows: number): string {
  const types = [
    ...['TEXT', 'TEXT', 'BIGINT', 'BIGINT', 'BIGINT'],
    ...VALUE_NAMES.map(() => 'TEXT'),
    ...counters.map(() => 'BIGINT'),
  ]
  const first = `(${types.map((type) => `CAST(? AS ${type})`).join(', ')})`
  const next = `(${types.map(() => '?').join(', ')})`
  const columns = types.slice(2).map((_, at) => `column${at + 3}`)
  return `INSERT INTO figures (${ROW_KEY}, ${counters.join(', ')})
    SELECT no, ${columns.join(', ')}
    FROM (VALUES ${[first, ...Array<string>(rows - 1).fill(next)].join(', ')}) AS added CROSS JOIN figure_scopes
    WHERE account_id = column1 AND domain_name = column2
    ${onConflictAdd(counters)}`
}
