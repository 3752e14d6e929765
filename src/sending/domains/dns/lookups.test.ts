import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { createDnsServer, type Misbehaviour } from '../../../../test/support/dns-server.ts'
import { jobContext } from '../../../../test/support/job-context.ts'
import { type Cidr, parseCidr } from '../../../base/net/ip.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import type { Store } from '../../../platform/store/store.ts'
import { createResolver } from '../../../protocols/dns/resolver.ts'
import type { RecordPurpose, StoredCheck, WantedRecord } from './dns-records.ts'
import { type LookupParts, lookUp, lookUpDmarc, untilStopped } from './lookups.ts'

const dns = await createDnsServer()
const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, attempts: 1 })
after(async () => {
  resolver.close()
  await dns.close()
})
const common = { resolver, clock: systemClock, allow: [], spfIncludeHost: 'spf.service.example' }
const parts: LookupParts = common

const KEY = `k=rsa; p=MIIB${'Ab9+'.repeat(90)}`
const NAMES = {
  spf: 'mg.example.org',
  dkim: 'k1._domainkey.mg.example.org',
  tracking: 'email.mg.example.org',
  mx: 'mg.example.org',
}
const wanted = (
  purpose: RecordPurpose,
  name: string,
  type: WantedRecord['type'],
  value: string,
): WantedRecord => ({ purpose, name, type, value })
const SPF = wanted('spf', NAMES.spf, 'TXT', 'v=spf1 include:spf.service.example ~all')
const DKIM = wanted('dkim', NAMES.dkim, 'TXT', KEY)
const TRACKING = wanted('tracking', NAMES.tracking, 'CNAME', 'track.service.example')
const TRACKING_A = wanted('tracking', NAMES.tracking, 'A', '192.0.2.7')
const MX = wanted('mx', NAMES.mx, 'MX', 'mxa.service.example')

beforeEach(() => {
  for (const name of [...Object.values(NAMES), '_dmarc.mg.example.org', '_dmarc.example.org'])
    dns.remove(name)
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  dns.set(NAMES.spf, 'TXT', ['v=spf1 include:spf.service.example ~all'])
  dns.set(NAMES.dkim, 'TXT', [KEY])
  dns.set(NAMES.tracking, 'CNAME', ['track.service.example'])
  dns.set('track.service.example', 'A', ['192.0.2.7'])
  dns.set(NAMES.mx, 'MX', [[10, 'mxa.service.example']])
})

test('correct records are valid, with query, server and answer', async () => {
  for (const record of [SPF, DKIM, TRACKING, MX]) {
    const check = await lookUp(parts, record, undefined)
    assert.ok(check.valid && check.answered, check.sentence)
    assert.equal(check.server, `127.0.0.1:${dns.port}`)
    assert.ok(check.found.length > 0)
    assert.match(check.sentence, new RegExp(`^127\\.0\\.0\\.1:${dns.port} was asked for`))
  }
  assert.deepEqual((await lookUp(parts, MX, undefined)).found, ['10 mxa.service.example'])
  assert.equal((await lookUp(parts, SPF, undefined)).asked, 'TXT mg.example.org')
})

type Setting = () => void
const WRONG: [what: string, record: WantedRecord, set: Setting, found: string[], sentence: RegExp][] = [
  [
    'SPF of others',
    SPF,
    () => dns.set(NAMES.spf, 'TXT', ['v=spf1 include:a.example -all']),
    ['v=spf1 include:a.example -all'],
    /Change it to: v=spf1 include:a\.example include:spf\.service\.example -all$/,
  ],
  [
    'two SPF records',
    SPF,
    () => dns.set(NAMES.spf, 'TXT', ['v=spf1 a -all', 'v=spf1 include:spf.service.example ~all']),
    ['v=spf1 a -all', 'v=spf1 include:spf.service.example ~all'],
    /Two SPF records were found.*Merge them into one/,
  ],
  ['no SPF', SPF, () => dns.set(NAMES.spf, 'TXT', ['hello']), ['hello'], /has no SPF record\. Add there/],
  [
    'another key',
    DKIM,
    () => dns.set(NAMES.dkim, 'TXT', ['k=rsa; p=MIIBother']),
    ['k=rsa; p=MIIBother'],
    /another key/,
  ],
  [
    'a key cut off',
    DKIM,
    () => dns.set(NAMES.dkim, 'TXT', [KEY.slice(0, 255)]),
    [KEY.slice(0, 255)],
    /cut off/,
  ],
  [
    'a key as CNAME to nowhere',
    DKIM,
    () => {
      dns.remove(NAMES.dkim)
      dns.set(NAMES.dkim, 'CNAME', ['gone.example'])
    },
    [],
    /an alias of gone\.example.*does not exist/,
  ],
  [
    'DKIM of the wrong type',
    DKIM,
    () => {
      dns.remove(NAMES.dkim)
      dns.set(NAMES.dkim, 'A', ['192.0.2.1'])
    },
    [],
    /has no DKIM key\. Add there this TXT record/,
  ],
  ['no DKIM name', DKIM, () => dns.remove(NAMES.dkim), [], /does not exist\. \(Many DNS panels/],
  [
    'CNAME elsewhere',
    TRACKING,
    () => dns.set(NAMES.tracking, 'CNAME', ['other.example']),
    ['other.example'],
    /alias of other\.example\. Point it to track\.service\.example/,
  ],
  [
    'address for CNAME',
    TRACKING,
    () => {
      dns.remove(NAMES.tracking)
      dns.set(NAMES.tracking, 'A', ['192.0.2.99'])
    },
    ['192.0.2.99'],
    /has addresses and no CNAME/,
  ],
  [
    'wrong address',
    TRACKING_A,
    () => {
      dns.remove(NAMES.tracking)
      dns.set(NAMES.tracking, 'A', ['192.0.2.99'])
    },
    ['192.0.2.99'],
    /Change it to 192\.0\.2\.7/,
  ],
  [
    'null MX',
    MX,
    () => dns.set(NAMES.mx, 'MX', [[0, '.']]),
    ['0 .'],
    /takes no mail.*Replace it by: 10 mxa\.service\.example/,
  ],
  [
    'MX elsewhere',
    MX,
    () => dns.set(NAMES.mx, 'MX', [[5, 'mx.other.example']]),
    ['5 mx.other.example'],
    /add the MX record: 10 mxa/,
  ],
  ['no MX', MX, () => dns.set(NAMES.mx, 'MX', []), [], /has no MX record/],
]

for (const [what, record, set, found, sentence] of WRONG) {
  test(`wrong in DNS: ${what}`, async () => {
    set()
    const check = await lookUp(parts, record, undefined)
    assert.equal(check.valid, false, check.sentence)
    assert.equal(check.answered, true, check.sentence)
    assert.deepEqual(check.found, found)
    assert.match(check.sentence, sentence)
  })
}

test('a chain of aliases, a key in several strings and an answer over TCP are valid too', async () => {
  dns.set(NAMES.tracking, 'CNAME', ['hop.example'])
  dns.set('hop.example', 'CNAME', ['track.service.example'])
  assert.ok((await lookUp(parts, TRACKING, undefined)).valid)
  dns.set(NAMES.dkim, 'TXT', [[KEY.slice(0, 100), KEY.slice(100, 200), KEY.slice(200)]])
  dns.misbehave(NAMES.dkim, 'truncate')
  const check = await lookUp(parts, DKIM, undefined)
  assert.ok(check.valid, check.sentence)
  assert.equal(dns.queries.at(-1)?.transport, 'tcp')
  dns.set(NAMES.tracking, 'A', ['192.0.2.7'])
  assert.ok((await lookUp(parts, TRACKING_A, undefined)).valid)
})

/** Looks up SPF with a resolver that gives up as soon as the server, which keeps silent about it, is asked about `name`. */
async function lookUpUnanswered(name: string, previous?: StoredCheck): Promise<StoredCheck> {
  const clock = createTestClock()
  const impatient = createResolver({ servers: [dns], clock, timeoutMs: 1_000, attempts: 1 })
  try {
    const look = lookUp({ ...parts, resolver: impatient }, SPF, previous)
    while ((await dns.nextQuery()).name !== name);
    await clock.advance(1_000)
    return await look
  } finally {
    impatient.close()
  }
}

const FAILURES: [Misbehaviour, RegExp][] = [
  ['servfail', /SERVFAIL/],
  ['refused', /REFUSED/],
  ['drop', /did not answer in time/],
  ['garbage', /gave no answer/],
]
test('a failed lookup is reported and keeps the previous result', async () => {
  const before = { ...(await lookUp(parts, SPF, undefined)) }
  for (const [failure, sentence] of FAILURES) {
    dns.misbehave(NAMES.spf, failure)
    const look = (previous?: StoredCheck) =>
      failure === 'drop' ? lookUpUnanswered(NAMES.spf, previous) : lookUp(parts, SPF, previous)
    const check = await look(before)
    assert.deepEqual([check.valid, check.answered], [true, false], failure)
    assert.deepEqual(check.found, before.found)
    assert.match(check.sentence, sentence)
    assert.match(check.sentence, /This says nothing about the record; try again later\.$/)
    assert.equal((await look()).valid, false)
  }
})

test('SPF that is valid by itself but has too many lookups in its includes is reported', async () => {
  const includes = Array.from({ length: 11 }, (_, n) => `include:i${n}.example`)
  for (const include of includes) dns.set(include.slice(8), 'TXT', ['v=spf1 ip4:192.0.2.1 -all'])
  dns.set(NAMES.spf, 'TXT', [`v=spf1 ${includes.join(' ')} include:spf.service.example ~all`])
  const check = await lookUp(parts, SPF, undefined)
  assert.ok(check.valid)
  assert.match(check.sentence, /costs 12 DNS look-ups, 10 are allowed/)
})

test('unanswered includes cost one wait, and slow ones at most ten seconds', async () => {
  const names = Array.from({ length: 20 }, (_, n) => `silent${n}.example`)
  for (const name of names) dns.misbehave(name, 'drop')
  const includes = names.map((name) => `include:${name}`).join(' ')
  dns.set(NAMES.spf, 'TXT', [`v=spf1 include:spf.service.example ${includes} ~all`])
  const before = dns.queries.length
  assert.ok((await lookUpUnanswered('silent0.example')).valid)
  const asked = new Set(dns.queries.slice(before).map((query) => query.name))
  assert.equal(names.filter((name) => asked.has(name)).length, 1)

  const patient = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 60_000, attempts: 1 })
  const clock = createTestClock()
  try {
    const look = lookUp({ ...parts, resolver: patient, clock }, SPF, undefined)
    while ((await dns.nextQuery()).name !== 'silent0.example');
    await clock.advance(10_000)
    const check = await look
    assert.ok(check.valid, check.sentence)
  } finally {
    patient.close()
    for (const name of names) dns.remove(name)
  }
})

test('the authoritative answer counts when the resolver still has an old one', async () => {
  const authoritative = await createDnsServer()
  try {
    authoritative.set(NAMES.spf, 'TXT', ['v=spf1 include:spf.service.example ~all'])
    dns.set(NAMES.spf, 'TXT', ['v=spf1 -all'], 123)
    dns.set('example.org', 'NS', ['ns1.example.org'])
    dns.set('ns1.example.org', 'A', ['127.0.0.1'])
    const allow = [parseCidr('127.0.0.0/8') as Cidr]
    const fresh = createResolver({ servers: [dns], clock: systemClock })
    const parts: LookupParts = { ...common, resolver: fresh }
    const check = await lookUp({ ...parts, allow, authorityPort: authoritative.port }, SPF, undefined)
    assert.ok(check.valid, check.sentence)
    assert.equal(check.server, `127.0.0.1:${authoritative.port}`)
    assert.match(check.sentence, /still has an older answer and may give it for up to 123 seconds/)
    const notAllowed = await lookUp({ ...parts, authorityPort: authoritative.port }, SPF, undefined)
    assert.equal(notAllowed.valid, false, 'a name server in a private network is not asked')
  } finally {
    dns.remove('example.org')
    await authoritative.close()
  }
})

test('DMARC: advice for the domain itself, or from the policy of the domain above it', async () => {
  const use = {
    fromDomain: 'mg.example.org',
    dkimDomain: 'mg.example.org',
    returnPathDomain: 'mg.example.org',
  }
  const look = (before?: StoredCheck) => lookUpDmarc(parts, use, before)
  assert.match((await look()).sentence, /_dmarc\.mg\.example\.org does not exist.*v=DMARC1; p=none$/)
  dns.set('_dmarc.example.org', 'TXT', ['v=DMARC1; p=reject; rua=mailto:d@example.org'])
  const above = await look()
  assert.ok(above.valid)
  assert.match(above.sentence, /_dmarc\.example\.org.*policy is "reject"; DKIM and SPF aligned/)
  dns.set('_dmarc.mg.example.org', 'TXT', ['v=DMARC1; p=wrong'])
  const own = await look()
  assert.equal(own.valid, false)
  assert.match(own.sentence, /p= must be none, quarantine or reject/)
})

test('DMARC by the tree walk: sp and np, organizations, names without an answer', async () => {
  const ofDomain = (fromDomain: string, dkimDomain = fromDomain, returnPathDomain = fromDomain) =>
    lookUpDmarc(parts, { fromDomain, dkimDomain, returnPathDomain }, undefined)
  dns.set('_dmarc.corp.test', 'TXT', ['v=DMARC1; p=reject; sp=quarantine; np=none; rua=mailto:d@corp.test'])
  dns.set('news.corp.test', 'A', ['192.0.2.1'])
  const below = await ofDomain('news.corp.test')
  assert.deepEqual([below.valid, below.policy], [true, 'quarantine'], below.sentence)
  assert.equal((await ofDomain('absent.corp.test')).policy, 'none')
  // Siblings belong to one organization.
  const sibling = await ofDomain('news.corp.test', 'mail.corp.test', 'bounce.corp.test')
  assert.match(sibling.sentence, /policy is "quarantine"; DKIM and SPF aligned/)
  // Until one of them says that it is one of its own.
  dns.set('_dmarc.mail.corp.test', 'TXT', ['v=DMARC1; p=none; psd=n'])
  assert.match((await ofDomain('news.corp.test', 'mail.corp.test')).sentence, /; SPF aligned/)
  // A record two labels above, of a public suffix.
  dns.set('_dmarc.bank.test', 'TXT', ['v=DMARC1; p=reject; psd=y'])
  const foreign = await ofDomain('giant.bank.test', 'mega.bank.test', 'mega.bank.test')
  assert.match(foreign.sentence, /_dmarc\.bank\.test\. Mail from giant\.bank\.test fails DMARC/)
  dns.misbehave('_dmarc.silent.test', 'servfail')
  const unknown = await ofDomain('a.silent.test')
  assert.deepEqual([unknown.valid, unknown.answered], [false, false])
  assert.match(unknown.sentence, /gave no answer for TXT records of _dmarc\.silent\.test/)
  const deep = `${'a.b.c.d.e.f.g.h.i.j.k'}.corp.test`
  const before = dns.queries.length
  assert.equal((await ofDomain(deep)).policy, 'none')
  const asked = dns.queries.slice(before).filter(({ name }) => name.startsWith('_dmarc.'))
  // Eight names, of which the top-level domain is known.
  assert.equal(asked.length, 7)
})

test('a stop does not wait for a name server that keeps silent', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.misbehave('silent.example', 'drop')
  const clock = createTestClock() // its time-outs never come
  const resolver = createResolver({ servers: [dns], clock })
  t.after(() => resolver.close())
  const job = createJob({
    name: 'test',
    everyMs: 1000,
    scope: 'process',
    work: async (signal) => void (await untilStopped(resolver, signal).query('silent.example', 'TXT')),
  })
  const asked = dns.nextQuery()
  job.start(jobContext(null as unknown as Store, { clock }))
  await asked
  await job.stop()
})
