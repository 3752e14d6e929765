import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { replaceAt } from './link-places.ts'
import { findTextPlaces } from './text-links.ts'

const shown = (text: string) =>
  replaceAt(
    text,
    findTextPlaces(text).map(({ start, end, url }) => ({ start, end, text: `[${url}]` })),
  )

/** [text, with `[url]` in the places; missing: nothing changes]. */
const TEXTS: [text: string, changed?: string][] = [
  ['see http://a.b/c?d=1#e now', 'see [http://a.b/c?d=1#e] now'],
  ['http://a.b/.', '[http://a.b/].'],
  ['HTTPS://A.b/x, and https://c.d/y!', '[HTTPS://A.b/x], and [https://c.d/y]!'],
  ['<https://a.b/c.>', '<[https://a.b/c.]>'],
  ['<https://a.b/c', '<[https://a.b/c]'],
  ['(https://a.b/c)', '([https://a.b/c])'],
  ['(https://a.b/c).', '([https://a.b/c]).'],
  ['https://a.b/wiki/Name_(kind)', '[https://a.b/wiki/Name_(kind)]'],
  ['(https://a.b/wiki/Name_(kind)) x', '([https://a.b/wiki/Name_(kind)]) x'],
  ['[a](https://a.b/c) [https://a.b/c]', '[a]([https://a.b/c]) [[https://a.b/c]]'],
  ['"https://a.b/c" \'https://a.b/c\'', '"[https://a.b/c]" \'[https://a.b/c]\''],
  [
    '*https://a.b/c* _https://a.b/c_',
    '*[https://a.b/c]* _https://a.b/c_'.replace('_https://a.b/c_', '_[https://a.b/c]_'),
  ],
  ['https://a.b/?u=https://c.d/', '[https://a.b/?u=https://c.d/]'],
  ['https://a.b/c\nhttps://a.b/d\r\n', '[https://a.b/c]\n[https://a.b/d]\r\n'],
  ['（https://a.b/c）。', '（[https://a.b/c]）。'],
  ['https://münchen.example/straße', '[https://münchen.example/straße]'],
  ['https://a.b/%7B%7D?x={y}', '[https://a.b/%7B%7D?x={y}]'],
  ['https:// http:// https://. xhttp://a.b/ mailto:a@b ftp://a.b/ www.a.b a.b/c'],
  [''],
]

for (const [text, changed = text] of TEXTS) {
  test(`text: ${JSON.stringify(text)}`, () => assert.equal(shown(text), changed))
}

test('a place holds its URL and begins after the previous one', () => {
  const bits = ['http://a.b/', 'https://', '(', ')', '<', '>', '.', ' ', '\n', '"', 'x', 'é', '*', ']']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...bits), { maxLength: 30 }), (pieces) => {
      const text = pieces.join('')
      let at = 0
      for (const { start, end, url } of findTextPlaces(text)) {
        assert.ok(start >= at)
        assert.equal(text.slice(start, end), url)
        at = end
      }
    }),
    { seed: 42, numRuns: 5_000 },
  )
})

test('megabytes of hostile text cost no more than their length', () => {
  for (const bit of ['http', 'https://', 'https://a)', 'http://((((', '<http://a', 'https://a.b/((((', ')']) {
    const start = process.cpuUsage()
    findTextPlaces(bit.repeat(2_000_000 / bit.length))
    findTextPlaces(`https://a.b/${bit.replaceAll(/[^()]/g, '(').repeat(200_000)}`)
    const { user, system } = process.cpuUsage(start)
    assert.ok((user + system) / 1000 < 5_000, JSON.stringify(bit))
  }
})
