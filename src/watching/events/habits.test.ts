// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eventStatements, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Store } from '../../platform/store/store.ts'
import type { EventRecord } from './event.ts'
import { bestHour, createHabits } from './habits.ts'
import { clickedEvent, openedEvent, type Visit } from './later-events.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SHOP = { accountId: 'account-1', name: 'mg.example.com' }

const visit = (more: { bot?: string; timezone?: string } = {}): Visit => ({
  ip: '192.0.2.44',
  client: {
    'client-name': 'Firefox',
    'client-os': 'Linux',
    'client-type': 'browser',
    'device-type': 'desktop',
    'user-agent': 'Mozilla/5.0',
    bot: more.bot ?? '',
  },
  geolocation: { country: 'DE', region: 'BE', city: 'Berlin', timezone: more.timezone ?? 'Europe/Berlin' },
  recipientProvider: 'Other',
  deliveredAt: null,
})

const to = (recipient: string) => ({ recipient, recipientDomain: 'example.org' })
const opened = (recipient: string, atMs: number, more = {}, message = testMessage()) =>
  openedEvent(message, to(recipient), visit(more), atMs)
const clicked = (recipient: string, atMs: number, more = {}) =>
  clickedEvent(testMessage(), to(recipient), { ...visit(more), url: 'https://shop.example.com/' }, atMs)

async function storeWith(store: Store, events: readonly EventRecord[]) {
  await store.commit(eventStatements(events))
  return createHabits({ store, clock: createTestClock(NOW_MS) })
}

/** At this hour of the day in each of the last `count` weeks. */
const weekly = (hour: number, count: number) =>
  Array.from({ length: count }, (_, week) => NOW_MS + hour * HOUR_MS - (week + 1) * 7 * DAY_MS)

eachStore('the best time is the hour of the week with most opens and clicks of people', async (store) => {
  const alice = 'Alice@example.org'
  const habits = await storeWith(store, [
    ...weekly(5, 3).map((at) => opened(alice, at)),
    ...weekly(5, 1).map((at) => clicked(alice, at)),
    ...weekly(9, 3).map((at) => clicked(alice, at)),
    ...weekly(2, 9).map((at) => opened(alice, at, { bot: 'apple' })),
    ...weekly(3, 4).map((at) => opened('four@example.org', at)),
    // Another domain's mail, and visits older than 90 days.
    ...weekly(3, 9).map((at) =>
      opened('other@example.org', at, {}, testMessage({}, { domainName: 'else.example' })),
    ),
    ...weekly(3, 9).map((at) => opened('old@example.org', at - 91 * DAY_MS)),
  ])
  const addresses = [
    'alice@example.org',
    'four@example.org',
    'other@example.org',
    'old@example.org',
    'no@example.org',
  ]
  const within = (hours: number) => ({ from: NOW_MS, to: NOW_MS + hours * HOUR_MS })
  assert.deepEqual(
    [...(await habits.bestTimes(SHOP, addresses, within(24)))],
    [['alice@example.org', NOW_MS + 5 * HOUR_MS]],
  )
  assert.deepEqual(
    [...(await habits.bestTimes(SHOP, addresses, { from: NOW_MS + 6 * HOUR_MS, to: NOW_MS + 30 * HOUR_MS }))],
    [['alice@example.org', NOW_MS + 9 * HOUR_MS]],
  )
  const elsewhere = { ...SHOP, accountId: 'account-2' }
  assert.equal((await habits.bestTimes(elsewhere, addresses, within(24))).size, 0)
})

eachStore('an open is stored whatever the variables of its message contain', async (store) => {
  const userVariables = {
    nul: 'a\u0000b',
    half: '\ud83d',
    pair: '\u{1f600}',
    text: '\\u0000',
    control: '\u0001',
  }
  const message = testMessage({ userVariables })
  const habits = await storeWith(
    store,
    weekly(5, 5).map((at) => opened('alice@example.org', at, {}, message)),
  )
  const within = { from: NOW_MS, to: NOW_MS + DAY_MS }
  assert.equal((await habits.bestTimes(SHOP, ['alice@example.org'], within)).size, 1)
  const row = await store.db.selectFrom('events').select('payload_json').limit(1).executeTakeFirstOrThrow()
  assert.deepEqual(JSON.parse(row.payload_json)['user-variables'], {
    ...userVariables,
    nul: 'a\ufffdb',
    half: '\ufffd',
  })
})

eachStore('the time zone is that of the last click of a person', async (store) => {
  const habits = await storeWith(store, [
    clicked('moved@example.org', NOW_MS - 200 * DAY_MS, { timezone: 'Europe/Berlin' }),
    clicked('moved@example.org', NOW_MS - DAY_MS, { timezone: 'Asia/Tokyo' }),
    clicked('moved@example.org', NOW_MS - HOUR_MS, { timezone: 'Europe/Paris', bot: 'generic' }),
    opened('moved@example.org', NOW_MS, { timezone: 'America/Lima' }),
    clicked('lost@example.org', NOW_MS - DAY_MS, { timezone: 'Unknown' }),
    opened('reader@example.org', NOW_MS, { timezone: 'America/Lima' }),
  ])
  const zones = await habits.timeZones(SHOP, ['moved@example.org', 'lost@example.org', 'reader@example.org'])
  assert.deepEqual([...zones], [['moved@example.org', 'Asia/Tokyo']])
})

eachStore('a thousand addresses are looked up at once, each by its newest visits only', async (store) => {
  const addresses = Array.from({ length: 1_000 }, (_, n) => `reader-${n}@example.org`)
  const habits = await storeWith(store, [
    ...addresses.flatMap((address) => weekly(4, 5).map((at) => opened(address, at))),
    ...addresses.map((address) => clicked(address, NOW_MS - DAY_MS)),
    // Far more than are used, all of them newer than the habit.
    ...Array.from({ length: 60 }, (_, n) => opened('reader-0@example.org', NOW_MS - HOUR_MS - n)),
  ])
  const times = await habits.bestTimes(SHOP, addresses, { from: NOW_MS, to: NOW_MS + DAY_MS })
  assert.equal(times.size, 999)
  assert.equal(times.get('reader-999@example.org'), NOW_MS + 4 * HOUR_MS)
  assert.equal(times.get('reader-0@example.org'), undefined)
  assert.equal((await habits.timeZones(SHOP, addresses)).size, 1_000)
})

eachStore('habits use their index', async (store) => {
  const habits = createHabits({
    store: {
      ...store,
      async read(statement) {
        const plan = await store.read(
          store.kind === 'sqlite'
            ? { ...statement, sql: `EXPLAIN QUERY PLAN ${statement.sql}` }
            : { ...statement, sql: `EXPLAIN ${statement.sql}` },
        )
        plans.push(JSON.stringify(plan))
        return []
      },
    },
    clock: createTestClock(NOW_MS),
  })
  const plans: string[] = []
  await habits.bestTimes(SHOP, ['a@example.org'], { from: NOW_MS, to: NOW_MS })
  await habits.timeZones(SHOP, ['a@example.org'])
  assert.equal(plans.length, 2)
  for (const plan of plans) assert.match(plan, /events_human/)
})

const MONDAY = 4 * 24
const hours = (counts: Record<number, number>) =>
  new Map(Object.entries(counts).map(([hour, n]) => [Number(hour), n]))
const at = (hour: number) => hour * HOUR_MS

const CASES: [
  name: string,
  visits: Record<number, number>,
  from: number,
  to: number,
  expected: number | null,
][] = [
  ['fewer than five', { [MONDAY]: 4 }, at(MONDAY), at(MONDAY + 24), null],
  ['five', { [MONDAY]: 5 }, at(MONDAY - 3), at(MONDAY + 24), at(MONDAY)],
  [
    'the current hour counts from now on',
    { [MONDAY]: 5 },
    at(MONDAY) + 60_000,
    at(MONDAY + 24),
    at(MONDAY) + 60_000,
  ],
  ['outside the window', { [MONDAY]: 5 }, at(MONDAY + 1), at(MONDAY + 25), null],
  [
    'the earlier of two equal hours',
    { [MONDAY]: 3, [MONDAY + 2]: 3 },
    at(MONDAY - 1),
    at(MONDAY + 24),
    at(MONDAY),
  ],
  ['the end of the window is inclusive', { [MONDAY]: 5 }, at(MONDAY - 24), at(MONDAY), at(MONDAY)],
  ['weeks later', { [MONDAY]: 5 }, at(MONDAY + 168 * 9 - 1), at(MONDAY + 168 * 9 + 1), at(MONDAY + 168 * 9)],
]

for (const [name, visits, from, to, expected] of CASES) {
  test(`best hour: ${name}`, () => {
    assert.equal(bestHour(hours(visits), { from, to }), expected)
  })
}
