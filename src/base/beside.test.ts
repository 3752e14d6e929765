import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grownOldMb } from '../../test/support/process-memory.ts'
import { Beside } from './beside.ts'

test('what is kept beside an object belongs to it alone, and is not seen', () => {
  const [sizes, names] = [new Beside<object, number>(), new Beside<object, string>()]
  const object = { a: 1 }
  assert.equal(sizes.get(object), undefined)
  assert.equal(sizes.set(object, 3), 3)
  names.set(object, 'three')
  sizes.set(object, 4)
  assert.equal(sizes.get(object), 4)
  assert.equal(names.get(object), 'three')
  assert.equal(sizes.get({ ...object }), undefined)
  assert.equal(sizes.get(structuredClone(object)), undefined)
  assert.deepEqual(object, { a: 1 })
  assert.equal(JSON.stringify(object), '{"a":1}')
})

test('what leads back to its object does not keep it', () => {
  const parents = new Beside<object, object>()
  const pass = (count: number) => {
    for (let number = 0; number < count; number++) {
      const object = { list: Array.from({ length: 50 }, (_, at) => ({ at })) }
      parents.set(object, { of: object })
    }
  }
  pass(1_000)
  const grown = grownOldMb(() => pass(60_000))
  assert.ok(grown < 5, `${grown.toFixed(1)} MB of the 90 MB that were made`)
})
