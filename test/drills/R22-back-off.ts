/**
 * A provider complains about the rate: the effect on it and on another one. Simulated time. The other one is
 * paced by a rate that half of its connections can sustain, so a missing message is our fault, not a lack of processor.
 */
import assert from 'node:assert/strict'
import type { DrillReport } from '../../scripts/drill.ts'
import type { Outcome } from '../../src/mail/deliver/attempt/outcome.ts'
import { createTestClock } from '../support/clock.ts'
import { simulatedTransport, watched, withStore } from '../support/engine-rig.ts'
import { seededEngine, seedQueue } from '../support/seed-queue.ts'

export const title =
  'R22: a complaint halves the rate within 5 s, touches nobody else, and is over in 15 minutes'

const LIMITS = { connections: 4, messagesPerConnection: 100, messagesPerSecond: null }
const OTHER_PER_SECOND = 10
/** Tolerance of "unaffected", up or down. */
const OTHER_CHANGE_MAX = 0.05
const ATTEMPT_MS = 200
const STEP_MS = 50
const DELIVERED: Outcome = { kind: 'delivered', code: 250, message: 'Ok', enhanced: null }
const COMPLAINT: Outcome = {
  kind: 'deferred',
  failure: {
    code: 421,
    enhanced: '4.7.28',
    message: '4.7.28 unusual rate, slow down',
    description: '',
  },
}

export async function run(report: DrillReport): Promise<void> {
  const clock = createTestClock()
  let complaints = 0
  const counts = new Map<string, number>()
  await withStore(async (real) => {
    const { store, quiet } = watched(real)
    const transport = simulatedTransport(
      clock,
      (domain) => (domain === 'other.example' ? { ...LIMITS, messagesPerSecond: OTHER_PER_SECOND } : LIMITS),
      ATTEMPT_MS,
      (domain) => (domain === 'strict.example' && complaints-- > 0 ? COMPLAINT : DELIVERED),
      (_recipient, domain) => counts.set(domain, (counts.get(domain) ?? 0) + 1),
    )
    const engine = seededEngine(store, clock, transport)
    const seed = async (count: number) => {
      for (const recipientDomain of ['strict.example', 'other.example'])
        await seedQueue(store, { accountId: 'a', domainId: 'd', recipientDomain, count, dueAt: clock.now() })
      engine.wake()
    }
    const run = async (seconds: number) => {
      for (let at = 0; at < seconds * 1_000; at += STEP_MS) {
        await clock.advance(STEP_MS)
        await quiet()
      }
    }
    const rates = async (seconds: number) => {
      const before = new Map(counts)
      await run(seconds)
      const rate = (domain: string) => ((counts.get(domain) ?? 0) - (before.get(domain) ?? 0)) / seconds
      return { strict: rate('strict.example'), other: rate('other.example') }
    }
    await seed(1_500)
    await engine.start()
    await run(5)
    const usual = await rates(10)
    complaints = 3
    const complaining = await rates(5)
    const slowed = await rates(10)
    await clock.advance(15 * 60_000)
    await seed(500)
    await run(2)
    const recovered = await rates(10)
    await Promise.all([engine.stop(0), clock.advance(1_000)])
    const figures = {
      usual,
      'in the first 5 s of it': complaining,
      'after the complaint': slowed,
      'after 15 minutes': recovered,
    }
    for (const [name, { strict, other }] of Object.entries(figures)) {
      report.figure(`${name}: the one that complained`, strict, 'messages/s')
      report.figure(`${name}: the other one`, other, 'messages/s')
    }
    assert.ok(slowed.strict <= usual.strict * 0.6, 'halved')
    assert.ok(Math.abs(usual.other - OTHER_PER_SECOND) <= OTHER_PER_SECOND * OTHER_CHANGE_MAX, 'paced')
    for (const [name, { other }] of Object.entries(figures)) {
      const change = other / usual.other - 1
      assert.ok(Math.abs(change) < OTHER_CHANGE_MAX, `${name}: the other one changed by ${change * 100} %`)
    }
    assert.ok(recovered.strict >= usual.strict * 0.9, 'recovered')
  })
}
