// Own process: it measures the memory of its process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grownOldMb } from '../../../test/support/process-memory.ts'
import { PassingMap, PassingSet } from './cache.ts'

/** A kilobyte and a half. */
const large = () => Array.from({ length: 50 }, (_, number) => ({ number }))

test('a map through which much passes is a map', () => {
  const [passing, map] = [new PassingMap<number, string>(), new Map<number, string>()]
  for (let key = 0; key < 1_000; key++) {
    passing.set(key, `value ${key}`)
    map.set(key, `value ${key}`)
    // Some soon, some after long, some stay; some of those that have gone come back.
    for (const gone of [key % 5 === 0 ? -1 : key - 20, (key * 7) % 1_000]) {
      assert.equal(passing.delete(gone), map.delete(gone))
    }
    if (key % 3 === 0) {
      passing.set(key - 30, 'again')
      map.set(key - 30, 'again')
    }
    assert.equal(passing.size, map.size)
    assert.deepEqual([...passing.keys()].slice(0, 3), [...map.keys()].slice(0, 3))
  }
  assert.deepEqual([...passing], [...map])
  assert.deepEqual([...passing.keys()], [...map.keys()])
  assert.deepEqual([...passing.values()], [...map.values()])
  for (let key = 0; key < 1_000; key++) {
    assert.equal(passing.get(key), map.get(key))
    assert.equal(passing.has(key), map.has(key))
  }
  passing.clear()
  assert.equal(passing.size, 0)
  assert.deepEqual([...passing], [])
})

test('what has passed through a map or set does not grow old', () => {
  const map = new PassingMap<number, unknown>()
  const set = new PassingSet<unknown>()
  const underWay: unknown[] = []
  const pass = (count: number) => {
    for (let key = 0; key < count; key++) {
      const value = large()
      map.set(key, value)
      map.delete(key - 3)
      set.add(value)
      underWay.push(value)
      if (underWay.length > 3) set.delete(underWay.shift())
    }
    map.clear()
  }
  pass(1_000)
  const grown = grownOldMb(() => pass(20_000))
  assert.ok(grown < 5, `${grown.toFixed(1)} MB of the 30 MB that passed`)
})

test('a member of a set is in it once, in the order of coming', () => {
  const set = new PassingSet<string>().add('a').add('b').add('a')
  assert.deepEqual([...set], ['a', 'b'])
  assert.equal(set.size, 2)
  assert.ok(set.has('a'))
  assert.ok(set.delete('a'))
  assert.ok(!set.delete('a'))
  assert.deepEqual([...set], ['b'])
})
