/** R25: what each peer and each policy together come to. */
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { createSink, DEFAULT_EXTENSIONS, type Sink } from '../../../test/support/smtp-sink.ts'
import { testTransport } from '../../../test/support/test-transport.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import type { StsPolicies } from '../../protocols/mta-sts/policies.ts'
import type { StsPolicy } from '../../protocols/mta-sts/policy.ts'
import type { Outcome } from './attempt/outcome.ts'
import type { ClaimedDelivery } from './claim/queue.ts'
import type { TlsSession } from './connect/tls-counts.ts'
import type { Prepared, TlsPolicy } from './contract.ts'

const authority = createAuthority()
const LONG_AGO = { from: new Date('2020-01-01'), to: new Date('2021-01-01') }

type PeerName = 'none' | 'good' | 'broken' | 'expired' | 'wrong name'
type Cell = 'TLS' | 'plain' | 'no'

const certificateOf = (peer: PeerName, host: string) => {
  if (peer === 'expired') return authority.issue([host], LONG_AGO)
  return authority.issue([peer === 'wrong name' ? 'other.example' : host])
}

interface Column {
  wish: TlsPolicy
  sts?: StsPolicy['mode']
  tlsa?: 'match' | 'mismatch'
  /** In the order of PEERS. */
  cells: readonly [Cell, Cell, Cell, Cell, Cell]
  /** Default: where there is a policy of the receiver. */
  reported?: boolean
}

const PEERS: readonly PeerName[] = ['none', 'good', 'broken', 'expired', 'wrong name']
const DEFAULT: TlsPolicy = { required: false, verify: true }

const COLUMNS: Record<string, Column> = {
  'by default': { wish: DEFAULT, cells: ['plain', 'TLS', 'plain', 'plain', 'plain'] },
  'skip-verification': {
    wish: { required: false, verify: false },
    cells: ['plain', 'TLS', 'plain', 'TLS', 'TLS'],
  },
  'require-tls': { wish: { required: true, verify: true }, cells: ['no', 'TLS', 'no', 'no', 'no'] },
  'require-tls and skip-verification': {
    wish: { required: true, verify: false },
    cells: ['no', 'TLS', 'no', 'TLS', 'TLS'],
  },
  'MTA-STS enforce, skip-verification': {
    wish: { required: false, verify: false },
    sts: 'enforce',
    cells: ['no', 'TLS', 'no', 'no', 'no'],
  },
  'MTA-STS testing': {
    wish: DEFAULT,
    sts: 'testing',
    cells: ['plain', 'TLS', 'plain', 'plain', 'plain'],
  },
  'DANE, records fit': { wish: DEFAULT, tlsa: 'match', cells: ['no', 'TLS', 'no', 'TLS', 'TLS'] },
  'DANE, records of another key': { wish: DEFAULT, tlsa: 'mismatch', cells: ['no', 'no', 'no', 'no', 'no'] },
  'a TLS report, MTA-STS enforce': {
    wish: { ...DEFAULT, isOptional: true },
    sts: 'enforce',
    cells: ['plain', 'TLS', 'plain', 'TLS', 'TLS'],
    reported: false,
  },
  'a TLS report, MTA-STS testing': {
    wish: { ...DEFAULT, isOptional: true },
    sts: 'testing',
    cells: ['plain', 'TLS', 'plain', 'TLS', 'TLS'],
    reported: false,
  },
  'a TLS report, require-tls, DANE, records of another key': {
    wish: { required: true, verify: true, isOptional: true },
    tlsa: 'mismatch',
    cells: ['plain', 'TLS', 'plain', 'TLS', 'TLS'],
    reported: false,
  },
}

interface Rig {
  dns: DnsServer
  results: TlsSession[]
  /** `received`: what the sink got; `code`: of the failure. */
  deliver(wish: TlsPolicy): Promise<{ got: Cell; code: number | null }>
  outcome(wish: TlsPolicy): Promise<Outcome>
}

const DOMAIN = 'receiver.example'
const HOST = 'mx.receiver.example'

async function rig(t: TestContext, sink: Sink, policy: StsPolicy | null): Promise<Rig> {
  const dns = await createDnsServer()
  dns.authentic = true
  dns.set(DOMAIN, 'MX', [[10, HOST]])
  dns.set(HOST, 'A', [sink.host])
  const resolver = createResolver({ servers: [{ host: dns.host, port: dns.port }], clock: systemClock })
  const policies: StsPolicies = { of: async () => policy && { policy, id: '1' } }
  const results: TlsSession[] = []
  const transport = testTransport({
    direct: {
      port: sink.port,
      resolver,
      allow: [parseCidr('127.0.0.0/8') ?? assert.fail()],
      policies,
    },
    tlsOptions: { ca: authority.cert },
    tlsCounts: { record: (result) => results.push(result) },
  })
  t.after(async () => {
    await transport.close()
    resolver.close()
    await dns.close()
    await sink.close()
  })
  const outcomeOf: Rig['outcome'] = async (tls) => {
    const delivery = { recipient: `user@${DOMAIN}`, recipient_domain: DOMAIN } as ClaimedDelivery
    const prepared: Extract<Prepared, { kind: 'send' }> = {
      kind: 'send',
      about: {} as Extract<Prepared, { kind: 'send' }>['about'],
      returnPath: 'sender@example.org',
      message: { headers: ['Subject: hello'], body: [Buffer.from('Hi.\r\n')] },
      sizeBytes: 23,
      utf8: false,
      tls,
      primaryDkim: null,
    }
    const lane = await transport.laneOf(delivery)
    const result = await transport.deliver(lane, delivery, prepared, async () => {})
    if ('localFault' in result) throw new Error(result.localFault)
    return result.outcome
  }
  return {
    dns,
    results,
    outcome: outcomeOf,
    async deliver(tls) {
      const outcome = await outcomeOf(tls)
      const [message] = sink.messages
      const got = message ? (message.tls ? 'TLS' : 'plain') : 'no'
      return { got, code: outcome.kind === 'deferred' ? outcome.failure.code : null }
    },
  }
}

async function sinkOf(peer: PeerName): Promise<{ sink: Sink; certificate: Buffer }> {
  if (peer === 'none') return { sink: await createSink(), certificate: Buffer.alloc(32) }
  if (peer === 'broken') {
    const sink = await createSink({ extensions: [...DEFAULT_EXTENSIONS, 'STARTTLS'] })
    return { sink, certificate: Buffer.alloc(32) }
  }
  const tls = certificateOf(peer, HOST)
  return { sink: await createSink({ tls }), certificate: new X509Certificate(tls.cert).raw }
}

for (const [name, column] of Object.entries(COLUMNS)) {
  for (const [index, peer] of PEERS.entries()) {
    const expected = column.cells[index] as Cell
    test(`${name}; peer's TLS: ${peer}: ${expected}`, async (t) => {
      const { sink, certificate } = await sinkOf(peer)
      const policy = column.sts ? { mode: column.sts, mx: [HOST], maxAgeSeconds: 86_400 } : null
      const { dns, deliver, results } = await rig(t, sink, policy)
      if (column.tlsa) {
        const known = column.tlsa === 'match' ? certificate : Buffer.from('another certificate')
        const digest = createHash('sha256').update(known).digest()
        dns.set(`_${sink.port}._tcp.${HOST}`, 'TLSA', [
          { usage: 3, selector: 0, matchingType: 1, certificate: digest },
        ])
      }
      const { got, code } = await deliver(column.wish)
      assert.equal(got, expected)
      assert.equal(code, expected === 'no' ? 680 : null)
      const reported = column.reported ?? (column.sts !== undefined || column.tlsa !== undefined)
      assert.equal(results.length, reported ? 1 : 0)
      if (reported)
        assert.equal(
          results[0]?.result === 'success',
          peer === 'good' ? column.tlsa !== 'mismatch' : got === 'TLS',
        )
    })
  }
}

test('no answer about TLSA records: the host is not used, since an attacker could have hidden them', async (t) => {
  const { sink } = await sinkOf('good')
  const { dns, deliver } = await rig(t, sink, null)
  dns.misbehave(`_${sink.port}._tcp.${HOST}`, 'servfail')
  assert.deepEqual(await deliver(DEFAULT), { got: 'no', code: 680 })
})

test('a host that an enforced MTA-STS policy does not name is not used', async (t) => {
  const { sink } = await sinkOf('good')
  const { deliver } = await rig(t, sink, {
    mode: 'enforce',
    mx: ['*.elsewhere.example'],
    maxAgeSeconds: 86_400,
  })
  assert.deepEqual(await deliver(DEFAULT), { got: 'no', code: 680 })
})

test('a host that the policies of its domain rule out gets TLS reports, and no report about them', async (t) => {
  const { sink } = await sinkOf('good')
  const policy = { mode: 'enforce', mx: ['*.elsewhere.example'], maxAgeSeconds: 86_400 } as const
  const { dns, deliver, results } = await rig(t, sink, policy)
  dns.misbehave(`_${sink.port}._tcp.${HOST}`, 'servfail')
  assert.deepEqual(await deliver({ ...DEFAULT, isOptional: true }), { got: 'TLS', code: null })
  assert.deepEqual(results, [])
})

test('TLS reports and other mail do not share connections', async (t) => {
  for (const wish of [DEFAULT, { required: false, verify: false }]) {
    const { sink } = await sinkOf('good')
    const { deliver, results } = await rig(t, sink, { mode: 'testing', mx: [HOST], maxAgeSeconds: 86_400 })
    const report = { ...wish, isOptional: true }
    for (const tls of [wish, report, report]) await deliver(tls)
    assert.equal(sink.messages.length, 3)
    assert.equal(sink.connections.total, 2, 'the second report uses the connection of the first')
    await deliver(wish)
    assert.equal(results.length, sink.connections.total - 1, 'of each session for other mail')
  }
})

test('DANE with the authority as trust anchor: the chain and the name must fit', async (t) => {
  const anchor = createHash('sha256').update(new X509Certificate(authority.cert).raw).digest()
  for (const [peer, expected] of [
    ['good', 'TLS'],
    ['wrong name', 'no'],
    ['expired', 'no'],
  ] as const) {
    const tls = certificateOf(peer, HOST)
    // A server must send its trust anchor for DANE-TA (RFC 7672 §3.1.2).
    const sink = await createSink({ tls: { key: tls.key, cert: tls.cert + authority.cert } })
    const { dns, deliver } = await rig(t, sink, null)
    dns.set(`_${sink.port}._tcp.${HOST}`, 'TLSA', [
      { usage: 2, selector: 0, matchingType: 1, certificate: anchor },
    ])
    assert.equal((await deliver(DEFAULT)).got, expected, peer)
  }
})

const REQUIRETLS: TlsPolicy = { required: 'requiretls', verify: true }
type Proof = 'DNSSEC' | 'DANE' | 'MTA-STS' | 'MTA-STS testing' | 'the domain itself' | 'none'

/** RFC 8689 §4.2.1: the proof of the host's name, what the server offers, its certificate. Expected: enhanced code; '': delivered. */
const PROTECTION: [proof: Proof, offer: readonly string[], peer: PeerName, expected: string][] = [
  ['DNSSEC', ['REQUIRETLS'], 'good', ''],
  ['DANE', ['REQUIRETLS'], 'wrong name', ''],
  ['MTA-STS', ['REQUIRETLS'], 'good', ''],
  ['MTA-STS testing', ['REQUIRETLS'], 'good', ''],
  ['the domain itself', ['REQUIRETLS'], 'good', ''],
  ['none', ['REQUIRETLS'], 'good', '5.7.10'],
  ['DNSSEC', [], 'good', '5.7.30'],
  ['MTA-STS', [], 'good', '5.7.30'],
  ['DNSSEC', ['REQUIRETLS'], 'wrong name', '5.7.10'],
  ['DNSSEC', ['REQUIRETLS'], 'expired', '5.7.10'],
  ['DNSSEC', ['REQUIRETLS'], 'none', '5.7.10'],
  ['DNSSEC', ['REQUIRETLS', 'DSN'], 'good', ''],
]

for (const [proof, offer, peer, expected] of PROTECTION) {
  test(`REQUIRETLS; name proven by ${proof}; offers ${offer}; certificate ${peer}: ${expected || 'delivered'}`, async (t) => {
    const host = proof === 'the domain itself' ? DOMAIN : HOST
    const certificate = peer === 'none' ? null : certificateOf(peer, host)
    const sink = await createSink({
      extensions: [...DEFAULT_EXTENSIONS, ...offer],
      ...(certificate && { tls: certificate }),
    })
    const mode = proof === 'MTA-STS testing' ? 'testing' : 'enforce'
    const policy = proof.startsWith('MTA-STS') ? { mode, mx: [HOST], maxAgeSeconds: 86_400 } : null
    const { dns, outcome } = await rig(t, sink, policy as StsPolicy | null)
    dns.authentic = proof === 'DNSSEC' || proof === 'DANE'
    if (proof === 'DANE' && certificate) {
      const digest = createHash('sha256').update(new X509Certificate(certificate.cert).raw).digest()
      dns.set(`_${sink.port}._tcp.${HOST}`, 'TLSA', [
        { usage: 3, selector: 0, matchingType: 1, certificate: digest },
      ])
    }
    if (proof === 'the domain itself') {
      dns.set(DOMAIN, 'MX', [[10, DOMAIN]])
      dns.set(DOMAIN, 'A', [sink.host])
    }
    const result = await outcome(REQUIRETLS)
    const failure = result.kind === 'bounced' ? result.failure : null
    assert.deepEqual([result.kind, failure?.enhanced ?? ''], [expected ? 'bounced' : 'delivered', expected])
    assert.equal(failure?.code ?? null, expected ? 680 : null)
    assert.equal(sink.messages.length, expected ? 0 : 1)
    const mail = sink.commands.map(([, line]) => line).find((line) => line.startsWith('MAIL'))
    if (!expected) assert.match(mail ?? '', offer.includes('DSN') ? / REQUIRETLS RET=HDRS$/ : / REQUIRETLS$/)
    else assert.equal(mail, undefined)
  })
}

test('REQUIRETLS: the next host is tried, and one that may come back defers the message', async (t) => {
  const tls = certificateOf('good', HOST)
  const sink = await createSink({ tls })
  const { dns, outcome } = await rig(t, sink, null)
  const other = await createSink({
    ...{ host: '127.0.0.9', port: sink.port, tls: certificateOf('good', 'mx2.receiver.example') },
    extensions: [...DEFAULT_EXTENSIONS, 'REQUIRETLS'],
  })
  dns.set(DOMAIN, 'MX', [
    [10, HOST],
    [20, 'mx2.receiver.example'],
  ])
  dns.set('mx2.receiver.example', 'A', ['127.0.0.9'])
  assert.equal((await outcome(REQUIRETLS)).kind, 'delivered')
  assert.deepEqual([sink.messages.length, other.messages.length], [0, 1])
  await other.close()
  assert.equal((await outcome(DEFAULT)).kind, 'delivered')
  assert.equal(sink.messages.length, 1, 'other mail still goes to the first')
  assert.equal((await outcome(REQUIRETLS)).kind, 'deferred')
})
