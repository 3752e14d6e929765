/** Sums increments per row of figures. */
import type { FigureValues } from '../store/counter-rows.ts'
import type { Statement } from '../store/store.ts'
import { type Counter, noCounts } from './counters.ts'
import type { PlainValues } from './event-values.ts'
import { addStatements, createScope, type RowOfCounts } from './figure-rows.ts'
import { type RowUnit, startOf } from './intervals.ts'
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

/** The rows of a domain, or of an account as a whole, by split, unit, interval and values. */
interface ScopeRows {
  accountId: string
  domainName: string
  rows: Map<string, RowOfCounts>
}

/** Starts of the intervals that contain a time: each is used by several splits. */
type Starts = Readonly<Record<RowUnit, number>>

/**
 * `places`: events of intervals before them are added to rows of longer units too (roll-up.ts). `splits`: those that have
 * what is counted.
 *
 * Nearly every event of much mail has a row of its own among those of all values, so the work for each is kept small: names
 * are short, values are read once per split, and keys are made for new rows only.
 */
export function createTally(places: Written, splits: readonly Split[] = SPLITS): Tally {
  const scopes = new Map<string, ScopeRows>()
  let size = 0

  function scopeOf(accountId: string, domainName: string): ScopeRows {
    const name = `${accountId}\n${domainName}`
    let scope = scopes.get(name)
    if (!scope) {
      scope = { accountId, domainName, rows: new Map() }
      scopes.set(name, scope)
    }
    return scope
  }

  function rowOf(scope: ScopeRows, split: number, unit: number, at: number, of: Combination): RowOfCounts {
    const name = `${split} ${unit} ${at} ${of.name}`
    let row = scope.rows.get(name)
    if (!row) {
      const { accountId: account_id, domainName: domain_name } = scope
      row = {
        key: { account_id, domain_name, split, unit, start_at: at, ...of.values() },
        counts: noCounts(),
      }
      scope.rows.set(name, row)
      size++
    }
    return row
  }

  function addTo(scope: ScopeRows, split: Split, units: readonly RowUnit[], of: Combination, entry: Entry) {
    for (const [index, unit] of units.entries()) {
      const start = entry.starts[unit]
      const isMade = index > 0 || split.source !== undefined
      if (isMade && start >= places[unit as LongUnit]) continue
      const { counts } = rowOf(scope, SPLIT_NUMBERS[split.name], UNIT_NUMBERS[unit], start, of)
      for (const counter of entry.counters) counts[counter]++
    }
  }

  return {
    add(addition) {
      const { accountId, domainName, at, counters } = addition
      const domain = scopeOf(accountId, domainName)
      const account = scopeOf(accountId, '')
      const entry = { starts: startsOf(at), counters }
      for (const split of splits) {
        // Most events: nothing is made of their day yet.
        if (split.source !== undefined && entry.starts.day >= places.day) continue
        for (const combination of combinationsIn(split, addition)) {
          addTo(domain, split, split.ofDomain, combination, entry)
          addTo(account, split, split.ofAccount, combination, entry)
        }
      }
    },
    get size() {
      return size
    },
    statements() {
      const sorted = [...scopes].filter(([, { rows }]) => rows.size > 0).sort(byName)
      const rows = sorted.flatMap(([, scope]) => [...scope.rows].sort(byName).map(([, row]) => row))
      const created = sorted.map(([, scope]) => createScope(scope.accountId, scope.domainName))
      return [...created, ...addStatements(rows)]
    },
  }
}

interface Entry {
  starts: Starts
  counters: readonly Counter[]
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1)

const startsOf = (at: number): Starts => ({
  hour: startOf('hour', at),
  day: startOf('day', at),
  week: startOf('week', at),
  month: startOf('month', at),
})

/** The values of a row in a split. */
interface Combination {
  /** Different for different values of one split. */
  name: string
  values(): FigureValues
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
const WHOLE: readonly Combination[] = [{ name: '', values: () => NO_VALUES }]

/** The rows of a split that an event belongs to: one, or one for each tag. */
function combinationsIn(split: Split, { tags, values }: Addition): readonly Combination[] {
  switch (split.name) {
    case 'none':
      return WHOLE
    case 'tag':
      return tags.map((tag) => ({ name: tag, values: () => ({ ...NO_VALUES, tag }) }))
    case 'tag_country':
    case 'tag_provider': {
      const name = split.name === 'tag_country' ? 'country' : 'provider'
      return tags.map((tag) => combination(tag, { ...NO_VALUES, [name]: values[name] }))
    }
    case 'country':
      return [combination('', { ...NO_VALUES, country: values.country })]
    case 'all':
      return [combination(tagList(tags), values)]
    case 'path': {
      const { provider, ip, pool } = values
      return [combination('', { ...NO_VALUES, provider, ip, pool })]
    }
    case 'visit': {
      const { country, device, bot } = values
      return [combination('', { ...NO_VALUES, country, device, bot })]
    }
    case 'recipient': {
      const { recipient_domain, provider } = values
      return [combination('', { ...NO_VALUES, recipient_domain, provider })]
    }
  }
}

function combination(tag: string, values: PlainValues): Combination {
  const { recipient_domain, provider, ip, pool, country, device, bot } = values
  return {
    name: `${tag}\n${recipient_domain}\n${provider}\n${ip}\n${pool}\n${country}\n${device}\n${bot}`,
    values: () => ({ tag, recipient_domain, provider, ip, pool, country, device, bot }),
  }
}

const tagList = (tags: readonly string[]) => (tags.length === 0 ? '' : JSON.stringify([...tags].sort()))
