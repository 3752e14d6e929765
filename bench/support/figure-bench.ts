/** Figures of the bench's traffic: filling their tables, and every kind of query. */
import { BadRequest } from '../../src/base/process/errors.ts'
import type { Store } from '../../src/platform/store/store.ts'
import type { EventRecord } from '../../src/watching/events/event.ts'
import { COUNTERS, type Counter, countersOf, valuesOfEvent } from '../../src/watching/metrics/counters.ts'
import type {
  Dimension,
  FigureOrder,
  FigureQuery,
  FilterEntry,
  Metric,
  PagedFigures,
} from '../../src/watching/metrics/figures.ts'
import { startOf, type Unit } from '../../src/watching/metrics/intervals.ts'
import { createFigures } from '../../src/watching/metrics/storage/figure-reader.ts'
import { keepPacks } from '../../src/watching/metrics/storage/packing.ts'
import { removeOldCounters } from '../../src/watching/metrics/storage/removal.ts'
import { rollUp } from '../../src/watching/metrics/storage/roll-up.ts'
import { Scopes } from '../../src/watching/metrics/storage/scopes.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/watching/metrics/storage/splits.ts'
import { createTally } from '../../src/watching/metrics/storage/tally.ts'
import { UNIQUE_FOR_MS } from '../../src/watching/metrics/unique-visits.ts'
import { percentile } from './stats.ts'
import {
  ACCOUNT,
  COUNTRIES,
  countryName,
  createRandom,
  DAY_MS,
  DOMAINS,
  domainName,
  END_MS,
  START_MS,
  SUBACCOUNT_IDS,
  tagOf,
  zipf,
} from './traffic.ts'

const STATEMENTS_PER_COMMIT = 300
/** When figures are read: the last day's rows are made by then. */
export const FINISHED_MS = END_MS + DAY_MS / 2

export const isRateLimit = (rule: string) => rule === 'rate-limit'

/** Events are added to the shortest units only, as when they are counted at once. */
const PLACES = { written: { day: 0, week: 0, month: 0 }, arePacked: true }

/**
 * Counts events, in ascending order of time, as the service does (`watching/metrics/counting.ts`), but a day at a time: the same
 * rows are written once instead of at each step.
 */
export class FigureFill {
  readonly #store: Store
  readonly #scopes: Scopes
  readonly #visits = new Map<string, number>()
  #day = 0
  #retained = START_MS
  #tally = createTally(PLACES)

  constructor(store: Store) {
    this.#store = store
    this.#scopes = new Scopes(store)
  }

  async add({ event, accountId, domainName, messageId, recipient, timestampUs, payload }: EventRecord) {
    const at = Math.floor(timestampUs / 1000)
    if (startOf('day', at) > this.#day) await this.end()
    this.#day = Math.max(this.#day, startOf('day', at))
    const counters: Counter[] = [...countersOf(event, payload, isRateLimit)]
    if (counters.length === 0) return
    if (event === 'opened' || event === 'clicked') {
      const { bot } = payload['client-info'] as { bot: string }
      const visit = `${event} ${messageId} ${recipient} ${bot}`
      const before = this.#visits.get(visit)
      if (before === undefined || at >= before + UNIQUE_FOR_MS) {
        this.#visits.set(visit, at)
        counters.push(`${event}_unique`)
      }
    }
    const tags = (payload['tags'] as string[] | undefined) ?? []
    const values = valuesOfEvent(
      event,
      recipient,
      event === 'accepted' && !payload['mailing-list'] ? null : payload,
    )
    this.#tally.add({ accountId, domainName, tags, values, at, counters })
  }

  /** Writes what was added. Every ten days it does what the service does each hour. */
  async end(): Promise<void> {
    await this.#write()
    // Events of a day may follow those of the day after the next.
    if (this.#day - this.#retained > 10 * DAY_MS) await this.#retain(this.#day - 3 * DAY_MS)
  }

  async #retain(now: number): Promise<void> {
    this.#retained = now
    await retain(this.#store, now)
  }

  async #write(): Promise<void> {
    const statements = this.#tally.statements(await this.#scopes.numbersOf(this.#tally.scopes()))
    this.#tally = createTally(PLACES)
    for (let at = 0; at < statements.length; at += STATEMENTS_PER_COMMIT)
      await this.#store.commit(statements.slice(at, at + STATEMENTS_PER_COMMIT))
    if (this.#visits.size > 1_000_000) this.#visits.clear()
  }

  /** Writes the rest and brings the tables to the state that they have half a day after the last event. */
  async finish(): Promise<void> {
    await this.#write()
    await this.#retain(FINISHED_MS)
    if (this.#store.kind === 'postgres') await this.#store.commit([{ sql: 'ANALYZE figures', values: [] }])
  }
}

/** Makes longer rows of shorter ones, and removes what is older than it is kept. */
export async function retain(store: Store, now: number): Promise<void> {
  await rollUp(store, now)
  await removeOldCounters(store, now)
  await keepPacks(store, now)
}

/** The sums of everything that is counted by the hour: equal for equal events, however they were counted. */
export async function hourSums(store: Store): Promise<string> {
  const sums = COUNTERS.map((name) => `coalesce(sum(${name}), 0) AS ${name}`)
  const rows = await store.read({
    sql: `SELECT split, unit, count(*) AS n, ${sums.join(', ')} FROM figures
      WHERE split <> ${SPLIT_NUMBERS.none} OR unit = ${UNIT_NUMBERS.hour} GROUP BY split, unit ORDER BY split, unit`,
    values: [],
  })
  return JSON.stringify(rows.map((row) => Object.values(row).map(Number)))
}

export async function rowsOfFigures(store: Store): Promise<number> {
  const [counted] = await store.read({ sql: 'SELECT count(*) AS rows FROM figures', values: [] })
  return Number(counted?.['rows'])
}

const METRICS: readonly Metric[] = [
  'accepted_count',
  'delivered_count',
  'permanent_failed_count',
  'temporary_failed_count',
  'opened_count',
  'unique_opened_count',
  'clicked_count',
  'complained_count',
  'delivered_rate',
  'opened_rate',
]

const random = createRandom(3)
const domain = zipf(DOMAINS, random)
const country = zipf(COUNTRIES, random)
const is = (attribute: FilterEntry['attribute'], ...values: string[]): FilterEntry => ({
  attribute,
  comparator: '=',
  values,
})
const ofDomain = () => [is('domain', domainName(domain()))]
const ofTag = () => [is('tag', tagOf(domain(), 0))]

export interface FigureKind {
  name: string
  dimensions: readonly Dimension[]
  filter?: () => FilterEntry[]
  resolution?: Unit
  withSubaccounts?: boolean
  /** Default: ten usual ones. */
  allMetrics?: true
  /** Ranges, where not all. */
  days?: readonly number[]
}

export const FIGURE_KINDS: readonly FigureKind[] = [
  { name: 'total', dimensions: [] },
  { name: 'time', dimensions: ['time'] },
  { name: 'time by hour', dimensions: ['time'], resolution: 'hour', days: [1, 7, 30, 60] },
  { name: 'time by month', dimensions: ['time'], resolution: 'month' },
  { name: 'domain', dimensions: ['domain'] },
  { name: 'domain, all metrics', dimensions: ['domain'], allMetrics: true },
  { name: 'domain, with subaccounts', dimensions: ['domain'], withSubaccounts: true },
  { name: 'subaccount', dimensions: ['subaccount'], withSubaccounts: true },
  { name: 'ip', dimensions: ['ip'] },
  { name: 'ip pool', dimensions: ['ip_pool'] },
  { name: 'tag', dimensions: ['tag'] },
  { name: 'recipient domain', dimensions: ['recipient_domain'] },
  { name: 'provider', dimensions: ['recipient_provider'] },
  { name: 'country', dimensions: ['country'] },
  { name: 'device', dimensions: ['device'] },
  { name: 'bot', dimensions: ['bot'] },
  { name: 'time, provider', dimensions: ['time', 'recipient_provider'] },
  { name: 'time, tag', dimensions: ['time', 'tag'] },
  { name: 'time, country', dimensions: ['time', 'country'] },
  { name: 'time, domain', dimensions: ['time', 'domain'] },
  { name: 'domain, provider', dimensions: ['domain', 'recipient_provider'] },
  { name: 'domain, country', dimensions: ['domain', 'country'] },
  { name: 'domain, tag', dimensions: ['domain', 'tag'] },
  { name: 'provider, ip', dimensions: ['recipient_provider', 'ip'] },
  { name: 'country, device, bot', dimensions: ['country', 'device', 'bot'] },
  { name: 'tag, country', dimensions: ['tag', 'country'] },
  { name: 'tag, provider', dimensions: ['tag', 'recipient_provider'] },
  { name: 'time of a domain', dimensions: ['time'], filter: ofDomain },
  { name: 'tag of a domain', dimensions: ['tag'], filter: ofDomain },
  { name: 'time, tag of a domain', dimensions: ['time', 'tag'], filter: ofDomain },
  { name: 'provider of a domain', dimensions: ['recipient_provider'], filter: ofDomain },
  { name: 'country of a domain', dimensions: ['country'], filter: ofDomain },
  { name: 'recipient domain of a domain', dimensions: ['recipient_domain'], filter: ofDomain },
  { name: 'tag, country of a domain', dimensions: ['tag', 'country'], filter: ofDomain },
  {
    name: 'time of 20 domains',
    dimensions: ['time'],
    filter: () => [is('domain', ...Array.from({ length: 20 }, (_, at) => domainName(at * 7)))],
  },
  { name: 'time of a tag', dimensions: ['time'], filter: ofTag },
  { name: 'domain of a tag', dimensions: ['domain'], filter: ofTag },
  {
    name: 'tag that contains',
    dimensions: ['tag'],
    filter: () => [{ attribute: 'tag', comparator: 'contains', values: ['news'] }],
  },
  { name: 'time of a country', dimensions: ['time'], filter: () => [is('country', countryName(country()))] },
  { name: 'time of a provider', dimensions: ['time'], filter: () => [is('recipient_provider', 'Gmail')] },
  { name: 'time without machines', dimensions: ['time'], filter: () => [is('bot', 'None')] },
]

const RANGES_DAYS = [1, 7, 30, 90]

export interface FigureTimes {
  name: string
  days: number
  p50: number
  p95: number
  rows: number
}

/** Asks each kind `times` times in a row, in `runs` rounds; the percentiles are those of the best round. */
export async function askFigures(
  store: Store,
  { times, runs }: { times: number; runs: number },
): Promise<FigureTimes[]> {
  const figures = createFigures(store)
  const found: FigureTimes[] = []
  for (const kind of FIGURE_KINDS) {
    for (const days of kind.days ?? RANGES_DAYS) {
      const rounds: { p50: number; p95: number }[] = []
      let rows = 0
      for (let run = 0; run < runs; run++) {
        const seen: number[] = []
        for (let at = 0; at < times; at++) {
          const begunAt = performance.now()
          rows = await itemsOf(figures, queryOf(kind, days))
          seen.push(performance.now() - begunAt)
        }
        rounds.push({ p50: percentile(seen, 0.5), p95: percentile(seen, 0.95) })
      }
      const best = rounds.sort((a, b) => a.p95 - b.p95)[0] as { p50: number; p95: number }
      found.push({ name: kind.name, days, rows, ...best })
    }
  }
  return found
}

/** As the operation asks by default, with sums. -1: the query is refused, because it would read too much. */
export async function itemsOf(figures: PagedFigures, query: FigureQuery): Promise<number> {
  const byTime = query.dimensions.includes('time')
  const order: FigureOrder = byTime
    ? { by: 'time' as const, descending: false }
    : { by: METRICS[0] as Metric, descending: true }
  try {
    return (await figures.page(query, { order, skip: 0, limit: byTime ? 1_500 : 1_000, withSum: true })).total
  } catch (error) {
    if (error instanceof BadRequest) return -1
    throw error
  }
}

export function queryOf(kind: FigureKind, days: number): FigureQuery {
  return {
    accountIds: kind.withSubaccounts ? [ACCOUNT, ...SUBACCOUNT_IDS] : [ACCOUNT],
    startMs: END_MS - days * DAY_MS,
    endMs: END_MS,
    resolution: kind.resolution ?? 'day',
    dimensions: kind.dimensions,
    filter: kind.filter?.() ?? [],
    ...(kind.allMetrics ? {} : { metrics: METRICS }),
  }
}
