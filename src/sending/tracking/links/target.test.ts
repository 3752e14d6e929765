/**
 * R41, its second half: what an authentic token may redirect to. tokens.test.ts shows that no other token is read.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { locationOf } from './target.ts'

const SEED = 20261121

test('http and https targets are returned unchanged, or escaped by the URL standard', () => {
  for (const [target, location] of [
    ['https://shop.example.com', 'https://shop.example.com'],
    ['HTTPS://Shop.example.com/%7Ea?b=%2F&c={x}|y#z', 'HTTPS://Shop.example.com/%7Ea?b=%2F&c={x}|y#z'],
    ['http://[2001:db8::1]:8080/a', 'http://[2001:db8::1]:8080/a'],
    ['http://bücher.example/ä b', 'http://xn--bcher-kva.example/%C3%A4%20b'],
    [
      'http://shop.example.com/a\r\nLocation: http://evil.example',
      'http://shop.example.com/aLocation:%20http://evil.example',
    ],
    ['https:///shop.example.com/a', 'https://shop.example.com/a'],
    ['https://\\shop.example.com/a', 'https://shop.example.com/a'],
  ] as const) {
    assert.equal(locationOf(target), location)
  }
})

test('everything else is refused', () => {
  const refused = [
    ...[
      '',
      ' ',
      'javascript:alert(1)',
      'JavaScript:alert(1)',
      'data:text/html,<script>',
      'vbscript:x',
      'file:///etc',
    ],
    ...['//evil.example', '/\\evil.example', '\\\\evil.example', 'https:evil.example', 'https:/evil.example'],
    ...[
      'https:\\\\evil.example',

      'http://',
      'http://[',
      'http://a b/',
      ' https://a.example',
    ],
    ...['java\nscript:alert(1)', 'mailto:a@example.com', `https://a.example/${'x'.repeat(70_000)}`],
  ]
  for (const target of refused) assert.equal(locationOf(target), null, target.slice(0, 40))
})

test('no Location ever contains what ends a header or starts another one', () => {
  const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code))
  const text = fc.string({ unit, maxLength: 60 })
  fc.assert(
    fc.property(fc.constantFrom('http://', 'https://', 'HTTPS://a.example/', ''), text, (head, tail) => {
      const location = locationOf(head + tail)
      assert.ok(location === null || /^https?:\/\/[\x21-\x7e]+$/i.test(location))
    }),
    { seed: SEED, numRuns: 5_000 },
  )
})
