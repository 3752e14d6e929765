import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, encode } from 'dns-packet'
import fc from 'fast-check'
import { interpretReply } from './interpret.ts'
import { isWithin, normalizeName, reverseName } from './names.ts'
import { DnsSyntaxError, decodeReply, encodeQuery, isReplyTo, type Reply } from './packet.ts'
import { parseResolvConf, systemServers } from './system-servers.ts'

const RESPONSE_FLAGS = 0x0180
const question = { name: 'example.org', type: 'MX' as const }

function replyOf(answers: Answer[], authorities: Answer[] = []): Buffer {
  return encode({
    type: 'response',
    id: 7,
    flags: RESPONSE_FLAGS,
    questions: [question],
    answers,
    authorities,
  })
}

// RFC 1035 §4.1.4 compression as every real server uses it: the owner points to the question, the exchange
// is one label and a pointer to it.
const COMPRESSED = Buffer.from(
  '000781800001000200000000076578616d706c65036f726700000f0001' +
    'c00c000f00010000003c00070005026d78c00c' +
    'c00c000f00010000003c0008000a036d7832c00c',
  'hex',
)

test('compressed names are read', () => {
  assert.deepEqual(decodeReply(COMPRESSED).answers, [
    { name: 'example.org', ttlSeconds: 60, type: 'MX', data: { preference: 5, exchange: 'mx.example.org' } },
    {
      name: 'example.org',
      ttlSeconds: 60,
      type: 'MX',
      data: { preference: 10, exchange: 'mx2.example.org' },
    },
  ])
})

test('bytes that are no reply are one kind of error', () => {
  const loop = Buffer.from(COMPRESSED)
  loop.writeUInt16BE(0xc01d, 0x1d) // the owner of the first record points to itself
  const forward = Buffer.from(COMPRESSED)
  forward.writeUInt16BE(0xc030, 0x1d)
  const counts = Buffer.from(COMPRESSED)
  counts.writeUInt16BE(0xffff, 10)
  const twoQuestions = Buffer.from(COMPRESSED)
  twoQuestions.writeUInt16BE(2, 4)
  const badLength = Buffer.from(COMPRESSED)
  badLength.writeUInt16BE(6, 0x1d + 10) // one byte less than the MX record takes
  const badLabel = Buffer.from(COMPRESSED)
  badLabel[0x1d] = 0x80
  const cases = {
    empty: Buffer.alloc(0),
    header: Buffer.alloc(11),
    loop,
    forward,
    counts,
    twoQuestions,
    badLength,
    badLabel,
    cut: COMPRESSED.subarray(0, -3),
  }
  for (const [name, packet] of Object.entries(cases))
    assert.throws(() => decodeReply(packet), DnsSyntaxError, name)
})

test('records that cannot be used are left out, the others stay', () => {
  const mx = (exchange: string): Answer => ({
    ...question,
    class: 'IN',
    ttl: 60,
    data: { preference: 1, exchange },
  })
  const chaos: Answer = { ...mx('chaos.example'), class: 'CH' } as Answer
  const reply = decodeReply(
    replyOf([mx('good.example'), mx('bad host.example'), mx('bad\r\n.example'), chaos, mx('.')]),
  )
  assert.deepEqual(
    reply.answers.map((record) => record.type === 'MX' && record.data.exchange),
    ['good.example', ''],
  )
})

test('a TTL with its top bit set counts as zero', () => {
  const [record] = decodeReply(
    replyOf([{ ...question, ttl: 0xffff_ffff, data: { preference: 1, exchange: 'a.b' } }]),
  ).answers
  assert.equal(record?.ttlSeconds, 0)
})

test('only the reply to the same question with the same id counts', () => {
  const query = encodeQuery({ id: 7, name: 'example.org', type: 'MX', edns: true })
  const good = replyOf([])
  assert.ok(isReplyTo(query, good))
  assert.ok(
    isReplyTo(query, encode({ type: 'response', id: 7, questions: [{ ...question, name: 'EXAMPLE.org' }] })),
  )
  assert.ok(
    isReplyTo(query, encode({ type: 'response', id: 7, flags: 1, questions: [] })),
    'FORMERR without question',
  )
  const wrong = {
    id: encode({ type: 'response', id: 8, questions: [question] }),
    name: encode({ type: 'response', id: 7, questions: [{ ...question, name: 'example.com' }] }),
    type: encode({ type: 'response', id: 7, questions: [{ ...question, type: 'TXT' }] }),
    class: encode({ type: 'response', id: 7, questions: [{ ...question, class: 'CH' }] }),
    query: encode({ type: 'query', id: 7, questions: [question] }),
    none: encode({ type: 'response', id: 7, questions: [] }),
    short: good.subarray(0, 11),
    cut: good.subarray(0, 20),
  }
  for (const [name, packet] of Object.entries(wrong)) assert.ok(!isReplyTo(query, packet), name)
})

test('answers for other names do not count', () => {
  const record = { name: 'other.example', type: 'A' as const, ttlSeconds: 60, data: '192.0.2.1' }
  const reply: Reply = {
    rcode: 0,
    authenticData: false,
    authoritative: false,
    recursionAvailable: true,
    answers: [record],
    authorities: [],
  }
  assert.equal(interpretReply(reply, 'example.org', 'A', []).kind, 'nodata')
  // Nor does an SOA of another zone say how long that holds.
  const soa = {
    name: 'other',
    type: 'SOA' as const,
    ttlSeconds: 60,
    data: { primary: '', serial: 1, minimum: 60 },
  }
  assert.deepEqual(interpretReply({ ...reply, authorities: [soa] }, 'example.org', 'A', []), {
    kind: 'nodata',
    chain: [],
    ttlSeconds: 0,
  })
})

test('mutated packets give a reply or a DnsSyntaxError, never anything else', () => {
  const seeds = [
    COMPRESSED,
    replyOf(
      [
        { name: 'example.org', type: 'CNAME', ttl: 5, data: 'b.example.org' },
        { name: 'b.example.org', type: 'A', ttl: 5, data: '192.0.2.1' },
        { name: 'b.example.org', type: 'AAAA', ttl: 5, data: '2001:db8::1' },
        { name: 'b.example.org', type: 'TXT', ttl: 5, data: ['one', 'two'] },
        {
          name: 'b.example.org',
          type: 'TLSA',
          ttl: 5,
          data: { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32) },
        },
        { name: 'b.example.org', type: 'NS', ttl: 5, data: 'ns.example.org' },
      ],
      [{ name: 'org', type: 'SOA', ttl: 5, data: { mname: 'a.b', rname: 'c.d', minimum: 9 } }],
    ),
  ]
  const edit = fc.tuple(fc.nat(400), fc.integer({ min: 0, max: 255 }))
  const mutated = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(edit, { minLength: 1, maxLength: 6 }),
      fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(20)),
    )
    .map(([seed, edits, cut]) => {
      const packet = Buffer.from(seed)
      for (const [at, value] of edits) packet[at % packet.length] = value
      return packet.subarray(0, packet.length - cut)
    })
  const query = encodeQuery({ id: 7, name: 'example.org', type: 'MX', edns: true })
  let decoded = 0
  fc.assert(
    fc.property(
      fc.oneof({ weight: 9, arbitrary: mutated }, fc.uint8Array({ maxLength: 80 }).map(Buffer.from)),
      (packet) => {
        isReplyTo(query, packet)
        try {
          const reply = decodeReply(packet)
          decoded += 1
          for (const type of ['A', 'MX', 'CNAME', 'TXT', 'TLSA'] as const) {
            const step = interpretReply(reply, 'example.org', type, [])
            assert.ok(step.chain.length <= 8)
          }
        } catch (error) {
          assert.ok(error instanceof DnsSyntaxError, String(error))
        }
      },
    ),
    { seed: 1035, numRuns: 6000 },
  )
  assert.ok(decoded > 500, 'enough mutants get past the frame to test what comes after it')
})

test('a message full of pointers to pointers ends', () => {
  // 8,000 pointers, each to the one before, then as many records as allowed whose names start at the last.
  const header = Buffer.from('000781800000 03e8 00000000'.replaceAll(' ', ''), 'hex')
  const chain = Buffer.alloc(16_000)
  for (let at = 2; at < chain.length; at += 2) chain.writeUInt16BE(0xc000 | (21 + at), at)
  const first = Buffer.concat([
    Buffer.from('000010000100000001', 'hex'),
    Buffer.from([chain.length >> 8, chain.length & 255]),
    chain,
  ])
  first.writeUInt16BE(10, 1) // NULL: any content
  const record = Buffer.from('0000000100010000000100047f000001', 'hex')
  record.writeUInt16BE(0xc000 | (12 + 11 + chain.length - 2), 0)
  const packet = Buffer.concat([header, first, ...new Array<Buffer>(999).fill(record)])
  assert.equal(decodeReply(packet).answers.length, 999)
})

test('names have one form', () => {
  const cases: [string, string | null][] = [
    ['Example.ORG.', 'example.org'],
    ['_DMARC.example.org', '_dmarc.example.org'],
    ['münchen.example', 'xn--mnchen-3ya.example'],
    ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    ['0x7f.1', '0x7f.1'],
    ['ex%41mple.org', 'ex%41mple.org'],
    ['a'.repeat(63), 'a'.repeat(63)],
    [`${'a'.repeat(64)}`, null],
    ['..', null],
    ['.a', null],
    ['a b', null],
    ['a\nb', null],
    ['ü/x', null],
    ['ü:25', null],
    ['ü\u00ad', 'xn--tda'],
    [`${'abc.'.repeat(63)}a`, `${'abc.'.repeat(63)}a`],
    [`${'abc.'.repeat(63)}ab`, null],
  ]
  for (const [name, form] of cases) assert.equal(normalizeName(name), form, name)
})

test('a name lies within itself and its parents only', () => {
  assert.ok(isWithin('a.example', 'example') && isWithin('example', 'example') && isWithin('example', ''))
  assert.ok(!isWithin('aexample', 'example') && !isWithin('example', 'a.example'))
})

test('reverse names follow RFC 1035 and RFC 3596', () => {
  assert.equal(reverseName('192.0.2.65'), '65.2.0.192.in-addr.arpa')
  assert.equal(
    reverseName('4321:0:1:2:3:4:567:89ab'),
    'b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa',
  )
  assert.equal(reverseName('example'), null)
})

test('name servers are read from resolv.conf', () => {
  const text =
    '# comment\nsearch lan\nnameserver 192.0.2.53\n nameserver\tfe80::1%eth0\nnameserver dns.example\n;nameserver 192.0.2.1\nnameserver 192.0.2.54\nnameserver 192.0.2.55\n'
  assert.deepEqual(
    parseResolvConf(text).map((server) => `${server.host} ${server.port}`),
    ['192.0.2.53 53', 'fe80::1%eth0 53', '192.0.2.54 53'],
  )
  assert.ok(Array.isArray(systemServers('/nowhere/resolv.conf')))
})
