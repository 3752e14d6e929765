import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../base/ids.ts'
import type { Reach } from '../../mail/deliver/connect/routing.ts'
import type { FcrdnsRule, SourceAddress } from '../../platform/config/sending.ts'
import type { Flag, IpRow } from '../../platform/store/schema.ts'
import type { Domain } from '../domains/domain.ts'
import { type AddressBook, type BookRows, createBook } from './address-book.ts'
import { createSources } from './source-addresses.ts'
import { newWarmup } from './warmup/plan.ts'

const [FIRST, CHILD, POOL, BAND] = ['first', 'child', 'a'.repeat(24), 'b'.repeat(24)]

const ipRow = (ip: string, more: Partial<IpRow> = {}): IpRow => ({
  ...{ ip, is_dedicated: 1, account_id: FIRST, is_enabled: 1, warms_when_assigned: 0 },
  ...{ rdns: '', is_bound: null, is_confirmed: null, fault: '', checked_at: null },
  ...{ seen_at: 0, created_at: 0, ...more },
})
const shared = (ip: string, more: Partial<IpRow> = {}) =>
  ipRow(ip, { is_dedicated: 0, account_id: null, ...more })
const OWN = [ipRow('192.0.2.1'), ipRow('192.0.2.2')]
const SHARED = [shared('192.0.2.8'), shared('192.0.2.9')]

const NO_ROWS: BookRows = {
  ...{ version: '1', ips: [], pools: [], members: [], dynamicPools: [], dynamicMembers: [] },
  ...{ delegations: [], exclusions: [], warmups: [], blocks: [] },
}
const inBand = (...ips: string[]): Partial<BookRows> => ({
  dynamicPools: [{ id: BAND, account_id: FIRST, band: 'dynamic_poor' }],
  dynamicMembers: ips.map((ip) => ({ ip, pool_id: BAND, added_at: 0 })),
})
const inPool = (...ips: string[]): Partial<BookRows> => ({
  pools: [{ id: POOL, account_id: FIRST, name: 'Bulk' }],
  members: ips.map((ip) => ({ ip, pool_id: POOL, linked_at: 0 })),
})

function bookOf(
  ips: readonly IpRow[],
  more: Partial<BookRows> = {},
  requireFcrdns: FcrdnsRule = 'off',
): AddressBook {
  const configured = ips.map(({ ip, is_dedicated }): SourceAddress => {
    return { ip, shared: is_dedicated === 0, helo: null }
  })
  return createBook({ ...NO_ROWS, ips, ...more }, { configured, requireFcrdns, seenSince: 0 })
}

const NO_SETTINGS = { sendingIps: null, sendingPoolId: null, dynamicPoolId: null }

interface Settings {
  domain?: Partial<Pick<Domain, 'sendingIps' | 'sendingPoolId' | 'dynamicPoolId'>>
  /** Addresses on warm-up that have room. */
  room?: readonly string[]
  diverted?: string[]
  /** What the provider does with an address; default: it takes its mail. */
  blocked?: Readonly<Record<string, 'closed' | 'probing' | 'listed'>>
  /** Addresses whose probe is in progress. */
  probed?: readonly string[]
}

const sourcesOf = (
  book: AddressBook,
  { domain = {}, room = [], diverted = [], blocked = {}, probed = [] }: Settings = {},
) =>
  createSources({
    book: () => book,
    domains: { byId: () => ({ ...NO_SETTINGS, ...domain }) as Domain },
    hostAddresses: ['198.51.100.1'],
    isConfigured: book.addresses.length > 0,
    firstAccountId: FIRST,
    allowance: {
      hasRoom: (ip) => !book.warmups.has(ip) || room.includes(ip),
      diverted: (ip) => diverted.push(ip),
    },
    blocks: {
      stateOf: (ip, site) => (site === SITE ? blocked[ip] : undefined) ?? 'open',
      mayProbe: (ip) => blocked[ip] === 'probing' && !probed.includes(ip),
    },
  })
type Sources = ReturnType<typeof sourcesOf>

const NOTHING = { ip: null, pool: null }
type Asked = { ip: string | null; pool: string | null }
const senderOf = (accountId: string, domain: Settings['domain'] = {}) => ({
  ...{ accountId, ...NO_SETTINGS },
  ...domain,
})
const everywhere = () => true
const SITE = 'provider'

/** The address, null for the system's choice, 'none' where nothing can be used. */
function ipOf(
  sources: Sources,
  key: string,
  accountId = FIRST,
  reaches = everywhere as (ip: string) => Reach,
) {
  const about = { account_id: accountId, domain_id: 'd', recipient_domain: 'x.example', source_key: key }
  const source = sources.sourceOf(about, reaches, SITE)
  assert.ok(!(source instanceof Promise), 'known at once')
  return source === null || source === 'none' ? source : source.ip
}

/** The keys that many deliveries get, in order. */
function keysOf(
  sources: Sources,
  accountId: string,
  asked: Asked = NOTHING,
  domain: Settings['domain'] = {},
) {
  const keyOf = sources.keysFor(senderOf(accountId, domain), asked)
  return [...new Set(Array.from({ length: 1_000 }, () => keyOf(newId())))].sort()
}

test('the first set that exists is chosen, and shared out evenly', () => {
  const third = ipRow('192.0.2.3')
  const cases: [what: string, AddressBook, Settings, string, Partial<Asked>, string[]][] = [
    ['dedicated', bookOf([...OWN, ...SHARED]), {}, FIRST, {}, ['192.0.2.1', '192.0.2.2']],
    ['shared', bookOf([...OWN, ...SHARED]), {}, CHILD, {}, ['192.0.2.8', '192.0.2.9']],
    ['asked address', bookOf([...OWN, ...SHARED]), {}, FIRST, { ip: '192.0.2.8' }, ['192.0.2.8']],
    ['asked shared', bookOf([...OWN, ...SHARED]), {}, FIRST, { pool: 'shared' }, ['192.0.2.8', '192.0.2.9']],
    [
      'asked pool',
      bookOf([...OWN, third], inPool('192.0.2.2', '192.0.2.3')),
      {},
      FIRST,
      { pool: POOL },
      ['192.0.2.2', '192.0.2.3'],
    ],
    [
      'linked pool',
      bookOf([...OWN, third], inPool('192.0.2.3')),
      { domain: { sendingPoolId: POOL } },
      FIRST,
      {},
      ['192.0.2.3'],
    ],
    [
      'own of the domain',
      bookOf([...OWN, ...SHARED]),
      { domain: { sendingIps: ['192.0.2.2', '192.0.2.9'] } },
      FIRST,
      {},
      ['192.0.2.2', '192.0.2.9'],
    ],
    [
      'asked before linked',
      bookOf([...OWN, third], inPool('192.0.2.3')),
      { domain: { sendingPoolId: POOL } },
      FIRST,
      { ip: '192.0.2.1' },
      ['192.0.2.1'],
    ],
    [
      'inherited pool',
      bookOf([...OWN, ...SHARED], {
        ...inPool('192.0.2.2'),
        delegations: [{ subaccount_id: CHILD, pool_id: POOL, created_at: 0 }],
      }),
      { domain: { sendingPoolId: POOL } },
      CHILD,
      {},
      ['192.0.2.2'],
    ],
    [
      'dynamic pool, also of a parent, before linked and own ones',
      bookOf([...OWN, third, ...SHARED], { ...inBand('192.0.2.3'), ...inPool('192.0.2.2') }),
      { domain: { dynamicPoolId: BAND, sendingPoolId: POOL, sendingIps: ['192.0.2.8'] } },
      CHILD,
      {},
      ['192.0.2.3'],
    ],
    [
      'asked before dynamic',
      bookOf([...OWN, third], inBand('192.0.2.3')),
      { domain: { dynamicPoolId: BAND } },
      FIRST,
      { ip: '192.0.2.1' },
      ['192.0.2.1'],
    ],
    [
      'a dynamic pool that has lost its address',
      bookOf([...OWN], inBand()),
      { domain: { dynamicPoolId: BAND } },
      FIRST,
      {},
      ['192.0.2.1', '192.0.2.2'],
    ],
    [
      'a dynamic pool cannot be asked for',
      bookOf([...OWN, third], inBand('192.0.2.3')),
      {},
      FIRST,
      { pool: BAND },
      ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
    ],
    [
      "another account's pool",
      bookOf([...OWN, ...SHARED], inPool('192.0.2.2')),
      { domain: { sendingPoolId: POOL } },
      CHILD,
      {},
      ['192.0.2.8', '192.0.2.9'],
    ],
    [
      "another account's address",
      bookOf([...OWN, shared('192.0.2.8')]),
      {},
      CHILD,
      { ip: '192.0.2.1' },
      ['192.0.2.8'],
    ],
  ]
  for (const [what, book, settings, account, asked, expected] of cases) {
    const sources = sourcesOf(book, settings)
    const keys = keysOf(sources, account, { ...NOTHING, ...asked }, settings.domain)
    assert.deepEqual([...new Set(keys.map((key) => ipOf(sources, key, account)))], expected, what)
  }
})

test('a set of which nothing can be used gives nothing: no other address takes its place', () => {
  const off = { is_enabled: 0 as const }
  const cases: [string, AddressBook, Settings, string, string][] = [
    ['asked address is off', bookOf([ipRow('192.0.2.1', off), ...SHARED]), {}, FIRST, 'ip:192.0.2.1'],
    ['dedicated are off', bookOf([ipRow('192.0.2.1', off), ...SHARED]), {}, FIRST, ''],
    ['own are gone', bookOf([...OWN, ...SHARED]), { domain: { sendingIps: ['192.0.2.77'] } }, FIRST, '#0'],
    ['all were removed', bookOf([...OWN, ...SHARED]), { domain: { sendingIps: [] } }, FIRST, ''],
    ['no shared ones', bookOf(OWN), {}, CHILD, ''],
    ['shared ones not allowed', bookOf(SHARED, { exclusions: [{ account_id: CHILD }] }), {}, CHILD, ''],
  ]
  for (const [what, book, settings, account, key] of cases)
    assert.equal(ipOf(sourcesOf(book, settings), key, account), 'none', what)
})

test('without configured addresses there is one key and the system chooses; a message may request one of the host', () => {
  const sources = sourcesOf(bookOf([]))
  assert.deepEqual(keysOf(sources, FIRST), [''])
  for (const key of ['', '#5', 'ip:192.0.2.77', 'shared#1']) assert.equal(ipOf(sources, key), null, key)
  assert.equal(ipOf(sources, 'ip:198.51.100.1'), '198.51.100.1')
  assert.equal(ipOf(sources, 'ip:198.51.100.1', CHILD), null)
  assert.deepEqual(
    [FIRST, CHILD].map((id) => sources.mayUse(id, '198.51.100.1')),
    [true, false],
  )
})

test('with one address every delivery has the same key, except that of a requested pool', () => {
  const sources = sourcesOf(bookOf([shared('192.0.2.8')]))
  assert.deepEqual(keysOf(sources, FIRST), [''])
  assert.equal(ipOf(sources, ''), '192.0.2.8')
  assert.deepEqual(keysOf(sources, FIRST, { ip: null, pool: 'shared' }), ['shared#0'])
})

test('what an account may ask for', () => {
  const book = bookOf([...OWN, ipRow('192.0.2.3', { is_enabled: 0 }), ipRow('2001:db8::1'), ...SHARED], {
    ...inPool('192.0.2.2'),
    delegations: [{ subaccount_id: 'heir', pool_id: POOL, created_at: 0 }],
    exclusions: [{ account_id: 'heir' }],
  })
  const sources = sourcesOf(book)
  const cases: [account: string, ip: string, allowed: boolean][] = [
    [FIRST, '192.0.2.1', true],
    [FIRST, '2001:DB8:0::1', true],
    [FIRST, '192.0.2.3', false],
    [FIRST, '198.51.100.1', false],
    [FIRST, 'x', false],
    [CHILD, '192.0.2.1', false],
    [CHILD, '192.0.2.8', true],
    ['heir', '192.0.2.2', true],
    ['heir', '192.0.2.1', false],
    ['heir', '192.0.2.8', false],
  ]
  for (const [account, ip, allowed] of cases)
    assert.equal(sources.mayUse(account, ip), allowed, `${account} ${ip}`)
  const pools = [FIRST, CHILD, 'heir'].map((id) => [sources.hasPool(id, 'shared'), sources.hasPool(id, POOL)])
  assert.deepEqual(pools, [
    [true, true],
    [true, false],
    [false, true],
  ])
  assert.deepEqual(
    [sources.poolOf('192.0.2.2'), sources.poolOf('192.0.2.1')],
    [{ id: POOL, name: 'Bulk' }, null],
  )
})

test('shares are about even', () => {
  const sources = sourcesOf(bookOf(Array.from({ length: 7 }, (_, n) => ipRow(`192.0.2.${n}`))))
  const counts = new Map<string, number>()
  const keyOf = sources.keysFor(senderOf(FIRST), NOTHING)
  for (let n = 0; n < 7_000; n++) {
    const key = keyOf(newId())
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  assert.equal(counts.size, 7)
  for (const [key, count] of counts) assert.ok(count > 800 && count < 1_200, `${key}: ${count}`)
})

test('what was accepted under other addresses leaves from those there are now', () => {
  const fewer = sourcesOf(bookOf([ipRow('192.0.2.1')]))
  for (const key of ['', '#0', '#5', 'ip:192.0.2.77', `${POOL}#1`])
    assert.equal(ipOf(fewer, key), '192.0.2.1', key)
  const more = sourcesOf(bookOf(OWN))
  for (const key of ['', 'ip:192.0.2.77']) {
    const ip = ipOf(more, key)
    assert.ok(
      OWN.some((own) => own.ip === ip),
      key,
    )
    assert.equal(ipOf(more, key), ip, 'always the same, since a group has one lane')
  }
})

test('an address of a family that the destination does not have is never used', () => {
  const sources = sourcesOf(bookOf([ipRow('192.0.2.1'), ipRow('2001:db8::1')]))
  const overIpv4 = (ip: string) => !ip.includes(':')
  for (const key of ['#0', '#1']) assert.equal(ipOf(sources, key, FIRST, overIpv4), '192.0.2.1')
  assert.equal(ipOf(sources, 'ip:2001:db8::1', FIRST, overIpv4), 'none')
})

test('an address on warm-up without room gives its share to warm ones of the set; it waits where there is none', () => {
  const warming = (...ips: string[]) => ({ warmups: ips.map((ip) => newWarmup(ip, FIRST, 0, 0)) })
  const diverted: string[] = []
  const one = bookOf([...OWN, ...SHARED], warming('192.0.2.1'))
  assert.equal(ipOf(sourcesOf(one, { room: ['192.0.2.1'] }), '#0'), '192.0.2.1')
  assert.equal(ipOf(sourcesOf(one, { diverted }), '#0'), '192.0.2.2')
  assert.equal(ipOf(sourcesOf(one, { diverted }), '#1'), '192.0.2.2')
  assert.deepEqual(diverted, ['192.0.2.1'])
  const all = bookOf([...OWN, ...SHARED], warming('192.0.2.1', '192.0.2.2'))
  assert.equal(ipOf(sourcesOf(all, { room: ['192.0.2.2'] }), '#0'), '192.0.2.2')
  assert.equal(ipOf(sourcesOf(all), '#0'), '192.0.2.1', 'not from shared ones: they are not of the set')
})

test('a blocked address gives its share to the others of the set, which keep theirs; it takes single probes after the pause', () => {
  const IPS = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']
  const book = bookOf(IPS.map((ip) => ipRow(ip)))
  const shares = (sources: Sources) => ['#0', '#1', '#2', '#3'].map((key) => ipOf(sources, key))
  const closed = { '192.0.2.2': 'closed' } as const
  const [one, two, three, four] = shares(sourcesOf(book, { blocked: closed }))
  assert.deepEqual([one, three, four], [IPS[0], IPS[2], IPS[3]])
  assert.ok(two !== IPS[1] && IPS.includes(String(two)))
  const probing = { '192.0.2.2': 'probing' } as const
  assert.deepEqual(shares(sourcesOf(book, { blocked: probing })), IPS)
  assert.equal(shares(sourcesOf(book, { blocked: probing, probed: ['192.0.2.2'] }))[1], two)

  const warming = { warmups: [newWarmup('192.0.2.3', FIRST, 0, 0), newWarmup('192.0.2.4', FIRST, 0, 0)] }
  const cold = bookOf(
    IPS.map((ip) => ipRow(ip)),
    warming,
  )
  assert.equal(ipOf(sourcesOf(cold, { blocked: closed }), '#1'), IPS[0], 'the warm one')
  const both = { '192.0.2.1': 'closed', '192.0.2.2': 'closed' } as const
  assert.equal(ipOf(sourcesOf(cold, { blocked: both, room: ['192.0.2.4'] }), '#0'), IPS[3], 'with room')
  const all = { ...both, '192.0.2.3': 'closed', '192.0.2.4': 'closed' } as const
  assert.deepEqual(shares(sourcesOf(book, { blocked: all })), IPS, 'nobody takes over: the mail waits there')
})

test('an address on a blocklist of the provider is left while another of the set is open, and is used where it is the last', () => {
  const IPS = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  const book = bookOf(IPS.map((ip) => ipRow(ip)))
  const shares = (blocked: NonNullable<Settings['blocked']>) =>
    ['#0', '#1', '#2'].map((key) => ipOf(sourcesOf(book, { blocked }), key))
  const [one, two, three] = shares({ '192.0.2.2': 'listed' })
  assert.deepEqual([one, three], [IPS[0], IPS[2]])
  assert.ok(two === IPS[0] || two === IPS[2])
  const listed = { '192.0.2.1': 'listed', '192.0.2.2': 'listed' } as const
  assert.deepEqual(shares(listed), [IPS[2], IPS[2], IPS[2]])
  assert.deepEqual(
    shares({ ...listed, '192.0.2.3': 'closed' }).map((ip) => ip === IPS[2]),
    [false, false, false],
    'rather than one that the provider refuses',
  )
  const all = shares({ ...listed, '192.0.2.3': 'listed' })
  assert.ok(
    all.every((ip) => IPS.includes(String(ip))),
    'mail does not wait',
  )
  assert.equal(
    ipOf(sourcesOf(book, { blocked: listed }), 'ip:192.0.2.1'),
    IPS[0],
    'the one that was requested',
  )
  assert.equal(new Set(all).size > 1, true, 'it is spread')
})

test('IPv6 without a confirmed name is used only where nothing else of the set reaches the destination', () => {
  const [v4, good6, bad6, local6] = ['192.0.2.1', '2a00:1::1', '2a00:1::2', 'fd00::1']
  const row = (ip: string, is_confirmed: Flag | null) => ({ ...shared(ip), is_confirmed })
  const only6 = (ip: string) => ip.includes(':')
  const chosen = (rows: IpRow[], rule: FcrdnsRule, reaches?: (ip: string) => Reach) => {
    const sources = sourcesOf(bookOf(rows, {}, rule))
    return [...new Set(keysOf(sources, FIRST).map((key) => ipOf(sources, key, FIRST, reaches)))].sort()
  }
  for (const state of [0, null] as const) {
    const rows = [row(v4, 0), row(bad6, state)]
    assert.deepEqual(chosen(rows, 'ipv6'), [v4])
    assert.deepEqual(chosen(rows, 'ipv6', only6), [bad6], 'else the mail could not arrive')
    assert.deepEqual(chosen(rows, 'off'), [v4, bad6])
    assert.deepEqual(chosen(rows, 'all', only6), ['none'])
  }
  assert.deepEqual(chosen([row(good6, 1), row(bad6, 0)], 'ipv6', only6), [good6])
  assert.deepEqual(chosen([row(v4, 0), row(good6, 1)], 'ipv6'), [v4, good6])
  assert.deepEqual(chosen([row(v4, 0), row(local6, 0)], 'ipv6'), [v4, local6], 'private ones are exempt')
})

test("the family that the provider's limits prefer is used where an address of the set has it", () => {
  const [v4, v6, bad6] = ['192.0.2.1', '2a00:1::1', '2a00:1::2']
  const row = (ip: string, is_confirmed: Flag) => ({ ...shared(ip), is_confirmed })
  const prefers = (first: string) => (ip: string) => (ip.includes(first) ? 'preferred' : true)
  const chosen = (rows: IpRow[], reaches: (ip: string) => Reach) => {
    const sources = sourcesOf(bookOf(rows, {}, 'ipv6'))
    return [...new Set(keysOf(sources, FIRST).map((key) => ipOf(sources, key, FIRST, reaches)))]
  }
  assert.deepEqual(chosen([row(v4, 1), row(v6, 1)], prefers(':')), [v6])
  assert.deepEqual(chosen([row(v4, 1), row(v6, 1)], prefers('.')), [v4])
  assert.deepEqual(chosen([row(v4, 1)], prefers(':')), [v4])
  assert.deepEqual(chosen([row(v4, 1), row(bad6, 0)], prefers(':')), [v4])
})
