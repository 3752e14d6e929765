/**
 * What the pages of the dashboard ask for, on a service with a million events and a long queue.
 *
 * 1. The database is filled while the service is stopped: events of the last 90 days as `support/traffic.ts` makes them,
 *    indexed and counted by the service's own functions, all of one account, waiting deliveries that are due later, attempts of
 *    webhooks, and entries of the audit log.
 * 2. A browser signs in and follows every link of the dashboard, one page of each kind, and opens some searches. The calls of each
 *    page and how far it jumps while it loads are noted.
 * 3. Every call is repeated over HTTP, all of them in rounds. Counts that the service keeps for two seconds are loaded anew
 *    in each round, by the first page that asks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContext } from 'playwright-core'
import { newId } from '../../src/base/ids.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { insert, type Statement } from '../../src/platform/store/store.ts'
import { indexEvents } from '../../src/watching/events/search/indexing.ts'
import { createCounting } from '../../src/watching/metrics/counting.ts'
import { launchBrowser } from '../../test/support/browser.ts'
import { kindOf, linksOf, untilQuiet } from '../../test/support/dashboard-pages.ts'
import { createDnsServer } from '../../test/support/dns-server.ts'
import { eventStatement } from '../../test/support/events.ts'
import { addDomain } from '../../test/support/figures.ts'
import { isRateLimit, retain } from '../support/figure-bench.ts'
import type { Options } from '../support/options.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type BenchService, type Database, startBenchPostgres, startService } from '../support/service.ts'
import { formatNumber, monotonicMs, percentile } from '../support/stats.ts'
import { fill, queryOne } from '../support/stored-data.ts'
import { DOMAINS, domainName, END_MS, traffic } from '../support/traffic.ts'
import { ourName } from './e2e.ts'

const EVENTS = 1_000_000
const EVENTS_SHORT = 5_000
const QUEUED = 100_000
const QUEUED_SHORT = 500
const MESSAGES_QUEUED = 100
const RECIPIENT_DOMAINS = 200
/** Attempts of webhooks, and as many entries of the audit log. */
const LOGGED = 100_000
const LOGGED_SHORT = 500
const BUSIEST = domainName(0)
/** Pages that no link leads to, or only with a search. */
const SEARCHES = [
  `/domains/${BUSIEST}/health`,
  '/activity?q=reader-5496&by=recipient&span=30d',
  '/activity?q=welcome&by=subject&span=30d',
  '/statistics?span=90d&week=delivered',
  `/statistics?span=90d&week=opened&domain=${BUSIEST}`,
  '/webhooks/attempts?search=nobody-has-this',
  '/settings/audit?action=domain.change',
  '/settings/audit?remote_address=192.0.2.7',
]
const TIMES = 20
const TIMES_SHORT = 2
const P95_MAX_MS = 300
const PAGES_MAX = 100
/** Longer than any answer is kept. */
const BETWEEN_ROUNDS_MS = 2_500
const HOUR_MS = 3_600_000

interface Call {
  method: string
  path: string
  body: string | null
  times: number[]
}

interface PageVisit {
  /** Path and query; ids as they were. */
  path: string
  calls: Call[]
  shift: number
}

interface Measured {
  database: Database
  pages: { path: string; calls: number; slowest: string; p50: number; p95: number; shift: number }[]
}

export async function run(options: Options): Promise<Section> {
  const measured: Measured[] = []
  for (const database of options.databases)
    measured.push(await withRig(options.folder, (rig) => measure(rig, database, options)))
  return {
    title: 'The data of the dashboard’s pages',
    notes: [
      'A million events of 1,000 domains over 90 days and 100,000 waiting deliveries to 200 domains, all of one account, and 100,000 attempts of webhooks and entries of the audit log each. One page of each kind, and searches; the figures are those of its slowest call.',
    ],
    bars: measured.map(({ database, pages }) => {
      const worst = Math.max(...pages.map(({ p95 }) => p95))
      return {
        what: `the slowest call of any page, p95, ${ourName(database)}`,
        bar: `under ${P95_MAX_MS} ms`,
        seen: `${formatNumber(worst)} ms`,
        held: worst < P95_MAX_MS,
      }
    }),
    tables: [
      {
        head: ['System', 'Page', 'Calls', 'Slowest', 'p50 ms', 'p95 ms', 'Jumps by'],
        rows: measured.flatMap(({ database, pages }) =>
          pages.map(({ path, calls, slowest, p50, p95, shift }) => [
            ourName(database),
            path,
            String(calls),
            slowest,
            ...[p50, p95].map((value) => formatNumber(value)),
            formatNumber(shift, 3),
          ]),
        ),
      },
    ],
    raw: measured,
  }
}

async function measure(rig: Rig, database: Database, { short, count }: Options): Promise<Measured> {
  const dns = await createDnsServer()
  rig.defer('DNS', () => dns.close())
  for (let at = 0; at < RECIPIENT_DOMAINS; at++)
    dns.set(recipientDomain(at), 'MX', [[10, `mx${at % 50}.example`]])
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : undefined
  const options = {
    database,
    env: {
      SENDWRIGHT_DELIVERY: 'direct',
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_LOG_LEVEL: 'warn',
      SENDWRIGHT_EVENT_RETENTION_DAYS: '100',
    },
    ...(postgres && { postgres }),
  }
  const first = await startService(rig, options)
  await first.stop()
  await fillAll(
    first,
    count ?? (short ? EVENTS_SHORT : EVENTS),
    short ? QUEUED_SHORT : QUEUED,
    short ? LOGGED_SHORT : LOGGED,
  )
  const service = await startService(rig, { ...options, dataFolder: first.dataFolder })
  const visits = await visitAll(rig, service)
  await repeat(service, visits, short ? TIMES_SHORT : TIMES)
  const pages = visits.map(({ path, calls, shift }) => {
    const figures = calls.map((call) => ({ call, p95: percentile(call.times, 0.95) }))
    const slowest = figures.toSorted((a, b) => b.p95 - a.p95)[0]
    return {
      path,
      calls: calls.length,
      slowest: slowest ? `${slowest.call.method} ${slowest.call.path.split('?')[0]}` : '',
      p50: slowest ? percentile(slowest.call.times, 0.5) : 0,
      p95: slowest?.p95 ?? 0,
      shift,
    }
  })
  return { database, pages }
}

const recipientDomain = (at: number) => `to${at}.example`

async function fillAll(service: BenchService, events: number, queued: number, logged: number): Promise<void> {
  const { account_id } = await queryOne(service, `SELECT account_id FROM domains WHERE type = 'sandbox'`)
  const accountId = String(account_id)
  const open = () =>
    service.databaseUrl === null ? openSqlite(service.dataFolder) : openPostgres(service.databaseUrl)
  const before = await open()
  for (let at = 0; at < DOMAINS; at++) await addDomain(before, domainName(at), accountId)
  const domains = await before.db.selectFrom('domains').select(['id', 'name']).limit(DOMAINS).execute()
  await before.close()
  await fill(service, eventRows(accountId, events))
  await fill(service, messageRows(accountId, domains))
  await fill(service, deliveryRows(accountId, domains, queued))
  await fill(service, attemptRows(accountId, logged))
  await fill(service, auditRows(accountId, logged))
  const store = await open()
  try {
    await indexEvents(store)
    await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
    await retain(store, Date.now())
    if (store.kind === 'postgres') await store.commit([{ sql: 'ANALYZE', values: [] }])
  } finally {
    await store.close()
  }
}

function* eventRows(accountId: string, count: number): Generator<Statement> {
  const shiftUs = (Date.now() - HOUR_MS - END_MS) * 1000
  for (const event of traffic(count))
    yield eventStatement({ ...event, accountId, timestampUs: event.timestampUs + shiftUs })
}

type DomainRow = { id: string; name: string }

const messageOf = (at: number) => `bench-message-${String(at).padStart(4, '0')}`

function* messageRows(accountId: string, domains: readonly DomainRow[]): Generator<Statement> {
  for (let at = 0; at < MESSAGES_QUEUED; at++) {
    const { id, name } = domains[at % domains.length] as DomainRow
    yield insert('messages', {
      id: messageOf(at),
      account_id: accountId,
      domain_id: id,
      domain_name: name,
      message_id: `${messageOf(at)}@${name}`,
      summary_json: '{}',
      options_json: '{}',
      content_kind: 'parts',
      content: Buffer.from('{}'),
      content_blob: null,
      blobs_json: '[]',
      created_at: Date.now() - HOUR_MS,
    })
  }
}

/** Due in an hour and later: nothing is sent while pages are asked for. */
function* deliveryRows(
  accountId: string,
  domains: readonly DomainRow[],
  count: number,
): Generator<Statement> {
  const now = Date.now()
  for (let at = 0; at < count; at++) {
    const message = at % MESSAGES_QUEUED
    const domain = recipientDomain(at % RECIPIENT_DOMAINS)
    yield insert('deliveries', {
      id: newId(),
      account_id: accountId,
      domain_id: (domains[message % domains.length] as DomainRow).id,
      message_pk: messageOf(message),
      recipient: `user${at}@${domain}`,
      recipient_domain: domain,
      recipient_header: `user${at}@${domain}`,
      state: 'queued',
      due_at: now + HOUR_MS + (at % 5_000) * 1_000,
      expires_at: now + 100 * HOUR_MS,
      attempts: at % 3,
      reason: at % 3 === 0 ? 'new' : 'retry',
      source_key: '',
      created_at: now - (at % 3_600) * 1_000,
      updated_at: now,
    })
  }
}

function* attemptRows(accountId: string, count: number): Generator<Statement> {
  const begun = Date.now() - 3 * 24 * HOUR_MS
  for (let at = 0; at < count; at++) {
    const createdAt = begun + at
    yield insert('webhook_attempts', {
      id: newId(createdAt),
      account_id: accountId,
      domain_name: domainName(at % DOMAINS),
      event_id: newId(createdAt),
      event_type: at % 3 === 0 ? 'opened' : 'delivered',
      url: `https://hooks.example/${at % 5}`,
      attempt: 1 + (at % 4),
      status: at % 10 === 0 ? 'failing' : 'ok',
      status_code: at % 10 === 0 ? 503 : 200,
      error: null,
      response: '',
      duration_ms: 40 + (at % 100),
      next_attempt_at: null,
      created_at: createdAt,
      recipient: `reader-${at}@${recipientDomain(at % RECIPIENT_DOMAINS)}`,
      subject: `Your order ${at}`,
    })
  }
}

function* auditRows(accountId: string, count: number): Generator<Statement> {
  const begun = Date.now() - 3 * 24 * HOUR_MS
  for (let at = 0; at < count; at++)
    yield insert('audit', {
      id: newId(begun + at),
      account_id: accountId,
      key_id: `key-${at % 20}`,
      remote_address: `192.0.2.${at % 250}`,
      action: at % 2 === 0 ? 'domain.change' : 'template.change',
      subject: domainName(at % DOMAINS),
      detail_json: '{}',
      created_at: begun + at,
      request_id: null,
      parent_account_id: null,
      status: 200,
      user_id: null,
    })
}

/** Every page that links lead to, one of each kind. */
async function visitAll(rig: Rig, service: BenchService): Promise<PageVisit[]> {
  const browser = await launchBrowser()
  rig.defer('the browser', () => browser.close())
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: 'reduce',
  })
  const [, key] = Buffer.from(service.authorization.slice('Basic '.length), 'base64').toString().split(':')
  const answer = await context.request.post(`${service.url}/sendwright/v1/session`, { data: { key } })
  if (!answer.ok()) throw new Error(`no session: ${await answer.text()}`)
  const visits: PageVisit[] = []
  const seen = new Set<string>()
  const waiting = ['/']
  for (let path = waiting.shift(); path !== undefined && visits.length < PAGES_MAX; path = waiting.shift()) {
    if (seen.has(kindOf(path))) continue
    seen.add(kindOf(path))
    const { visit, links } = await visitPage(context, service, path)
    visits.push(visit)
    waiting.push(...links)
  }
  for (const path of SEARCHES) visits.push((await visitPage(context, service, path)).visit)
  return visits
}

async function visitPage(
  context: BrowserContext,
  { url }: BenchService,
  path: string,
): Promise<{ visit: PageVisit; links: string[] }> {
  const page = await context.newPage()
  await page.addInitScript(
    'globalThis.shift = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) globalThis.shift += entry.value }).observe({ type: "layout-shift", buffered: true })',
  )
  const calls = new Map<string, Call>()
  page.on('requestfinished', (request) => {
    const { pathname, search } = new URL(request.url())
    if (!['fetch', 'xhr'].includes(request.resourceType())) return
    const method = request.method()
    const body = request.postData()
    calls.set(`${method} ${pathname}${search} ${body ?? ''}`, {
      method,
      path: pathname + search,
      body,
      times: [],
    })
  })
  await page.goto(url + path)
  await untilQuiet(page)
  const shift = await page.evaluate<number>('globalThis.shift')
  const links = await linksOf(page)
  await page.close()
  return { visit: { path, calls: [...calls.values()], shift }, links }
}

async function repeat(service: BenchService, visits: readonly PageVisit[], times: number): Promise<void> {
  for (let round = 0; round < times; round++) {
    await sleep(BETWEEN_ROUNDS_MS)
    for (const { calls } of visits)
      for (const call of calls) {
        const begun = monotonicMs()
        const response = await fetch(service.url + call.path, {
          method: call.method,
          headers: {
            authorization: service.authorization,
            ...(call.body !== null && { 'content-type': 'application/json' }),
          },
          body: call.body,
        })
        await response.arrayBuffer()
        // Signing in belongs to the browser's session.
        if (response.status >= 500) throw new Error(`${call.method} ${call.path}: ${response.status}`)
        call.times.push(monotonicMs() - begun)
      }
  }
}
