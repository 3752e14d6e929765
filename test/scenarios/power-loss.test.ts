/** R4, short: acknowledged messages survive a power loss. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { losePower } from '../support/power-loss-rig.ts'
import { temporaryFolder } from '../support/stores.ts'
import { hasStrace } from '../support/strace.ts'

const IMAGES = 5
/** Whether an image has unsynced data is chance: mostly the first five do. */
const ROUNDS_MAX = 4

test('an image of a power loss has every message acknowledged before it', async (t) => {
  if (!hasStrace()) {
    t.skip('strace is not installed: what a power loss leaves is NOT tried here')
    return
  }
  let lostBytes = 0
  for (let round = 1; round <= ROUNDS_MAX && lostBytes === 0; round++) {
    const figures = await losePower(await temporaryFolder(t), IMAGES)
    lostBytes = figures.lostBytes
    assert.ok(figures.accepted > 0)
    assert.equal(figures.missing, 0)
  }
  assert.ok(lostBytes > 0, 'something had not been synced')
})
