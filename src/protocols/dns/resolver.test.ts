import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { createDnsServer, type Misbehaviour } from '../../../test/support/dns-server.ts'
import { type Clock, systemClock } from '../../base/time/clock.ts'
import { createResolver, type ResolverOptions } from './resolver.ts'

/** Time that moves only by `advance`. */
function createManualClock(): Clock & { advance(ms: number): void } {
  let nowMs = 0
  const timers = new Map<object, { atMs: number; run: () => void }>()
  return {
    now: () => nowMs,
    monotonic: () => nowMs,
    setTimer(delayMs, run) {
      const handle = { cancel: () => timers.delete(handle) }
      timers.set(handle, { atMs: nowMs + delayMs, run })
      return handle
    },
    advance(ms) {
      nowMs += ms
      for (const [handle, timer] of [...timers]) {
        if (timer.atMs > nowMs) continue
        timers.delete(handle)
        timer.run()
      }
    },
  }
}

const dns = await createDnsServer()
const other = await createDnsServer()
after(() => Promise.all([dns.close(), other.close()]))

beforeEach(() => {
  for (const server of [dns, other]) {
    server.queries.length = 0
    server.mutate = null
    server.authentic = false
    server.chaseCnames = true
    server.negativeTtlSeconds = 60
  }
})

const resolverOf = (options: Partial<ResolverOptions> = {}) =>
  createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, ...options })

test('records of every type arrive in their form', async () => {
  const certificate = Buffer.from('00112233', 'hex')
  dns.set('types.example', 'A', ['192.0.2.1', '192.0.2.2'])
  dns.set('types.example', 'AAAA', ['2001:db8::1'])
  dns.set('types.example', 'MX', [[10, 'MX.Types.Example']])
  dns.set('types.example', 'TXT', [['v=spf1 ', '-all'], 'other'])
  dns.set('types.example', 'NS', ['ns1.types.example'])
  dns.set('_25._tcp.types.example', 'TLSA', [{ usage: 3, selector: 1, matchingType: 1, certificate }])
  dns.set('1.2.0.192.in-addr.arpa', 'PTR', ['types.example'])
  const resolver = resolverOf()
  const records = async (name: string, type: Parameters<typeof resolver.query>[1]) =>
    (await resolver.query(name, type)).records
  assert.deepEqual(await records('types.example', 'A'), ['192.0.2.1', '192.0.2.2'])
  assert.deepEqual(await records('types.example', 'AAAA'), ['2001:db8::1'])
  assert.deepEqual(await records('types.example', 'MX'), [{ preference: 10, exchange: 'mx.types.example' }])
  assert.deepEqual(await records('types.example', 'TXT'), ['v=spf1 -all', 'other'])
  assert.deepEqual(await records('types.example', 'NS'), ['ns1.types.example'])
  assert.deepEqual(await records('1.2.0.192.in-addr.arpa', 'PTR'), ['types.example'])
  assert.deepEqual(await records('_25._tcp.types.example', 'TLSA'), [
    { usage: 3, selector: 1, matchingType: 1, certificate: Uint8Array.from(certificate) },
  ])
})

test('the answer names the question, the server and its time', async () => {
  dns.set('Asked.Example', 'A', ['192.0.2.1'], 120)
  assert.deepEqual(await resolverOf().query('ASKED.example.', 'A'), {
    kind: 'records',
    records: ['192.0.2.1'],
    chain: [],
    ttlSeconds: 120,
    authenticated: false,
    server: `127.0.0.1:${dns.port}`,
    asked: { name: 'asked.example', type: 'A' },
    problem: '',
  })
})

test('names are asked in lower case and as A-labels; impossible ones never leave', async () => {
  dns.set('xn--bcher-kva.example', 'A', ['192.0.2.1'])
  const resolver = resolverOf()
  assert.equal((await resolver.query('BÜCHER.example', 'A')).kind, 'records')
  for (const name of [
    '',
    '.',
    'a..example',
    `${'a'.repeat(64)}.example`,
    'a b.example',
    `${'a.'.repeat(130)}x`,
    'ü%00.example',
    'a\\.b',
  ]) {
    const answer = await resolver.query(name, 'A')
    assert.deepEqual([answer.kind, answer.server], ['nxdomain', ''], name)
  }
  assert.equal(dns.queries.length, 1)
})

test('queries carry EDNS0 without DO, and changing ids and ports', async () => {
  dns.set('edns.example', 'A', ['192.0.2.1'], 0)
  const resolver = resolverOf()
  for (let i = 0; i < 8; i++) await resolver.query('edns.example', 'A')
  assert.ok(dns.queries.every((query) => query.edns))
  assert.deepEqual(
    dns.queries.map((query) => query.dnssecOk),
    new Array(8).fill(false),
  )
  assert.ok(new Set(dns.queries.map((query) => query.id)).size > 6)
  assert.ok(new Set(dns.queries.map((query) => query.sourcePort)).size > 4)
})

// Name, misbehaviour, kind of the answer, transports used against one server in one round.
const TROUBLE: [Misbehaviour, string, string[]][] = [
  ['servfail', 'servfail', ['udp']],
  ['refused', 'refused', ['udp']],
  ['formerr', 'servfail', ['udp', 'udp']],
  ['garbage', 'malformed', ['udp']],
  ['referral', 'refused', ['udp']],
  ['no-edns', 'records', ['udp', 'udp']],
  ['truncate', 'records', ['udp', 'tcp']],
  ['truncate-always', 'malformed', ['udp', 'tcp']],
  ['close-tcp', 'malformed', ['udp', 'tcp']],
  ['flood', 'records', ['udp', 'tcp']],
]

for (const [how, kind, transports] of TROUBLE) {
  test(`a server that answers with "${how}" gives "${kind}"`, async () => {
    dns.set('trouble.example', 'A', ['192.0.2.1'])
    dns.misbehave('trouble.example', how)
    const answer = await resolverOf({ attempts: 1 }).query('trouble.example', 'A')
    assert.equal(answer.kind, kind)
    assert.equal(answer.problem === '', kind === 'records')
    assert.deepEqual(
      dns.queries.map((query) => query.transport),
      transports,
    )
    dns.remove('trouble.example')
  })
}

for (const how of ['drop', 'wrong-id', 'wrong-question'] as const) {
  test(`an answer spoilt by "${how}" is no answer: time-out after every attempt`, async () => {
    dns.set('silent.example', 'A', ['192.0.2.1'])
    dns.misbehave('silent.example', how)
    const clock = createManualClock()
    const first = dns.nextQuery()
    const asked = resolverOf({ clock, attempts: 2, timeoutMs: 1000 }).query('silent.example', 'A')
    await first
    const second = dns.nextQuery()
    // The stray datagram is ignored whether it comes before or after the clock moves.
    clock.advance(1000)
    await second
    clock.advance(2000)
    const answer = await asked
    assert.deepEqual([answer.kind, answer.server], ['timeout', `127.0.0.1:${dns.port}`])
    assert.equal(dns.queries.length, 2)
    dns.remove('silent.example')
  })
}

test('a closed port is noticed at once and the next server asked', async () => {
  const gone = await createDnsServer()
  await gone.close()
  dns.set('next.example', 'A', ['192.0.2.1'])
  const resolver = resolverOf({
    servers: [{ host: gone.host, port: gone.port }, dns],
    clock: createManualClock(),
  })
  const answer = await resolver.query('next.example', 'A')
  assert.deepEqual([answer.kind, answer.server], ['records', `127.0.0.1:${dns.port}`])
})

test('a server that was silent is asked last for a while', async () => {
  const clock = createManualClock()
  dns.misbehave('rest.example', 'drop')
  for (const name of ['rest.example', 'rest2.example', 'rest3.example']) other.set(name, 'A', ['192.0.2.9'])
  dns.set('rest3.example', 'A', ['192.0.2.3'])
  const resolver = resolverOf({ servers: [dns, other], clock, timeoutMs: 500 })
  const first = dns.nextQuery()
  const asked = resolver.query('rest.example', 'A')
  await first
  clock.advance(500)
  assert.deepEqual((await asked).records, ['192.0.2.9'])
  assert.deepEqual((await resolver.query('rest2.example', 'A')).records, ['192.0.2.9'])
  assert.equal(dns.queries.length, 1)
  clock.advance(30_000)
  assert.deepEqual((await resolver.query('rest3.example', 'A')).records, ['192.0.2.3'])
})

test('an answer that comes after the query was repeated counts', async () => {
  dns.set('late.example', 'A', ['192.0.2.1'])
  dns.misbehave('late.example', 'late')
  const clock = createManualClock()
  const first = dns.nextQuery()
  const asked = resolverOf({ clock, timeoutMs: 1000 }).query('late.example', 'A')
  await first
  clock.advance(1000)
  assert.deepEqual((await asked).records, ['192.0.2.1'])
  const [one, two] = dns.queries
  assert.notEqual(one?.sourcePort, two?.sourcePort)
  dns.remove('late.example')
})

test('an answer counts that comes while the next server is silent', async () => {
  dns.set('late.example', 'A', ['192.0.2.1'])
  other.misbehave('late.example', 'drop')
  const clock = createManualClock()
  const release = dns.hold()
  const first = dns.nextQuery()
  const asked = resolverOf({ clock, servers: [dns, other], timeoutMs: 1000 }).query('late.example', 'A')
  await first
  const second = other.nextQuery()
  clock.advance(1000)
  await second
  release()
  const { records, server } = await asked
  assert.deepEqual([records, server], [['192.0.2.1'], `127.0.0.1:${dns.port}`])
  for (const each of [dns, other]) each.remove('late.example')
})

test('names whose servers never answer do not delay the others', async () => {
  const resolver = resolverOf()
  dns.set('prompt.example', 'A', ['192.0.2.1'])
  const names = Array.from({ length: 1_000 }, (_, n) => `silent${n}.example`)
  let ended = 0
  for (const name of names) {
    dns.misbehave(name, 'drop')
    void resolver.query(name, 'A').then(() => ended++)
  }
  assert.equal((await resolver.query('prompt.example', 'A')).kind, 'records')
  assert.equal(ended, 0)
  resolver.close()
  for (const name of names) dns.remove(name)
})

test('NXDOMAIN and a missing type are distinguished', async () => {
  dns.set('here.example', 'A', ['192.0.2.1'])
  dns.set('_dmarc.parent.example', 'TXT', ['x'])
  const resolver = resolverOf()
  assert.equal((await resolver.query('gone.example', 'MX')).kind, 'nxdomain')
  assert.equal((await resolver.query('here.example', 'MX')).kind, 'nodata')
  assert.equal((await resolver.query('parent.example', 'TXT')).kind, 'nodata')
})

for (const chase of [true, false]) {
  test(`CNAMEs are followed ${chase ? 'within a reply' : 'by asking on'}, the shortest TTL counts`, async () => {
    dns.chaseCnames = chase
    dns.set('a.example', 'CNAME', ['b.example'], 200)
    dns.set('b.example', 'CNAME', ['c.example'], 30)
    dns.set('c.example', 'A', ['192.0.2.1'], 100)
    const answer = await resolverOf().query('a.example', 'A')
    assert.deepEqual(
      [answer.records, answer.chain, answer.ttlSeconds],
      [['192.0.2.1'], ['b.example', 'c.example'], 30],
    )
    assert.equal(dns.queries.length, chase ? 1 : 3)
  })

  test(`a CNAME loop and a long chain end as a failure ${chase ? 'within a reply' : 'by asking on'}`, async () => {
    dns.chaseCnames = chase
    dns.set('l1.example', 'CNAME', ['l2.example'])
    dns.set('l2.example', 'CNAME', ['l1.example'])
    const loop = await resolverOf().query('l1.example', 'A')
    assert.deepEqual(
      [loop.kind, loop.problem],
      ['servfail', 'CNAME loop: l1.example -> l2.example -> l1.example'],
    )
    for (let i = 0; i < 12; i++) dns.set(`n${i}.example`, 'CNAME', [`n${i + 1}.example`])
    dns.set('n12.example', 'A', ['192.0.2.1'])
    const long = await resolverOf().query('n0.example', 'A')
    assert.deepEqual([long.kind, long.problem], ['servfail', 'more than 8 CNAME records in a row'])
    assert.equal((await resolverOf().query('n4.example', 'A')).kind, 'records') // exactly eight
    assert.ok(dns.queries.length < 30)
  })

  test(`a CNAME to nothing is NXDOMAIN with its chain ${chase ? 'within a reply' : 'by asking on'}`, async () => {
    dns.chaseCnames = chase
    dns.set('dangling.example', 'CNAME', ['nowhere.example'])
    const answer = await resolverOf().query('dangling.example', 'A')
    assert.deepEqual([answer.kind, answer.chain], ['nxdomain', ['nowhere.example']])
  })
}

test('a question for the CNAME itself is not followed', async () => {
  dns.set('alias.example', 'CNAME', ['target.example'])
  const answer = await resolverOf().query('alias.example', 'CNAME')
  assert.deepEqual([answer.records, answer.chain], [['target.example'], []])
})

test('answers are kept for their TTL and no longer, by the given clock', async () => {
  const clock = createManualClock()
  dns.set('ttl.example', 'A', ['192.0.2.1'], 60)
  const resolver = resolverOf({ clock })
  await resolver.query('ttl.example', 'A')
  clock.advance(59_000)
  assert.equal((await resolver.query('TTL.example.', 'A')).ttlSeconds, 1)
  assert.equal(dns.queries.length, 1)
  clock.advance(1000)
  await resolver.query('ttl.example', 'A')
  assert.equal(dns.queries.length, 2)
})

test('a TTL of zero is not kept, one of a month for a day', async () => {
  const clock = createManualClock()
  dns.set('zero.example', 'A', ['192.0.2.1'], 0)
  dns.set('month.example', 'A', ['192.0.2.1'], 30 * 86_400)
  const resolver = resolverOf({ clock })
  for (const name of ['zero.example', 'zero.example', 'month.example']) await resolver.query(name, 'A')
  assert.equal(dns.queries.length, 3)
  clock.advance(86_399_000)
  await resolver.query('month.example', 'A')
  assert.equal(dns.queries.length, 3)
  clock.advance(1000)
  await resolver.query('month.example', 'A')
  assert.equal(dns.queries.length, 4)
})

test('a firm "no" is kept for the negative TTL, and not without an SOA', async () => {
  const clock = createManualClock()
  const resolver = resolverOf({ clock })
  dns.negativeTtlSeconds = 20
  for (const seconds of [0, 19, 1]) {
    clock.advance(seconds * 1000)
    assert.equal((await resolver.query('no.example', 'A')).kind, 'nxdomain')
  }
  assert.equal(dns.queries.length, 2)
  dns.negativeTtlSeconds = null
  for (let i = 0; i < 2; i++) await resolver.query('nosoa.example', 'A')
  assert.equal(dns.queries.length, 4)
})

test('a failure is kept for five seconds', async () => {
  const clock = createManualClock()
  dns.misbehave('fails.example', 'servfail')
  const resolver = resolverOf({ clock })
  for (const seconds of [0, 4, 1]) {
    clock.advance(seconds * 1000)
    assert.equal((await resolver.query('fails.example', 'A')).kind, 'servfail')
  }
  assert.equal(dns.queries.length, 2)
})

test('the least recently used answer makes room', async () => {
  for (const name of ['one.example', 'two.example', 'three.example']) dns.set(name, 'A', ['192.0.2.1'])
  const resolver = resolverOf({ cacheEntriesMax: 2 })
  const ask = async (name: string) => {
    const before = dns.queries.length
    await resolver.query(`${name}.example`, 'A')
    return dns.queries.length > before
  }
  assert.deepEqual(
    [
      await ask('one'),
      await ask('two'),
      await ask('one'),
      await ask('three'),
      await ask('one'),
      await ask('two'),
    ],
    [true, true, false, true, false, true],
  )
})

test('a fresh question goes past the cache and renews it', async () => {
  dns.set('fresh.example', 'TXT', ['old'])
  const resolver = resolverOf()
  await resolver.query('fresh.example', 'TXT')
  dns.set('fresh.example', 'TXT', ['new'])
  assert.deepEqual((await resolver.query('fresh.example', 'TXT')).records, ['old'])
  assert.deepEqual((await resolver.query('fresh.example', 'TXT', { fresh: true })).records, ['new'])
  assert.deepEqual((await resolver.query('fresh.example', 'TXT')).records, ['new'])
})

test('equal questions at one time share one query; other types and names do not', async () => {
  dns.set('shared.example', 'A', ['192.0.2.1'])
  const resolver = resolverOf()
  const release = dns.hold()
  const first = dns.nextQuery()
  const asked = Array.from({ length: 50 }, (_, i) =>
    resolver.query(i % 2 ? 'SHARED.example' : 'shared.example', 'A'),
  )
  const missing = resolver.query('shared.example', 'AAAA')
  await first
  release()
  for (const answer of await Promise.all(asked)) assert.deepEqual(answer.records, ['192.0.2.1'])
  await missing
  assert.deepEqual(dns.queries.map((query) => query.type).sort(), ['A', 'AAAA'])
})

test('an aborted caller stops waiting, others that share the query get the answer', async () => {
  dns.set('abort.example', 'A', ['192.0.2.1'])
  const resolver = resolverOf()
  const release = dns.hold()
  const arrived = dns.nextQuery()
  const controller = new AbortController()
  const patient = resolver.query('abort.example', 'A')
  const impatient = resolver.query('abort.example', 'A', { signal: controller.signal })
  await arrived
  controller.abort(new Error('enough'))
  await assert.rejects(impatient, /enough/)
  release()
  assert.equal((await patient).kind, 'records')
  await assert.rejects(resolver.query('abort.example', 'A', { signal: controller.signal }), /enough/)
})

test('many questions at once are asked in turn and all answered', async () => {
  const resolver = resolverOf()
  const names = Array.from({ length: 600 }, (_, i) => `many${i}.example`)
  for (const name of names) dns.set(name, 'A', ['192.0.2.1'])
  const answers = await Promise.all(names.map((name) => resolver.query(name, 'A')))
  assert.ok(answers.every((answer) => answer.kind === 'records'))
})

test('a large answer comes whole over TCP', async () => {
  const exchanges = Array.from(
    { length: 100 },
    (_, i) => [i, `mx${i}.a-long-name-for-a-mail-host.example`] as const,
  )
  dns.set('large.example', 'MX', exchanges)
  const answer = await resolverOf().query('large.example', 'MX')
  assert.equal(answer.records.length, 100)
  assert.deepEqual(
    dns.queries.map((query) => query.transport),
    ['udp', 'tcp'],
  )
})

test('the AD bit counts from a server on loopback, for "no" too, and for every link of a chain', async () => {
  dns.authentic = true
  dns.set('signed.example', 'A', ['192.0.2.1'])
  dns.set('half.example', 'CNAME', ['unsigned.example'])
  dns.set('unsigned.example', 'A', ['192.0.2.1'])
  assert.equal((await resolverOf().query('signed.example', 'A')).authenticated, true)
  assert.equal((await resolverOf().query('signed.example', 'MX')).authenticated, true)
  assert.equal((await resolverOf().query('half.example', 'A')).authenticated, true)
  dns.chaseCnames = false
  dns.mutate = (packet) => {
    const unsigned =
      packet.includes('unsigned') && packet.readUInt16BE(6) > 0 && packet[12] === 'unsigned'.length
    if (unsigned) packet[3] = (packet[3] as number) & ~0x20
    return packet
  }
  assert.equal((await resolverOf().query('half.example', 'A')).authenticated, false)
})

test('TLSA is not asked of a server that does not validate while one that does is configured', async () => {
  dns.misbehave('_25._tcp.dane.example', 'servfail')
  const remote = { host: '192.0.2.53', port: 53 } // asked by mistake, it would give a time-out
  const answer = await resolverOf({ servers: [dns, remote] }).query('_25._tcp.dane.example', 'TLSA')
  assert.deepEqual([answer.kind, answer.server], ['servfail', `127.0.0.1:${dns.port}`])
})

test('what a validating server refuses to answer is not asked of one that does not validate', async () => {
  dns.misbehave('forged.example', 'servfail')
  const remote = { host: '192.0.2.53', port: 53 }
  const answer = await resolverOf({ servers: [dns, remote] }).query('forged.example', 'A')
  assert.deepEqual([answer.kind, answer.server], ['servfail', `127.0.0.1:${dns.port}`])
})

test('one refusing server does not hide the answer of another', async () => {
  dns.misbehave('split.example', 'servfail')
  other.set('split.example', 'A', ['192.0.2.1'])
  const answer = await resolverOf({ servers: [dns, other] }).query('split.example', 'A')
  assert.deepEqual([answer.kind, answer.server], ['records', `127.0.0.1:${other.port}`])
})

test('closing ends what is open and lets nothing new out', async () => {
  dns.misbehave('closing.example', 'drop')
  const resolver = resolverOf({ clock: createManualClock() })
  const arrived = dns.nextQuery()
  const asked = resolver.query('closing.example', 'A')
  await arrived
  resolver.close()
  assert.equal((await asked).kind, 'timeout')
  assert.equal((await resolver.query('later.example', 'A')).kind, 'timeout')
  assert.equal(dns.queries.length, 1)
})

test('servers that are no addresses are refused at once', () => {
  for (const servers of [[], [{ host: 'dns.example', port: 53 }], [{ host: '127.0.0.1', port: 0 }]])
    assert.throws(() => createResolver({ servers, clock: systemClock }), RangeError)
})
