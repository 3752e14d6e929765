/**
 * Statistics are exact after any number of `kill -9`: one event changes each counter once (tags-stats.md section 6). The
 * drill `counters` kills more often, at other moments.
 */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { killWhileCounting } from '../support/counters-kill.ts'
import { temporaryFolder } from '../support/stores.ts'

test('counters agree with the events after the process was killed while it counted', async (t) => {
  const folder = await temporaryFolder(t)
  // At some moment within the polling interval of counting; which one does not matter.
  const pausesMs = [0, 200, 400]
  const { logged, counted } = await killWhileCounting({ folder, pausesMs, messagesPerRound: 40 })
  t.diagnostic(`${pausesMs.length} kills, ${logged.accepted} messages`)
  assert.ok(logged.accepted >= pausesMs.length)
  assert.deepEqual(counted, logged)
})
