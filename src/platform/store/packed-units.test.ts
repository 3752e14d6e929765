import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createPacker, createUnpacker } from './sqlite/writer.ts'

const value = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.constant(null),
  fc.uint8Array(),
)
const statement = fc.record(
  { sql: fc.string({ maxLength: 3 }), values: fc.array(value, { maxLength: 5 }), expectRows: fc.nat(3) },
  { requiredKeys: ['sql', 'values'], noNullPrototype: true },
)

test('units survive packing and unpacking, over many packets and with more texts than numbers', () => {
  const pack = createPacker(3)
  const unpack = createUnpacker()
  const packets = fc.array(fc.array(statement, { maxLength: 4 }), { maxLength: 6 })
  fc.assert(
    fc.property(packets, (units) => {
      for (const packet of [units, units]) assert.deepEqual(unpack(structuredClone(pack(packet))), units)
    }),
    { seed: 11, numRuns: 3_000 },
  )
})

test('a text is sent once', () => {
  const pack = createPacker()
  const unit = [{ sql: 'SELECT ?', values: [1] }]
  assert.deepEqual(pack([unit]).texts, ['SELECT ?'])
  assert.deepEqual(pack([unit, unit]), {
    texts: [],
    shape: [1, 0, 1, -1, 1, 0, 1, -1],
    values: [1, 1],
    slices: [],
    bytes: new ArrayBuffer(0),
    rare: [],
  })
})
