/** A month of an address on warm-up, by a clock that is stepped hour by hour. */
// Slow: it steps a clock through a month.
import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock } from '../../../../test/support/clock.ts'
import { jobContext } from '../../../../test/support/job-context.ts'
import { eventually } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import { createAccountDirectory } from '../../../people/accounts/account-directory.ts'
import { noCounts } from '../../../watching/metrics/counters.ts'
import type { Figures } from '../../../watching/metrics/figures.ts'
import { openAddresses } from '../known-addresses.ts'
import { createAllowances } from './allowances.ts'
import { historyOf, hourlyLimit } from './plan.ts'
import { createWarmups } from './warmups.ts'

const IP = '192.0.2.1'
const SITE = 'one'
const DAY_MS = 24 * HOUR_MS
/** A two hundredth of the default plan. */
const PLAN = [5, 10, 20, 40, 70, 100, 150, 225, 325, 475, 700, 1_000, 1_500, 2_250, 3_250]
/** Days of a bad reputation, with little mail, and of a pause. */
const [BOUNCING, COMPLAINED, JUST_GOOD, QUIET, PAUSED] = [3, 8, 9, 12, 5]
const DAYS = 30

eachStore(
  'a simulated month: stages advance, repeat and end, and no hour has more than its number',
  async (store, t) => {
    // In the middle of an hour, so that hours of the clock and of the plan differ.
    const clock = createTestClock(Date.UTC(2026, 5, 1, 12, 30))
    const config = {
      sourceAddresses: [{ ip: IP, shared: false, helo: null }],
      requireFcrdns: 'off' as const,
      delivery: { kind: 'direct' as const },
    }
    const known = await openAddresses(store, clock, config, 'first')
    let day = 0
    const figures: Figures = {
      async read({ startMs, resolution }) {
        if (resolution === 'month') return [{ values: [IP], counts: { ...noCounts(), delivered_smtp: 77 } }]
        assert.equal(startMs, clock.now() - DAY_MS)
        const bounced = day === BOUNCING ? 51 : 50
        const complained = day === COMPLAINED ? 2 : 0
        const isJudged = day === BOUNCING || day === COMPLAINED || day === JUST_GOOD
        const counts = { delivered_smtp: 1_000 - bounced, failed_permanent: bounced, complained }
        return isJudged ? [{ values: [IP], counts: { ...noCounts(), ...counts } }] : []
      },
    }
    const accounts = createAccountDirectory(store, clock)
    const log = pino({ level: 'silent' })
    const warmups = createWarmups({ store, clock, log, known, accounts, figures, plan: PLAN })
    warmups.job.start(jobContext(store, { clock }))
    t.after(() => warmups.job.stop())
    await warmups.start('first', IP)
    await assert.rejects(warmups.start('first', IP), /warmup is already in progress/)

    let process = createAllowances({ store, clock, plan: PLAN, book: known.book, providerOf: (site) => site })
    const stages: number[] = []
    let total = 0
    for (day = 1; day <= DAYS; day++) {
      const row = known.book().warmups.get(IP)
      if (row === undefined) break
      stages.push(Number(row.stage))
      if (day === PAUSED) await warmups.setPaused('first', IP, true)
      const limit = PLAN[Number(row.stage) - 1] ?? 0
      let sent = 0
      for (let hour = 0; hour < 24; hour++) {
        const wanted = day === QUIET && hour > 8 ? 0 : Number.POSITIVE_INFINITY
        let inHour = 0
        while (inHour < wanted && (await process.take(IP, SITE))) inHour++
        assert.ok(inHour <= hourlyLimit(limit), `${inHour} in an hour of stage ${row.stage}`)
        sent += inHour
        if (hour === 11) {
          await process.close()
          process = createAllowances({
            store,
            clock,
            plan: PLAN,
            book: known.book,
            providerOf: (site) => site,
          })
        }
        await process.flush()
        await clock.advance(HOUR_MS)
      }
      assert.ok(sent <= limit && (day === QUIET || sent > limit * 0.97), `${sent} of ${limit}`)
      total += sent
      await eventually('judged', async () => {
        warmups.job.wake()
        await known.refresh()
        return known.book().warmups.get(IP)?.window_started_at !== row.window_started_at
      })
      if (day === PAUSED) await warmups.setPaused('first', IP, false)
      const after = known.book().warmups.get(IP)
      const [ofProvider] = await warmups.providersOf(IP)
      assert.equal(ofProvider && Number(ofProvider.stage), after && Number(after.stage), 'its only provider')
      assert.equal(ofProvider && Number(ofProvider.sent_before), after && total)
      if (after && Number(after.stage) > Number(row.stage)) {
        assert.equal(Number(after.start_volume), 77 + total)
        assert.equal(historyOf(after).at(-1)?.limit, limit)
      }
    }
    assert.deepEqual(stages, [1, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 15])
    assert.equal(process.take(IP, SITE), undefined, 'it is warm')
    await assert.rejects(warmups.cancel('first', IP), /warmup not found/)
    await assert.rejects(warmups.setPaused('first', IP, true), /warmup not found/)
  },
)
