import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { DnsType, RecordData } from './packet.ts'
import {
  checkAddress,
  checkCname,
  checkDkim,
  checkDmarc,
  checkMx,
  checkSpf,
  type DmarcFacts,
  type DmarcUse,
  type RecordCheck,
} from './record-data.ts'
import type { DnsAnswer } from './resolver.ts'

function answerOf<T extends DnsType>(
  name: string,
  type: T,
  records: readonly RecordData[T][],
  more: Partial<DnsAnswer<T>> = {},
): DnsAnswer<T> {
  const kind = records.length > 0 ? 'records' : 'nodata'
  const asked = { name, type }
  return {
    kind,
    records,
    chain: [],
    ttlSeconds: 60,
    authenticated: false,
    server: '127.0.0.1:53',
    asked,
    problem: '',
    ...more,
  }
}

const txt = (...records: string[]) => answerOf('example.org', 'TXT', records)

function assertCheck(check: RecordCheck, valid: boolean, sentence: RegExp) {
  assert.equal(check.valid, valid, check.sentence)
  assert.match(check.sentence, sentence)
  assert.match(check.sentence, /^127\.0\.0\.1:53 was asked for [A-Z]+ records of \S+\. /)
}

const SPF: [records: string[], valid: boolean, sentence: RegExp][] = [
  [['v=spf1 include:spf.example.net ~all'], true, /includes spf\.example\.net\.$/],
  [['v=spf1 a include:SPF.example.net. -all'], true, /includes/],
  [['V=SPF1 +include:spf.example.net ?all', 'google-site-verification=x'], true, /includes/],
  [['v=spf1 ~all include:spf.example.net'], true, /stop reading at "all"/],
  [
    ['v=spf1 include:other.example -all'],
    false,
    /Change it to: v=spf1 include:other\.example include:spf\.example\.net -all$/,
  ],
  [['v=spf1 -include:spf.example.net ~all'], false, /does not have include/],
  [['v=spf1 include:spf.example.net.evil.example ~all'], false, /does not have include/],
  [
    ['v=spf1 redirect=_spf.other.example'],
    false,
    /Change it to: v=spf1 include:_spf\.other\.example include:spf\.example\.net ~all$/,
  ],
  [
    ['v=spf1 include:a.example ip4:192.0.2.1 -all', 'v=spf1 include:spf.example.net ip4:192.0.2.1 ~all'],
    false,
    /Two SPF records were found; receivers treat that as an error\. Merge them into one: v=spf1 include:a\.example ip4:192\.0\.2\.1 include:spf\.example\.net ~all$/,
  ],
  [['v=spf10 include:spf.example.net ~all'], false, /is not an SPF record/],
  [['"v=spf1 include:spf.example.net ~all"'], false, /must begin with "v=spf1 "/],
  [['spf2.0/pra include:spf.example.net'], false, /is not an SPF record/],
  [
    ['something else'],
    false,
    /example\.org has no SPF record\. Add there this TXT record: v=spf1 include:spf\.example\.net ~all$/,
  ],
  [[], false, /has no SPF record/],
]

test('SPF is valid with exactly one record that includes the host', () => {
  for (const [records, valid, sentence] of SPF)
    assertCheck(checkSpf(txt(...records), 'spf.example.net'), valid, sentence)
})

test('what was found is reported even when it does not fit', () => {
  assert.deepEqual(checkSpf(txt('v=spf1 -all', 'other'), 'spf.example.net').found, ['v=spf1 -all'])
  assert.deepEqual(checkSpf(txt('one', 'other'), 'spf.example.net').found, ['one', 'other'])
  assert.equal(checkSpf(txt(...new Array(500).fill('x')), 'spf.example.net').found.length, 20)
})

const KEY = `MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A${'Ab9+/'.repeat(60)}IDAQAB`
const DKIM: [records: string[], valid: boolean, sentence: RegExp][] = [
  [[`k=rsa; p=${KEY}`], true, /carries the right key\.$/],
  [[`v=DKIM1; k=rsa; p=${KEY};`], true, /right key/],
  [[`v=DKIM1;p=${KEY.replace(/(.{70})/g, '$1 ')}`], true, /right key/],
  [[`v=DKIM1; t=y; p=${KEY}`], true, /t=y/],
  [[`v=DKIM1; s=email; h=sha1:sha256; p=${KEY}`], true, /right key/],
  [['v=DKIM1; p='], false, /revoked/],
  [['v=DKIM1; p=MIIBother'], false, /another key/],
  [[`v=DKIM1; p=${KEY.slice(0, 200)}`], false, /cut off after 200 of \d+ characters/],
  [[`"k=rsa; p=${KEY}"`], false, /quotation marks/],
  [[`v=DKIM2; p=${KEY}`], false, /v= must be DKIM1/],
  [[`k=ed25519; p=${KEY}`], false, /k= must be rsa/],
  [[`h=sha1; p=${KEY}`], false, /does not allow sha256/],
  [[`s=other; p=${KEY}`], false, /does not allow email/],
  [[`k=rsa; p=${KEY}`, 'k=rsa; p=MIIBother'], false, /Two keys were found under one selector/],
  [['v=spf1 -all'], false, /No TXT record there has a key/],
  [[], false, /has no DKIM key\. Add there this TXT record: k=rsa; p=MIIB/],
]

test('DKIM is valid with the expected key, in whatever pieces and with further tags', () => {
  for (const [records, valid, sentence] of DKIM) {
    assertCheck(checkDkim(txt(...records), `k=rsa; p=${KEY}`), valid, sentence)
    assertCheck(checkDkim(txt(...records), KEY), valid, sentence)
  }
})

test('an Ed25519 key needs its algorithm in the record', () => {
  const expected = 'k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='
  assertCheck(checkDkim(txt(expected), expected), true, /right key/)
  assertCheck(checkDkim(txt(expected.replace('k=ed25519; ', '')), expected), false, /k= must be ed25519/)
})

test('a CNAME is valid directly and through others', () => {
  const target = 'track.example.net'
  const direct = answerOf('email.example.org', 'CNAME', ['track.example.net'])
  assertCheck(checkCname(direct, 'Track.example.net.'), true, /is an alias of track\.example\.net/)
  const chained = answerOf('email.example.org', 'A', ['192.0.2.1'], { chain: ['x.example', target] })
  assertCheck(checkCname(chained, target), true, /is an alias/)
  const targetWithoutAddress = answerOf('email.example.org', 'A', [], { kind: 'nxdomain', chain: [target] })
  assertCheck(checkCname(targetWithoutAddress, target), true, /is an alias/)
  const other = answerOf('email.example.org', 'A', ['192.0.2.1'], { chain: ['x.example', 'y.example'] })
  assertCheck(
    checkCname(other, target),
    false,
    /alias of x\.example, then y\.example\. Point it to track\.example\.net\.$/,
  )
  assertCheck(
    checkCname(answerOf('email.example.org', 'A', ['192.0.2.1']), target),
    false,
    /proxies or flattens/,
  )
  const absent = answerOf('email.example.org', 'CNAME', [], { kind: 'nxdomain' })
  assertCheck(
    checkCname(absent, target),
    false,
    /does not exist.*DNS panels.*CNAME record: track\.example\.net$/,
  )
})

test('an address is compared as an address', () => {
  const answer = answerOf('email.example.org', 'AAAA', ['2001:db8:0::1'])
  assertCheck(checkAddress(answer, '2001:db8::1'), true, /has the address/)
  assertCheck(checkAddress(answer, '2001:db8::2'), false, /Change it to 2001:db8::2\.$/)
  assertCheck(checkAddress(answerOf('a.example', 'A', []), '192.0.2.1'), false, /A record: 192\.0\.2\.1$/)
})

test('an MX record is valid at any preference, next to others', () => {
  const answer = answerOf('example.org', 'MX', [
    { preference: 5, exchange: 'other.example' },
    { preference: 50, exchange: 'mxa.example.net' },
  ])
  const check = checkMx(answer, 'MXA.example.net')
  assertCheck(check, true, /among the mail hosts/)
  assert.deepEqual(check.found, ['5 other.example', '50 mxa.example.net'])
  assertCheck(
    checkMx(answer, 'mxb.example.net'),
    false,
    /goes to 5 other\.example, 50 mxa\.example\.net\..*add the MX record: 10 mxb\.example\.net$/,
  )
  assertCheck(
    checkMx(answerOf('example.org', 'MX', [{ preference: 0, exchange: '' }]), 'mxa.example.net'),
    false,
    /takes no mail/,
  )
  assertCheck(checkMx(answerOf('example.org', 'MX', []), 'mxa.example.net'), false, /has no MX record/)
})

const own = { fromDomain: 'example.org', dkimDomain: 'example.org', returnPathDomain: 'example.org' }
const below = { fromDomain: 'example.org', dkimDomain: 'mg.example.org', returnPathDomain: 'mg.example.org' }
const foreign = { fromDomain: 'example.org', dkimDomain: 'example.net', returnPathDomain: 'org' }
const RELATED: DmarcFacts = { at: 'example.org', exists: true, isDkimRelated: true, isSpfRelated: true }
const UNRELATED: DmarcFacts = { ...RELATED, isDkimRelated: false, isSpfRelated: false }
const DMARC: [records: string[], use: DmarcUse, facts: DmarcFacts, valid: boolean, sentence: RegExp][] = [
  [
    ['v=DMARC1; p=reject; rua=mailto:d@example.org'],
    own,
    RELATED,
    true,
    /policy is "reject"; DKIM and SPF aligned\.$/,
  ],
  [['v=DMARC1; p=none'], below, RELATED, true, /DKIM and SPF aligned\. Add rua/],
  [
    ['v=DMARC1; p=none; rua=mailto:x; adkim=s'],
    below,
    RELATED,
    true,
    /SPF aligned\. SPF breaks when mail is forwarded/,
  ],
  [['v=DMARC1; p=quarantine; adkim=s; aspf=s'], below, RELATED, false, /meets the policy "quarantine"/],
  [
    ['v=DMARC1; p=none'],
    foreign,
    UNRELATED,
    false,
    /neither the signing domain example\.net nor the return path org/,
  ],
  [['v=DMARC1; p=none'], below, UNRELATED, false, /neither/],
  [['v=DMARC1; p=none; adkim=s; aspf=s'], own, UNRELATED, true, /DKIM and SPF aligned/],
  // Receivers act as by p=none where there is an address for reports (RFC 9989 §4.10.1).
  [['v=DMARC1; rua=mailto:x'], own, RELATED, true, /policy is "none".* value of p= is missing or wrong/],
  [['v=DMARC1'], own, RELATED, false, /has no policy: p=/],
  [['v=DMARC1; p=none; sp=x'], own, RELATED, false, /has no policy: sp=/],
  [['v=DMARC1; p=none; p=reject'], own, RELATED, false, /a tag twice/],
  [
    ['v=DMARC1; p=reject; t=y; rua=mailto:x'],
    own,
    RELATED,
    true,
    /policy is "quarantine".* under test \(t=y\)/,
  ],
  [['v=DMARC1; p=reject; pct=50; ri=1'], own, RELATED, true, /Remove pct=, ri=, which RFC 9989/],
  [
    ['v=DMARC1; p=reject; sp=quarantine; np=none; rua=mailto:x'],
    own,
    { ...RELATED, at: 'org' },
    true,
    /policy is "quarantine"; DKIM and SPF aligned\.$/,
  ],
  [
    ['v=DMARC1; p=reject; sp=quarantine; np=none; rua=mailto:x'],
    own,
    { ...RELATED, at: 'org', exists: false },
    true,
    /policy is "none"/,
  ],
  [['v=DMARC1; p=none', 'v=DMARC1; p=reject'], own, RELATED, false, /Two DMARC records/],
  [['v=DMARC10; p=none'], own, RELATED, false, /has no DMARC record/],
  [['p=none; v=DMARC1'], own, RELATED, false, /has no DMARC record/],
]

test('DMARC needs one record with a policy, and alignment', () => {
  for (const [records, use, facts, valid, sentence] of DMARC)
    assertCheck(checkDmarc(txt(...records), use, facts), valid, sentence)
  const unknown = checkDmarc(txt('v=DMARC1; p=none'), below, { ...UNRELATED, isDkimRelated: null })
  assert.deepEqual([unknown.valid, unknown.answered], [false, false])
})

test('a failure of DNS says nothing about the record', () => {
  const failed = { kind: 'timeout', problem: 'it did not answer in time' } as const
  const checks = [
    checkSpf(answerOf('example.org', 'TXT', [], failed), 'spf.example.net'),
    checkDkim(answerOf('example.org', 'TXT', [], failed), KEY),
    checkCname(answerOf('example.org', 'CNAME', [], failed), 'a.example'),
    checkAddress(answerOf('example.org', 'A', [], failed), '192.0.2.1'),
    checkMx(answerOf('example.org', 'MX', [], failed), 'mx.example'),
    checkDmarc(answerOf('example.org', 'TXT', [], failed), own, RELATED),
  ]
  for (const check of checks) {
    assert.deepEqual([check.valid, check.answered, check.found], [false, false, []])
    assert.match(
      check.sentence,
      /^127\.0\.0\.1:53 gave no answer for [A-Z]+ records of example\.org \(it did not answer in time\)\./,
    )
  }
})

test('no record text makes a check throw or grow without limit', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom('v', '=', 'spf1', ' ', ';', 'p', '"', ':', 'include', 'DKIM1', '%') }),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), (records) => {
      for (const check of [
        checkSpf(txt(...records), 'a.b'),
        checkDkim(txt(...records), 'k=rsa; p=AA'),
        checkDmarc(txt(...records), own, RELATED),
      ])
        assert.equal(typeof check.sentence, 'string')
    }),
    { seed: 7208, numRuns: 500 },
  )
})
