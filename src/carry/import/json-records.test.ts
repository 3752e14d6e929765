import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JsonFileError, type JsonRecord, readJsonRecords } from './json-records.ts'

const LISTS = ['Suppressions', 'Contacts']

async function records(text: string, pieceLength = text.length || 1): Promise<JsonRecord[]> {
  const bytes = Buffer.from(text)
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += pieceLength) yield bytes.subarray(at, at + pieceLength)
  }
  return all(readJsonRecords(pieces(), LISTS))
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

const values = async (text: string, pieceLength?: number) =>
  (await records(text, pieceLength)).map(({ value }) => value)

test('records come from a list, from a named list, from single objects, and from several of them', async () => {
  assert.deepEqual(await values('[{"a":1},{"a":{"b":[{}]}}]'), [{ a: 1 }, { a: { b: [{}] } }])
  assert.deepEqual(await values('{"n":2,"Suppressions":[{"a":1},{"a":2}],"NextToken":"x"}'), [
    { a: 1 },
    { a: 2 },
  ])
  assert.deepEqual(await values('{"name":"t","versions":[{"a":1}]}'), [{ name: 't', versions: [{ a: 1 }] }])
  assert.deepEqual(await values('{"a":1}\n{"a":2}\n'), [{ a: 1 }, { a: 2 }])
  assert.deepEqual(await values('{"Contacts":[{"a":1}]}{"Contacts":[{"a":2}]}'), [{ a: 1 }, { a: 2 }])
  assert.deepEqual(await values(''), [])
})

test('the name of a list and the line of a record are known', async () => {
  const [first, second] = await records('{"Contacts": [\n {"a":1},\n\n {"a":2}\n]}')
  assert.deepEqual([first?.member, first?.line, second?.line], ['Contacts', 2, 4])
})

test('a list inside of records is no list of records, whatever its name', async () => {
  const nested = [{ x: { Suppressions: [{ a: 1 }] } }]
  assert.deepEqual(await values(JSON.stringify(nested)), nested)
})

test('a record that is no JSON is named, and those after it are read', async () => {
  const found = await records('[{"a":tru},{"a":2}]')
  assert.match(found[0]?.fault ?? '', /JSON/)
  assert.deepEqual(found[1]?.value, { a: 2 })
})

test('files that end too early, nest too deeply or have an endless record are refused', async () => {
  await assert.rejects(records('[{"a":1}'), JsonFileError)
  await assert.rejects(records('{"a":"x'), JsonFileError)
  await assert.rejects(records('['.repeat(1_000)), JsonFileError)
  await assert.rejects(records('[}'), JsonFileError)
  await assert.rejects(records(`[{"a":"${'x'.repeat(9_000_000)}"}]`, 65_536), /longer than/)
})

test('any list of objects is read, however it is cut into pieces', async () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(object, { maxLength: 5 }),
      fc.integer({ min: 1, max: 40 }),
      async (list, length) => {
        const text = JSON.stringify({ Suppressions: list }, null, length % 3)
        // `__proto__` is dropped by the parser of foreign JSON.
        const expected = JSON.parse(text.replaceAll('"__proto__"', '"__other__"')).Suppressions
        assert.deepEqual(await values(text.replaceAll('"__proto__"', '"__other__"'), length), expected)
      },
    ),
    { seed: 20261128, numRuns: 200 },
  )
})
