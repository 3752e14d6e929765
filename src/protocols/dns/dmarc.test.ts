import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  applyingRecord,
  type DmarcRecord,
  needsExistence,
  organizationOf,
  policyOf,
  readDmarc,
  shareOrganization,
  treeWalk,
  walkNames,
} from './dmarc.ts'

/** As the published records are judged: `p=reject sp=reject np=reject t=n psd=u adkim=r aspf=r`. */
function summary(record: DmarcRecord | null): string {
  if (record === null) return 'no record'
  const { policy, subdomainPolicy, absentPolicy, isTesting, psd, isDkimStrict, isSpfStrict } = record
  const mode = (isStrict: boolean) => (isStrict ? 's' : 'r')
  return `p=${policy} sp=${subdomainPolicy} np=${absentPolicy} t=${isTesting ? 'y' : 'n'} psd=${psd} adkim=${mode(isDkimStrict)} aspf=${mode(isSpfStrict)}`
}

const RUA = 'rua=mailto:a@b.example'

test('records: defaults, order, case, errors', () => {
  const cases: [text: string, expected: string, wrongTags?: string][] = [
    ['v=DMARC1; p=none', 'p=none sp=none np=none t=n psd=u adkim=r aspf=r'],
    ['v=DMARC1;p=reject;np=none;sp=quarantine', 'p=reject sp=quarantine np=none t=n psd=u adkim=r aspf=r'],
    ['v=DMARC1; p=none; sp=reject', 'p=none sp=reject np=reject t=n psd=u adkim=r aspf=r'],
    ['v=DMARC1; np=reject; p=none', 'p=none sp=none np=reject t=n psd=u adkim=r aspf=r'],
    ['v = DMARC1 ;\tP = Reject ; ADKIM=S;', 'p=reject sp=reject np=reject t=n psd=u adkim=s aspf=r'],
    [
      'v=DMARC1; p=quarantine; t=y; psd=n; aspf=s',
      'p=quarantine sp=quarantine np=quarantine t=y psd=n adkim=r aspf=s',
    ],
    ['v=DMARC1; p=reject; psd=Y', 'p=reject sp=reject np=reject t=n psd=y adkim=r aspf=r'],
    // Tags that are gone, unknown ones, and parts that are no tags.
    [
      'v=DMARC1; p=reject; pct=0; rf=afrf; ri=1; x=1; ;; junk',
      'p=reject sp=reject np=reject t=n psd=u adkim=r aspf=r',
    ],
    // Wrong values give way to the default.
    [
      'v=DMARC1; p=reject; t=x; psd=x; adkim=x; aspf=strict',
      'p=reject sp=reject np=reject t=n psd=u adkim=r aspf=r',
      't psd adkim aspf',
    ],
    [`v=DMARC1; ${RUA}`, 'p=none sp=none np=none t=n psd=u adkim=r aspf=r', 'p'],
    [`v=DMARC1; p=block; ${RUA}`, 'p=none sp=none np=none t=n psd=u adkim=r aspf=r', 'p'],
    [`v=DMARC1; p=reject; sp=block; ${RUA}`, 'p=none sp=none np=none t=n psd=u adkim=r aspf=r', 'sp'],
    [`v=DMARC1; p=reject; np=; ${RUA}`, 'p=none sp=none np=none t=n psd=u adkim=r aspf=r', 'np'],
    ['v=DMARC1; p=re ject; rua=a@b.example', 'p=null sp=null np=null t=n psd=u adkim=r aspf=r', 'p rua'],
    ['v=DMARC1', 'p=null sp=null np=null t=n psd=u adkim=r aspf=r', 'p'],
    // None at all: the version is not first or not exact, or a tag is there twice.
    ...[
      ...['v=dmarc1; p=reject', 'v=DMARC10; p=reject', 'p=reject; v=DMARC1', ' v=DMARC1; p=reject', ''],
      ...['v=DMARC1 p=reject', 'v=spf1 -all', 'v=DMARC1; p=reject; p=none', 'v=DMARC1; x=1; x=2; p=none'],
      `v=DMARC1; p=reject; x=${'x'.repeat(9_000)}`,
    ].map((text): [string, string] => [text, 'no record']),
  ]
  for (const [text, expected, wrongTags = ''] of cases) {
    const record = readDmarc(text)
    assert.equal(summary(record), expected, text)
    assert.equal(record?.wrongTags.join(' ') ?? '', wrongTags, text)
  }
})

test('URIs of reports, without the size that is gone', () => {
  const record = readDmarc(
    'v=DMARC1; p=none; rua=mailto:a@b.example!10m , https://c.example/r,d@e.example; ruf=mailto:f@g.example; pct=5; rf=afrf',
  )
  assert.deepEqual(record?.aggregateUris, ['mailto:a@b.example', 'https://c.example/r'])
  assert.deepEqual(record?.failureUris, ['mailto:f@g.example'])
  assert.deepEqual(record?.wrongTags, ['rua'])
  assert.deepEqual(record?.obsoleteTags, ['pct', 'rf'])
})

/**
 * Fifty records of large companies' domains, as a public survey found them on 2023-10-04, with what checkdmarc 6.0.4 makes of
 * each, run without network. All are judged alike: none has a tag of RFC 9989, so these follow from the defaults. On made-up
 * records the two differ, where RFC 9989 is followed here:
 *
 * - a wrong `p`, `sp` or `np` is an error there; receivers act as by `p=none`, or not at all (§4.10.1);
 * - a record of the version alone is `p=none` there; without `rua` receivers do nothing (§4.10.1);
 * - wrong values of `t`, `psd`, `rua` and `fo`, and empty parts, are errors there; §4.8 discards them;
 * - a blank before the version is taken off there; §4.8 does not allow it. A resolver does not add one.
 */
test('records that large domains publish are judged as by checkdmarc', () => {
  const path = new URL('../../../test/fixtures/dmarc-records.json', import.meta.url)
  const published = JSON.parse(readFileSync(path, 'utf8')) as {
    domain: string
    record: string
    judged: string
  }[]
  assert.equal(published.length, 50)
  for (const { domain, record, judged } of published) {
    const read = readDmarc(record)
    assert.equal(summary(read), judged, domain)
    assert.deepEqual(read?.wrongTags, [], domain)
  }
})

type Zone = Readonly<Record<string, string | readonly string[] | null>>

/** A zone by name, without `_dmarc.`; null: no answer. */
function finder(zone: Zone) {
  const asked: string[] = []
  return {
    asked,
    find: async (name: string) => {
      asked.push(name)
      const texts = zone[name]
      return texts === undefined ? [] : typeof texts === 'string' ? [texts] : texts
    },
  }
}

const walk = (domain: string, zone: Zone) => treeWalk(domain, finder(zone).find)
const ANY = 'v=DMARC1; p=reject'

test('a walk queries eight names at most (RFC 9989 §4.10)', async () => {
  const below = (name: string) => name.split('.').map((_, at, all) => all.slice(at).join('.'))
  assert.deepEqual(walkNames('a.b.c.d.e.f.g.h.i.j.mail.example.com'), [
    'a.b.c.d.e.f.g.h.i.j.mail.example.com',
    ...below('g.h.i.j.mail.example.com'),
  ])
  for (const name of ['com', 'example.com', 'a.mail.example.com', 'a.b.c.d.e.f.g.h'])
    assert.deepEqual(walkNames(name), below(name))
  assert.deepEqual(walkNames('x.a.b.c.d.e.f.g.h'), ['x.a.b.c.d.e.f.g.h', ...below('b.c.d.e.f.g.h')])
})

test('organizational domains of the examples of RFC 9989 §4.10.2 and B.4', async () => {
  const simple = { 'example.com': ANY, 'signing.example.com': ANY }
  const bank = { 'bank.example': `${ANY}; psd=y`, 'giant.bank.example': ANY }
  const deep = 'a.b.c.d.e.f.g.h.i.j.k.example.com'
  const cases: [domain: string, zone: Zone, organization: string | null, at: string | null][] = [
    ['a.mail.example.com', { 'mail.example.com': ANY, 'example.com': ANY }, 'example.com', 'example.com'],
    [
      'a.mail.example.com',
      { 'mail.example.com': `${ANY}; psd=n`, 'example.com': ANY },
      'mail.example.com',
      'mail.example.com',
    ],
    ['a.mail.example.com', { com: `${ANY}; psd=y` }, 'example.com', 'com'],
    ['example.com', simple, 'example.com', 'example.com'],
    ['signing.example.com', simple, 'example.com', 'signing.example.com'],
    [deep, simple, 'example.com', 'example.com'],
    ['giant.bank.example', bank, 'giant.bank.example', 'giant.bank.example'],
    ['mail.giant.bank.example', bank, 'giant.bank.example', 'giant.bank.example'],
    ['mail.mega.bank.example', bank, 'mega.bank.example', 'bank.example'],
    // The suffix itself sends mail: psd=y where the walk began names no other organization.
    ['bank.example', bank, 'bank.example', 'bank.example'],
    ['a.example', {}, 'a.example', null],
    // Several records count as none, and so does a record that is no list of tags.
    ['a.example.com', { 'a.example.com': [ANY, ANY], 'example.com': ANY }, 'example.com', 'example.com'],
    [
      'a.example.com',
      { 'a.example.com': `${ANY}; p=none`, 'example.com': ANY },
      'example.com',
      'example.com',
    ],
    ['a.example.com', { 'a.example.com': ['v=spf1 -all', ANY] }, 'a.example.com', 'a.example.com'],
    ['A.Example.COM.', { 'example.com': ANY }, 'example.com', 'example.com'],
    ['not a name', {}, 'not a name', null],
  ]
  for (const [domain, zone, organization, at] of cases) {
    const found = await walk(domain, zone)
    assert.equal(organizationOf(found), organization, domain)
    const applying = applyingRecord(found)
    assert.equal(typeof applying === 'string' ? null : applying.domain, at, domain)
  }
  const { find, asked } = finder(bank)
  await treeWalk('mail.giant.bank.example', find)
  assert.deepEqual(asked, ['mail.giant.bank.example', 'giant.bank.example', 'bank.example'])
})

test('relaxed alignment: one organizational domain, as in the examples of RFC 9989 B.1', async () => {
  const own = { 'example.com': ANY }
  const bank = { 'bank.example': `${ANY}; psd=y` }
  const cases: [author: string, proven: string, zone: Zone, isRelated: boolean | null][] = [
    ['example.com', 'example.com', own, true],
    ['example.com', 'child.example.com', own, true],
    ['child.example.com', 'example.com', own, true],
    ['news.example.com', 'bounce.example.com', own, true],
    ['example.com', 'example.net', own, false],
    ['Example.COM', 'example.com.', {}, true],
    // Without any record each name is its own organization.
    ['child.example.com', 'example.com', {}, false],
    ['giant.bank.example', 'mail.giant.bank.example', bank, true],
    ['giant.bank.example', 'mega.bank.example', bank, false],
    ['giant.bank.example', 'bank.example', bank, false],
    ['a.example.com', 'b.example.com', { 'example.com': null }, null],
  ]
  for (const [author, proven, zone, isRelated] of cases)
    assert.equal(await shareOrganization(author, proven, finder(zone).find), isRelated, `${author} ${proven}`)
})

test('without an answer of DNS nothing is assumed', async () => {
  const cases: [zone: Zone, organization: string | null, applying: string][] = [
    [{ 'a.b.example': null }, null, 'unknown'],
    [{ 'b.example': null, example: ANY }, null, 'unknown'],
    // The domain's own record applies whatever is above it.
    [{ 'a.b.example': ANY, 'b.example': null }, null, 'a.b.example'],
    [{ 'b.example': `${ANY}; psd=n`, example: null }, 'b.example', 'b.example'],
  ]
  for (const [zone, organization, expected] of cases) {
    const found = await walk('a.b.example', zone)
    assert.equal(organizationOf(found), organization)
    const applying = applyingRecord(found)
    assert.equal(typeof applying === 'string' ? applying : applying.domain, expected)
  }
})

test('the policy: p for the domain, sp and np below it, one level less while tested', async () => {
  const cases: [record: string, own: string, existing: string, absent: string][] = [
    ['v=DMARC1; p=reject', 'reject', 'reject', 'reject'],
    ['v=DMARC1; p=reject; sp=quarantine', 'reject', 'quarantine', 'quarantine'],
    ['v=DMARC1; p=none; np=reject', 'none', 'none', 'reject'],
    ['v=DMARC1; p=reject; sp=none; np=quarantine', 'reject', 'none', 'quarantine'],
    ['v=DMARC1; p=reject; sp=quarantine; np=none; t=y', 'quarantine', 'none', 'none'],
    ['v=DMARC1; p=bad', 'null', 'null', 'null'],
    [`v=DMARC1; p=bad; t=y; ${RUA}`, 'none', 'none', 'none'],
  ]
  for (const [text, ...expected] of cases) {
    const zone = { 'b.example': text }
    const [own, below] = [
      applyingRecord(await walk('b.example', zone)),
      applyingRecord(await walk('a.b.example', zone)),
    ]
    assert.ok(typeof own === 'object' && typeof below === 'object')
    assert.deepEqual(
      [
        policyOf('b.example', own, true),
        policyOf('a.b.example', below, true),
        policyOf('a.b.example', below, false),
      ].map(String),
      expected,
      text,
    )
    assert.equal(needsExistence('b.example', own), false)
    if (expected[1] !== expected[2]) assert.equal(needsExistence('a.b.example', below), true)
  }
})

interface TheirRecord {
  recordDomain: string
  orgDomain: string
}

test('records and organizations are those that the mail check finds, within eight queries', async () => {
  // It judges received mail; both must say the same of a domain.
  const theirs = createRequire(import.meta.url)('mailauth/lib/dmarc/get-dmarc-record.js') as (
    domain: string,
    resolver: (name: string) => Promise<string[][]>,
    options: { strict: boolean },
  ) => Promise<TheirRecord | false>
  const label = fc.constantFrom('a', 'b', 'c')
  const domain = fc.array(label, { minLength: 1, maxLength: 12 }).map((labels) => labels.join('.'))
  const text = fc.oneof(
    fc.constantFrom(ANY, `${ANY}; psd=y`, `${ANY}; psd=n`, `${ANY}; psd=u`, 'v=spf1 -all', 'v=DMARC1; p=bad'),
    fc.constantFrom(
      'v=DMARC1; p=none; t=y',
      'v=DMARC1; sp=reject',
      `v=DMARC1; ${RUA}`,
      `${ANY}; p=none`,
      'v=DMARC1',
    ),
  )
  const records = fc.array(fc.tuple(fc.nat(12), fc.array(text, { maxLength: 2 })), { maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(domain, records, async (name, some) => {
      const labels = name.split('.')
      const zone = Object.fromEntries(
        some.map(([at, texts]) => [labels.slice(at % labels.length).join('.'), texts]),
      )
      const { find, asked } = finder(zone)
      const found = await treeWalk(name, find)
      assert.ok(asked.length <= 8 && asked.every((one) => name.endsWith(one)))
      const organization = organizationOf(found)
      assert.ok(organization !== null && (name === organization || name.endsWith(`.${organization}`)))
      const applying = applyingRecord(found)
      const expected = await theirs(
        name,
        async (asking) => (zone[asking.slice('_dmarc.'.length)] ?? []).map((one) => [one]),
        { strict: true },
      )
      if (expected === false) assert.equal(applying, 'none')
      else {
        assert.ok(typeof applying === 'object')
        assert.deepEqual([applying.domain, organization], [expected.recordDomain, expected.orgDomain])
      }
    }),
    { seed: 20261128, numRuns: 500 },
  )
})

test('no text makes reading throw, and what is read has a policy of the three or none', () => {
  const part = fc.constantFrom(
    'v',
    '=',
    'DMARC1',
    ';',
    ' ',
    'p',
    'reject',
    'sp',
    'np',
    'mailto:',
    ',',
    '!',
    'rua',
    't',
    'y',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string({ unit: part }),
        fc.string({ unit: part }).map((rest) => `v=DMARC1;${rest}`),
      ),
      (text) => {
        const record = readDmarc(text)
        if (record) assert.ok([null, 'none', 'quarantine', 'reject'].includes(record.policy))
      },
    ),
    { seed: 20261128 },
  )
})
