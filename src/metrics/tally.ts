/** Sums what some events add, per counter row; pure. */
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
  /** Rows that the statements touch. */
  readonly size: number
  /** In the order of the rows' keys, so that two transactions wait for each other one way only. */
  statements(): Statement[]
}

export function createTally(): Tally {
  const rows = new Map<string, CounterRow>()
  /** The rows of what differs in nothing but its counters: nearly all events of a step have a few such sets. */
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
 * Adds to a row or makes it. A domain that is gone has none: its last events come behind its deletion. The casts tell
 * PostgreSQL what it would else take for text.
 */
const ADD = `INSERT INTO counters (account_id, domain_name, tag, unit, start_at, ${COUNTERS.join(', ')})
  SELECT account_id, name, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),
    ${COUNTERS.map(() => 'CAST(? AS BIGINT)').join(', ')}
  FROM domains WHERE account_id = ? AND name = ?
  ON CONFLICT (account_id, domain_name, tag, unit, start_at) DO UPDATE SET
    ${COUNTERS.map((counter) => `${counter} = counters.${counter} + excluded.${counter}`).join(', ')}`
