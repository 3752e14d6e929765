import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGate } from './gate.ts'

test('a waiting caller whose signal aborts leaves the queue', async () => {
  const gate = createGate(1, 2)
  assert.equal(await gate.enter(), true)
  const controller = new AbortController()
  const first = gate.enter(controller.signal)
  const second = gate.enter()
  assert.equal(await gate.enter(), false, 'two wait')
  controller.abort()
  assert.equal(await first, false)
  const third = gate.enter()
  gate.leave()
  assert.equal(await second, true)
  gate.leave()
  assert.equal(await third, true)
  assert.equal(await gate.enter(controller.signal), false)
  gate.leave()
  assert.equal(await gate.enter(), true, 'nobody who gave up holds a place')
})
