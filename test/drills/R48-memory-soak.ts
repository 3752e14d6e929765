/**
 * Memory over a long time: 100 messages a second, four fifths over HTTP and one over SMTP submission, signed, tracked,
 * with a webhook for each delivery.
 *
 * The resident set rises and falls with garbage collection, and V8 lets garbage grow for longer than an hour. So the
 * garbage of all threads is collected after each minute's messages; the rest is what the process holds. A line is fitted
 * through these values after the first quarter of the time, and the drill fails if the slope exceeds the allowed one by
 * more than twice its standard error. The number of file handles must stay the same. The highest resident set of each
 * minute is printed as well.
 *
 * An hour by default. DRILL_MINUTES sets another length, DRILL_DATABASE=postgres the other database.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { ASK_LIMIT_MS, type Sink, startSink, untilDelivered } from '../../bench/support/flow.ts'
import { startHelper } from '../../bench/support/helper-process.ts'
import { type LoadAmount, type LoadResult, NUMBER_MARK } from '../../bench/support/load.ts'
import {
  makeContent,
  mimeMessage,
  RECIPIENT_DOMAIN,
  sendRequest,
  singleFields,
} from '../../bench/support/messages.ts'
import { type Rig, until, withRig } from '../../bench/support/rig.ts'
import { type BenchService, startService } from '../../bench/support/service.ts'
import type { SmtpLoad } from '../../bench/support/smtp-load.ts'
import { median } from '../../bench/support/stats.ts'
import { httpLoad } from '../../bench/support/systems.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { COLLECTING, heldBytes } from '../support/collect-on-signal.ts'
import { residentBytes } from '../support/process-memory.ts'

export const title = 'R48: memory and file handles over an hour at 100 messages a second'

const MINUTES = Number(process.env['DRILL_MINUTES'] ?? 60)
const DATABASE = process.env['DRILL_DATABASE'] === 'postgres' ? 'postgres' : 'sqlite'
const HTTP_PER_SECOND = 80
const SMTP_PER_SECOND = 20
const CONNECTIONS = 10
const CONTENT_BYTES = 4_096
const LINKS = 5
/** Caches, pools and heaps fill up first. */
const WARM_UP_SHARE = 0.25
const SLOPE_MAX_MB_PER_HOUR = 1
/** A slope with a larger standard error means nothing: 40 MB an hour are 110 bytes a message. */
const UNCERTAINTY_MAX_MB_PER_HOUR = 40
/** Fewer minutes than this after the warm-up give figures, but no verdict. */
const MINUTES_JUDGED_MIN = 30
/** Connections to the sink, the receiver and the database open and close. */
const HANDLES_GROWTH_MAX = 5
const SAMPLE_EVERY_MS = 1_000
const WEBHOOKS_LIMIT_MS = 120_000
const MB = 2 ** 20

interface Minute {
  /** After the collection at its end. */
  heldMb: number
  highestMb: number
  handles: number
}

export async function run(report: DrillReport): Promise<void> {
  assert.ok(MINUTES >= 1, 'DRILL_MINUTES is a number of minutes')
  await withRig(tmpdir(), (rig) => soak(rig, report))
}

async function soak(rig: Rig, report: DrillReport): Promise<void> {
  const sink = await startSink(rig)
  const receiver = await startCounter(rig)
  const service = await startService(rig, {
    database: DATABASE,
    env: {
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_LOG_LEVEL: 'warn',
      ...COLLECTING,
    },
  })
  const webhook = { id: 'delivered', url: `${receiver.url}/delivered` }
  await service.call('POST', `/v3/domains/${service.domain}/webhooks`, webhook)
  const load = await mixedLoad(rig, service)
  const minutes: Minute[] = []
  let sent = 0
  for (let at = 0; at < MINUTES; at++) {
    const watch = watchProcess(service.pid)
    sent += await oneMinute(sink, load, at).finally(() => watch.stop())
    const heldMb = (await heldBytes(service.pid)) / MB
    const minute = { ...watch.stop(), heldMb }
    minutes.push(minute)
    report.note(
      `minute ${at + 1}: holds ${heldMb.toFixed(1)} MB, RSS up to ${minute.highestMb.toFixed(1)} MB, ` +
        `${minute.handles} file handles, ${sent} messages`,
    )
  }
  await until('webhooks', WEBHOOKS_LIMIT_MS, () => receiver.count() >= sent)
  await service.stop()
  judge(minutes, sent, report)
}

function judge(minutes: readonly Minute[], sent: number, report: DrillReport): void {
  const kept = minutes.slice(Math.floor(minutes.length * WARM_UP_SHARE))
  const line = fit(kept.map(({ heldMb }) => heldMb))
  const third = Math.max(1, Math.floor(kept.length / 3))
  const handlesOf = (some: readonly Minute[]) => median(some.map(({ handles }) => handles))
  const [handlesBefore, handlesAfter] = [handlesOf(kept.slice(0, third)), handlesOf(kept.slice(-third))]
  report.figure('messages', sent)
  report.figure('held after a collection, median', median(kept.map(({ heldMb }) => heldMb)), 'MB')
  report.figure('highest RSS', Math.max(...minutes.map(({ highestMb }) => highestMb)), 'MB')
  report.figure('slope of what is held', line.perMinute * 60, 'MB/h')
  report.figure('its standard error', line.standardError * 60, 'MB/h')
  report.figure('file handles, first third', handlesBefore)
  report.figure('file handles, last third', handlesAfter)
  if (kept.length < MINUTES_JUDGED_MIN) {
    report.note('too short for a verdict')
    return
  }
  assert.ok(handlesAfter <= handlesBefore + HANDLES_GROWTH_MAX, 'file handles stay flat')
  const [slope, uncertainty] = [line.perMinute * 60, 2 * line.standardError * 60]
  assert.ok(uncertainty <= UNCERTAINTY_MAX_MB_PER_HOUR, `the slope is uncertain by ${uncertainty} MB/h`)
  assert.ok(slope - uncertainty <= SLOPE_MAX_MB_PER_HOUR, `memory grows by ${slope} MB/h`)
}

/**
 * Least squares through values a minute apart. Neighbouring values are correlated (a heap that has grown stays large for
 * some minutes), so the standard error is that of the equivalent number of independent values.
 */
function fit(values: readonly number[]): { perMinute: number; standardError: number } {
  const count = values.length
  const middle = (count - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  const spread = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0)
  const perMinute =
    spread === 0 ? 0 : values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0) / spread
  const rest = values.map((value, at) => value - mean - perMinute * (at - middle))
  const squares = rest.reduce((sum, value) => sum + value ** 2, 0)
  const products = rest.reduce((sum, value, at) => sum + value * (rest[at + 1] ?? 0), 0)
  const correlation = squares === 0 ? 0 : Math.min(0.9, Math.max(0, products / squares))
  const independent = Math.max(3, count * ((1 - correlation) / (1 + correlation)))
  const variance = squares / count
  const standardError =
    spread === 0 ? Number.POSITIVE_INFINITY : Math.sqrt((variance * count) / (independent - 2) / spread)
  return { perMinute, standardError }
}

/** Resolves the number of messages sent, once all of them are at the sink. */
async function oneMinute(
  sink: Sink,
  load: (amount: Pick<LoadAmount, 'firstNumber' | 'seconds'>) => Promise<LoadResult[]>,
  at: number,
): Promise<number> {
  await sink.ask({ kind: 'reset', refuse: [], record: null }, ASK_LIMIT_MS)
  const results = await load({ firstNumber: at * 10_000, seconds: 60 })
  for (const { failed, failure } of results) assert.equal(failed, 0, `${failed} failed: ${failure}`)
  const sent = results.reduce((sum, { accepted }) => sum + accepted, 0)
  await untilDelivered(sink, sent)
  return sent
}

async function mixedLoad(rig: Rig, service: BenchService) {
  const content = makeContent(CONTENT_BYTES, LINKS)
  const login = { user: `sender@${service.domain}`, password: 'drill-password-0123456789' }
  const credential = { login: login.user, password: login.password }
  await service.call('POST', `/v3/domains/${service.domain}/credentials`, credential)
  const request = sendRequest(service, [
    ...singleFields(service.domain, content),
    ['o:tracking-opens', 'yes'],
    ['o:tracking-clicks', 'yes'],
  ])
  const overHttp = httpLoad(rig, service, request, CONNECTIONS)
  const to = `s${NUMBER_MARK}@${RECIPIENT_DOMAIN}`
  const overSmtp = startHelper<SmtpLoad, LoadResult>(rig, 'smtp-load.ts')
  const smtp = {
    ...{ host: service.host, port: service.smtpPort, sessions: CONNECTIONS, login, from: login.user, to },
    ...{ content: mimeMessage(login.user, to, content), record: false },
  }
  return (amount: Pick<LoadAmount, 'firstNumber' | 'seconds'>) =>
    Promise.all([
      overHttp({ ...amount, perSecond: HTTP_PER_SECOND }),
      overSmtp.ask({ ...amount, ...smtp, perSecond: SMTP_PER_SECOND }, 10 * 60_000),
    ])
}

/** Samples from now until the first `stop`. */
function watchProcess(pid: number): { stop(): Omit<Minute, 'heldMb'> } {
  const seen: number[] = []
  const look = () => void residentBytes(pid).then((bytes) => seen.push(bytes / MB), ignoreEnded)
  const timer = setInterval(look, SAMPLE_EVERY_MS)
  look()
  return {
    stop() {
      clearInterval(timer)
      const handles = readdirSync(`/proc/${pid}/fd`).length
      return { highestMb: Math.max(...seen), handles }
    },
  }
}

/** Errors show in the load. */
const ignoreEnded = () => {}

/** A receiver of webhooks that only counts them. */
async function startCounter(rig: Rig): Promise<{ url: string; count(): number }> {
  let count = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      count++
      response.writeHead(200).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  rig.defer('webhook receiver', () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, count: () => count }
}
