import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  ForeignJsonError,
  JSON_DEPTH_MAX,
  JSON_NAMES_MAX,
  JSON_VALUES_MAX,
  JsonCount,
  parseCounted,
  parseForeignJson,
} from './foreign-json.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const elements = (count: number) => `[${Array(count).fill('{}').join()}]`
const names = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, n])))

test('what is within the limits is parsed, and one more is refused', () => {
  const cases: [within: string, beyond: string, why: string][] = [
    [nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX + 1), 'nested too deeply'],
    // Each counts as an element and as what holds others; the list itself, and what it is in, come on top.
    [elements(JSON_VALUES_MAX / 2 - 1), elements(JSON_VALUES_MAX / 2), `more than ${JSON_VALUES_MAX} values`],
    [names(JSON_NAMES_MAX), names(JSON_NAMES_MAX + 1), `more than ${JSON_NAMES_MAX} names`],
    [`[${names(JSON_NAMES_MAX + 1)}]`, '[', 'end of JSON input'],
  ]
  for (const [within, beyond, why] of cases) {
    assert.deepEqual(parseForeignJson(within), JSON.parse(within), why)
    assert.throws(
      () => parseForeignJson(beyond),
      (error) => error instanceof ForeignJsonError && error.message.endsWith(why),
    )
  }
})

test('structure in strings is no structure', () => {
  for (const value of [
    '['.repeat(1_000),
    '\\"[{'.repeat(1_000),
    ',"'.repeat(200_000),
    '\\'.repeat(999),
    'Ģ[\u{1f600},'.repeat(50_000),
  ]) {
    assert.deepEqual(parseForeignJson(JSON.stringify({ a: value })), { a: value })
  }
})

test('a member called __proto__ is left out however it is written, and nothing else is', () => {
  const kept = '"proto__":1,"__proto":2,"b":"__proto__","c":["__proto__"],"constructor":3'
  for (const name of ['__proto__', '\\u005f_proto__', '__pr\\u006Fto__', '\\u005f\\u005fproto__']) {
    // A long text is counted as UTF-16; one of these names lies across two of its pieces.
    for (const blanks of ['', ' \n', ' '.repeat(5_000), ' '.repeat(64 * 1024 - 8)]) {
      const member = `${blanks}"${name}"${blanks}:{"x":1}`
      const text = `{${member},${kept},"in":[{${member},"y":1}]}`
      const parsed = parseForeignJson(text)
      assert.deepEqual(parsed, { ...JSON.parse(`{${kept}}`), in: [{ y: 1 }] }, text)
      assert.ok(!Object.hasOwn(parsed as object, '__proto__'))
    }
  }
})

test('a text counted in pieces gives what it gives as a whole', () => {
  const property = fc.property(
    fc.json({ maxDepth: 6 }),
    fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
    (text, lengths) => {
      const bytes = Buffer.from(text)
      const count = new JsonCount()
      for (let at = 0; at < bytes.length; ) {
        const length = lengths.next().value as number
        count.add(bytes.subarray(at, at + length))
        at += length
      }
      const whole = new JsonCount()
      whole.add(bytes)
      assert.equal(count.mayNameProto, whole.mayNameProto)
      assert.deepEqual(parseCounted(text, count), parseForeignJson(text))
      if (!text.includes('__proto__')) assert.deepEqual(parseForeignJson(text), JSON.parse(text))
    },
  )
  fc.assert(property, { seed: 19, numRuns: 500 })
})
