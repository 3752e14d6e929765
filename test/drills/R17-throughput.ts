/**
 * Throughput with every feature of a message: DKIM with RSA-2048, open and click tracking, events, a webhook for
 * each delivered message. The short form: one minute instead of ten.
 */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { latenciesOf } from '../../bench/scenarios/latency.ts'
import { measureFlow, type System, startSink, untilDelivered } from '../../bench/support/flow.ts'
import { makeContent, sendRequest, singleFields } from '../../bench/support/messages.ts'
import { type Rig, until, withRig } from '../../bench/support/rig.ts'
import { type BenchService, startService } from '../../bench/support/service.ts'
import { httpLoad, SESSIONS } from '../../bench/support/systems.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { createReceiver } from '../support/http-receiver.ts'

export const title = 'R17: 300 messages a second with signature, tracking, events and a webhook (short)'

const CONTENT_BYTES = 10_240
const LINKS = 20
const WARM_UP_MESSAGES = 500
const SUSTAINED_PER_SECOND = 300
const SUSTAINED_SECONDS = 60
const SHARE_MIN = 0.98
/** At the end of a sustained load at most this much is left. */
const BEHIND_MAX_MS = 2_000
const LATENCY_PER_SECOND = 50
const LATENCY_P95_MAX_MS = 1_000
const ACCEPT_PER_SECOND = 200
const ACCEPT_P99_MAX_MS = 150
const PHASE_SECONDS = 20
const WEBHOOKS_LIMIT_MS = 120_000

export async function run(report: DrillReport): Promise<void> {
  await withRig(tmpdir(), (rig) => measure(rig, report))
}

async function measure(rig: Rig, report: DrillReport): Promise<void> {
  const sink = await startSink(rig)
  const receiver = await createReceiver({ answer: 200 })
  rig.defer('webhook receiver', () => receiver.close())
  const service = await startService(rig, {
    database: 'sqlite',
    env: {
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_LOG_LEVEL: 'warn',
    },
  })
  await service.call('POST', `/v3/domains/${service.domain}/webhooks`, {
    id: 'delivered',
    url: `${receiver.url}/delivered`,
  })
  const load = await trackedLoad(rig, service, report)
  const system: System = { roots: service.roots, recipients: 1, load, stop: service.stop }

  await measureFlow(sink, system, { count: WARM_UP_MESSAGES, firstNumber: 90_000_000 })
  const flow = await measureFlow(sink, system, {
    perSecond: SUSTAINED_PER_SECOND,
    seconds: SUSTAINED_SECONDS,
    firstNumber: 10_000_000,
  })
  const { lastAt } = await untilDelivered(sink, flow.delivered)
  const behindMs = lastAt - flow.load.lastAt
  report.figure('sustained', flow.perSecond, 'messages/s')
  report.figure('left over at its end', behindMs, 'ms')
  report.figure('CPU per 1,000', flow.cpuPerThousand, 's')
  report.figure('highest PSS', flow.peak.pssMb, 'MB')
  const latency = await latenciesOf(sink, load, LATENCY_PER_SECOND, PHASE_SECONDS)
  report.figure(`p95 to the sink at ${LATENCY_PER_SECOND}/s`, latency.p95, 'ms')
  const accepting = await latenciesOf(sink, load, ACCEPT_PER_SECOND, PHASE_SECONDS)
  report.figure(`accept p99 at ${ACCEPT_PER_SECOND}/s`, accepting.acceptP99, 'ms')
  const delivered = WARM_UP_MESSAGES + flow.delivered + latency.sent + accepting.sent
  const startedAt = performance.now()
  await until('webhooks', WEBHOOKS_LIMIT_MS, () => receiver.posts.length >= delivered).catch(() => {})
  report.figure('webhooks', receiver.posts.length, `of ${delivered}`)
  report.figure('webhooks complete after', (performance.now() - startedAt) / 1_000, 's')

  assert.ok(flow.signed === flow.delivered, 'every message is signed')
  assert.ok(flow.acceptedPerSecond >= SHARE_MIN * SUSTAINED_PER_SECOND, 'the rate is accepted')
  assert.ok(behindMs <= BEHIND_MAX_MS, 'the rate is kept up')
  assert.ok(latency.p95 <= LATENCY_P95_MAX_MS, 'latency')
  assert.ok(accepting.acceptP99 <= ACCEPT_P99_MAX_MS, 'accept')
  assert.ok(receiver.posts.length >= delivered, 'a webhook for each delivered message')
}

/** With tracking, if the service offers it. */
async function trackedLoad(rig: Rig, service: BenchService, report: DrillReport): Promise<System['load']> {
  const tracked: [string, string][] = [
    ['o:tracking-opens', 'yes'],
    ['o:tracking-clicks', 'yes'],
  ]
  const plain = singleFields(service.domain, makeContent(CONTENT_BYTES, LINKS))
  const probe = sendRequest(service, [...plain, ...tracked])
  const { failure } = await httpLoad(rig, service, probe, 1)({ count: 1, firstNumber: 99_000_000 })
  if (failure === null) return httpLoad(rig, service, probe, SESSIONS)
  report.note(`without tracking: ${failure}`)
  return httpLoad(rig, service, sendRequest(service, plain), SESSIONS)
}
