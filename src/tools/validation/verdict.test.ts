import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { listFiles } from '../../../scripts/update-domain-lists.ts'
import { readAddress, type ValidAddress } from './address.ts'
import { editDistance, followsProviderRules, suggestedDomain } from './providers.ts'
import { type Facts, type History, needsProbe, resultOf } from './verdict.ts'

const MALFORMED = 'malformed address'
const LONG_LOCAL = 'a'.repeat(64)

const SYNTAX: [text: string, reason: string | null][] = [
  ['ann@example.org', null],
  [' ann@example.org ', null],
  ['Ann.Lee+news@Example.ORG', null],
  ['"ann lee"@example.org', null],
  [`${LONG_LOCAL}@example.org`, null],
  ['ann@bücher.example', null],
  ['ann', 'malformed address; missing @ sign'],
  ['', 'malformed address; missing @ sign'],
  ['ann@', MALFORMED],
  ['@example.org', MALFORMED],
  ['ann lee@example.org', MALFORMED],
  ['ann..lee@example.org', MALFORMED],
  ['.ann@example.org', MALFORMED],
  ['ann@example..org', MALFORMED],
  ['ann@-example.org', MALFORMED],
  ['ann@[127.0.0.1]', MALFORMED],
  ['ann@example.org, bob@example.org', MALFORMED],
  ['Ann <ann@example.org>', MALFORMED],
  ['<ann@example.org>', MALFORMED],
  ['ann(a comment)@example.org', MALFORMED],
  ['ann@example.org (a comment)', MALFORMED],
  ['ann@example.org\r\nRCPT TO:<bob@example.org>', MALFORMED],
  [`${LONG_LOCAL}a@example.org`, MALFORMED],
  [`ann@${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example.org`, MALFORMED],
]

for (const [text, reason] of SYNTAX) {
  test(`syntax: ${JSON.stringify(text.slice(0, 60))} is ${reason ?? 'valid'}`, () => {
    const read = readAddress(text)
    assert.equal(read.kind === 'malformed' ? read.reason : null, reason)
  })
}

function valid(text: string): ValidAddress {
  const read = readAddress(text)
  assert.equal(read.kind, 'valid', text)
  return (read as { address: ValidAddress }).address
}

const NONE: History = { bounced: false, deliveredAt: null, engagement: null }
const DELIVERED: History = { ...NONE, deliveredAt: 1_750_000_000_500 }
const BOUNCED: History = { ...NONE, bounced: true }
const FACTS: Facts = { mail: 'accepts', history: NONE, providerLookup: true, probe: 'unknown' }

const VERDICTS: [
  why: string,
  address: string,
  facts: Partial<Facts>,
  result: string,
  risk: string,
  reasons: string[],
][] = [
  ['no mail host', 'a@example.org', { mail: 'refuses' }, 'undeliverable', 'high', ['no_mx']],
  [
    'no mail host wins over a delivery',
    'a@example.org',
    { mail: 'refuses', history: DELIVERED },
    'undeliverable',
    'high',
    ['no_mx'],
  ],
  ['the rules of a provider', 'ann@gmail.com', {}, 'undeliverable', 'high', ['failed custom grammar check']],
  ['disposable', 'ann@mailinator.com', {}, 'do_not_send', 'high', ['mailbox_is_disposable_address']],
  [
    'below a disposable domain',
    'ann@x.mailinator.com',
    {},
    'do_not_send',
    'high',
    ['mailbox_is_disposable_address'],
  ],
  ['bounced', 'a@example.org', { history: BOUNCED }, 'undeliverable', 'high', ['mailbox_does_not_exist']],
  [
    'bounced wins over delivered',
    'a@example.org',
    { history: { ...DELIVERED, bounced: true } },
    'undeliverable',
    'high',
    ['mailbox_does_not_exist'],
  ],
  ['delivered', 'a@example.org', { history: DELIVERED }, 'deliverable', 'low', []],
  [
    'delivered, a role',
    'info@example.org',
    { history: DELIVERED },
    'deliverable',
    'medium',
    ['mailbox_is_role_address'],
  ],
  [
    'delivered, while DNS is away',
    'a@example.org',
    { mail: 'unknown', history: DELIVERED },
    'deliverable',
    'low',
    [],
  ],
  ['no lookup wanted', 'a@example.org', { providerLookup: false }, 'unknown', 'unknown', ['no_data']],
  ['nobody was asked', 'a@example.org', {}, 'unknown', 'unknown', ['unknown_provider']],
  ['DNS is away', 'a@example.org', { mail: 'unknown' }, 'unknown', 'unknown', ['unknown_provider']],
  [
    'an unknown role',
    'Sales@example.org',
    {},
    'unknown',
    'medium',
    ['unknown_provider', 'mailbox_is_role_address'],
  ],
  [
    'the server knows no such mailbox',
    'a@example.org',
    { probe: 'no-mailbox' },
    'undeliverable',
    'high',
    ['mailbox_does_not_exist'],
  ],
  [
    'the server takes everything',
    'a@example.org',
    { probe: 'catch-all' },
    'catch_all',
    'medium',
    ['catch_all'],
  ],
  ['the server takes it', 'a@example.org', { probe: 'accepted' }, 'deliverable', 'low', []],
  [
    'the server takes a role',
    'abuse@example.org',
    { probe: 'accepted' },
    'deliverable',
    'medium',
    ['mailbox_is_role_address'],
  ],
]

for (const [why, address, facts, result, risk, reason] of VERDICTS) {
  test(`verdict: ${why}`, () => {
    const found = resultOf(valid(address), { ...FACTS, ...facts })
    assert.deepEqual([found.result, found.risk, found.reason, found.address], [result, risk, reason, address])
  })
}

test('a server is asked only where nothing else decides', () => {
  const { probe: _, ...facts } = FACTS
  const cases: [string, Partial<Facts>, boolean][] = [
    ['a@example.org', {}, true],
    ['a@example.org', { providerLookup: false }, false],
    ['a@example.org', { mail: 'unknown' }, false],
    ['a@example.org', { mail: 'refuses' }, false],
    ['a@example.org', { history: DELIVERED }, false],
    ['a@example.org', { history: BOUNCED }, false],
    ['a@mailinator.com', {}, false],
    ['ann@gmail.com', {}, false],
  ]
  for (const [address, change, expected] of cases)
    assert.equal(needsProbe(valid(address), { ...facts, ...change }), expected, address)
})

test('members that are known: last seen, engagement, root address, suggestion', () => {
  const seen = resultOf(valid('Ann.Lee.Smith+news@gmail.com'), {
    ...FACTS,
    history: { ...DELIVERED, engagement: { engaging: true, is_bot: false } },
  })
  assert.deepEqual(seen, {
    address: 'Ann.Lee.Smith+news@gmail.com',
    is_disposable_address: false,
    is_role_address: false,
    reason: [],
    result: 'deliverable',
    risk: 'low',
    root_address: 'annleesmith@gmail.com',
    last_seen: 1_750_000_000,
    engagement: { engaging: true, is_bot: false },
  })
  const suggested = resultOf(valid('Ann@gmial.com'), { ...FACTS, mail: 'refuses' })
  assert.equal(suggested.did_you_mean, 'Ann@gmail.com')
  const real = resultOf(valid('ann@gmial.com'), FACTS)
  assert.equal('did_you_mean' in real, false, 'a domain with mail hosts is meant as it is')
  for (const address of ['ann@outlook.com', 'a.b@example.org', 'a+b@example.org'])
    assert.equal('root_address' in resultOf(valid(address), FACTS), false, address)
})

test('rules of providers refuse only what they never gave out', () => {
  const cases: [string, string, boolean][] = [
    ['sixsix', 'gmail.com', true],
    ['five5', 'gmail.com', false],
    ['a.b.c.d.e.f', 'gmail.com', true],
    ['a.b.c.d.e', 'gmail.com', false],
    ['ann_smith', 'gmail.com', false],
    ['ann.smith+anything_at-all', 'gmail.com', true],
    ['a'.repeat(31), 'gmail.com', false],
    ['ann_smith-1', 'outlook.com', true],
    ['ann!', 'outlook.com', false],
    ['lentils-acre-0k', 'icloud.com', true],
    ['name-shop', 'yahoo.com', true],
    ['na', 'yahoo.com', false],
    ['1ann', 'aol.com', false],
    ['!#$%', 'example.org', true],
  ]
  for (const [local, domain, expected] of cases)
    assert.equal(followsProviderRules(local, domain), expected, `${local}@${domain}`)
})

test('a suggestion is at most two letters away', () => {
  const cases: [string, string | null][] = [
    ['gmail.com', null],
    ['gmial.com', 'gmail.com'],
    ['gmail.co', 'gmail.com'],
    ['gmail.comm', 'gmail.com'],
    ['hotmial.com', 'hotmail.com'],
    ['yahooo.com', 'yahoo.com'],
    ['outlok.com', 'outlook.com'],
    ['example.org', null],
    ['gmx.de', null],
  ]
  for (const [domain, expected] of cases) assert.equal(suggestedDomain(domain), expected, domain)
})

test('edit distance: inserted, removed, replaced and exchanged letters', () => {
  const cases: [string, string, number][] = [
    ['abc', 'abc', 0],
    ['abc', 'acb', 1],
    ['abc', 'ab', 1],
    ['abc', 'xabc', 1],
    ['abc', 'axc', 1],
    ['abcd', 'badc', 2],
  ]
  for (const [one, other, distance] of cases)
    assert.equal(editDistance(one, other, 2), distance, `${one} ${other}`)
  assert.ok(editDistance('abcdef', 'ghijkl', 2) > 2)
})

test('the lists are those of the packages that package.json pins', () => {
  const folder = join(import.meta.dirname, 'data')
  for (const name of ['disposable-domains.txt', 'role-names.txt']) {
    const text = readFileSync(join(folder, name), 'utf8')
    const date = /taken on (\d{4}-\d\d-\d\d)\. Licence: (?:CC0-1\.0|MIT)/.exec(text)?.[1]
    assert.ok(date, `${name} names its date and licence`)
    assert.equal(listFiles(date)[name], text, name)
  }
})
