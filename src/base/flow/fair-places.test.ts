import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFairPlaces } from './fair-places.ts'

test("places are anybody's while there is room, and shared evenly after that", () => {
  const places = createFairPlaces({ max: 6, firstMax: 4 })
  const ended: string[] = []
  const enter = (account: string, user: string) =>
    places.enter([account, user], () => ended.push(`${account} ${user}`))
  for (const user of ['ann', 'ann', 'ann', 'bob']) assert.ok(enter('a', user))
  assert.equal(enter('a', 'ann'), null, 'the account has its number')
  assert.ok(enter('a', 'carl'), 'another user of it has none')
  assert.deepEqual(ended.splice(0), ['a ann'])
  assert.ok(enter('b', 'dora'))
  const leave = enter('b', 'dora')
  assert.ok(leave)
  assert.ok(enter('c', 'eve'), 'the account with most gives one')
  assert.deepEqual(ended.splice(0), ['a ann'])
  assert.ok(enter('d', 'fay'))
  assert.deepEqual(ended.splice(0), ['a ann'])
  assert.equal(places.size, 6)
  assert.equal(enter('b', 'dora'), null)
  assert.ok(enter('a', 'gus') === null && enter('c', 'eve') === null, 'nobody has two more')
  leave()
  leave()
  assert.equal(places.size, 5)
  assert.ok(enter('c', 'eve'))
  assert.deepEqual(ended, [])
})
