import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/stores.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { SuppressionKind } from '../../platform/store/schema.ts'
import { StaleWrite, type Store } from '../../platform/store/store.ts'
import { addBounce, addComplaint, addUnsubscribe, type Bounce } from './automatic.ts'
import { createSuppressionCheck, decide, type Hit } from './check.ts'
import type { NewRecord } from './given-records.ts'
import { findRecord, listRecords, type PageQuery } from './service.ts'
import {
  addStatements,
  clearStatements,
  domainStatements,
  overTagLimit,
  removeStatements,
  removeTagStatements,
} from './store.ts'

const OWNER = { id: 'd1', accountId: 'a1' }
const OTHER = { id: 'd2', accountId: 'a1' }
const NOW = Date.UTC(2026, 5, 1, 12)
const DAY = 86_400_000

const record = (address: string, more: Partial<NewRecord> = {}): NewRecord => ({
  address,
  code: '',
  detail: '',
  tags: [],
  createdAt: null,
  ...more,
})

const page = (more: Partial<PageQuery> = {}): PageQuery => ({
  direction: 'forward',
  pivot: undefined,
  prefix: '',
  limit: 100,
  now: NOW,
  ...more,
})

async function addresses(store: Store, query: Partial<PageQuery> = {}, kind: SuppressionKind = 'bounces') {
  return (await listRecords(store, OWNER.id, kind, page(query))).map(({ address }) => address)
}

const bounceOf = (more: Partial<Bounce> = {}): Bounce => ({
  owner: OWNER,
  recipient: 'Bob@Example.net',
  severity: 'hard',
  code: '550',
  error: '5.1.1 no such user',
  eventId: 'e1',
  now: NOW,
  ...more,
})

const bounce = (store: Store, more: Partial<Bounce> = {}) => store.commit(addBounce(bounceOf(more)))

async function setPolicy(store: Store, hard: number, soft: number, windowDays = 30, lifetimeDays = 0) {
  await store.db
    .insertInto('suppression_policies')
    .values({
      domain_id: OWNER.id,
      hard_bounces_to_suppress: hard,
      soft_bounces_to_suppress: soft,
      window_days: windowDays,
      lifetime_days: lifetimeDays,
    })
    .execute()
}

eachStore('pages come in byte order from either end, by value of the pivot', async (store) => {
  const all = ['a@x.org', 'ab@x.org', 'a_b@x.org', 'b@x.org', 'ä@x.org', 'zz@x.org']
  await store.commit(
    addStatements(
      OWNER,
      'bounces',
      all.map((address) => record(address)),
      NOW,
    ),
  )
  await store.commit(addStatements(OTHER, 'bounces', [record('other@x.org')], NOW))
  await store.commit(addStatements(OWNER, 'complaints', [record('complained@x.org')], NOW))
  const ordered = ['a@x.org', 'a_b@x.org', 'ab@x.org', 'b@x.org', 'zz@x.org', 'ä@x.org']
  assert.deepEqual(await addresses(store), ordered)
  assert.deepEqual(await addresses(store, { limit: 2 }), ordered.slice(0, 2))
  assert.deepEqual(await addresses(store, { limit: 2, pivot: 'a_b@x.org' }), ordered.slice(2, 4))
  assert.deepEqual(await addresses(store, { limit: 1, pivot: 'aa-is-not-there' }), ['ab@x.org'])
  assert.deepEqual(await addresses(store, { limit: 2, pivot: 'b@x.org', direction: 'backward' }), [
    'a_b@x.org',
    'ab@x.org',
  ])
  assert.deepEqual(await addresses(store, { limit: 2, direction: 'backward' }), ['zz@x.org', 'ä@x.org'])
})

eachStore('a prefix is taken as text, wildcards of LIKE included', async (store) => {
  const all = ['a%b@x.org', 'a_b@x.org', 'aab@x.org', 'a\u{1f600}@x.org', 'b@x.org']
  await store.commit(
    addStatements(
      OWNER,
      'bounces',
      all.map((address) => record(address)),
      NOW,
    ),
  )
  assert.deepEqual(await addresses(store, { prefix: 'a%' }), ['a%b@x.org'])
  assert.deepEqual(await addresses(store, { prefix: 'a_' }), ['a_b@x.org'])
  assert.equal((await addresses(store, { prefix: 'a' })).length, 4)
  assert.deepEqual(await addresses(store, { prefix: 'a', pivot: 'a_b@x.org', limit: 1 }), ['aab@x.org'])
})

eachStore('pages are ranges of the primary key', async (store) => {
  await store.commit(addStatements(OWNER, 'bounces', [record('a@x.org')], NOW))
  const sql = `SELECT * FROM suppressions WHERE domain_id = 'd1' AND kind = 'bounces'
    AND address >= 'a' AND address < 'b' AND address > 'a' ORDER BY address DESC LIMIT 10`
  const explain =
    store.kind === 'sqlite'
      ? [`EXPLAIN QUERY PLAN ${sql}`]
      : ['SET LOCAL enable_seqscan = off', 'SET LOCAL enable_bitmapscan = off', `EXPLAIN ${sql}`]
  const results = await store.commit(explain.map((text) => ({ sql: text, values: [] })))
  const plan = JSON.stringify(results.at(-1)?.rows)
  assert.match(
    plan,
    /suppressions_1 \(domain_id=\? AND kind=\? AND address>\? AND address<\?\)|suppressions_pkey/,
  )
  assert.doesNotMatch(plan, /Sort|TEMP B-TREE/)
})

eachStore('adding again updates a bounce and keeps the first time of the others', async (store) => {
  const first = record('a@x.org', { code: '550', detail: 'gone' })
  await store.commit(addStatements(OWNER, 'bounces', [first], NOW))
  await store.commit(addStatements(OWNER, 'complaints', [record('a@x.org')], NOW))
  const second = record('a@x.org', { code: '552', detail: 'full' })
  await store.commit(addStatements(OWNER, 'bounces', [second], NOW + 5))
  await store.commit(addStatements(OWNER, 'complaints', [record('a@x.org')], NOW + 5))
  const found = await findRecord(store, OWNER.id, 'bounces', 'a@x.org', NOW)
  assert.deepEqual(found, { address: 'a@x.org', code: '552', detail: 'full', tags: [], createdAt: NOW + 5 })
  assert.equal((await findRecord(store, OWNER.id, 'complaints', 'a@x.org', NOW))?.createdAt, NOW)
  await store.commit(addStatements(OWNER, 'bounces', [second], NOW + 9, { keepTimes: true }))
  assert.equal((await findRecord(store, OWNER.id, 'bounces', 'a@x.org', NOW))?.createdAt, NOW + 5)
})

eachStore('tags accumulate, * stands alone, and the last tag removes the record', async (store) => {
  const add = (tags: string[]) =>
    store.commit(addStatements(OWNER, 'unsubscribes', [record('a@x.org', { tags })], NOW))
  const tags = async () => (await findRecord(store, OWNER.id, 'unsubscribes', 'a@x.org', NOW))?.tags
  await add(['News'])
  await add(['offers', 'NEWS'])
  assert.deepEqual(await tags(), ['News', 'offers'])
  await store.commit(removeTagStatements(OWNER.id, 'a@x.org', 'news'))
  assert.deepEqual(await tags(), ['offers'])
  await assert.rejects(store.commit(removeTagStatements(OWNER.id, 'a@x.org', 'news')), StaleWrite)
  await add(['*'])
  assert.deepEqual(await tags(), ['*'])
  await add(['offers'])
  assert.deepEqual(await tags(), ['*'])
  await store.commit(removeTagStatements(OWNER.id, 'a@x.org', '*'))
  assert.equal(await tags(), undefined)
  await assert.rejects(store.commit(removeTagStatements(OWNER.id, 'a@x.org', '*')), StaleWrite)
})

eachStore('one address twice in a call is one record with the tags of both', async (store) => {
  const both = [
    record('a@x.org', { tags: ['a'] }),
    record('a@x.org', { tags: ['b'] }),
    record('b@x.org', { tags: ['*'] }),
  ]
  await store.commit(addStatements(OWNER, 'unsubscribes', both, NOW))
  const found = await listRecords(store, OWNER.id, 'unsubscribes', page())
  assert.deepEqual(
    found.map(({ address, tags }) => [address, tags]),
    [
      ['a@x.org', ['a', 'b']],
      ['b@x.org', ['*']],
    ],
  )
})

eachStore('an unsubscribe holds a hundred tags', async (store) => {
  const many = Array.from({ length: 100 }, (_, index) => `t${index}`)
  await store.commit(addStatements(OWNER, 'unsubscribes', [record('a@x.org', { tags: many })], NOW))
  const over = (tags: string[]) => overTagLimit(store, OWNER.id, [record('a@x.org', { tags })])
  assert.deepEqual([...(await over(['T5']))], [])
  assert.deepEqual([...(await over(['one more']))], ['a@x.org'])
  assert.deepEqual([...(await over(['*']))], [])
})

eachStore('removing and clearing touch one list of one domain', async (store) => {
  for (const owner of [OWNER, OTHER]) {
    for (const kind of ['bounces', 'unsubscribes', 'whitelists'] as const) {
      const tags = kind === 'unsubscribes' ? ['*'] : []
      const two = [record('a@x.org', { tags }), record('b@x.org', { tags })]
      await store.commit(addStatements(owner, kind, two, NOW))
    }
  }
  await store.commit(removeStatements(OWNER.id, 'bounces', 'a@x.org'))
  assert.deepEqual(await addresses(store), ['b@x.org'])
  await assert.rejects(store.commit(removeStatements(OWNER.id, 'bounces', 'a@x.org')), StaleWrite)
  await store.commit(clearStatements(OWNER.id, 'unsubscribes'))
  await store.commit(clearStatements(OWNER.id, 'unsubscribes'))
  const count = async (table: 'suppressions' | 'unsubscribe_tags') =>
    (await store.db.selectFrom(table).select('domain_id').execute()).length
  assert.equal(await count('suppressions'), 9)
  assert.equal(await count('unsubscribe_tags'), 2)
  await store.commit(domainStatements(OTHER.id))
  assert.equal(await count('suppressions'), 3)
  assert.equal(await count('unsubscribe_tags'), 0)
})

eachStore(
  'a hard bounce is recorded once, unless the allowlist has the address or its exact domain',
  async (store) => {
    await bounce(store)
    await bounce(store, { code: '551', eventId: 'e2', now: NOW + 1 })
    const found = await findRecord(store, OWNER.id, 'bounces', 'bob@example.net', NOW)
    assert.deepEqual(found, {
      address: 'bob@example.net',
      code: '550',
      detail: '5.1.1 no such user',
      tags: [],
      createdAt: NOW,
    })
    await store.commit(addStatements(OWNER, 'whitelists', [record('good.example'), record('vip@x.org')], NOW))
    for (const recipient of ['a@good.example', 'VIP@x.org', 'a@sub.good.example', 'other@x.org']) {
      await bounce(store, { recipient, eventId: recipient })
    }
    await bounce(store, { recipient: 'soft@x.org', severity: 'soft', eventId: 'e3' })
    assert.deepEqual(await addresses(store), ['a@sub.good.example', 'bob@example.net', 'other@x.org'])
  },
)

eachStore('a policy counts bounces of each severity within its window', async (store) => {
  await setPolicy(store, 2, 3, 10)
  await bounce(store, { eventId: 'h1' })
  assert.deepEqual(await addresses(store), [])
  await bounce(store, { eventId: 'h2', now: NOW + 11 * DAY })
  assert.deepEqual(await addresses(store), [], 'the first one has left the window')
  await bounce(store, { eventId: 'h3', now: NOW + 12 * DAY })
  assert.deepEqual(await addresses(store), ['bob@example.net'])
  for (const eventId of ['s1', 's2']) await bounce(store, { recipient: 's@x.org', severity: 'soft', eventId })
  assert.deepEqual(await addresses(store, { prefix: 's' }), [])
  await bounce(store, { recipient: 's@x.org', severity: 'soft', eventId: 's3' })
  assert.deepEqual(await addresses(store, { prefix: 's' }), ['s@x.org'])
  await store.commit(removeStatements(OWNER.id, 'bounces', 's@x.org'))
  await bounce(store, { recipient: 's@x.org', severity: 'soft', eventId: 's4' })
  assert.deepEqual(await addresses(store, { prefix: 's' }), [], 'counted from zero after a removal')
})

eachStore('a policy of zero never suppresses', async (store) => {
  await setPolicy(store, 0, 0)
  for (const eventId of ['h1', 'h2']) await bounce(store, { eventId })
  assert.deepEqual(await addresses(store), [])
})

eachStore('a record that came by itself ends with its lifetime and may come again', async (store) => {
  await setPolicy(store, 1, 0, 30, 7)
  await bounce(store)
  const check = createSuppressionCheck(store, { now: () => NOW + 6 * DAY } as Clock, erased)
  const later = createSuppressionCheck(store, { now: () => NOW + 7 * DAY } as Clock, erased)
  assert.equal((await check.suppressionOf(OWNER.id, 'bob@example.net', []))?.kind, 'suppressed')
  assert.equal(await later.suppressionOf(OWNER.id, 'bob@example.net', []), null)
  assert.deepEqual(await addresses(store, { now: NOW + 7 * DAY }), [])
  assert.equal(await findRecord(store, OWNER.id, 'bounces', 'bob@example.net', NOW + 7 * DAY), null)
  await bounce(store, { eventId: 'e2', now: NOW + 8 * DAY })
  assert.deepEqual(await addresses(store, { now: NOW + 9 * DAY }), ['bob@example.net'])
  await store.commit(addStatements(OWNER, 'bounces', [record('bob@example.net')], NOW))
  assert.deepEqual(await addresses(store, { now: NOW + 100 * DAY }), ['bob@example.net'], 'given by a caller')
})

eachStore('complaints and unsubscribes by recipients keep the first time and gather tags', async (store) => {
  await store.commit(addComplaint(OWNER, 'Ann@X.org', 'e1', NOW))
  await store.commit(addComplaint(OWNER, 'ann@x.org', 'e2', NOW + 5))
  assert.equal((await findRecord(store, OWNER.id, 'complaints', 'ann@x.org', NOW))?.createdAt, NOW)
  const unsubscribed = () => findRecord(store, OWNER.id, 'unsubscribes', 'ann@x.org', NOW)
  await store.commit(addUnsubscribe(OWNER, 'Ann@X.org', ['a'], 'e3', NOW))
  await store.commit(addUnsubscribe(OWNER, 'ann@x.org', ['b'], 'e4', NOW + 5))
  assert.deepEqual((await unsubscribed())?.tags, ['a', 'b'])
  assert.equal((await unsubscribed())?.createdAt, NOW)
  await store.commit(removeTagStatements(OWNER.id, 'ann@x.org', 'b'))
  assert.deepEqual((await unsubscribed())?.tags, ['a'])
  await store.commit(addUnsubscribe(OWNER, 'ann@x.org', [], 'e5', NOW))
  assert.deepEqual((await unsubscribed())?.tags, ['*'])
  await store.commit(removeStatements(OWNER.id, 'unsubscribes', 'ann@x.org'))
  assert.equal(await unsubscribed(), null)
})

eachStore('the check sees the lists of its own domain, whatever is asked beside it', async (store) => {
  const check = createSuppressionCheck(store, { now: () => NOW } as Clock, erased)
  await store.commit(addStatements(OWNER, 'bounces', [record('a@x.org'), record('b@x.org')], NOW))
  await store.commit(addStatements(OWNER, 'complaints', [record('c@x.org')], NOW))
  await store.commit(addStatements(OWNER, 'whitelists', [record('d@x.org')], NOW))
  await store.commit(addStatements(OTHER, 'unsubscribes', [record('a@x.org', { tags: ['*'] })], NOW))
  const asked = Array.from({ length: 50 }, (_, index) => {
    const recipient = `${'AbcdE'[index % 5]}@X.org`
    const domain = index % 2 === 0 ? OWNER.id : OTHER.id
    return { recipient, domain, outcome: check.suppressionOf(domain, recipient, []) }
  })
  const codes: Record<string, number> = { 'd1 A': 605, 'd1 b': 605, 'd1 c': 607, 'd2 A': 606 }
  for (const { recipient, domain, outcome } of asked) {
    const found = await outcome
    const code = found?.kind === 'suppressed' ? found.failure.code : undefined
    assert.equal(code, codes[`${domain} ${recipient[0]}`], `${domain} ${recipient}`)
  }
  await store.commit(removeStatements(OWNER.id, 'bounces', 'a@x.org'))
  assert.equal(await check.suppressionOf(OWNER.id, 'a@x.org', []), null)
})

/** Nobody was erased. */
const erased = (key: string) => `erased of ${key}`

test('the first list in the order bounces, unsubscribes, complaints gives the reason', () => {
  const hit = (kind: string, tag_key: string | null = null): Hit => ({ kind, tag_key, expires_at: null })
  const all = [hit('complaints'), hit('unsubscribes', '*'), hit('bounces')]
  const code = (hits: Hit[], tags: string[] = [], against?: Parameters<typeof decide>[3]) => {
    const outcome = decide(hits, tags, NOW, against)
    return outcome?.kind === 'suppressed' ? outcome.failure.code : null
  }
  assert.equal(code(all), 605)
  assert.equal(code(all.slice(0, 2)), 606)
  assert.equal(code(all.slice(0, 1)), 607)
  assert.equal(code([hit('unsubscribes', 'news')]), null, 'no tag on the message')
  assert.equal(code([hit('unsubscribes', 'news')], ['other', 'News']), 606)
  assert.equal(code([hit('unsubscribes', 'news'), hit('complaints')], ['other']), 607)
  assert.equal(code(all.slice(0, 2), [], ['bounces']), null, 'forwarded mail')
  assert.equal(code(all.slice(0, 2), [], ['bounces', 'complaints']), 607, 'mail of the service itself')
})

eachStore('a record of a person who was erased stops mail to the address, and to no other', async (store) => {
  const check = createSuppressionCheck(store, { now: () => NOW } as Clock, erased)
  await store.commit(addStatements(OWNER, 'bounces', [record('erased of a@x.org')], NOW))
  await store.commit(
    addStatements(OWNER, 'unsubscribes', [record('erased of b@x.org', { tags: ['t'] })], NOW),
  )
  const codeOf = async (recipient: string, tags: string[]) => {
    const found = await check.suppressionOf(OWNER.id, recipient, tags)
    return found?.kind === 'suppressed' ? found.failure.code : null
  }
  const asked = ['A@x.org', 'b@x.org', 'c@x.org'].map((recipient) => codeOf(recipient, ['t']))
  assert.deepEqual(await Promise.all(asked), [605, 606, null])
  assert.equal(await codeOf('b@x.org', ['other']), null)
})
