/** SQL that reads rows of figures: what the readers of all items and of pages have in common. */

import { DAY_MS } from '../../../base/time/durations.ts'
import { listOf } from '../../../platform/store/lists.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import type { Counter } from '../counters.ts'
import type { Dimension, FigureQuery, FilterEntry } from '../figures.ts'
import { conditionSql } from '../filter.ts'
import type { Unit } from '../intervals.ts'
import { isValue, type Segment, VALUE_OF } from './figure-plan.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'

/** Shown for an event that has no such value (metrics-logs.md section 2). */
const ABSENT: Readonly<Partial<Record<Dimension, string>>> = {
  ip: 'none',
  ip_pool: 'none',
  recipient_domain: 'none',
  country: 'Unknown',
  device: 'unknown',
  bot: 'None',
}

/** What is shown of a value, which may be empty. */
export const shownValue = (name: Dimension, value: string): string => value || (ABSENT[name] ?? '')

/** Some rows of a segment. */
export interface Piece {
  segment: Segment
  /** Unix milliseconds; the end is exclusive. */
  from: number
  to: number
  /** Only domains from the first to the last number. */
  scopes?: readonly [number, number]
  /** The start of the interval of the resolution that all rows belong to, where SQL cannot tell it. */
  time?: number
}

/** All rows of the segment. */
export const whole = (segment: Segment): Piece => ({ segment, from: segment.start, to: segment.end })

/** What a statement reads for: accounts that no filter excludes, and the counters that are wanted. */
export interface Wanted {
  query: FigureQuery
  accountIds: readonly string[]
  counters: readonly Counter[]
  kind: Store['kind']
}

/** SELECT without groups: a column `d_<dimension>` for each of `names`, then one for each counter. */
export function rowsOf(piece: Piece, names: readonly Dimension[], wanted: Wanted): Statement {
  const { time } = piece
  const { resolution } = wanted.query
  const timeColumn = time === undefined ? undefined : `CAST(${time} AS BIGINT)`
  const columns = names.map(
    (name) => `${(name === 'time' && timeColumn) || columnOf(name, resolution)} AS d_${name}`,
  )
  const selected = [...columns, ...wanted.counters.map((name) => `f.${name}`)]
  const { sql, values } = conditionsOf(piece, wanted)
  return { sql: `SELECT ${selected.join(', ')} ${sql}`, values }
}

/** FROM and WHERE, with the values of their parameters. */
export function conditionsOf(
  { segment, from, to, scopes }: Piece,
  { query, accountIds, kind }: Wanted,
): Statement {
  const { split, level, units } = segment
  const conditions = query.filter
    .filter(({ attribute }) => attribute !== 'subaccount' && !(attribute === 'tag' && split.name === 'all'))
    .map((entry) => conditionOf(entry, kind))
  const ofScope = `f.scope = s.no AND f.split = ${SPLIT_NUMBERS[split.name]}
    AND f.unit IN (${units.map((unit) => UNIT_NUMBERS[unit])}) AND f.start_at >= ? AND f.start_at < ?
    ${conditions.map((condition) => `AND ${condition.sql}`).join(' ')}`
  const ids = listOf(kind, accountIds)
  const ofAccounts = `s.account_id IN ${ids.sql} AND s.domain_name ${level === 'account' ? '=' : '<>'} ''
    ${scopes ? 'AND s.no >= ? AND s.no <= ?' : ''}`
  // Joined freely, PostgreSQL would rather read the whole table once than an index for each scope.
  const sql =
    kind === 'postgres'
      ? `FROM (SELECT * FROM figure_scopes s WHERE ${ofAccounts}) AS s
          CROSS JOIN LATERAL (SELECT * FROM figures f WHERE ${ofScope} OFFSET 0) AS f`
      : `FROM figure_scopes s CROSS JOIN figures f WHERE ${ofAccounts} AND ${ofScope}`
  const given = conditions.flatMap(({ values }) => values)
  return { sql, values: [...ids.values, ...(scopes ?? []), from, to, ...given] }
}

/** Condition on `figure_scopes s`: the domains that the query is about. */
export function areOfDomains({ query, accountIds, kind }: Wanted): Statement {
  const conditions = query.filter
    .filter(({ attribute }) => attribute === 'domain')
    .map((entry) => conditionOf(entry, kind))
  const ids = listOf(kind, accountIds)
  return {
    sql: `s.account_id IN ${ids.sql} AND s.domain_name <> ''
      ${conditions.map(({ sql }) => `AND ${sql}`).join(' ')}`,
    values: [...ids.values, ...conditions.flatMap(({ values }) => values)],
  }
}

/** Numbers of the domains that the query is about, in ascending order. */
export async function domainScopes(store: Store, wanted: Wanted): Promise<number[]> {
  const { sql, values } = areOfDomains(wanted)
  const rows = await store.read({
    sql: `SELECT s.no FROM figure_scopes s WHERE ${sql} ORDER BY s.no`,
    values,
  })
  return rows.map(({ no }) => Number(no))
}

/** Whether no two rows of the segment belong to one item, so that the database need not sort them into groups. */
export function areDistinct(query: FigureQuery, { split, level, unit }: Segment): boolean {
  const { accountIds, dimensions, resolution } = query
  const ofOne = level === 'account' && (accountIds.length === 1 || dimensions.includes('subaccount'))
  return (
    split.name !== 'all' &&
    unit === resolution &&
    dimensions.includes('time') &&
    (ofOne || dimensions.includes('domain')) &&
    split.values.every((value) => dimensions.some((name) => isValue(name) && VALUE_OF[name] === value))
  )
}

export function columnOf(name: Dimension, resolution: Unit = 'hour'): string {
  switch (name) {
    case 'time':
      // Rows of all values may be of shorter units.
      return resolution === 'hour' ? 'f.start_at' : `f.start_at - f.start_at % ${DAY_MS}`
    case 'domain':
      return 's.domain_name'
    case 'subaccount':
      return 's.account_id'
    default: {
      const absent = ABSENT[name]
      const column = `f.${VALUE_OF[name]}`
      return absent === undefined ? column : `coalesce(nullif(${column}, ''), '${absent}')`
    }
  }
}

/** Names of domains are stored in lower case, and found by an index. */
const conditionOf = (condition: FilterEntry, kind: Store['kind']) => {
  const column = columnOf(condition.attribute)
  return conditionSql(condition.attribute === 'domain' ? column : `lower(${column})`, condition, kind)
}
