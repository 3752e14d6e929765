/** Time from the 200 of a call to the sink's 250, at 50 messages a second. */
import { ASK_LIMIT_MS, type Sink, type System, startSink, untilDelivered } from '../support/flow.ts'
import { numberText } from '../support/load.ts'
import { makeContent, RECIPIENT_DOMAIN, sendRequest, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type Database, startService } from '../support/service.ts'
import { formatNumber, median, percentile } from '../support/stats.ts'
import { httpLoad, SESSIONS } from '../support/systems.ts'
import { CONTENT_BYTES, ourName } from './e2e.ts'

const PER_SECOND = 50
const SECONDS = 60
const SECONDS_SHORT = 4
const WARM_UP_MESSAGES = 500
const P95_MAX_MS = 150
/** With less than this share of the rate the figures are void. */
const RATE_SHARE_MIN = 0.95

interface LatencyRun {
  database: Database
  sent: number
  p50: number
  p95: number
  p99: number
  max: number
  acceptP99: number
}

export async function run(options: Options): Promise<Section> {
  const seconds = options.seconds ?? (options.short ? SECONDS_SHORT : SECONDS)
  const runs: LatencyRun[] = []
  for (let at = 1; at <= options.runs; at++) {
    for (const database of options.databases) {
      const one = await withRig(options.folder, (rig) => measureLatency(rig, database, PER_SECOND, seconds))
      runs.push(one)
      console.log(`  run ${at}  ${database}: p50 ${formatNumber(one.p50)}, p95 ${formatNumber(one.p95)} ms`)
    }
  }
  const medianOf = (database: Database, key: 'p50' | 'p95' | 'p99' | 'max' | 'acceptP99') =>
    median(runs.filter((one) => one.database === database).map((one) => one[key]))
  return {
    title: 'Latency at 50 messages a second',
    notes: [
      `${PER_SECOND} messages of 10 KB a second, evenly, for ${seconds} s; medians of ${options.runs} runs.`,
      "From the moment the client has the 200 to the sink's 250, both on the machine's monotonic clock; 0 where the sink was first.",
    ],
    bars: options.databases.map((database) => ({
      what: `p95 from accept to the sink's 250, ${ourName(database)}`,
      bar: `at most ${P95_MAX_MS} ms`,
      seen: `${formatNumber(medianOf(database, 'p95'))} ms`,
      held: medianOf(database, 'p95') <= P95_MAX_MS,
    })),
    tables: [
      {
        head: ['System', 'p50 ms', 'p95 ms', 'p99 ms', 'Longest ms', 'Accept p99 ms'],
        rows: options.databases.map((database) => [
          ourName(database),
          ...(['p50', 'p95', 'p99', 'max', 'acceptP99'] as const).map((key) =>
            formatNumber(medianOf(database, key)),
          ),
        ]),
      },
    ],
    raw: runs,
  }
}

async function measureLatency(
  rig: Rig,
  database: Database,
  perSecond: number,
  seconds: number,
): Promise<LatencyRun> {
  const sink = await startSink(rig)
  const service = await startService(rig, {
    database,
    env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
  })
  const request = sendRequest(service, singleFields(service.domain, makeContent(CONTENT_BYTES)))
  const load = httpLoad(rig, service, request, SESSIONS)
  await load({ count: WARM_UP_MESSAGES, firstNumber: 90_000_000 })
  await untilDelivered(sink, WARM_UP_MESSAGES)
  const latencies = await latenciesOf(sink, load, perSecond, seconds)
  await service.stop()
  return { database, ...latencies }
}

/** Sends at a rate and measures the time from the 200 to the sink. Nothing else may be in flight. */
export async function latenciesOf(
  sink: Sink,
  load: System['load'],
  perSecond: number,
  seconds: number,
): Promise<Omit<LatencyRun, 'database'>> {
  await sink.ask({ kind: 'reset', refuse: [], record: RECIPIENT_DOMAIN }, ASK_LIMIT_MS)
  const result = await load({ perSecond, seconds, firstNumber: 0 }, true)
  if (result.failed > 0) throw new Error(`${result.failed} requests failed: ${result.failure}`)
  if (result.accepted < RATE_SHARE_MIN * perSecond * seconds)
    throw new Error(
      `only ${result.accepted} messages in ${seconds} s: the rate of ${perSecond}/s was not kept up`,
    )
  await untilDelivered(sink, result.accepted)
  const { times } = await sink.ask({ kind: 'times' }, ASK_LIMIT_MS)
  const waits = [...(result.acceptedAt ?? [])].map(([number, acceptedAt]) => {
    const arrivedAt = times?.get(`r${numberText(number)}@${RECIPIENT_DOMAIN}`)
    return arrivedAt === undefined ? Number.POSITIVE_INFINITY : Math.max(0, arrivedAt - acceptedAt)
  })
  return {
    sent: result.accepted,
    p50: percentile(waits, 0.5),
    p95: percentile(waits, 0.95),
    p99: percentile(waits, 0.99),
    max: percentile(waits, 1),
    acceptP99: result.latencyMs.p99,
  }
}
