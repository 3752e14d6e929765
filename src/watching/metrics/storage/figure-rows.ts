/** Writes rows of figures. */
import type { SqlValue, Statement } from '../../../platform/store/store.ts'
import { COUNTERS, type Counter, type PlainValues, VALUE_NAMES } from '../counters.ts'
import type { RowUnit } from '../intervals.ts'
import { type CounterCounts, countAt, SPLIT_NUMBERS, type Split, UNIT_NUMBERS } from './splits.ts'

export interface RowOfCounts {
  /** A number of `figure_scopes`. */
  scope: number
  split: Split
  unit: RowUnit
  /** Unix milliseconds. */
  start: number
  /** Only the values that the split has count. */
  tag: string
  values: PlainValues
  counts: CounterCounts
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
const USUAL: readonly (readonly Counter[])[] = [
  ['accepted_outgoing', 'delivered_smtp', 'delivered_first', 'delivered_later'],
  COUNTERS.filter((name) => /^(failed|rate)_/.test(name)),
  ['opened', 'opened_unique', 'clicked', 'clicked_unique'],
]
const GROUPS = [...USUAL, COUNTERS.filter((name) => !USUAL.flat().includes(name))]

/** Adds to these counts of a row or creates it; null leaves a count as it is. */
function onConflictAdd(counters: readonly Counter[]): string {
  const added = counters.map(
    (name) =>
      `${name} = CASE WHEN excluded.${name} IS NULL THEN figures.${name} ELSE coalesce(figures.${name}, 0) + excluded.${name} END`,
  )
  return `ON CONFLICT (${ROW_KEY}) DO UPDATE SET ${added.join(', ')}`
}

/** Sets the counts of a row or creates it. */
export const onConflictSet = () =>
  `ON CONFLICT (${ROW_KEY}) DO UPDATE SET ${COUNTERS.map((name) => `${name} = excluded.${name}`).join(', ')}`

const countersIn = (groups: number): Counter[] =>
  GROUPS.flatMap((group, at) => (groups & (1 << at) ? group : []))

/** By a counter's place in COUNTERS, a bit. */
const GROUP_OF = COUNTERS.map((name) => 1 << GROUPS.findIndex((group) => group.includes(name)))
/** By groups. */
const PLACES_IN = Array.from({ length: 1 << GROUPS.length }, (_, groups) =>
  countersIn(groups).map((name) => COUNTERS.indexOf(name)),
)

function groupsOf({ counts }: RowOfCounts): number {
  let groups = 0
  for (let at = 0; at < counts.length; at += 2) groups |= GROUP_OF[counts[at] as number] as number
  return groups
}

/** Rows of one statement, most first: few, so that few texts are prepared. */
const SIZES = [32, 8, 1]

interface Shape {
  split: Split
  unit: RowUnit
  groups: number
}

/** Adds to these rows, each of which has a count that is not 0. The rows are distinct. */
export function addStatements(rows: readonly RowOfCounts[]): Statement[] {
  const alike = new Map<string, RowOfCounts[]>()
  for (const row of rows) {
    const shape = `${row.split.name} ${row.unit} ${groupsOf(row)}`
    const others = alike.get(shape)
    if (others) others.push(row)
    else alike.set(shape, [row])
  }
  return [...alike.values()].flatMap(statementsOf)
}

/** Adds to rows of one shape. */
function statementsOf(rows: readonly RowOfCounts[]): Statement[] {
  const [first] = rows as [RowOfCounts]
  const shape = { split: first.split, unit: first.unit, groups: groupsOf(first) }
  const places = PLACES_IN[shape.groups] as number[]
  const kept = VALUE_NAMES.filter((name) => shape.split.values.includes(name))
  const statements: Statement[] = []
  for (let from = 0; from < rows.length; ) {
    const size = SIZES.find((one) => one <= rows.length - from) as number
    const values: SqlValue[] = []
    for (let at = from; at < from + size; at++) {
      const row = rows[at] as RowOfCounts
      values.push(row.scope, row.start)
      for (const name of kept) values.push(name === 'tag' ? row.tag : row.values[name])
      for (const place of places) values.push(countAt(row.counts, place))
    }
    statements.push({ sql: addText(shape, size), values })
    from += size
  }
  return statements
}

const texts = new Map<string, string>()

function addText(shape: Shape, rows: number): string {
  const name = `${shape.split.name} ${shape.unit} ${shape.groups} ${rows}`
  let text = texts.get(name)
  if (text === undefined) {
    text = makeText(shape, rows)
    texts.set(name, text)
  }
  return text
}

function makeText({ split, unit, groups }: Shape, rows: number): string {
  const counters = countersIn(groups)
  const values = VALUE_NAMES.map((name) => (split.values.includes(name) ? '?' : `''`))
  const row = `(?, ${SPLIT_NUMBERS[split.name]}, ${UNIT_NUMBERS[unit]}, ?, ${[...values, ...counters.map(() => '?')].join(', ')})`
  return `INSERT INTO figures (${ROW_KEY}, ${counters.join(', ')})
    VALUES ${Array<string>(rows).fill(row).join(', ')} ${onConflictAdd(counters)}`
}
