/**
 * Figures of ten million events: what counting costs, and how long queries take.
 *
 * Events of 90 days of 1,000 domains, 2,000 tags, 100,000 recipient domains and 40 countries go into the tally, as the
 * follower does it, in steps of 250; their rows are written with the schema's keys. Domains, tags and countries are of
 * unequal size: the n-th has 1/n of the first. Then each kind of query is asked for ranges from a day to 90 days.
 */
import { join } from 'node:path'
import type { Counter } from '../../src/metrics/counters.ts'
import { createFigures } from '../../src/metrics/figure-reader.ts'
import type { Dimension, FigureQuery, FilterEntry } from '../../src/metrics/figures.ts'
import { createTally } from '../../src/metrics/tally.ts'
import { addDomain } from '../../src/metrics/testing.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/store.ts'
import type { Options } from '../support/options.ts'
import { cpuSeconds } from '../support/processes.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type Database, startBenchPostgres } from '../support/service.ts'
import { formatNumber, percentile } from '../support/stats.ts'
import { ourName } from './e2e.ts'

const COUNT = 10_000_000
const COUNT_SHORT = 20_000
const ACCOUNT = 'bench-account-of-22-ch'
const DAY_MS = 86_400_000
const DAYS = 90
/** Whole months and days of other lengths at both ends. */
const END_MS = Date.UTC(2026, 5, 15)
const EVENTS_PER_STEP = 250
const DOMAINS = 1_000
const TAGS = 2_000
const RECIPIENT_DOMAINS = 100_000
const COUNTRIES = 40
const PROVIDERS = 18
const RANGES_DAYS = [1, 7, 30, 90]
const TIMES_PER_QUERY = 12
const P95_MAX_MS = 150

/** The n-th of `size` is drawn as often as 1/n of the first. */
function zipf(size: number): () => number {
  const sums = new Float64Array(size)
  let sum = 0
  for (let at = 0; at < size; at++) {
    sum += 1 / (at + 1)
    sums[at] = sum
  }
  return () => {
    const wanted = Math.random() * sum
    let [low, high] = [0, size - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}

const domain = zipf(DOMAINS)
const recipientDomain = zipf(RECIPIENT_DOMAINS)
const country = zipf(COUNTRIES)
const provider = zipf(PROVIDERS)
const domainName = (index: number) => `d${index}.bench.example`
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T

/** Of four events: an acceptance, a delivery, every second time an open. */
function addEvent(tally: ReturnType<typeof createTally>, at: number): void {
  const sender = domain()
  const to = recipientDomain()
  const isVisit = Math.random() < 0.2
  const isAttempt = !isVisit && Math.random() < 0.5
  const counters: Counter[] = isVisit
    ? ['opened', 'opened_unique']
    : isAttempt
      ? ['delivered_smtp', 'delivered_first']
      : ['accepted_outgoing']
  tally.add({
    accountId: ACCOUNT,
    domainName: domainName(sender),
    // Two tags of each domain.
    tags: Math.random() < 0.5 ? [`tag-${(sender * 2 + (Math.random() < 0.3 ? 1 : 0)) % TAGS}`] : [],
    values: {
      recipient_domain: `r${to}.example`,
      provider: `Provider ${provider()}`,
      ip: isAttempt ? `192.0.2.${1 + (sender % 4)}` : '',
      pool: '',
      country: isVisit ? `C${country()}` : '',
      device: isVisit ? oneOf(['desktop', 'mobile', 'tablet', '']) : '',
      bot: isVisit ? oneOf(['', '', 'Apple', 'Gmail']) : '',
    },
    at,
    counters,
  })
}

const is = (attribute: FilterEntry['attribute'], value: string): FilterEntry => ({
  attribute,
  comparator: '=',
  values: [value],
})

/** Each for the largest domain, one in the middle, or all. */
const QUERIES: readonly { name: string; dimensions: Dimension[]; filter?: () => FilterEntry[] }[] = [
  { name: 'total', dimensions: [] },
  { name: 'time', dimensions: ['time'] },
  { name: 'domain', dimensions: ['domain'] },
  { name: 'domain, provider', dimensions: ['domain', 'recipient_provider'] },
  { name: 'tag', dimensions: ['tag'] },
  {
    name: 'time, tag of a domain',
    dimensions: ['time', 'tag'],
    filter: () => [is('domain', domainName(domain()))],
  },
  { name: 'provider, ip', dimensions: ['recipient_provider', 'ip'] },
  { name: 'time, provider', dimensions: ['time', 'recipient_provider'] },
  { name: 'country, device, bot', dimensions: ['country', 'device', 'bot'] },
  {
    name: 'country of a domain',
    dimensions: ['country'],
    filter: () => [is('domain', domainName(domain()))],
  },
  {
    name: 'time, provider of the largest domain',
    dimensions: ['time', 'recipient_provider'],
    filter: () => [is('domain', domainName(0))],
  },
  { name: 'recipient domain', dimensions: ['recipient_domain'] },
  {
    name: 'recipient domain of a domain',
    dimensions: ['recipient_domain'],
    filter: () => [is('domain', domainName(domain()))],
  },
  {
    name: 'tag, country of a domain',
    dimensions: ['tag', 'country'],
    filter: () => [is('domain', domainName(domain()))],
  },
  { name: 'tag, country of the account', dimensions: ['tag', 'country'] },
]

interface Measured {
  database: Database
  events: number
  rows: number
  megabytes: number
  cpuPerEventUs: number
  queries: { name: string; days: number; p50: number; p95: number }[]
  p95: number
}

export async function run(options: Options): Promise<Section> {
  const count = options.count ?? (options.short ? COUNT_SHORT : COUNT)
  const measured: Measured[] = []
  for (const database of options.databases)
    measured.push(await withRig(options.folder, (rig) => measure(rig, database, count)))
  return {
    title: `Figures of ${formatNumber(count)} events`,
    notes: [
      `${DAYS} days, ${DOMAINS} domains, ${TAGS} tags, ${formatNumber(RECIPIENT_DOMAINS)} recipient domains, ${COUNTRIES} countries; hours are kept for 60 days in service, all 90 here.`,
      'Queries are asked on the store, not over HTTP. The bar is over all queries and ranges together.',
    ],
    bars: measured.map(({ database, p95 }) => ({
      what: `a query of figures, p95, ${ourName(database)}`,
      bar: `under ${P95_MAX_MS} ms`,
      seen: `${formatNumber(p95)} ms`,
      held: p95 < P95_MAX_MS,
    })),
    tables: [
      {
        head: ['System', 'Rows', 'MB', 'CPU µs per event'],
        rows: measured.map(({ database, rows, megabytes, cpuPerEventUs }) => [
          ourName(database),
          ...[rows, megabytes, cpuPerEventUs].map((value) => formatNumber(value)),
        ]),
      },
      {
        head: ['System', 'Query', 'Days', 'p50 ms', 'p95 ms'],
        rows: measured.flatMap(({ database, queries }) =>
          queries.map(({ name, days, p50, p95 }) => [
            ourName(database),
            name,
            String(days),
            formatNumber(p50),
            formatNumber(p95),
          ]),
        ),
      },
    ],
    raw: measured,
  }
}

async function measure(rig: Rig, database: Database, count: number): Promise<Measured> {
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : null
  const store = postgres ? await openPostgres(postgres.url) : await openSqlite(join(rig.folder, 'figures'))
  try {
    for (let at = 0; at < DOMAINS; at++) await addDomain(store, domainName(at), ACCOUNT)
    const server = () => cpuSeconds(postgres ? [postgres.pid] : [])
    const serverBefore = server()
    const before = process.cpuUsage()
    await fillFigures(store, count)
    const { user, system } = process.cpuUsage(before)
    const cpu = (user + system) / 1e6 + server() - serverBefore
    if (postgres) await store.commit([{ sql: 'ANALYZE figures', values: [] }])
    const { rows, megabytes } = await sizeOf(store)
    console.log(`  ${database}: ${formatNumber(rows)} rows, ${formatNumber(megabytes)} MB`)
    const { queries, times } = await ask(store)
    const cpuPerEventUs = (cpu * 1e6) / count
    return { database, events: count, rows, megabytes, cpuPerEventUs, queries, p95: percentile(times, 0.95) }
  } finally {
    await store.close()
  }
}

async function fillFigures(store: Store, count: number): Promise<void> {
  const start = END_MS - DAYS * DAY_MS
  for (let done = 0; done < count; ) {
    const tally = createTally()
    for (let at = 0; at < EVENTS_PER_STEP && done < count; at++, done++)
      addEvent(tally, Math.floor(start + (done / count) * DAYS * DAY_MS))
    await store.commit(tally.statements())
  }
}

async function sizeOf(store: Store): Promise<{ rows: number; megabytes: number }> {
  const [counted] = await store.read({ sql: 'SELECT count(*) AS rows FROM figures', values: [] })
  const [size] = await store.read({
    sql:
      store.kind === 'sqlite'
        ? 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()'
        : "SELECT pg_total_relation_size('figures') AS bytes",
    values: [],
  })
  return { rows: Number(counted?.['rows']), megabytes: Number(size?.['bytes']) / 1e6 }
}

async function ask(store: Store): Promise<{ queries: Measured['queries']; times: number[] }> {
  const figures = createFigures(store)
  const all: number[] = []
  const queries: Measured['queries'] = []
  for (const { name, dimensions, filter } of QUERIES) {
    for (const days of RANGES_DAYS) {
      const times: number[] = []
      for (let at = 0; at < TIMES_PER_QUERY; at++) {
        const query: FigureQuery = {
          accountIds: [ACCOUNT],
          startMs: END_MS - days * DAY_MS,
          endMs: END_MS,
          resolution: 'day',
          dimensions,
          filter: filter?.() ?? [],
        }
        const begunAt = performance.now()
        await figures.rows(query)
        times.push(performance.now() - begunAt)
      }
      all.push(...times)
      queries.push({ name, days, p50: percentile(times, 0.5), p95: percentile(times, 0.95) })
    }
  }
  return { queries, times: all }
}
