/** Sums increments per counter row. */
import type { CounterRow, Counts } from '../store/counter-rows.ts'
import type { Statement } from '../store/store.ts'
import { COUNTERS, type Counter, noCounts } from './counters.ts'
import { startOf, UNITS } from './intervals.ts'

export interface Addition {
  accountId: string
  domainName: string
  /** In lower case. */
  tags: readonly string[]
  /** Unix milliseconds. */
  at: number
  counters: readonly Counter[]
}

export interface Tally {
  add(addition: Addition): void
  /** Rows that the statements write. */
  readonly size: number
  /** In the order of the rows' keys, so that concurrent transactions cannot deadlock. */
  statements(): Statement[]
}

export function createTally(): Tally {
  const rows = new Map<string, CounterRow>()
  /** Rows by account, domain, hour and tags: nearly all events of a step share a few such sets. */
  const sets = new Map<string, CounterRow[]>()

  function rowOf(key: Omit<CounterRow, keyof Counts>): CounterRow {
    const name = JSON.stringify([key.account_id, key.domain_name, key.tag, key.unit, key.start_at])
    let row = rows.get(name)
    if (!row) {
      row = { ...key, ...noCounts() }
      rows.set(name, row)
    }
    return row
  }

  const rowsOf = ({ accountId, domainName, tags, at }: Addition) =>
    ['', ...tags].flatMap((tag) =>
      UNITS.map((unit) =>
        rowOf({ account_id: accountId, domain_name: domainName, tag, unit, start_at: startOf(unit, at) }),
      ),
    )

  return {
    add(addition) {
      const { accountId, domainName, tags, at, counters } = addition
      const name = `${accountId}\n${domainName}\n${startOf('hour', at)}\n${tags.join('\n')}`
      let set = sets.get(name)
      if (!set) {
        set = rowsOf(addition)
        sets.set(name, set)
      }
      for (const row of set) for (const counter of counters) row[counter]++
    },
    get size() {
      return rows.size
    },
    statements() {
      const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
      return sorted.map(([, row]) => ({ sql: ADD, values: valuesOf(row) }))
    },
  }
}

const valuesOf = (row: CounterRow) => [
  row.tag,
  row.unit,
  row.start_at,
  ...COUNTERS.map((counter) => row[counter]),
  row.account_id,
  row.domain_name,
]

/**
 * Adds to a row or creates it. A deleted domain has no rows: its last events arrive after it was deleted. Without the casts
 * PostgreSQL would take the parameters for text.
 */
const ADD = `INSERT INTO counters (account_id, domain_name, tag, unit, start_at, ${COUNTERS.join(', ')})
  SELECT account_id, name, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),
    ${COUNTERS.map(() => 'CAST(? AS BIGINT)').join(', ')}
  FROM domains WHERE account_id = ? AND name = ?
  ON CONFLICT (account_id, domain_name, tag, unit, start_at) DO UPDATE SET
    ${COUNTERS.map((counter) => `${counter} = counters.${counter} + excluded.${counter}`).join(', ')}`
