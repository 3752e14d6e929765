import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import {
  bareUrl,
  basicAuthorization,
  fullUrl,
  maskedUrl,
  openUserInfo,
  sealUserInfo,
  userInfoOf,
} from './webhook-url.ts'

const CASES: [url: string, masked: string, bare: string, userInfo: string | null][] = [
  ['https://example.com/a?b#c', 'https://example.com/a?b#c', 'https://example.com/a?b#c', null],
  ['https://u:p@example.com/a', 'https://u:****@example.com/a', 'https://example.com/a', 'u:p'],
  ['https://u:p:q@example.com', 'https://u:****@example.com', 'https://example.com', 'u:p:q'],
  ['https://token@example.com/', 'https://****@example.com/', 'https://example.com/', 'token'],
  ['https://:p@example.com/', 'https://:****@example.com/', 'https://example.com/', ':p'],
  ['https://@example.com/', 'https://example.com/', 'https://example.com/', null],
  ['https://u:p@q@example.com/', 'https://u:****@example.com/', 'https://example.com/', 'u:p@q'],
  ['HTTP://u:p@[::1]:8080/x@y', 'HTTP://u:****@[::1]:8080/x@y', 'HTTP://[::1]:8080/x@y', 'u:p'],
  ['https://example.com/u:p@x', 'https://example.com/u:p@x', 'https://example.com/u:p@x', null],
  ['https://example.com?u:p@x', 'https://example.com?u:p@x', 'https://example.com?u:p@x', null],
  ['ftp://u:p@example.com/', 'ftp://u:p@example.com/', 'ftp://u:p@example.com/', null],
]

for (const [url, masked, bare, userInfo] of CASES) {
  test(`${url} is shown as ${masked}`, () => {
    assert.equal(maskedUrl(url), masked)
    assert.equal(maskedUrl(masked), masked)
    assert.equal(bareUrl(url), bare)
    assert.equal(userInfoOf(url), userInfo)
    if (userInfo !== null) assert.equal(fullUrl(masked, userInfo), url)
  })
}

test('user info is percent-decoded for the Authorization field', () => {
  const value = (userInfo: string) =>
    Buffer.from(basicAuthorization(userInfo).slice('Basic '.length), 'base64').toString()
  assert.equal(value('random:r%C3%A4ndom%2F1'), 'random:rändom/1')
  assert.equal(value('user'), 'user:')
  assert.equal(value('u:%zz'), 'u:%zz')
})

test('sealed user info opens only with its own secret', () => {
  const sealer = createSealer('one secret of at least 32 characters')
  const sealed = sealUserInfo(sealer, 'https://u:planted@example.com/')
  assert.ok(sealed && !Buffer.from(sealed).includes('planted'))
  assert.equal(openUserInfo(sealer, sealed), 'u:planted')
  assert.equal(sealUserInfo(sealer, 'https://example.com/'), null)
  const other = createSealer('another secret of 32 characters!!')
  assert.throws(() => openUserInfo(other, sealed))
})

test('what the URL parser takes for a password is never shown', () => {
  const piece = fc.constantFrom(
    'http://',
    'https://',
    'h',
    'SECRET',
    ':',
    '@',
    '/',
    '?',
    '#',
    '\\',
    '[',
    '%',
    '.',
  )
  const text = fc.array(piece, { maxLength: 9 }).map((pieces) => `https://${pieces.join('')}`)
  const property = fc.property(text, (url) => {
    if (!URL.canParse(url) || !new URL(url).password.includes('SECRET')) return
    assert.ok(!maskedUrl(url).includes('SECRET') || new URL(maskedUrl(url)).password === '****', url)
    assert.equal(new URL(bareUrl(url)).password, '', url)
    assert.equal(new URL(bareUrl(url)).host, new URL(url).host, url)
  })
  fc.assert(property, { seed: 20261123, numRuns: 100_000 })
})
