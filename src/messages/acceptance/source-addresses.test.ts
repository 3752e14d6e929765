import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../base/ids.ts'
import { createSources } from './source-addresses.ts'

const [FIRST, OTHER] = ['first', 'other']
const address = (ip: string, shared = false) => ({ ip, shared, helo: null })
const OWN = [address('192.0.2.1'), address('192.0.2.2')]
const SHARED = [address('192.0.2.8', true), address('192.0.2.9', true)]

const sourcesOf = (...configured: ReturnType<typeof address>[]) =>
  createSources({ configured, hostAddresses: ['198.51.100.1'], firstAccountId: FIRST })
type Sources = ReturnType<typeof sourcesOf>

const NOTHING = { sendingIp: null, sendingIpPool: null }
const everywhere = () => true
const ipOf = (
  sources: Sources,
  source_key: string,
  account_id = FIRST,
  reaches: (ip: string) => boolean = everywhere,
) => sources.sourceOf({ account_id, source_key, recipient_domain: 'x.example' }, reaches)?.ip ?? null

/** The keys that many deliveries get, in order. */
function keysOf(sources: Sources, accountId: string, asked = NOTHING): string[] {
  const keys = Array.from({ length: 1_000 }, () => sources.keyOf(accountId, asked, newId()))
  return [...new Set(keys)].sort()
}

test('a delivery gets a key where there is a choice, and the key gives its address', () => {
  const sources = sourcesOf(...OWN, ...SHARED)
  const cases: [account: string, asked: typeof NOTHING | object, expected: Record<string, string>][] = [
    [FIRST, {}, { '#0': '192.0.2.1', '#1': '192.0.2.2' }],
    [OTHER, {}, { '#0': '192.0.2.8', '#1': '192.0.2.9' }],
    [FIRST, { sendingIp: '192.0.2.8' }, { 'ip:192.0.2.8': '192.0.2.8' }],
    [FIRST, { sendingIpPool: 'shared' }, { 'shared#0': '192.0.2.8', 'shared#1': '192.0.2.9' }],
  ]
  for (const [account, asked, expected] of cases) {
    const keys = keysOf(sources, account, { ...NOTHING, ...asked })
    assert.deepEqual(Object.fromEntries(keys.map((key) => [key, ipOf(sources, key, account)])), expected)
  }
})

test('without configured addresses there is one key and the system chooses; a message may request one of the host', () => {
  const sources = sourcesOf()
  assert.deepEqual(keysOf(sources, FIRST), [''])
  assert.equal(ipOf(sources, ''), null)
  assert.equal(ipOf(sources, 'ip:198.51.100.1'), '198.51.100.1')
})

test('with one address every delivery has the same key, except that of a requested pool', () => {
  const sources = sourcesOf(address('192.0.2.8', true))
  assert.deepEqual(keysOf(sources, FIRST), [''])
  assert.equal(ipOf(sources, ''), '192.0.2.8')
  assert.deepEqual(keysOf(sources, FIRST, { sendingIp: null, sendingIpPool: 'shared' } as never), [
    'shared#0',
  ])
})

test('an account may use its own and shared addresses; without configured ones, those of the host are its own', () => {
  const sources = sourcesOf(address('192.0.2.1'), address('192.0.2.8', true))
  const cases: [account: string, ip: string, allowed: boolean][] = [
    [FIRST, '192.0.2.1', true],
    [OTHER, '192.0.2.1', false],
    [OTHER, '192.0.2.8', true],
    [FIRST, '198.51.100.1', false],
  ]
  for (const [account, ip, allowed] of cases) assert.equal(sources.mayUse(account, ip), allowed, ip)
  assert.equal(sourcesOf().mayUse(FIRST, '198.51.100.1'), true)
  assert.deepEqual([sources.hasPool('shared'), sources.hasPool('p1')], [true, false])
})

test('shares are about even', () => {
  const sources = sourcesOf(...Array.from({ length: 7 }, (_, n) => address(`192.0.2.${n}`)))
  const counts = new Map<string, number>()
  for (let n = 0; n < 7_000; n++) {
    const key = sources.keyOf(FIRST, NOTHING, newId())
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  assert.equal(counts.size, 7)
  for (const [key, count] of counts) assert.ok(count > 800 && count < 1_200, `${key}: ${count}`)
})

test('what was accepted under other addresses leaves from those there are now', () => {
  const fewer = sourcesOf(address('192.0.2.1'))
  for (const key of ['', '#0', '#5', 'ip:192.0.2.77', 'shared#1'])
    assert.equal(ipOf(fewer, key), '192.0.2.1', key)
  const none = sourcesOf()
  for (const key of ['', '#5', 'ip:192.0.2.77', 'shared#1']) assert.equal(ipOf(none, key), null, key)
  const more = sourcesOf(...OWN)
  for (const key of ['', 'ip:192.0.2.77']) {
    const ip = ipOf(more, key)
    assert.ok(
      OWN.some((own) => own.ip === ip),
      key,
    )
    assert.equal(ipOf(more, key), ip, 'always the same, since a group has one lane')
  }
})

test("an address that is another account's now is not used", () => {
  const sources = sourcesOf(address('192.0.2.1'), address('192.0.2.8', true))
  assert.equal(ipOf(sources, 'ip:192.0.2.1', OTHER), '192.0.2.8')
})

test('an address of a family that the destination does not have is skipped, unless it was requested', () => {
  const sources = sourcesOf(address('192.0.2.1'), address('2001:db8::1'))
  const overIpv4 = (ip: string) => !ip.includes(':')
  for (const key of ['#0', '#1']) assert.equal(ipOf(sources, key, FIRST, overIpv4), '192.0.2.1')
  assert.equal(ipOf(sources, 'ip:2001:db8::1', FIRST, overIpv4), '2001:db8::1')
  assert.notEqual(
    ipOf(sources, '#1', FIRST, () => false),
    null,
    'nothing else is left',
  )
})
