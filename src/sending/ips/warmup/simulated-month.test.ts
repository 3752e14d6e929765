import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withStore } from '../../../../test/support/engine-rig.ts'
import { FULL_DAY, simulateMonth } from '../../../../test/support/warmup-month.ts'

/** The first stage has two messages a day. */
const SCALE = 1 / 500
const DAYS = 3

test('three days: two cold addresses take their stages, the warm ones the rest, and all is delivered in time', async () => {
  await withStore(async (store) => {
    const month = await simulateMonth({ days: DAYS, scale: SCALE, store })
    assert.equal(month.accepted, FULL_DAY * SCALE * DAYS)
    const { delivered, failed, late, overBudget, refused, overPlan } = month
    assert.deepEqual(
      { delivered, failed, late, overBudget, refused, overPlan },
      { delivered: month.accepted, failed: 0, late: 0, overBudget: 0, refused: 0, overPlan: 0 },
    )
    for (const { sent, limits } of month.days) {
      for (const at of [0, 1]) assert.ok((sent[at] ?? 0) <= (limits[at] ?? 0), `${sent} of ${limits}`)
      for (const at of [2, 3]) assert.ok((sent[at] ?? 0) > 120, `${sent}`)
    }
    assert.deepEqual(
      month.days.map(({ limits }) => limits),
      [2, 4, 8].map((limit) => [limit, limit, null, null]),
    )
  })
})
