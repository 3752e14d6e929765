import assert from 'node:assert/strict'
import { NOW_MS } from '../../../../test/support/events.ts'
import { sinkRig } from '../../../../test/support/sink-rig.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { createKnownSinks } from '../../event-sinks/known-sinks.ts'
import { eventSinksCheck } from './checks.ts'

eachStore(
  'a sink that is down is an alert before it misses events, and until it works it says what it missed',
  async (store) => {
    const { clock, sent, sink, until, write, row } = await sinkRig(store)
    const check = eventSinksCheck(createKnownSinks({ store, clock } as unknown as Core))
    const found = () => check.read(clock.now())
    sink.isDown = true
    await write(0, 40)
    await until('it has failed', async () => (await row()).failing_since !== null)
    assert.deepEqual(await found(), [])
    clock.leap(16 * MINUTE_MS)
    const [early] = await found()
    assert.equal(early?.figure, '26')
    assert.match(early?.advice ?? '', /The event sink one takes nothing \(down.*26 %/)
    assert.doesNotMatch(early?.advice ?? '', /were skipped/)
    clock.leap(HOUR_MS)
    await until('all are skipped', async () => Number((await row()).skipped) === 40)
    // Nothing has happened since: it is behind by nothing.
    const [late] = await found()
    assert.equal(late?.figure, '100')
    const times = [0, 39].map((ms) => new Date(NOW_MS + ms).toISOString())
    assert.match(late?.advice ?? '', new RegExp(`40 events from ${times[0]} to ${times[1]} were skipped`))
    sink.isDown = false
    await write(clock.now() - NOW_MS, 1)
    await until('it works', async () => sent.length === 1)
    assert.deepEqual(await found(), [])
    // A later failure is a new one.
    sink.isDown = true
    await write(clock.now() - NOW_MS, 1)
    await until('it fails again', async () => (await row()).failing_since !== null)
    assert.deepEqual(await found(), [])
  },
)
