/** Writes rows of figures. */
import type { Counts, FigureValues } from '../store/counter-rows.ts'
import type { Statement } from '../store/store.ts'
import { COUNTERS, type Counter } from './counters.ts'
import { VALUE_NAMES } from './splits.ts'

/** In the order of the primary key. */
export interface FigureKey extends FigureValues {
  account_id: string
  /** Empty: the account as a whole. */
  domain_name: string
  split: number
  unit: number
  start_at: number
}

export type RowCounts = { [Name in keyof Counts]: number }

const KEY_NAMES = ['account_id', 'domain_name', 'split', 'unit', 'start_at', ...VALUE_NAMES] as const

/** The columns that a row of figures is found by. */
export const ROW_KEY = ['scope', 'split', 'unit', 'start_at', ...VALUE_NAMES].join(', ')

/** Waits for a counting transaction in progress, which might add to a row between two statements. */
export const WAIT_FOR_COUNTING = `UPDATE event_followers SET seq = seq WHERE name = 'counters'`

export function compareKeys(a: FigureKey, b: FigureKey): number {
  for (const name of KEY_NAMES) if (a[name] !== b[name]) return a[name] < b[name] ? -1 : 1
  return 0
}

/**
 * A deleted domain and a closed account get no scope, and without a scope no rows: their last events arrive after they
 * were deleted.
 */
export function createScope({ account_id: account, domain_name: domain }: FigureKey): Statement {
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

/** By the bits of the groups. Without the casts PostgreSQL would take the parameters for text. */
const ADD_TEXTS = Array.from({ length: 2 ** GROUPS.length }, (_, bits) => {
  const counters = countersIn(bits)
  if (counters.length === 0) return ''
  const casts = [
    ...['split', 'unit', 'start_at'].map(() => 'CAST(? AS BIGINT)'),
    ...VALUE_NAMES.map(() => 'CAST(? AS TEXT)'),
    ...counters.map(() => 'CAST(? AS BIGINT)'),
  ]
  return `INSERT INTO figures (${ROW_KEY}, ${counters.join(', ')})
    SELECT no, ${casts.join(', ')} FROM figure_scopes WHERE account_id = ? AND domain_name = ?
    ${onConflictAdd(counters)}`
})

function countersIn(bits: number): Counter[] {
  return GROUPS.flatMap((group, at) => (bits & (1 << at) ? group : []))
}

/** At least one of `counts` is not 0. */
export function addStatement(key: FigureKey, counts: RowCounts): Statement {
  let bits = 0
  for (const [at, group] of GROUPS.entries()) if (group.some((name) => counts[name] !== 0)) bits |= 1 << at
  return {
    sql: ADD_TEXTS[bits] as string,
    values: [
      key.split,
      key.unit,
      key.start_at,
      ...VALUE_NAMES.map((name) => key[name]),
      ...countersIn(bits).map((name) => counts[name] || null),
      key.account_id,
      key.domain_name,
    ],
  }
}
