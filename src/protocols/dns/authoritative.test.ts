import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { type Cidr, parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { findAuthority } from './authoritative.ts'
import { createResolver } from './resolver.ts'

const dns = await createDnsServer()
after(() => dns.close())
const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000 })

dns.set('example.org', 'NS', ['ns1.example.net', 'ns2.example.net', 'ns3.example.net'])
dns.set('ns1.example.net', 'A', ['193.0.6.1'])
dns.set('ns2.example.net', 'AAAA', ['2a00::2'])
dns.set('ns3.example.net', 'A', ['10.0.0.3'])

test('the zone is found upwards, with a public address of each of its servers', async () => {
  assert.deepEqual(await findAuthority(resolver, 'k1._domainkey.mg.Example.org'), {
    zone: 'example.org',
    servers: [
      { host: '193.0.6.1', port: 53 },
      { host: '2a00::2', port: 53 },
    ],
  })
})

test('servers in private networks count when they are allowed', async () => {
  dns.set('inside.example', 'NS', ['ns3.example.net'])
  assert.equal(await findAuthority(resolver, 'inside.example'), null)
  const allow = [parseCidr('10.0.0.0/8') as Cidr]
  assert.deepEqual((await findAuthority(resolver, 'inside.example', allow))?.servers, [
    { host: '10.0.0.3', port: 53 },
  ])
})

test('an alias does not lend its target’s servers, and a long name ends', async () => {
  dns.set('www.alias.example', 'CNAME', ['example.org'])
  assert.equal(await findAuthority(resolver, 'www.alias.example'), null)
  dns.queries.length = 0
  assert.equal(await findAuthority(resolver, `${'a.'.repeat(100)}invalid`), null)
  assert.ok(dns.queries.length <= 10)
})
