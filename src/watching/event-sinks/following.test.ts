/** What a sink gets that fails for longer than it may, and what one asks for that is new, on both databases. */
import assert from 'node:assert/strict'
import { NOW_MS } from '../../../test/support/events.ts'
import { sinkRig } from '../../../test/support/sink-rig.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import { cursorOf } from '../events/follower.ts'

eachStore('a new sink gets all that is kept, however old', async (store) => {
  const { sent, until, write, row } = await sinkRig(store)
  const old = await write(-10 * DAY_MS, 700)
  const recent = await write(0, 3)
  await until('all are sent', async () => sent.length >= 703)
  assert.deepEqual(sent, [...old, ...recent])
  assert.equal(Number((await row()).sent), 703)
})

eachStore('a sink that takes nothing for too long misses what is too old, and says so', async (store) => {
  const { clock, sent, sink, until, write, row } = await sinkRig(store)
  sink.isDown = true
  await write(0, 40)
  await until('it has failed', async () => (await row()).failing_since !== null)
  assert.equal((await row()).last_error, 'down\\u000ahere')
  assert.equal(Number((await row()).skipped), 0)
  const place = await cursorOf(store, 'sink:one')
  clock.leap(2 * HOUR_MS)
  const recent = await write(2 * HOUR_MS, 5)
  await until('the old ones are skipped', async () => Number((await row()).skipped) === 40)
  const { skipped_from: from, skipped_to: to } = await row()
  assert.deepEqual([Number(from), Number(to)], [NOW_MS, NOW_MS + 39])
  assert.notDeepEqual(await cursorOf(store, 'sink:one'), place)
  assert.deepEqual(sent, [])
  sink.isDown = false
  await until('the recent ones are sent', async () => sent.length === 5)
  assert.deepEqual(sent, recent)
  assert.deepEqual([(await row()).failing_since, Number((await row()).sent)], [null, 5])
})

eachStore(
  'a sink that is paused takes nothing, goes on where it was, and misses what is too old',
  async (store) => {
    const { clock, sent, until, write, row, change } = await sinkRig(store)
    await change({ paused: true })
    const old = await write(0, 40)
    await until('it waits', async () => clock.now() > NOW_MS + 5_000)
    assert.deepEqual([sent, Number((await row()).skipped)], [[], 0])
    await change({ paused: false })
    await until('it has them', async () => sent.length === 40)
    assert.deepEqual(sent, old)
    await change({ paused: true })
    await write(clock.now() - NOW_MS, 3)
    clock.leap(2 * HOUR_MS)
    await until('they are skipped', async () => Number((await row()).skipped) === 3)
    assert.equal(sent.length, 40)
  },
)
