import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesToId, firstIdAt, ID_PATTERN, idToBytes, newId } from './ids.ts'

test('ids of one process sort in the order of their making, also within a millisecond', () => {
  const ids = Array.from({ length: 70_000 }, () => newId(1_780_315_200_000))
  assert.deepEqual([...ids].sort(), ids)
  assert.equal(new Set(ids).size, ids.length)
})

test('an id made after a clock went back a little still sorts behind', () => {
  const before = newId(1_790_000_000_000)
  const after = newId(1_789_999_990_000)
  assert.ok(before < after)
})

test('clocks that are far apart each have their order and their time', () => {
  const behind = 1_600_000_000_000
  const ahead = behind + 3_600_000
  const [a, b, c, d] = [newId(behind), newId(ahead), newId(behind), newId(ahead)] as const
  assert.deepEqual([a, c, b, d].toSorted(), [a, c, b, d])
  for (const id of [a, c]) assert.ok(firstIdAt(behind) <= id && id < firstIdAt(behind + 1), id)
  for (const id of [b, d]) assert.ok(firstIdAt(ahead) <= id && id < firstIdAt(ahead + 1), id)
})

test('more clocks than are told apart change nothing but their order', () => {
  const times = Array.from({ length: 20 }, (_, index) => 1_500_000_000_000 + index * 3_600_000)
  const made = [...times, ...times].map((at) => ({ at, id: newId(at) }))
  assert.equal(new Set(made.map(({ id }) => id)).size, made.length)
  for (const { at, id } of made) assert.ok(firstIdAt(at) <= id && id < firstIdAt(at + 1), id)
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
