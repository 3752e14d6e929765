import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRemoteAddresses, networkList, type Origin } from './origin.ts'

const trusted = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8']

function from(remoteAddress: string, headers: Record<string, string> = {}, isEncrypted = false): Origin {
  return { remoteAddress, isEncrypted, headers }
}

test('X-Forwarded-For counts from trusted proxies only, from the right', () => {
  const { address } = createRemoteAddresses(trusted)
  const cases: ReadonlyArray<[string, string | undefined, string]> = [
    ['192.0.2.1', undefined, '192.0.2.1'],
    ['192.0.2.1', '198.51.100.9', '192.0.2.1'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '198.51.100.9', '198.51.100.9'],
    ['10.1.2.3', '1.1.1.1, 198.51.100.9', '198.51.100.9'],
    ['10.1.2.3', '1.1.1.1, 198.51.100.9, 10.9.9.9', '198.51.100.9'],
    ['10.1.2.3', '10.5.5.5, 10.9.9.9', '10.5.5.5'],
    ['10.1.2.3', '198.51.100.9:4711', '198.51.100.9'],
    ['10.1.2.3', '[2001:db8::1]:4711', '2001:db8::1'],
    ['10.1.2.3', '2001:db8::1', '2001:db8::1'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.9, <script>', '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['::ffff:10.1.2.3', '::ffff:198.51.100.9', '198.51.100.9'],
    ['fd00::1', '198.51.100.9', '198.51.100.9'],
    ['fe80::1', '198.51.100.9', 'fe80::1'],
  ]
  for (const [peer, forwarded, expected] of cases) {
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
    assert.equal(address(from(peer, headers)), expected, `${peer} <- ${forwarded}`)
  }
})

test('TLS is our own, or what a trusted proxy says', () => {
  const { isSecure } = createRemoteAddresses(trusted)
  assert.equal(isSecure(from('192.0.2.1', {}, true)), true)
  assert.equal(isSecure(from('192.0.2.1', { 'x-forwarded-proto': 'https' })), false)
  assert.equal(isSecure(from('10.0.0.1', { 'x-forwarded-proto': 'https' })), true)
  assert.equal(isSecure(from('10.0.0.1', { 'x-forwarded-proto': 'http' })), false)
})

test('a request is exposed when it crossed a network without TLS', () => {
  const { isExposed } = createRemoteAddresses(trusted)
  const plain = { 'x-forwarded-proto': 'http' }
  const cases: ReadonlyArray<[exposed: boolean, request: Origin]> = [
    [true, from('192.0.2.1')],
    [true, from('::ffff:192.0.2.1')],
    [false, from('192.0.2.1', {}, true)],
    [true, from('192.0.2.1', { 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' })],
    [false, from('127.0.0.2')],
    [false, from('::1')],
    [false, from('10.0.0.1', { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' })],
    [true, from('10.0.0.1', { ...plain, 'x-forwarded-for': '192.0.2.1' })],
    [true, from('10.0.0.1', plain)],
    [false, from('10.0.0.1', { 'x-forwarded-for': '192.0.2.1' })],
  ]
  for (const [exposed, request] of cases) assert.equal(isExposed(request), exposed, JSON.stringify(request))
})

test('a network that is none is named', () => {
  for (const bad of ['10.0.0.0/33', 'fd00::/129', 'example.com', '10.0.0.0/', '10.0.0.0/x', '', '1.2.3/8']) {
    assert.throws(() => networkList([bad]), new RangeError(`"${bad}" is neither an address nor a network`))
  }
  assert.ok(networkList(['0.0.0.0/0']).check('203.0.113.1'))
})
