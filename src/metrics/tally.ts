/** Sums increments per row of figures. */
import type { FigureValues } from '../store/counter-rows.ts'
import type { Statement } from '../store/store.ts'
import { type Counter, noCounts } from './counters.ts'
import type { PlainValues } from './event-values.ts'
import { addStatement, compareKeys, createScope, type FigureKey, type RowCounts } from './figure-rows.ts'
import { startOf, type Unit } from './intervals.ts'
import { SPLIT_NUMBERS, SPLITS, type Split, UNIT_NUMBERS } from './splits.ts'

export interface Addition {
  accountId: string
  domainName: string
  /** In lower case, distinct. */
  tags: readonly string[]
  values: PlainValues
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

interface TallyRow {
  key: FigureKey
  counts: RowCounts
}

export function createTally(): Tally {
  const rows = new Map<string, TallyRow>()
  /** Rows by everything that decides which they are: nearly all events of a step share a few such sets. */
  const sets = new Map<string, TallyRow[]>()

  function rowOf(key: FigureKey): TallyRow {
    const name = Object.values(key).join('\n')
    let row = rows.get(name)
    if (!row) {
      row = { key, counts: noCounts() }
      rows.set(name, row)
    }
    return row
  }

  return {
    add(addition) {
      const { accountId, domainName, tags, values, at, counters } = addition
      const name = [accountId, domainName, startOf('hour', at), ...Object.values(values), ...tags].join('\n')
      let set = sets.get(name)
      if (!set) {
        set = keysOf(addition).map(rowOf)
        sets.set(name, set)
      }
      for (const { counts } of set) for (const counter of counters) counts[counter]++
    },
    get size() {
      return rows.size
    },
    statements() {
      const sorted = [...rows.values()].sort((a, b) => compareKeys(a.key, b.key))
      const scopes = new Map(sorted.map(({ key }) => [`${key.account_id}\n${key.domain_name}`, key]))
      return [
        ...[...scopes.values()].map(createScope),
        ...sorted.map(({ key, counts }) => addStatement(key, counts)),
      ]
    },
  }
}

const NO_VALUES: FigureValues = {
  tag: '',
  recipient_domain: '',
  provider: '',
  ip: '',
  pool: '',
  country: '',
  device: '',
  bot: '',
}

function keysOf(addition: Addition): FigureKey[] {
  const { accountId, domainName, at } = addition
  return SPLITS.flatMap((split) => {
    const values = valuesIn(split, addition)
    const keys = (domain: string, units: readonly Unit[]) =>
      units.flatMap((unit) =>
        values.map((one) => ({
          account_id: accountId,
          domain_name: domain,
          split: SPLIT_NUMBERS[split.name],
          unit: UNIT_NUMBERS[unit],
          start_at: startOf(unit, at),
          ...one,
        })),
      )
    return [...keys(domainName, split.ofDomain), ...keys('', split.ofAccount)]
  })
}

/** The rows of a split that an event belongs to: one, or one for each tag. */
function valuesIn(split: Split, { tags, values }: Addition): FigureValues[] {
  if (split.name === 'tag') return tags.map((tag) => ({ ...NO_VALUES, tag }))
  if (split.name === 'all') return [{ tag: tagList(tags), ...values }]
  const kept = split.values.map((name) => [name, name === 'tag' ? '' : values[name]])
  return [{ ...NO_VALUES, ...Object.fromEntries(kept) }]
}

const tagList = (tags: readonly string[]) => (tags.length === 0 ? '' : JSON.stringify([...tags].sort()))
