import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { systemClock } from '../../base/time/clock.ts'
import { queryBlocklist, STANDARD_TEST_ENTRIES, testBlocklist } from './blocklist.ts'
import { createResolver, type Resolver } from './resolver.ts'

async function withList(run: (dns: DnsServer, resolver: Resolver) => Promise<void>): Promise<void> {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, attempts: 1 })
  try {
    await run(dns, resolver)
  } finally {
    resolver.close()
    await dns.close()
  }
}

test('an address is looked up backwards, an IPv6 one by its nibbles, a domain as it is', () =>
  withList(async (dns, resolver) => {
    const ask = (subject: string) => queryBlocklist(resolver, subject, { zone: 'list.example' })
    // RFC 5782 section 2.4.
    const entries: [string, string][] = [
      ['192.0.2.99', '99.2.0.192'],
      ['2001:db8:4321::567:89ab', 'b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.1.2.3.4.8.b.d.0.1.0.0.2'],
      ['spam.example.com', 'spam.example.com'],
    ]
    for (const [subject, labels] of entries) {
      assert.equal((await ask(subject)).kind, 'not-listed', subject)
      dns.set(`${labels}.list.example`, 'A', ['127.0.0.4'], 0)
      const found = await queryBlocklist(resolver, subject, { zone: 'list.example', fresh: true })
      assert.deepEqual([found.kind, found.code], ['listed', '127.0.0.4'], subject)
    }
  }))

test('a refusal, a code outside of 127.0.0.0/8 and no answer are no listing', () =>
  withList(async (dns, resolver) => {
    const name = '1.2.0.192.list.example'
    for (const code of ['127.255.255.254', '127.255.255.252', '127.0.0.1', '192.0.2.80']) {
      dns.set(name, 'A', [code], 0)
      const found = await queryBlocklist(resolver, '192.0.2.1', { zone: 'list.example', fresh: true })
      assert.equal(found.kind, 'silent', code)
    }
    dns.misbehave(name, 'servfail')
    const found = await queryBlocklist(resolver, '192.0.2.1', { zone: 'list.example', fresh: true })
    assert.equal(found.kind, 'silent')
  }))

test('the answers of a list count only if its test entries are as they must be, RFC 5782 section 5', () =>
  withList(async (dns, resolver) => {
    assert.equal(STANDARD_TEST_ENTRIES.ipv6.listed.split('.').length, 32)
    assert.equal(STANDARD_TEST_ENTRIES.ipv6.listed.slice(0, 24), '2.0.0.0.0.0.f.7.f.f.f.f.')
    for (const entries of Object.values(STANDARD_TEST_ENTRIES)) {
      const [listed, free] = [`${entries.listed}.list.example`, `${entries.free}.list.example`]
      const fault = () =>
        testBlocklist(resolver, { zone: 'list.example', shown: 'the list', fresh: true }, entries)
      assert.match(await fault(), /^the list lists nothing/)
      dns.set(listed, 'A', ['127.0.0.2'], 0)
      assert.equal(await fault(), '')
      dns.set(free, 'A', ['127.0.0.2'], 0)
      assert.match(await fault(), /^the list lists everything/)
      dns.set(free, 'A', ['127.255.255.254'], 0)
      assert.match(await fault(), /^the list refuses to answer this resolver \(127\.255\.255\.254\)$/)
      dns.set(free, 'A', [], 0)
      dns.misbehave(listed, 'refused')
      assert.match(await fault(), /^the list did not answer/)
      dns.misbehave(listed, null)
    }
  }))
