/** Sums increments per row of figures. */
import type { FigureValues } from '../store/counter-rows.ts'
import type { Statement } from '../store/store.ts'
import { type Counter, noCounts } from './counters.ts'
import type { PlainValues } from './event-values.ts'
import { addStatements, createScope, type FigureKey, type RowOfCounts } from './figure-rows.ts'
import { startOf } from './intervals.ts'
import type { LongUnit, Written } from './places.ts'
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
  /** In one order of the rows, so that concurrent transactions cannot deadlock. */
  statements(): Statement[]
}

interface TallyRow extends RowOfCounts {
  name: string
}

/**
 * `places`: events of intervals before them are added to rows of longer units too (roll-up.ts). `splits`: those that have
 * what is counted.
 */
export function createTally(places: Written, splits: readonly Split[] = SPLITS): Tally {
  const rows = new Map<string, TallyRow>()
  /** Rows by everything that decides which they are: many events of a step share such a set. */
  const sets = new Map<string, TallyRow[]>()

  function rowOf(key: FigureKey): TallyRow {
    const name = nameOf(key)
    let row = rows.get(name)
    if (!row) {
      row = { name, key, counts: noCounts() }
      rows.set(name, row)
    }
    return row
  }

  return {
    add(addition) {
      const { accountId, domainName, tags, values, at, counters } = addition
      const { recipient_domain, provider, ip, pool, country, device, bot } = values
      const path = `${recipient_domain}\n${provider}\n${ip}\n${pool}\n${country}\n${device}\n${bot}`
      const name = `${accountId}\n${domainName}\n${startOf('hour', at)}\n${path}\n${tags.join('\n')}`
      let set = sets.get(name)
      if (!set) {
        set = keysOf(addition, places, splits).map(rowOf)
        sets.set(name, set)
      }
      for (const { counts } of set) for (const counter of counters) counts[counter]++
    },
    get size() {
      return rows.size
    },
    statements() {
      const sorted = [...rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
      const scopes = new Map(sorted.map(({ key }) => [`${key.account_id}\n${key.domain_name}`, key]))
      return [...[...scopes.values()].map(createScope), ...addStatements(sorted)]
    },
  }
}

const nameOf = (key: FigureKey): string =>
  `${key.account_id}\n${key.domain_name}\n${key.split}\n${key.unit}\n${key.start_at}\n${key.tag}\n${key.recipient_domain}\n${key.provider}\n${key.ip}\n${key.pool}\n${key.country}\n${key.device}\n${key.bot}`

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

function keysOf(addition: Addition, places: Written, splits: readonly Split[]): FigureKey[] {
  const { accountId, domainName, at } = addition
  const keys: FigureKey[] = []
  for (const split of splits) {
    const values = valuesIn(split, addition)
    for (const [domain, units] of [
      [domainName, split.ofDomain],
      ['', split.ofAccount],
    ] as const) {
      for (const [index, unit] of units.entries()) {
        const start = startOf(unit, at)
        if (index > 0 && start >= places[unit as LongUnit]) continue
        for (const { tag, recipient_domain, provider, ip, pool, country, device, bot } of values) {
          keys.push({
            account_id: accountId,
            domain_name: domain,
            split: SPLIT_NUMBERS[split.name],
            unit: UNIT_NUMBERS[unit],
            start_at: start,
            ...{ tag, recipient_domain, provider, ip, pool, country, device, bot },
          })
        }
      }
    }
  }
  return keys
}

/** The rows of a split that an event belongs to: one, or one for each tag. */
function valuesIn(split: Split, { tags, values }: Addition): FigureValues[] {
  if (split.name === 'tag') return tags.map((tag) => ({ ...NO_VALUES, tag }))
  if (split.name === 'all') return [{ tag: tagList(tags), ...values }]
  const kept = split.values.map((name) => [name, name === 'tag' ? '' : values[name]])
  return [{ ...NO_VALUES, ...Object.fromEntries(kept) }]
}

const tagList = (tags: readonly string[]) => (tags.length === 0 ? '' : JSON.stringify([...tags].sort()))
