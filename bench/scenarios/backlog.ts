/**
 * A million queued deliveries: memory, start-up, drain rate, and a fresh message to another domain throughout.
 *
 * 1. Direct delivery through a DNS stub: the backlog's domain and that of the fresh mail have separate MX hosts,
 *    both of which are the sink.
 * 2. The rate with 1,000 queued: a batch of 1,000 scheduled for one moment, several times in a warm service.
 * 3. Batches of 1,000 scheduled for later fill the queue. The service stops and they become due: one UPDATE sets
 *    `due_at` to the time of acceptance, and PostgreSQL's housekeeping of those hours is done.
 * 4. The service starts with all of them due. Measured: the time from the start of its process to the first delivery,
 *    the drain rate over a window after a warm-up, and fresh messages throughout.
 * 5. The backlog's server answers 451 for some seconds while fresh messages continue.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createDnsServer } from '../../test/support/dns-server.ts'
import { ASK_LIMIT_MS, type Sink, startSink, untilDelivered } from '../support/flow.ts'
import { type LoadResult, numberText } from '../support/load.ts'
import { batchFields, makeContent, sendRequest, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { watchMemory } from '../support/processes.ts'
import type { Bar, Section } from '../support/results.ts'
import { type Rig, until, withRig } from '../support/rig.ts'
import {
  type BenchPostgres,
  type BenchService,
  type Database,
  startBenchPostgres,
  startService,
} from '../support/service.ts'
import { formatNumber, median, monotonicMs } from '../support/stats.ts'
import { execute } from '../support/stored-data.ts'
import { httpLoad } from '../support/systems.ts'
import { ourName } from './e2e.ts'

const COUNT = 1_000_000
const COUNT_SHORT = 3_000
const WINDOW_SECONDS = 60
const WINDOW_SHORT_SECONDS = 3
const BATCH = 1_000
const CONTENT_BYTES = 2_000
const SEED_CONNECTIONS = 4
/** Batches that measure the rate of a short queue, after others to warm up. */
const BASELINE_BATCHES = 5
const BASELINE_WARM_UP_BATCHES = 3
const FRESH_PER_SECOND = 2
/** Until code is compiled, lanes have found their rate and caches are filled. */
const WARM_UP_SECONDS = 10
const WARM_UP_SHORT_SECONDS = 1
const DEFERRING_SECONDS = 20
const DEFERRING_SHORT_SECONDS = 2
const FIRST_DELIVERY_LIMIT_MS = 300_000
const SCHEDULED_IN_MS = 48 * 3_600_000

const BACKLOG_DOMAIN = 'backlog.example'
const FRESH_DOMAIN = 'fresh.example'
const HOSTS = ['127.0.0.2', '127.0.0.3']

const RSS_MAX_MB = 450
const START_MAX_S = 10
const RATE_SHARE_MIN = 0.85
const FRESH_MAX_MS = 2_000

export interface BacklogFigures {
  database: Database
  count: number
  /** Deliveries accepted per second while the queue was filled. */
  seededPerSecond: number
  rateOfThousand: number
  rateOfAll: number
  /** Seconds from the start of the process. */
  readySeconds: number
  firstDeliverySeconds: number
  peakRssMb: number
  /** The slowest fresh message, from its 200 to the sink, and how many were sent. */
  freshSlowestMs: number
  freshSent: number
  freshAcceptP99Ms: number
  /** Deliveries that the sink deferred. */
  deferred: number
}

export interface BacklogPlan {
  database: Database
  count: number
  windowSeconds: number
  warmUpSeconds: number
  deferringSeconds: number
}

export async function run(options: Options): Promise<Section> {
  const { short } = options
  const all: BacklogFigures[] = []
  for (const database of options.databases) {
    const plan: BacklogPlan = {
      database,
      count: options.count ?? (short ? COUNT_SHORT : COUNT),
      windowSeconds: options.seconds ?? (short ? WINDOW_SHORT_SECONDS : WINDOW_SECONDS),
      warmUpSeconds: short ? WARM_UP_SHORT_SECONDS : WARM_UP_SECONDS,
      deferringSeconds: short ? DEFERRING_SHORT_SECONDS : DEFERRING_SECONDS,
    }
    all.push(await withRig(options.folder, (rig) => measureBacklog(rig, plan, console.log)))
  }
  const first = all[0] as BacklogFigures
  return {
    title: `${formatNumber(first.count)} queued deliveries`,
    notes: [
      `Direct delivery to one destination of 10 connections, ${formatNumber(CONTENT_BYTES)} bytes of content; queued by batch calls planned for later, due at once when the service starts. What PostgreSQL does in the background about a million new rows (vacuum, checkpoint) is over by then.`,
      `Rates are the sink's over ${options.seconds ?? (short ? WINDOW_SHORT_SECONDS : WINDOW_SECONDS)} s of draining, and the median of ${BASELINE_BATCHES} batches of 1,000 in an otherwise empty queue. One run.`,
      "RSS is the service's own process. Fresh messages are single calls to another domain, two a second, while the backlog drains and while its server answers 451.",
    ],
    bars: all.flatMap(barsOf),
    tables: [
      {
        head: [
          ...['System', 'Queued/s', 'Ready s', 'First delivery s', 'Drain/s', 'With 1,000/s', 'Peak RSS MB'],
          ...['Slowest fresh ms', 'Fresh sent', 'Accept p99 ms', 'Put off'],
        ],
        rows: all.map((one) => [
          ourName(one.database),
          formatNumber(one.seededPerSecond, 0),
          formatNumber(one.readySeconds),
          formatNumber(one.firstDeliverySeconds),
          formatNumber(one.rateOfAll, 0),
          formatNumber(one.rateOfThousand, 0),
          formatNumber(one.peakRssMb, 0),
          formatNumber(one.freshSlowestMs, 0),
          String(one.freshSent),
          formatNumber(one.freshAcceptP99Ms),
          formatNumber(one.deferred, 0),
        ]),
      },
    ],
    raw: all,
  }
}

function barsOf(one: BacklogFigures): Bar[] {
  const name = ourName(one.database)
  const share = one.rateOfAll / one.rateOfThousand
  return [
    {
      what: `RSS with ${formatNumber(one.count)} queued, ${name}`,
      bar: `at most ${RSS_MAX_MB} MB`,
      seen: `${formatNumber(one.peakRssMb, 0)} MB`,
      held: one.peakRssMb <= RSS_MAX_MB,
    },
    {
      what: `start to first delivery, ${name}`,
      bar: `at most ${START_MAX_S} s`,
      seen: `${formatNumber(one.firstDeliverySeconds)} s`,
      held: one.firstDeliverySeconds <= START_MAX_S,
    },
    {
      what: `drain rate against that with 1,000 queued, ${name}`,
      bar: `at least ${RATE_SHARE_MIN * 100} %`,
      seen: `${formatNumber(share * 100, 0)} %`,
      held: share >= RATE_SHARE_MIN,
    },
    {
      what: `slowest fresh message, ${name}`,
      bar: `at most ${FRESH_MAX_MS / 1_000} s`,
      seen: `${formatNumber(one.freshSlowestMs / 1_000, 2)} s`,
      held: one.freshSlowestMs <= FRESH_MAX_MS,
    },
  ]
}

/** The whole scenario; drill R7 runs it too. */
export async function measureBacklog(
  rig: Rig,
  plan: BacklogPlan,
  note: (text: string) => void,
): Promise<BacklogFigures> {
  const { database, count } = plan
  const sink = await startSink(rig, HOSTS)
  const env = await internet(rig, sink)
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : undefined
  const first = await startService(rig, { database, env, ...(postgres && { postgres }) })
  const rateOfThousand = await measureThousand(rig, first, sink)
  note(`  ${database}: ${formatNumber(rateOfThousand, 0)}/s with 1,000 queued`)
  const seededPerSecond = await seed(rig, first, count)
  note(`  ${database}: ${formatNumber(count)} queued, ${formatNumber(seededPerSecond, 0)}/s`)
  await first.stop()
  await letTimePass(first)
  return { ...(await drain(rig, plan, sink, env, first, postgres)), rateOfThousand, seededPerSecond }
}

async function internet(rig: Rig, sink: Sink): Promise<Record<string, string>> {
  const dns = await createDnsServer()
  rig.defer('DNS', () => dns.close())
  for (const [at, domain] of [BACKLOG_DOMAIN, FRESH_DOMAIN].entries()) {
    dns.set(domain, 'MX', [[10, `mx.${domain}`]])
    dns.set(`mx.${domain}`, 'A', [HOSTS[at] as string])
  }
  return {
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_MX_PORT: String(sink.port),
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  }
}

const batchRequest = (service: BenchService, recipients: number, dueAt: number) =>
  sendRequest(service, [
    ...batchFields(service.domain, makeContent(CONTENT_BYTES), recipients, BACKLOG_DOMAIN),
    ['o:deliverytime', new Date(dueAt).toUTCString()],
  ])

/** Deliveries a second when 1,000 become due at once. */
async function measureThousand(rig: Rig, service: BenchService, sink: Sink): Promise<number> {
  const rates: number[] = []
  for (let at = 0; at < BASELINE_WARM_UP_BATCHES + BASELINE_BATCHES; at++) {
    await sink.ask({ kind: 'reset', refuse: [], record: null }, ASK_LIMIT_MS)
    // Whole seconds, at least one and a half ahead, so that the batch is accepted by then.
    const dueAt = Math.ceil((Date.now() + 1_500) / 1_000) * 1_000
    const load = httpLoad(rig, service, batchRequest(service, BATCH, dueAt), 1)
    const { failure } = await load({ count: 1, firstNumber: 80_000_000 + at })
    if (failure !== null) throw new Error(`the batch was refused: ${failure}`)
    const { firstAt, lastAt } = await untilDelivered(sink, BATCH)
    if (at >= BASELINE_WARM_UP_BATCHES) rates.push(((BATCH - 1) * 1_000) / (lastAt - firstAt))
  }
  return median(rates)
}

/** Fills the queue; resolves deliveries accepted per second. */
async function seed(rig: Rig, service: BenchService, count: number): Promise<number> {
  const calls = Math.ceil(count / BATCH)
  const request = batchRequest(service, Math.ceil(count / calls), Date.now() + SCHEDULED_IN_MS)
  const startedAt = monotonicMs()
  const result = await httpLoad(rig, service, request, SEED_CONNECTIONS)({ count: calls, firstNumber: 0 })
  if (result.failed > 0) throw new Error(`${result.failed} batches were refused: ${result.failure}`)
  return (count * 1_000) / (monotonicMs() - startedAt)
}

/** Makes scheduled deliveries due as of their acceptance. */
async function letTimePass(stopped: BenchService): Promise<void> {
  await execute(
    stopped,
    `UPDATE deliveries SET state = 'queued', reason = 'new', due_at = created_at WHERE state = 'scheduled'`,
  )
  // PostgreSQL vacuums a million new rows, and as many old versions, within minutes. In real time it would be done
  // before the queue drains; with skipped hours it would run during the measurement.
  if (stopped.databaseUrl !== null) {
    await execute(stopped, 'VACUUM (ANALYZE)')
    await execute(stopped, 'CHECKPOINT')
  }
}

async function drain(
  rig: Rig,
  plan: BacklogPlan,
  sink: Sink,
  env: Record<string, string>,
  stopped: BenchService,
  postgres: BenchPostgres | undefined,
): Promise<Omit<BacklogFigures, 'rateOfThousand' | 'seededPerSecond'>> {
  const { database, count, warmUpSeconds, windowSeconds, deferringSeconds } = plan
  await sink.ask({ kind: 'reset', refuse: [], record: FRESH_DOMAIN }, ASK_LIMIT_MS)
  const { dataFolder } = stopped
  const service = await startService(rig, { database, env, dataFolder, ...(postgres && { postgres }) })
  const memory = watchMemory([service.pid])
  rig.defer('memory samples', () => memory.stop())
  const statsNow = () => sink.ask({ kind: 'stats' }, ASK_LIMIT_MS)
  await until('first delivery', FIRST_DELIVERY_LIMIT_MS, async () => (await statsNow()).count > 0)
  const { firstAt } = await statsNow()

  const request = sendRequest(service, singleFields(service.domain, makeContent(CONTENT_BYTES), FRESH_DOMAIN))
  const seconds = warmUpSeconds + windowSeconds + deferringSeconds
  const sending = httpLoad(
    rig,
    service,
    request,
    10,
  )({ perSecond: FRESH_PER_SECOND, seconds, firstNumber: 0 }, true)
  sending.catch(() => {}) // awaited below
  await sleep(warmUpSeconds * 1_000)
  const rateOfAll = await drainRate(sink, windowSeconds)
  await sink.ask({ kind: 'refuse', domains: [BACKLOG_DOMAIN] }, ASK_LIMIT_MS)
  const fresh = await sending
  if (fresh.failed > 0) throw new Error(`${fresh.failed} fresh messages were refused: ${fresh.failure}`)
  const freshSlowestMs = await slowestOf(sink, fresh)
  const { refused } = await statsNow()
  const { rssMb } = memory.stop()
  await service.stop()
  return {
    database,
    count,
    rateOfAll,
    readySeconds: service.readyMs / 1_000,
    firstDeliverySeconds: (firstAt - service.startedAt) / 1_000,
    peakRssMb: rssMb,
    freshSlowestMs,
    freshSent: fresh.accepted,
    freshAcceptP99Ms: fresh.latencyMs.p99,
    deferred: refused,
  }
}

/** Deliveries of the backlog a second over the window, or until it is empty. */
async function drainRate(sink: Sink, seconds: number): Promise<number> {
  const read = async () => {
    const { byDomain } = await sink.ask({ kind: 'stats' }, ASK_LIMIT_MS)
    return { at: monotonicMs(), count: byDomain[BACKLOG_DOMAIN] ?? 0 }
  }
  const from = await read()
  let last = from
  let changedAt = from.at
  while (monotonicMs() - from.at < seconds * 1_000) {
    await sleep(100)
    const now = await read()
    if (now.count > last.count) changedAt = now.at
    last = now
  }
  return ((last.count - from.count) * 1_000) / (changedAt - from.at)
}

/** Longest time from a 200 to the sink; infinite if a message never arrived. */
async function slowestOf(sink: Sink, fresh: LoadResult): Promise<number> {
  const sent = [...(fresh.acceptedAt ?? [])]
  const times = async () => (await sink.ask({ kind: 'times' }, ASK_LIMIT_MS)).times
  await until(
    'the last fresh message',
    2 * FRESH_MAX_MS,
    async () => (await times())?.size === sent.length,
  ).catch(
    () => {}, // reported as infinite
  )
  const arrived = await times()
  const waits = sent.map(([number, acceptedAt]) => {
    const at = arrived?.get(`r${numberText(number)}@${FRESH_DOMAIN}`)
    return at === undefined ? Number.POSITIVE_INFINITY : at - acceptedAt
  })
  return Math.max(0, ...waits)
}
