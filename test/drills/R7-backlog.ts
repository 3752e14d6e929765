/** A million deliveries wait, and their server answers 451 for a while; runs the bench's backlog scenario. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { measureBacklog } from '../../bench/scenarios/backlog.ts'
import { withRig } from '../../bench/support/rig.ts'
import type { DrillReport } from '../../scripts/drill.ts'

export const title = 'R7: 1,000,000 queued deliveries: memory, start, drain rate, fresh mail throughout'

const COUNT = 1_000_000
const RSS_MAX_MB = 512
const ACCEPT_P99_MAX_MS = 250
const START_MAX_S = 10
const DRAIN_MIN_PER_SECOND = 300
const FRESH_MAX_MS = 2_000

export async function run(report: DrillReport): Promise<void> {
  const plan = { count: COUNT, windowSeconds: 60, warmUpSeconds: 10, deferringSeconds: 20 }
  const seen = await withRig(tmpdir(), (rig) =>
    measureBacklog(rig, { database: 'sqlite', ...plan }, (text) => report.note(text)),
  )
  report.figure('queued', seen.count, 'deliveries')
  report.figure('queued per second', seen.seededPerSecond)
  report.figure('start to ready', seen.readySeconds, 's')
  report.figure('start to first delivery', seen.firstDeliverySeconds, 's')
  report.figure('drained', seen.rateOfAll, 'a second')
  report.figure('the same with 1,000 queued', seen.rateOfThousand, 'a second')
  report.figure('highest RSS', seen.peakRssMb, 'MB')
  report.figure('put off with 451', seen.deferred, 'deliveries')
  report.figure(`slowest of ${seen.freshSent} fresh messages`, seen.freshSlowestMs, 'ms')
  report.figure('accept p99', seen.freshAcceptP99Ms, 'ms')
  assert.ok(seen.peakRssMb <= RSS_MAX_MB, 'memory')
  assert.ok(seen.freshAcceptP99Ms <= ACCEPT_P99_MAX_MS, 'accept')
  assert.ok(seen.firstDeliverySeconds <= START_MAX_S, 'start')
  assert.ok(seen.rateOfAll >= DRAIN_MIN_PER_SECOND, 'drain rate')
  assert.ok(seen.freshSlowestMs <= FRESH_MAX_MS, 'fresh mail')
}
