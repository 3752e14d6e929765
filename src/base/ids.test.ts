import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesToId, ID_PATTERN, idToBytes, newId } from './ids.ts'

test('ids of one process sort in the order of their making, also within a millisecond', () => {
  const ids = Array.from({ length: 70_000 }, () => newId(1_780_315_200_000))
  assert.deepEqual([...ids].sort(), ids)
  assert.equal(new Set(ids).size, ids.length)
})

test('an id made after a clock went backwards still sorts behind', () => {
  const before = newId(1_790_000_000_000)
  const after = newId(1_700_000_000_000)
  assert.ok(before < after)
})

test('an id has 22 URL-safe characters and does not begin with a hyphen', () => {
  for (let index = 0; index < 1000; index++) assert.match(newId(), /^[0-9A-Z_a-z][-0-9A-Z_a-z]{21}$/)
  assert.match(newId(), ID_PATTERN)
})

test('an id and its 16 bytes are one', () => {
  for (let index = 0; index < 1000; index++) {
    const id = newId()
    assert.equal(bytesToId(idToBytes(id) as Buffer), id)
  }
})

test('no other text has bytes', () => {
  for (const text of ['', 'short', `${newId()}x`, `${newId().slice(0, 21)}z`, '../../../etc/passwd0000']) {
    assert.equal(idToBytes(text), null, text)
  }
})
