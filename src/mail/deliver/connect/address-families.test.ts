/** Which addresses of a destination are tried, and in which order: with real DNS, and a network that takes no connection. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { createDnsServer, type DnsServer } from '../../../../test/support/dns-server.ts'
import { eventually } from '../../../../test/support/service.ts'
import { testTransport } from '../../../../test/support/test-transport.ts'
import { parseCidr } from '../../../base/net/ip.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { createResolver } from '../../../protocols/dns/resolver.ts'
import { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import type { ClaimedDelivery } from '../claim/queue.ts'
import type { Prepared } from '../contract.ts'
import { readShapingFile } from '../shaping/shaping-file.ts'
import { readShipped, shapingTable, shippedShaping } from '../shaping/shaping-table.ts'
import { createSystemSources, systemSource } from './address-families.ts'

const SOURCE = '2a00:1::25'
const REVERSE = '5.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.a.2.ip6.arpa'
const [V4, V6, OTHER4, OTHER6] = ['193.0.6.1', '2a00:2::1', '193.0.6.2', '2a00:2::2']

interface Rig {
  dns: DnsServer
  /** Addresses in the order in which a message to the domain tries them. */
  tried(domain: string): Promise<string[]>
  advance(ms: number): void
}

async function rig(
  t: TestContext,
  options: { prefer?: string; source?: string | null; from?: string; allow?: string } = {},
): Promise<Rig> {
  const { prefer, source = SOURCE, from } = options
  const dns = await createDnsServer()
  const clock = createTestClock()
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, attempts: 1 })
  const site = { site: 'acme', mx: ['acme.example'], prefer }
  const shaping =
    prefer === undefined
      ? shippedShaping()
      : shapingTable(
          readShipped(),
          readShapingFile(JSON.stringify({ version: '1', providers: [site] }), readShipped()),
        )
  let hosts: string[] = []
  const transport = testTransport({
    clock,
    shaping: () => shaping,
    sourceOf: () => (from === undefined ? null : { ip: from, helo: null }),
    direct: {
      port: 25,
      resolver,
      allow: options.allow ? [parseCidr(options.allow) ?? assert.fail()] : [],
      systemSources: createSystemSources({ resolver, clock, sourceTowards: async () => source }),
      policies: null,
    },
    async connect({ host }) {
      hosts.push(host)
      throw new SmtpFailure('connect', { reason: 'unreachable', message: 'refused' })
    },
  })
  t.after(async () => {
    await transport.close()
    resolver.close()
    await dns.close()
  })
  dns.set('both.example', 'MX', [[10, 'mx.acme.example']])
  dns.set('mx.acme.example', 'A', [V4])
  dns.set('mx.acme.example', 'AAAA', [V6])
  dns.set('two.example', 'MX', [
    [10, 'mx4.acme.example'],
    [10, 'mx6.acme.example'],
    [20, 'mx.acme.example'],
  ])
  dns.set('mx4.acme.example', 'A', [OTHER4])
  dns.set('mx6.acme.example', 'AAAA', [OTHER6])
  dns.set('only6.example', 'MX', [[10, 'mx6.acme.example']])
  return {
    dns,
    advance: (ms) => clock.leap(ms),
    async tried(domain) {
      hosts = []
      const delivery = { recipient: `u@${domain}`, recipient_domain: domain } as ClaimedDelivery
      const prepared = { tls: { required: false, verify: true }, sizeBytes: 10 } as Extract<
        Prepared,
        { kind: 'send' }
      >
      const lane = await transport.laneOf(delivery)
      await transport.deliver(lane, delivery, prepared, async () => {})
      return hosts
    },
  }
}

function confirm(dns: DnsServer): void {
  dns.set(REVERSE, 'PTR', ['mail.sender.example'])
  dns.set('mail.sender.example', 'AAAA', [SOURCE])
}

/** After the time for which a destination is remembered. */
const LATER_MS = 60_001

test('IPv6 is used once the name of the source address leads back to it, and no message waits for that', async (t) => {
  const { dns, tried, advance } = await rig(t)
  confirm(dns)
  assert.deepEqual(await tried('both.example'), [V4], 'nothing is known yet')
  await eventually('looked up', async () => dns.queries.some(({ name }) => name === 'mail.sender.example'))
  await eventually('known', async () => {
    advance(LATER_MS)
    const [first] = await tried('both.example')
    return first === V6
  })
})

test('without a name, with one that leads elsewhere, and while DNS is away, IPv4 is used', async (t) => {
  for (const [name, spoil] of Object.entries({
    'no name': () => {},
    elsewhere(dns: DnsServer) {
      confirm(dns)
      dns.set('mail.sender.example', 'AAAA', ['2a00:1::26'])
    },
    away(dns: DnsServer) {
      confirm(dns)
      dns.misbehave(REVERSE, 'servfail')
    },
  })) {
    const { dns, tried, advance } = await rig(t)
    spoil(dns)
    assert.deepEqual(await tried('both.example'), [V4], name)
    await eventually('looked up', async () => dns.queries.some(({ type }) => type === 'PTR'))
    for (let look = 0; look < 3; look++) {
      advance(LATER_MS)
      assert.deepEqual(await tried('both.example'), [V4], name)
    }
    advance(LATER_MS)
    assert.deepEqual(await tried('only6.example'), [OTHER6], 'else the mail could not arrive')
  }
})

test('a confirmed address keeps its verdict while DNS is away', async (t) => {
  const { dns, tried, advance } = await rig(t)
  confirm(dns)
  await eventually('known', async () => {
    advance(LATER_MS)
    return (await tried('both.example'))[0] === V6
  })
  dns.misbehave(REVERSE, 'servfail')
  advance(3_600_001)
  assert.equal((await tried('both.example'))[0], V6)
  advance(LATER_MS)
  assert.equal((await tried('both.example'))[0], V6)
})

test('a host without IPv6, or with a private address, does not use it; a chosen source address is not asked about', async (t) => {
  for (const source of [null, 'fd00::1', '::1']) {
    const { dns, tried } = await rig(t, { source })
    assert.deepEqual(await tried('both.example'), [V4], String(source))
    assert.ok(!dns.queries.some(({ type }) => type === 'PTR'))
  }
  const { tried } = await rig(t, { from: SOURCE })
  assert.deepEqual(await tried('both.example'), [V6])
})

test("the operator's own networks are exempt", async (t) => {
  const { dns, tried } = await rig(t, { allow: 'fd00::/8' })
  dns.set('own.example', 'MX', [[10, 'mx.own.example']])
  dns.set('mx.own.example', 'AAAA', ['fd00::2'])
  dns.set('mx.own.example', 'A', [V4])
  assert.deepEqual(await tried('own.example'), ['fd00::2', V4])
})

/** Within one value of the MX records; `two.example` has two hosts of one value, and a third with both families. */
const ORDER: Record<string, { both: string[]; two: string[] }> = {
  ipv4: { both: [V4, V6], two: [OTHER4, OTHER6, V4, V6] },
  ipv6: { both: [V6, V4], two: [OTHER6, OTHER4, V6, V4] },
  'ipv4-only': { both: [V4], two: [OTHER4, V4] },
  'ipv6-only': { both: [V6], two: [OTHER6, V6] },
}

for (const [prefer, expected] of Object.entries(ORDER))
  test(`prefer: ${prefer}`, async (t) => {
    const { dns, tried, advance } = await rig(t, { prefer })
    confirm(dns)
    await eventually('known', async () => {
      advance(LATER_MS)
      const list = await tried('both.example')
      return list.length === expected.both.length && list
    })
    advance(LATER_MS)
    assert.deepEqual(await tried('both.example'), expected.both)
    advance(LATER_MS)
    assert.deepEqual(await tried('two.example'), expected.two)
    advance(LATER_MS)
    assert.deepEqual(await tried('only6.example'), prefer === 'ipv4-only' ? [] : [OTHER6])
  })

test('a preference for IPv6 does not stand in for the name of the source address', async (t) => {
  assert.deepEqual(await (await rig(t, { prefer: 'ipv6' })).tried('both.example'), [V4])
})

test('the system is asked for the source without a packet', async () => {
  assert.equal(await systemSource('::1'), '::1')
})
