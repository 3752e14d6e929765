/** The system clock is stepped by an hour, by a year and back while 1,000 scheduled deliveries wait. Simulated time. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { createSteadyClock } from '../../src/base/time/clock.ts'
import { createTestClock } from '../support/clock.ts'
import { simulatedTransport, withStore } from '../support/engine-rig.ts'
import { seededEngine, seedQueue } from '../support/seed-queue.ts'

export const title = 'R11: a stepped system clock makes nothing early, stuck or too old'

const COUNT = 1_000
const SPAN_MS = 30 * 60_000
const HOUR = 3_600_000
const STEPS: Record<number, number> = {
  300: HOUR,
  600: -2 * HOUR,
  900: 365 * 24 * HOUR,
  1200: -364 * 24 * HOUR,
  1500: -HOUR,
}

export async function run(report: DrillReport): Promise<void> {
  const system = createTestClock()
  const clock = createSteadyClock(
    system,
    () => system.monotonic(),
    () => {},
  )
  const startWall = clock.now()
  const startMono = clock.monotonic()
  const early: number[] = []
  const late: number[] = []
  const seen = new Set<string>()
  const limits = { connections: 20, messagesPerConnection: 100, messagesPerSecond: null }
  const delivered = { kind: 'delivered', code: 250, message: 'Ok', enhanced: null } as const
  await withStore(async (store) => {
    const transport = simulatedTransport(
      clock,
      limits,
      0,
      () => delivered,
      (_recipient, domain) => {
        const dueAfter = Number(/^after(\d+)\./.exec(domain)?.[1]) * 1_000
        const off = clock.monotonic() - startMono - dueAfter
        if (off < 0) early.push(-off)
        else late.push(off)
        seen.add(domain)
      },
    )
    const engine = seededEngine(store, clock, transport)
    for (let n = 0; n < COUNT; n++) {
      const afterMs = Math.round(((n + 1) * SPAN_MS) / COUNT / 1_000) * 1_000
      const seed = {
        accountId: 'a',
        domainId: 'd',
        recipientDomain: `after${afterMs / 1_000}.n${n}.example`,
        count: 1,
      }
      await seedQueue(store, { ...seed, dueAt: startWall + afterMs })
    }
    await engine.start()
    for (let second = 0; second <= SPAN_MS / 1_000 + 60; second++) {
      const step = STEPS[second]
      if (step !== undefined) system.stepWall(step)
      await system.advance(1_000)
      await sleep(4)
    }
    const states = await store.db.selectFrom('deliveries').select('state').execute()
    await engine.stop(0)
    const notDelivered = states.filter(({ state }) => state !== 'delivered').length
    report.figure('deliveries', COUNT)
    report.figure('attempted', seen.size)
    report.figure('not delivered', notDelivered)
    report.figure('earliest', Math.max(0, ...early), 'ms before its time')
    report.figure('latest', Math.max(...late), 'ms of simulated time after it was due')
    assert.equal(notDelivered, 0)
    assert.ok(Math.max(0, ...early) <= 1_000)
  })
}
