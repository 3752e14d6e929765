import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BadRequest } from '../../base/process/errors.ts'
import { readCsvEntries, readJsonEntries } from './bulk.ts'

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}
const csv = (text: string) => readCsvEntries(bytes(text))
const ann = { address: 'Ann@example.org', key: 'ann@example.org' }

test('JSON entries: good ones, and bad ones with the reason', () => {
  const table: [entry: unknown, read: object][] = [
    ['Ann@example.org', ann],
    ['Ann A <Ann@example.org>', { ...ann, name: 'Ann A' }],
    [
      { address: 'Ann@example.org', name: 'B', vars: '{"a":1}', subscribed: 'no' },
      { ...ann, name: 'B', vars: { a: 1 }, subscribed: false },
    ],
    [{ address: 'Ann@example.org', name: '', vars: null, subscribed: null }, ann],
    ['nobody', { bad: 'nobody', why: 'Invalid format' }],
    [17, { bad: '17', why: 'Invalid format' }],
    [null, { bad: 'null', why: 'Invalid format' }],
    [{ name: 'x' }, { bad: '{"name":"x"}', why: 'Invalid format' }],
    [
      { address: 'Ann@example.org', name: 1 },
      { bad: 'Ann@example.org', why: 'Invalid name' },
    ],
    [
      { address: 'Ann@example.org', subscribed: 2 },
      { bad: 'Ann@example.org', why: 'Invalid subscribed' },
    ],
    [
      { address: 'Ann@example.org', vars: [] },
      { bad: 'Ann@example.org', why: "Parameter 'vars' is not a valid JSON object" },
    ],
    ['x'.repeat(5000), { bad: 'x'.repeat(256), why: 'Invalid format' }],
  ]
  for (const [entry, read] of table) assert.deepEqual(readJsonEntries([entry]), [read])
  assert.deepEqual(readJsonEntries('["Ann@example.org"]'), [ann])
})

test('a member called __proto__ is dropped from variables, however it is written', () => {
  const [escaped] = readJsonEntries('[{"address":"a@example.org","vars":{"_\\u005Fproto__":{"x":1},"a":1}}]')
  assert.ok(escaped && 'vars' in escaped)
  assert.deepEqual(Object.keys(escaped.vars ?? {}), ['a'])
  const [entry] = readJsonEntries('[{"address":"Ann@example.org","vars":{"__proto__":{"x":1},"a":1}}]')
  assert.deepEqual(entry, { ...ann, vars: { a: 1 } })
})

test('CSV: with and without header row, columns in any order, empty fields as absent', async () => {
  assert.deepEqual(await csv('Ann@example.org'), [ann])
  assert.deepEqual(await csv('Ann@example.org,A,"{""k"":1}"\r\n'), [{ ...ann, name: 'A', vars: { k: 1 } }])
  assert.deepEqual(await csv('Subscribed, ADDRESS ,ignored\nno,Ann@example.org,x'), [
    { ...ann, subscribed: false },
  ])
  assert.deepEqual(await csv('address,name\nAnn@example.org'), [ann], 'a short row has no name')
  assert.deepEqual(await csv(''), [])
  assert.deepEqual(await csv('address\nnobody'), [{ bad: 'nobody', why: 'Invalid format' }])
})

test('CSV: every row that cannot be read is named, the first twenty with their reason', async () => {
  const rows = ['address,vars', ...Array.from({ length: 25 }, (_, n) => `m${n}@example.org,x`)]
  await assert.rejects(csv(rows.join('\n')), (error: Error) => {
    assert.ok(error instanceof BadRequest)
    assert.match(error.message, /^CSV file is not valid: row 2: .*; row 21: .*; rows 22, 23, 24, 25, 26 too$/)
    return true
  })
})

test('any file is either read or refused', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: fc.constantFrom('a', '@', 'b.c', ',', '"', '\n', '{', '}', 'address') }),
      async (text) => {
        try {
          for (const entry of await csv(text)) assert.ok('bad' in entry || entry.key.includes('@'))
        } catch (error) {
          assert.ok(error instanceof BadRequest, String(error))
        }
      },
    ),
    { seed: 2369, numRuns: 500 },
  )
})
