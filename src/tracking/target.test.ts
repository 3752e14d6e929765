/** R41: a redirect leads to the URL of an authentic token, or nowhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId } from '../base/ids.ts'
import { createSealer } from '../store/sealing.ts'
import { locationOf } from './target.ts'
import { createTokens } from './tokens.ts'

const SEED = 20261121

test('http and https targets come back as they are, or escaped as the URL standard says', () => {
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

test('no Location ever holds what ends a header or begins another one', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 })
  fc.assert(
    fc.property(fc.constantFrom('http://', 'https://', 'HTTPS://a.example/', ''), text, (head, tail) => {
      const location = locationOf(head + tail)
      assert.ok(location === null || /^https?:\/\/[\x21-\x7e]+$/i.test(location))
    }),
    { seed: SEED, numRuns: 1_000 },
  )
})

test('100,000 changed tokens lead nowhere', () => {
  const tokens = createTokens(createSealer('a secret of the tests, long enough'))
  const deliveryId = newId()
  const made = [
    'https://shop.example.com/',
    'https://shop.example.com/a?b=c&d=e',
    'http://10.0.0.1/admin',
    'https://shop.example.com/redirect?to=https://evil.example/',
  ].map((url) => tokens.click(deliveryId, { url }))
  const known = new Set(made)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/'
  let state = SEED
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const changes: ((token: string) => string)[] = [
    (token) => splice(token, random(token.length), 1, letters[random(letters.length)] ?? ''),
    (token) => splice(token, random(token.length), 1 + random(4), ''),
    (token) => splice(token, random(token.length), 0, letters[random(letters.length)] ?? ''),
    (token) => token.slice(0, random(token.length)),
    (token) => {
      const other = made[random(made.length)] ?? ''
      const at = random(Math.min(token.length, other.length))
      return token.slice(0, at) + other.slice(at)
    },
    (token) => token + (letters[random(letters.length)] ?? ''),
  ]
  let led = 0
  for (let round = 0; round < 100_000; round++) {
    const changed = changes[round % changes.length]?.(made[random(made.length)] ?? '') ?? ''
    if (!known.has(changed) && tokens.readClick(changed) !== null) led++
  }
  assert.equal(led, 0)
})

const splice = (text: string, at: number, remove: number, add: string) =>
  text.slice(0, at) + add + text.slice(at + remove)
