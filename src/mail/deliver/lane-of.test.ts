/** Which lane a delivery goes by: its source, as far as it reaches the destination, and the destination's site. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { testRelay, testTransport } from '../../../test/support/test-transport.ts'
import { type Cidr, parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import type { TransportParts } from './connect/transport.ts'

const [IPV4, IPV6] = ['192.0.2.1', '2001:db8::1']
const ALL = ['0.0.0.0/0', '::/0'].map((text) => parseCidr(text) as Cidr)

/** A transport that takes the first of both addresses that reaches, else none. */
function transportFor(
  t: test.TestContext,
  parts: Pick<TransportParts, 'direct'> | Pick<TransportParts, 'relays'>,
) {
  const transport = testTransport({
    ...parts,
    sourceOf(_delivery, reaches) {
      const ip = [IPV6, IPV4].find(reaches)
      return ip ? { ip, helo: null } : null
    },
  })
  t.after(() => transport.close())
  return async (domain: string) =>
    (await transport.laneOf({ account_id: 'a', domain_id: 'd', recipient_domain: domain })).name
}

test('directly: the addresses of the mail hosts say from where they are reached', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('old.example', 'MX', [[10, 'mx.old.example']])
  dns.set('mx.old.example', 'A', ['198.51.100.1'])
  dns.set('new.example', 'MX', [[10, 'mx.new.example']])
  dns.set('mx.new.example', 'AAAA', ['2001:db8::99'])
  dns.set('null.example', 'MX', [[0, '.']])
  const resolver = createResolver({ servers: [{ host: dns.host, port: dns.port }], clock: systemClock })
  t.after(() => resolver.close())
  const laneOf = transportFor(t, { direct: { port: 25, resolver, allow: ALL, policies: null } })
  assert.equal(await laneOf('old.example'), `${IPV4}/mx.old.example`)
  assert.equal(await laneOf('new.example'), `${IPV6}/mx.new.example`)
  assert.equal(await laneOf('null.example'), `${IPV6}/null.example`, 'no server will be asked')
})

for (const [host, source] of [
  ['127.0.0.1', IPV4],
  ['::1', IPV6],
  ['relay.example', IPV6],
] as const)
  test(`a relay at ${host} is reached from ${source}`, async (t) => {
    const laneOf = transportFor(t, { relays: testRelay({ host }) })
    assert.equal(await laneOf('x.example'), `${source}/relay:test`)
  })
