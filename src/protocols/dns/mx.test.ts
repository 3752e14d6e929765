import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { type Cidr, parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { findMailHosts, type MxResult } from './mx.ts'
import { createResolver } from './resolver.ts'

const dns = await createDnsServer()
after(() => dns.close())
beforeEach(() => {
  dns.queries.length = 0
  dns.authentic = false
})

/** Minimal standard generator (Park and Miller): the same order in every run. */
function seededRandom(seed = 1): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

const SILENT = ['silent.example', 'wrong-id.example', 'wrong-question.example']

function find(domain: string, allow: string[] = []): Promise<MxResult> {
  // Long where an answer arrives, so that a busy machine does not matter; short where none ever does.
  const timeoutMs = SILENT.includes(domain) ? 300 : 10_000
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs, attempts: 1 })
  return findMailHosts(resolver, domain, {
    random: seededRandom(),
    allow: allow.map((text) => parseCidr(text) as Cidr),
  })
}

/** The hosts in short, or the kind of the other result. */
async function hostsOf(domain: string, allow?: string[]) {
  const result = await find(domain, allow)
  return result.kind === 'hosts' ? result.hosts.map((host) => host.exchange) : result.kind
}

dns.set('mx1.example', 'A', ['193.0.6.1'])
dns.set('mx2.example', 'A', ['193.0.6.2'])
dns.set('mx2.example', 'AAAA', ['2a00::2'])

test('hosts come by preference, with addresses of both families', async () => {
  dns.set('two.example', 'MX', [
    [20, 'mx2.example'],
    [10, 'mx1.example'],
  ])
  const result = await find('two.example')
  assert.deepEqual(result, {
    kind: 'hosts',
    authenticated: false,
    implicit: false,
    hosts: [
      {
        exchange: 'mx1.example',
        canonicalName: 'mx1.example',
        preference: 10,
        addresses: [{ address: '193.0.6.1', family: 4 }],
        authenticated: false,
      },
      {
        exchange: 'mx2.example',
        canonicalName: 'mx2.example',
        preference: 20,
        addresses: [
          { address: '2a00::2', family: 6 },
          { address: '193.0.6.2', family: 4 },
        ],
        authenticated: false,
      },
    ],
  })
})

test('hosts of equal preference change places, others never', async () => {
  dns.set('equal.example', 'MX', [
    [10, 'mx1.example'],
    [10, 'mx2.example'],
    [5, 'mx3.example'],
  ])
  dns.set('mx3.example', 'A', ['193.0.6.3'])
  const resolver = createResolver({ servers: [dns], clock: systemClock })
  const random = seededRandom(42)
  const orders = new Set<string>()
  for (let i = 0; i < 40; i++) {
    const result = await findMailHosts(resolver, 'equal.example', { random })
    assert.ok(result.kind === 'hosts')
    orders.add(result.hosts.map((host) => host.exchange).join(' '))
  }
  assert.deepEqual([...orders].sort(), [
    'mx3.example mx1.example mx2.example',
    'mx3.example mx2.example mx1.example',
  ])
})

test('without MX records the domain itself takes the mail', async () => {
  dns.set('implicit.example', 'A', ['193.0.6.4'])
  const result = await find('implicit.example')
  assert.ok(result.kind === 'hosts' && result.implicit)
  assert.deepEqual([result.hosts[0]?.exchange, result.hosts[0]?.preference], ['implicit.example', 0])
})

test('a host named twice is tried once, with its better preference', async () => {
  dns.set('twice.example', 'MX', [
    [30, 'mx1.example'],
    [20, 'mx2.example'],
    [10, 'MX1.example'],
  ])
  assert.deepEqual(await hostsOf('twice.example'), ['mx1.example', 'mx2.example'])
})

test('aliases are followed at the domain and at the mail host', async () => {
  dns.set('alias.example', 'CNAME', ['two.example'])
  dns.set('two.example', 'MX', [[10, 'mx-alias.example']])
  dns.set('mx-alias.example', 'CNAME', ['mx1.example'])
  const result = await find('alias.example')
  assert.ok(result.kind === 'hosts')
  assert.deepEqual(
    [result.hosts[0]?.exchange, result.hosts[0]?.canonicalName],
    ['mx-alias.example', 'mx1.example'],
  )
})

test('a hundred MX records lead to sixteen hosts and thirty-two address questions at most', async () => {
  const hosts = Array.from({ length: 100 }, (_, i) => `h${i}.hundred.example`)
  for (const host of hosts) dns.set(host, 'A', ['193.0.6.5'])
  dns.set(
    'hundred.example',
    'MX',
    hosts.map((host) => [10, host] as const),
  )
  assert.equal((await hostsOf('hundred.example')).length, 16)
  assert.ok(dns.queries.length <= 2 + 32)
})

test('a host with a hundred addresses gives four of each family', async () => {
  dns.set(
    'wide.example',
    'A',
    Array.from({ length: 100 }, (_, i) => `193.0.7.${i}`),
  )
  dns.set(
    'wide.example',
    'AAAA',
    Array.from({ length: 100 }, (_, i) => `2a00::${i}`),
  )
  const result = await find('wide.example')
  assert.ok(result.kind === 'hosts')
  assert.equal(result.hosts[0]?.addresses.length, 8)
})

test('hosts are authenticated only when the MX answer and their addresses are', async () => {
  dns.authentic = true
  dns.set('signed.example', 'MX', [
    [10, 'mx1.example'],
    [20, 'mx2.example'],
  ])
  dns.mutate = (packet) => {
    const aboutSecond = packet.toString('latin1', 13, 16) === 'mx2'
    if (aboutSecond) packet[3] = (packet[3] as number) & ~0x20
    return packet
  }
  const result = await find('signed.example')
  dns.mutate = null
  assert.ok(result.kind === 'hosts' && result.authenticated)
  assert.deepEqual(
    result.hosts.map((host) => host.authenticated),
    [true, false],
  )
})

// R50: what trouble in DNS means for a message. The cases that need a packet of their own kind are made
// by misbehaviour; "drop" costs one time-out each.
dns.set('null.example', 'MX', [[0, '.']])
dns.set('null-and-more.example', 'MX', [
  [0, '.'],
  [10, 'mx1.example'],
])
dns.set('private.example', 'MX', [[10, 'private-host.example']])
dns.set('private-host.example', 'A', ['10.0.0.5', '127.0.0.1'])
dns.set('private-host.example', 'AAAA', ['::1', 'fd00::1', '::ffff:192.168.0.1'])
dns.set('partly.example', 'MX', [
  [10, 'private-host.example'],
  [20, 'mx1.example'],
])
dns.set('loop.example', 'CNAME', ['loop2.example'])
dns.set('loop2.example', 'CNAME', ['loop.example'])
dns.set('loop-host.example', 'MX', [[10, 'loop.example']])
dns.set('empty.example', 'TXT', ['nothing else'])
dns.set('dangling.example', 'MX', [[10, 'nowhere.invalid']])
dns.set('numeric.example', 'MX', [[10, '193.0.6.1']])
dns.set('half-dead.example', 'MX', [
  [10, 'failing.example'],
  [20, 'mx1.example'],
])
dns.set('all-dead.example', 'MX', [[10, 'failing.example']])
dns.set('truncated.example', 'MX', [[10, 'mx1.example']])
dns.set('gone-alias.example', 'CNAME', ['nowhere.invalid'])
dns.misbehave('failing.example', 'servfail')
dns.misbehave('servfail.example', 'servfail')
dns.misbehave('refused.example', 'refused')
dns.misbehave('silent.example', 'drop')
dns.misbehave('garbage.example', 'garbage')
dns.misbehave('truncated.example', 'truncate')
for (const how of ['wrong-id', 'wrong-question'] as const) {
  dns.set(`${how}.example`, 'MX', [[10, 'mx1.example']])
  dns.misbehave(`${how}.example`, how)
}

const TROUBLE: [domain: string, outcome: string | string[]][] = [
  ['null.example', 'null-mx'],
  ['null-and-more.example', ['mx1.example']],
  ['gone.example', 'no-domain'],
  ['gone-alias.example', 'no-domain'],
  ['not a domain', 'no-domain'],
  ['empty.example', 'no-mail-host'],
  ['dangling.example', 'no-mail-host'],
  ['numeric.example', 'no-mail-host'],
  ['servfail.example', 'temporary'],
  ['refused.example', 'temporary'],
  ['silent.example', 'temporary'],
  ['garbage.example', 'temporary'],
  ['wrong-id.example', 'temporary'],
  ['wrong-question.example', 'temporary'],
  ['loop.example', 'temporary'],
  ['loop-host.example', 'temporary'],
  ['all-dead.example', 'temporary'],
  ['half-dead.example', ['mx1.example']],
  ['truncated.example', ['mx1.example']],
  ['private.example', 'forbidden'],
  ['partly.example', ['mx1.example']],
]

for (const [domain, outcome] of TROUBLE) {
  test(`mail for ${domain} goes to ${outcome}`, async () => {
    assert.deepEqual(await hostsOf(domain), outcome)
  })
}

test('private addresses are used when their network is allowed, and only those', async () => {
  const result = await find('private.example', ['10.0.0.0/8', 'fd00::/8'])
  assert.ok(result.kind === 'hosts')
  assert.deepEqual(result.hosts[0]?.addresses, [
    { address: 'fd00::1', family: 6 },
    { address: '10.0.0.5', family: 4 },
  ])
})

test('reasons name the domain, the server and what it said', async () => {
  const reason = async (domain: string) => {
    const result = await find(domain)
    return 'reason' in result ? result.reason : ''
  }
  assert.equal(
    await reason('servfail.example'),
    `no MX answer for servfail.example from 127.0.0.1:${dns.port}: SERVFAIL`,
  )
  assert.equal(await reason('gone.example'), 'gone.example does not exist')
  assert.equal(
    await reason('gone-alias.example'),
    'gone-alias.example is an alias of nowhere.invalid, which does not exist',
  )
  assert.match(
    await reason('private.example'),
    /^the mail hosts of private.example have only addresses that are not public: ::1/,
  )
  assert.equal(await reason('numeric.example'), 'the MX records of numeric.example name no host')
})

test('denied hosts are left out by name and by address; only if nothing else is left is the domain denied', async () => {
  const deny = {
    name: (exchange: string) => exchange.startsWith('deny'),
    address: (address: string) => address === '193.0.6.66',
  }
  dns.set('deny1.example', 'A', ['193.0.6.1'])
  dns.set('half.example', 'A', ['193.0.6.66', '193.0.6.2'])
  dns.set('whole.example', 'A', ['193.0.6.66'])
  const cases: [exchanges: string[], expected: unknown][] = [
    [['deny1.example', 'mx1.example'], ['mx1.example']],
    [['DENY1.example'], 'denied'],
    [['half.example'], ['half.example']],
    [['whole.example', 'deny1.example'], 'denied'],
    [['whole.example', 'mx1.example'], ['mx1.example']],
    [['whole.example', 'nowhere.example'], 'denied'],
    [['nowhere.example'], 'no-mail-host'],
  ]
  const resolver = createResolver({ servers: [dns], clock: systemClock })
  for (const [at, [exchanges, expected]] of cases.entries()) {
    const domain = `case${at}.example`
    dns.set(
      domain,
      'MX',
      exchanges.map((exchange) => [10, exchange]),
    )
    const found = await findMailHosts(resolver, domain, { random: seededRandom(), deny })
    const got = found.kind === 'hosts' ? found.hosts.map(({ exchange }) => exchange) : found.kind
    assert.deepEqual(got, expected, exchanges.join(' '))
    if (found.kind === 'hosts') assert.doesNotMatch(JSON.stringify(found.hosts), /193\.0\.6\.66/)
  }
  const implicit = await findMailHosts(resolver, 'whole.example', { random: seededRandom(), deny })
  assert.equal(implicit.kind, 'denied')
  resolver.close()
})
