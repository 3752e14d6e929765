/** Accepting alone: 1.5 KB requests over 64 connections; delivery is scheduled for later, so none happens. */
import { LOAD_LIMIT_MS, startSink } from '../support/flow.ts'
import type { LoadResult } from '../support/load.ts'
import { makeContent, sendRequest, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { cpuSeconds } from '../support/processes.ts'
import type { Bar, Section } from '../support/results.ts'
import { type Rig, within, withRig } from '../support/rig.ts'
import { type BenchService, type Database, startService } from '../support/service.ts'
import { formatNumber, median } from '../support/stats.ts'
import { httpLoad } from '../support/systems.ts'
import { ourName } from './e2e.ts'

const CONNECTIONS = 64
const REQUEST_BYTES = 1_500
const SECONDS = 15
const SECONDS_SHORT = 2
const WARM_UP_SECONDS = 8
/** Far enough that nothing becomes due meanwhile. */
const SCHEDULED_IN_MS = 2 * 3_600_000

const MIN_PER_SECOND: Record<Database, number> = { sqlite: 8_000, postgres: 3_000 }
const P99_MAX_MS = 30

interface Run {
  database: Database
  perSecond: number
  cpuPerThousand: number
  load: LoadResult
}

export async function run(options: Options): Promise<Section> {
  const seconds = options.seconds ?? (options.short ? SECONDS_SHORT : SECONDS)
  const runs: Run[] = []
  for (let at = 1; at <= options.runs; at++) {
    for (const database of options.databases) {
      const one = await withRig(options.folder, (rig) => measure(rig, database, seconds))
      runs.push(one)
      console.log(
        `  run ${at}  ${database}: ${formatNumber(one.perSecond, 0)}/s, p99 ${formatNumber(one.load.latencyMs.p99)} ms`,
      )
    }
  }
  const sums = options.databases.map((database) => summarize(database, runs))
  return {
    title: 'Accepting alone, 1.5 KB requests',
    notes: [
      `${CONNECTIONS} connections for ${seconds} s, one request of ${REQUEST_BYTES} bytes (header and multipart body) in flight on each; medians of ${options.runs} runs.`,
      '`o:deliverytime` lies two hours ahead: everything that accepting does is done and on disk, and nothing is delivered meanwhile.',
    ],
    bars: sums.flatMap(barsOf),
    tables: [
      {
        head: ['System', 'Requests/s', 'All runs', 'p50 ms', 'p99 ms', 'Longest ms', 'CPU s per 1,000'],
        rows: sums.map((sum) => [
          ourName(sum.database),
          formatNumber(sum.perSecond, 0),
          sum.runs.map(({ perSecond }) => formatNumber(perSecond, 0)).join(', '),
          formatNumber(sum.p50),
          formatNumber(sum.p99),
          formatNumber(Math.max(...sum.runs.map(({ load }) => load.latencyMs.max))),
          formatNumber(median(sum.runs.map(({ cpuPerThousand }) => cpuPerThousand)), 2),
        ]),
      },
    ],
    raw: runs,
  }
}

function summarize(database: Database, all: readonly Run[]) {
  const runs = all.filter((one) => one.database === database)
  return {
    database,
    runs,
    perSecond: median(runs.map(({ perSecond }) => perSecond)),
    p50: median(runs.map(({ load }) => load.latencyMs.p50)),
    p99: median(runs.map(({ load }) => load.latencyMs.p99)),
  }
}

function barsOf({ database, perSecond, p99 }: ReturnType<typeof summarize>): Bar[] {
  const min = MIN_PER_SECOND[database]
  const name = ourName(database)
  const rate: Bar = {
    what: `accept, ${name}`,
    bar: `at least ${formatNumber(min)}/s`,
    seen: `${formatNumber(perSecond, 0)}/s`,
    held: perSecond >= min,
  }
  if (database === 'postgres') return [rate]
  const seen = `${formatNumber(p99)} ms`
  return [
    rate,
    { what: `accept p99, ${name}`, bar: `at most ${P99_MAX_MS} ms`, seen, held: p99 <= P99_MAX_MS },
  ]
}

async function measure(rig: Rig, database: Database, seconds: number): Promise<Run> {
  const sink = await startSink(rig)
  const service = await startService(rig, {
    database,
    env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
  })
  const load = httpLoad(rig, service, scheduledRequest(service), CONNECTIONS)
  await load({ seconds: Math.min(WARM_UP_SECONDS, seconds), firstNumber: 90_000_000 })
  const before = cpuSeconds(service.roots)
  const result = await within(LOAD_LIMIT_MS, 'the load', load({ seconds, firstNumber: 0 }))
  const cpu = cpuSeconds(service.roots) - before
  if (result.failed > 0) throw new Error(`${result.failed} requests failed: ${result.failure}`)
  await service.stop()
  return {
    database,
    perSecond: (result.accepted * 1_000) / (result.lastAt - result.firstAt),
    cpuPerThousand: (cpu * 1_000) / result.accepted,
    load: result,
  }
}

/** A request of REQUEST_BYTES; the text fills what the rest leaves. */
function scheduledRequest(service: BenchService): string {
  const time = new Date(Date.now() + SCHEDULED_IN_MS).toUTCString()
  const make = (bytes: number) => {
    const content = { ...makeContent(bytes * 5), html: null }
    return sendRequest(service, [...singleFields(service.domain, content), ['o:deliverytime', time]])
  }
  const room = REQUEST_BYTES - make(100).length
  return make(Math.max(100, 100 + room))
}
