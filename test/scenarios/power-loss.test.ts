/** R4, short: what was acknowledged is in what a power loss leaves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { losePower } from '../support/power-loss-rig.ts'
import { temporaryFolder } from '../support/stores.ts'
import { hasStrace } from '../support/strace.ts'

const IMAGES = 5

test('an image of a power loss holds every message that was acknowledged before', async (t) => {
  if (!hasStrace()) {
    t.skip('strace is not installed: what a power loss leaves is NOT tried here')
    return
  }
  const { accepted, missing, lostBytes } = await losePower(await temporaryFolder(t), IMAGES)
  assert.ok(accepted > 0)
  assert.ok(lostBytes > 0, 'something had not been synced')
  assert.equal(missing, 0)
})
