/**
 * 1,000 domains in one account, and the same number in 50 subaccounts: sending from all of them in turn, and the lists
 * and figures that a parent reads. What belongs to subaccounts must not be slower.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { measureFlow, type Sink, type System, startSink } from '../support/flow.ts'
import { makeContent, sendRequest, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type BenchService, startService } from '../support/service.ts'
import { formatNumber, median, percentile } from '../support/stats.ts'
import { httpLoad, SESSIONS } from '../support/systems.ts'

const SUBACCOUNTS = 50
const DOMAINS = 1_000
const MESSAGES = 20_000
const MESSAGES_SHORT = 500
const WARM_UP = 10_000
const MESSAGE_BYTES = 1_500
/** Calls in flight while the domains are created. */
const CREATED_AT_ONCE = 8
const CALLS = 50
const CALLS_SHORT = 3
/** Shares of the figures of one account. */
const RATE_SHARE_MIN = 0.95
const READ_SHARE_MAX = 1.5
/** Reads this quick are not compared: the difference is noise. */
const READ_MS_MIN = 10

const LAYOUTS = ['one account', `${SUBACCOUNTS} subaccounts`] as const
type Layout = (typeof LAYOUTS)[number]

interface Run {
  layout: Layout
  perSecond: number
  cpuPerThousand: number
  acceptP99: number
  /** Milliseconds, by call. */
  reads: Record<string, { p50: number; p95: number }>
}

export async function run(options: Options): Promise<Section> {
  const runs: Run[] = []
  for (let at = 1; at <= options.runs; at++) {
    for (const layout of LAYOUTS) {
      const one = await withRig(options.folder, (rig) => measure(rig, layout, options))
      runs.push(one)
      console.log(`  run ${at}  ${layout}: ${formatNumber(one.perSecond, 0)}/s`)
    }
  }
  const [one, many] = LAYOUTS.map((layout) => summarize(runs.filter((run) => run.layout === layout)))
  if (!one || !many) throw new Error('no runs')
  const slow = Object.keys(one.reads).filter(
    (name) => (many.reads[name] ?? 0) > Math.max(READ_MS_MIN, READ_SHARE_MAX * (one.reads[name] ?? 0)),
  )
  return {
    title: 'Subaccounts against one account',
    notes: [
      `${DOMAINS} domains in one account, and in ${SUBACCOUNTS} subaccounts with a key each; SQLite; runs in turn, medians of ${options.runs}.`,
      `Messages of ${MESSAGE_BYTES} bytes from all domains in turn over ${SESSIONS} connections, to the sink. Reads one at a time, with subaccounts included where there are some.`,
    ],
    bars: [
      {
        what: 'end to end, subaccounts',
        bar: `at least ${RATE_SHARE_MIN} times that of one account`,
        seen: formatNumber(many.perSecond / one.perSecond, 2),
        held: many.perSecond >= RATE_SHARE_MIN * one.perSecond,
      },
      {
        what: 'reads, subaccounts',
        bar: `p50 of each at most ${READ_SHARE_MAX} times that of one account, or ${READ_MS_MIN} ms`,
        seen: slow.length === 0 ? 'all' : `slower: ${slow.join(', ')}`,
        held: slow.length === 0,
      },
    ],
    tables: [
      {
        head: ['', ...LAYOUTS],
        rows: [
          ['end to end, messages/s', ...[one, many].map(({ perSecond }) => formatNumber(perSecond, 0))],
          ['CPU s per 1,000', ...[one, many].map(({ cpuPerThousand }) => formatNumber(cpuPerThousand, 2))],
          ['accept p99, ms', ...[one, many].map(({ acceptP99 }) => formatNumber(acceptP99))],
          ...Object.keys(one.reads).map((name) => [
            `${name}, p50 ms`,
            ...[one, many].map(({ reads }) => formatNumber(reads[name] ?? 0)),
          ]),
        ],
      },
    ],
    raw: runs,
  }
}

function summarize(runs: readonly Run[]) {
  const names = Object.keys(runs[0]?.reads ?? {})
  return {
    perSecond: median(runs.map(({ perSecond }) => perSecond)),
    cpuPerThousand: median(runs.map(({ cpuPerThousand }) => cpuPerThousand)),
    acceptP99: median(runs.map(({ acceptP99 }) => acceptP99)),
    reads: Object.fromEntries(
      names.map((name) => [name, median(runs.map(({ reads }) => reads[name]?.p50 ?? 0))]),
    ),
  }
}

async function measure(rig: Rig, layout: Layout, options: Options): Promise<Run> {
  const sink = await startSink(rig)
  const env = { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` }
  const filled = await startService(rig, { database: 'sqlite', env })
  const senders = await fill(filled, layout, options.short ? SUBACCOUNTS : DOMAINS)
  await filled.stop()
  activate(filled.dataFolder)
  const service = await startService(rig, { database: 'sqlite', env, dataFolder: filled.dataFolder })
  const flow = await send(rig, sink, service, senders, options)
  const reads = await readAll(service, layout, options.short ? CALLS_SHORT : CALLS)
  await service.stop()
  return {
    layout,
    perSecond: flow.perSecond,
    cpuPerThousand: flow.cpuPerThousand,
    acceptP99: flow.load.latencyMs.p99,
    reads,
  }
}

interface Sender {
  domain: string
  authorization: string
}

/** Domains with a key of RSA-1024 each, so that making them takes less long. */
async function fill(service: BenchService, layout: Layout, domains: number): Promise<Sender[]> {
  const accounts = layout === 'one account' ? [null] : await createSubaccounts(service)
  const senders: Sender[] = []
  const numbers = Array.from({ length: domains }, (_, at) => at)
  const work = async () => {
    for (let at = numbers.shift(); at !== undefined; at = numbers.shift()) {
      const authorization = accounts[at % accounts.length] ?? service.authorization
      const domain = `d${at}.bench.example`
      const body = new URLSearchParams({ name: domain, dkim_key_size: '1024' })
      await request(service, 'POST', '/v4/domains', { authorization }, body)
      senders.push({ domain, authorization })
    }
  }
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, work))
  return senders
}

/** The authorization of a key of each. */
async function createSubaccounts(service: BenchService): Promise<string[]> {
  const { authorization } = service
  const made: string[] = []
  for (let at = 0; at < SUBACCOUNTS; at++) {
    const name = new URLSearchParams({ name: `Team ${at}` })
    const answer = await request(service, 'POST', '/v5/accounts/subaccounts', { authorization }, name)
    const { subaccount } = answer as { subaccount: { id: string } }
    const headers = { authorization, 'x-service-on-behalf-of': subaccount.id }
    const role = new URLSearchParams({ role: 'admin' })
    const { key } = (await request(service, 'POST', '/v1/keys', headers, role)) as { key: { secret: string } }
    made.push(`Basic ${Buffer.from(`api:${key.secret}`).toString('base64')}`)
  }
  return made
}

async function request(
  { url }: BenchService,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: URLSearchParams | string,
): Promise<unknown> {
  const answer = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
  return JSON.parse(text) as unknown
}

/** There is no DNS here that would prove the domains. */
function activate(dataFolder: string): void {
  const database = new DatabaseSync(join(dataFolder, 'sendwright.db'))
  database.exec("UPDATE domains SET state = 'active'")
  database.close()
}

async function send(
  rig: Rig,
  sink: Sink,
  service: BenchService,
  senders: readonly Sender[],
  { short, messages }: Options,
) {
  const content = { ...makeContent(MESSAGE_BYTES * 5), html: null }
  const requests = senders.map(({ domain, authorization }) =>
    sendRequest({ ...service, domain, authorization }, singleFields(domain, content)),
  )
  const system: System = {
    roots: service.roots,
    recipients: 1,
    load: httpLoad(rig, service, requests, SESSIONS),
    stop: service.stop,
  }
  const count = messages ?? (short ? MESSAGES_SHORT : MESSAGES)
  await measureFlow(sink, system, { count: Math.min(count, WARM_UP), firstNumber: 90_000_000 })
  return measureFlow(sink, system, { count, firstNumber: 0 })
}

async function readAll(service: BenchService, layout: Layout, calls: number): Promise<Run['reads']> {
  const included = layout !== 'one account'
  const { authorization } = service
  const headers = { authorization, 'content-type': 'application/json' }
  const post = (path: string, body: object) => () =>
    request(service, 'POST', path, headers, JSON.stringify({ ...body, include_subaccounts: included }))
  const metrics = (...dimensions: string[]) =>
    post('/v1/analytics/metrics', { dimensions, include_aggregates: true })
  const reads: Record<string, () => Promise<unknown>> = {
    'domains, 100': () =>
      request(service, 'GET', `/v4/domains?limit=100${included ? '&include_subaccounts=true' : ''}`, headers),
    'metrics, total': metrics(),
    'metrics by time': metrics('time'),
    'metrics by domain': metrics('domain'),
    'metrics by provider and time': metrics('recipient_provider', 'time'),
    'logs, 100': post('/v1/analytics/logs', { pagination: { limit: 100 } }),
  }
  const found: Run['reads'] = {}
  for (const [name, read] of Object.entries(reads)) {
    const times: number[] = []
    for (let call = 0; call < calls; call++) {
      const begunAt = performance.now()
      await read()
      times.push(performance.now() - begunAt)
    }
    found[name] = { p50: percentile(times, 0.5), p95: percentile(times, 0.95) }
  }
  return found
}
