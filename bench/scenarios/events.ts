/**
 * Pages of events out of ten million, and the cost of recording events.
 *
 * The service's own functions create the rows, which are written with the schema's indexes and triggers, and indexed,
 * while the service is stopped; then pages are requested over HTTP. Recording is measured on the store itself: the
 * statements of a message's life (accepted, claimed, settled), committed in groups, with and without its event
 * rows. The difference in CPU is compared with the cost of a message end to end. There is no service without events,
 * so they cannot be left out in another way.
 */
import { join } from 'node:path'
import { newId } from '../../src/base/ids.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { insert, type Store } from '../../src/platform/store/store.ts'
import { indexEvents } from '../../src/watching/events/search/indexing.ts'
import {
  deliveryRow,
  endOf,
  eventRows,
  lifeEvents,
  MESSAGES_PER_TAG,
  recipientOf,
  tagOf,
} from '../support/event-rows.ts'
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { cpuSeconds } from '../support/processes.ts'
import type { Bar, Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type BenchService, type Database, startBenchPostgres, startService } from '../support/service.ts'
import { formatNumber, median, monotonicMs, percentile } from '../support/stats.ts'
import { fill, queryOne } from '../support/stored-data.ts'
import { alternate, ours } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

const COUNT = 10_000_000
const COUNT_SHORT = 20_000
/** Events are spread over this time before now; the service keeps them for 30 days. */
const SPAN_MS = 20 * 86_400_000
const PAGES_PER_PAIR = 100
const PAGES_SHORT = 10
const PAGE_LIMIT_MS = 60_000
const P95_MAX_MS = 50
const COST_MAX = 0.1
const RECORDED_MESSAGES = 20_000
const RECORDED_SHORT = 500
/** Units waiting for their commit at a time, as under load. */
const IN_FLIGHT = 64

const FILTERS = ['event', 'recipient', 'tags', 'message-id'] as const
type FilterName = (typeof FILTERS)[number]
const PAIRS = FILTERS.flatMap((first, at) => FILTERS.slice(at + 1).map((second) => [first, second] as const))
/** Widths of the time range; a third of the pages each. */
const RANGES_MS = [3_600_000, 86_400_000, 10 * 86_400_000]

interface Pages {
  database: Database
  rows: number
  filledPerSecond: number
  pairs: { pair: string; p50: number; p95: number; max: number; mostItems: number }[]
  p95: number
}

interface Cost {
  database: Database
  /** CPU seconds per 1,000 messages. */
  with: number
  without: number
  endToEnd: number
  share: number
}

export async function run(options: Options): Promise<Section> {
  const pages: Pages[] = []
  const costs: Cost[] = []
  for (const database of options.databases) {
    const count = options.count ?? (options.short ? COUNT_SHORT : COUNT)
    pages.push(await withRig(options.folder, (rig) => measurePages(rig, database, count, options.short)))
    costs.push(await measureCost(database, options))
  }
  return {
    title: `Events: pages out of ${formatNumber(pages[0]?.rows ?? 0)}, and the cost of recording`,
    notes: [
      'All rows belong to one domain, over 20 days. Each page: a time range of an hour, a day or ten days and two filters with values that exist, 100 events at the most, over HTTP on one connection.',
      'Recording: the statements of a message (stored, claimed, settled) committed with and without its two event rows, in groups as under load; the difference in CPU against the CPU of a message end to end.',
    ],
    bars: [
      ...pages.map(
        ({ database, p95 }): Bar => ({
          what: `a page with a time range and two filters, p95 of the slowest pair, ${ourName(database)}`,
          bar: `under ${P95_MAX_MS} ms`,
          seen: `${formatNumber(p95)} ms`,
          held: p95 < P95_MAX_MS,
        }),
      ),
      ...costs.map(
        ({ database, share }): Bar => ({
          what: `recording events, share of the CPU of a message end to end, ${ourName(database)}`,
          bar: `under ${COST_MAX * 100} %`,
          seen: `${formatNumber(share * 100)} %`,
          held: share < COST_MAX,
        }),
      ),
    ],
    tables: [
      {
        head: ['System', 'Filters', 'p50 ms', 'p95 ms', 'Longest ms', 'Most events on a page'],
        rows: pages.flatMap(({ database, pairs }) =>
          pairs.map(({ pair, p50, p95, max, mostItems }) => [
            ourName(database),
            pair,
            ...[p50, p95, max].map((value) => formatNumber(value)),
            String(mostItems),
          ]),
        ),
      },
      {
        head: ['System', 'CPU s per 1,000 with events', 'without', 'Difference', 'End to end', 'Share'],
        rows: costs.map((cost) => [
          ourName(cost.database),
          ...[cost.with, cost.without, cost.with - cost.without, cost.endToEnd].map((value) =>
            formatNumber(value, 3),
          ),
          `${formatNumber(cost.share * 100)} %`,
        ]),
      },
    ],
    raw: { pages, costs },
  }
}

async function measurePages(rig: Rig, database: Database, count: number, short: boolean): Promise<Pages> {
  const env = { SENDWRIGHT_DELIVERY: 'capture', SENDWRIGHT_LOG_LEVEL: 'warn' }
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : undefined
  const first = await startService(rig, { database, env, ...(postgres && { postgres }) })
  await first.stop()
  const { account_id: accountId } = await queryOne(
    first,
    `SELECT account_id FROM domains WHERE type = 'sandbox'`,
  )
  const startedAt = monotonicMs()
  const span = { fromMs: Date.now() - SPAN_MS, toMs: Date.now() }
  await fill(first, eventRows({ count, accountId: String(accountId), domainName: first.domain, ...span }))
  const filledPerSecond = (count * 1_000) / (monotonicMs() - startedAt)
  console.log(`  ${database}: ${formatNumber(count)} rows, ${formatNumber(filledPerSecond, 0)}/s`)
  const { dataFolder } = first
  if (database === 'sqlite') {
    const store = await openSqlite(dataFolder)
    await indexEvents(store)
    await store.close()
  }
  const service = await startService(rig, { database, env, dataFolder, ...(postgres && { postgres }) })
  const pairs: Pages['pairs'] = []
  for (const pair of PAIRS) {
    const times: number[] = []
    let mostItems = 0
    for (let at = 0; at < (short ? PAGES_SHORT : PAGES_PER_PAIR); at++) {
      const query = queryFor(pair, at, count, span, first.domain)
      const begunAt = performance.now()
      mostItems = Math.max(mostItems, await page(service, query))
      times.push(performance.now() - begunAt)
    }
    const figures = { p50: percentile(times, 0.5), p95: percentile(times, 0.95), max: percentile(times, 1) }
    pairs.push({ pair: pair.join(' + '), ...figures, mostItems })
  }
  await service.stop()
  return { database, rows: count, filledPerSecond, pairs, p95: Math.max(...pairs.map(({ p95 }) => p95)) }
}

/** Requests a page; resolves its number of events. */
async function page(service: BenchService, query: URLSearchParams): Promise<number> {
  const answer = await fetch(`${service.url}/v3/${service.domain}/events?${query}`, {
    headers: { authorization: service.authorization },
    signal: AbortSignal.timeout(PAGE_LIMIT_MS),
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${text.slice(0, 300)}`)
  return (JSON.parse(text) as { items: unknown[] }).items.length
}

function queryFor(
  pair: readonly [FilterName, FilterName],
  at: number,
  count: number,
  span: { fromMs: number; toMs: number },
  domain: string,
): URLSearchParams {
  // A message somewhere in the middle of its range; two rows each.
  const message = Math.floor((((at * 7_919) % 1_000) / 1_000) * (count / 2))
  const at0 = span.fromMs + ((span.toMs - span.fromMs) * message * 2) / count
  const width = RANGES_MS[at % RANGES_MS.length] as number
  const values: Record<FilterName, string> = {
    event: at % 2 === 0 ? 'accepted' : endOf(message),
    recipient: recipientOf(message),
    tags: tagOf(Math.floor(message / MESSAGES_PER_TAG)),
    'message-id': `${message}.bench@${domain}`,
  }
  return new URLSearchParams({
    begin: String((at0 - width / 2) / 1_000),
    end: String((at0 + width / 2) / 1_000),
    ascending: 'yes',
    limit: '100',
    ...Object.fromEntries(pair.map((name) => [name, values[name]])),
  })
}

async function measureCost(database: Database, options: Options): Promise<Cost> {
  const messages = options.short ? RECORDED_SHORT : RECORDED_MESSAGES
  const content = makeContent(CONTENT_BYTES)
  const [endToEnd] = await alternate(
    options.folder,
    [ours(ourName(database), database, ({ domain }) => singleFields(domain, content))],
    1,
    amountsOf(options),
  )
  const seen = { with: [] as number[], without: [] as number[] }
  // In turns, so that both have an equally warm machine.
  for (let at = 0; at < options.runs + 1; at++) {
    for (const variant of ['without', 'with'] as const) {
      const cpu = await withRig(options.folder, (rig) => replay(rig, database, messages, variant === 'with'))
      if (at > 0) seen[variant].push(cpu) // the first round warms up
    }
  }
  const [withEvents, without] = [median(seen.with), median(seen.without)]
  const total = endToEnd?.cpuPerThousand ?? Number.NaN
  return { database, with: withEvents, without, endToEnd: total, share: (withEvents - without) / total }
}

/** CPU seconds per 1,000 messages, of this process with its threads and the database server. */
async function replay(rig: Rig, database: Database, messages: number, events: boolean): Promise<number> {
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : null
  const store = postgres ? await openPostgres(postgres.url) : await openSqlite(join(rig.folder, 'replay'))
  try {
    const serverBefore = cpuSeconds(postgres ? [postgres.pid] : [])
    const before = process.cpuUsage()
    await replayAll(store, messages, events)
    // The service does so every second.
    if (events) await indexEvents(store)
    const { user, system } = process.cpuUsage(before)
    const server = cpuSeconds(postgres ? [postgres.pid] : []) - serverBefore
    return (((user + system) / 1e6 + server) * 1_000) / messages
  } finally {
    await store.close()
  }
}

async function replayAll(store: Store, messages: number, events: boolean): Promise<void> {
  const body = Buffer.from(JSON.stringify(makeContent(CONTENT_BYTES)))
  let next = 0
  const lane = async () => {
    while (next < messages) await replayOne(store, next++, body, events)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

/** The commits of one message: accepting, claiming and settling. */
async function replayOne(store: Store, number: number, body: Buffer, events: boolean): Promise<void> {
  const now = Date.now()
  const pk = newId(now)
  const id = newId(now)
  const about = { number, accountId: 'bench', domainName: 'bench.example', acceptedMs: now, deliveredMs: now }
  const [accepted, delivered] = events ? lifeEvents(about).map((statement) => [statement]) : [[], []]
  const message = insert('messages', {
    ...{ id: pk, account_id: 'bench', domain_id: 'bench', domain_name: 'bench.example' },
    ...{ message_id: `${number}.bench@bench.example`, summary_json: '{}', options_json: '{}' },
    ...{ content_kind: 'parts', content: body, content_blob: null, blobs_json: '[]', created_at: now },
  })
  await store.commit([message, insert('deliveries', deliveryRow(id, pk, number, now)), ...(accepted ?? [])])
  const claim = `UPDATE deliveries SET state = 'sending', lease_owner = ?, lease_token = ?, lease_until = ?,
    updated_at = ? WHERE id = ?`
  await store.commit([{ sql: claim, values: ['bench', 'token', now + 60_000, now, id] }])
  const settle = `UPDATE deliveries SET state = 'delivered', attempts = 1, reason = '', last_code = 250,
    lease_owner = NULL, lease_token = NULL, lease_until = NULL, updated_at = ? WHERE id = ?`
  await store.commit([{ sql: settle, values: [now, id] }, ...(delivered ?? [])], 'first')
}
