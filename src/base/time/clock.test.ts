import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { systemClock } from './clock.ts'

test('after a process stood still, what arrived meanwhile is handled before its timers, and may cancel them', async (t) => {
  const { port1, port2 } = new MessageChannel()
  t.after(() => port1.close())
  const ended: string[] = []
  // Timers come next in the event loop.
  await turn()
  const timers = ['cancelled', 'kept'].map((name) => systemClock.setTimer(1, () => ended.push(name)))
  const arrived = once(port2, 'message').then(() => {
    assert.deepEqual(ended, [])
    timers[0]?.cancel()
  })
  port1.postMessage('answer')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  await arrived
  while (ended.length === 0) await turn()
  assert.deepEqual(ended, ['kept'])
})
