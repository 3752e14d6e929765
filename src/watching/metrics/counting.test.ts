// Both databases: figures are packed by functions of each database.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { DELIVERED, eventStatements, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { ACCOUNT, addDomain, countedOf, DOMAIN, NO_RATE_LIMIT } from '../../../test/support/figures.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import {
  acceptedEvent,
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  type MessageSummary,
} from '../events/event.ts'
import { followedPosition } from '../events/follower.ts'
import { clickedEvent, openedEvent, unsubscribedEvent, type Visit } from '../events/later-events.ts'
import { createCounting, STEP_LIMITS } from './counting.ts'
import { createFigureStore } from './storage/figure-store.ts'
import { removeFiguresOf, removeOldCounters } from './storage/removal.ts'
import { rollUp } from './storage/roll-up.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './storage/splits.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }

const about = (
  tags: string[] = [],
  more: Partial<EventMessage> = {},
  summary: Partial<MessageSummary> = {},
) => testMessage({ tags, ...summary }, more)

const accepted = (message = about(), at = NOW_MS) => acceptedEvent(message, to, at, null)
const delivered = (message = about(), at = NOW_MS) => deliveredEvent(message, to, DELIVERED, at)

const visit = (bot = ''): Visit => ({
  ip: '192.0.2.1',
  client: { bot } as Visit['client'],
  geolocation: {} as Visit['geolocation'],
  recipientProvider: 'Other',
  deliveredAt: null,
})
const opened = (at: number, bot?: string, message = about(), who = to) =>
  openedEvent(message, who, visit(bot), NOW_MS + at)

/** Counts until no event is left: on PostgreSQL transactions of other tests may delay it. */
async function countAll(
  store: Store,
  counting = createCounting(store, systemClock, NO_RATE_LIMIT),
): Promise<void> {
  const { signal } = new AbortController()
  await eventually('all is counted', async () => {
    await counting.run(signal)
    const { tx, seq } = await followedPosition(store)
    const sql = 'SELECT seq FROM events WHERE (tx, seq) > (?, ?) LIMIT 1'
    return (await store.read({ sql, values: [tx, seq] })).length === 0
  })
}

async function count(store: Store, events: readonly EventRecord[]): Promise<void> {
  await store.commit(eventStatements(events))
  await countAll(store)
}

eachStore(
  'events are counted by hour, day and month of their time, for the domain and each tag',
  async (store) => {
    await addDomain(store)
    await addDomain(store, 'other.example.com')
    const other = about([], { domainName: 'other.example.com' })
    const later = about(['news', 'May'])
    await count(store, [
      accepted(),
      delivered(),
      accepted(later, NOW_MS + 20 * HOUR),
      delivered(later, NOW_MS + 30 * DAY),
      accepted(other),
    ])
    assert.deepEqual(await countedOf(store), { accepted_outgoing: 2, delivered_smtp: 2, delivered_first: 2 })
    assert.deepEqual(await countedOf(store, { tag: 'may' }), {
      accepted_outgoing: 1,
      delivered_smtp: 1,
      delivered_first: 1,
    })
    assert.deepEqual(await countedOf(store, { domain: 'other.example.com' }), { accepted_outgoing: 1 })
    await rollUp(store, NOW_MS + 100 * DAY)
    const starts = async (unit: 'hour' | 'day' | 'month') => {
      const rows = await store.db
        .selectFrom('figures')
        .innerJoin('figure_scopes', 'figure_scopes.no', 'figures.scope')
        .select('start_at')
        .where('domain_name', '=', DOMAIN)
        .where('split', '=', SPLIT_NUMBERS.none)
        .where('unit', '=', UNIT_NUMBERS[unit])
        .orderBy('start_at')
        .execute()
      return rows.map(({ start_at: at }) => new Date(Number(at)).toISOString().slice(0, 13))
    }
    assert.deepEqual(await starts('hour'), ['2026-06-01T12', '2026-06-02T08', '2026-07-01T12'])
    assert.deepEqual(await starts('day'), ['2026-06-01T00', '2026-06-02T00', '2026-07-01T00'])
    assert.deepEqual(await starts('month'), ['2026-06-01T00', '2026-07-01T00'])
  },
)

eachStore('a step whose commit was not acknowledged is not counted again', async (store) => {
  await addDomain(store)
  await store.commit(eventStatements([accepted(), delivered(), opened(0)]))
  const deaf: Store = {
    ...store,
    async commit(unit) {
      await store.commit(unit)
      throw new Error('gone')
    },
  }
  await assert.rejects(countAll(deaf), /gone/)
  await countAll(store)
  const once = { accepted_outgoing: 1, delivered_smtp: 1, delivered_first: 1, opened: 1, opened_unique: 1 }
  assert.deepEqual(await countedOf(store), once)
  const dead: Store = { ...store, commit: () => Promise.reject(new Error('gone')) }
  await store.commit(eventStatements([accepted()]))
  await assert.rejects(countAll(dead), /gone/)
  await countAll(store)
  assert.deepEqual(await countedOf(store), { ...once, accepted_outgoing: 2 })
})

eachStore('several processes count events while they are written, each of them once', async (store) => {
  await addDomain(store)
  const stopping = new AbortController()
  const counters = Array.from({ length: 3 }, async () => {
    const counting = createCounting(store, systemClock, NO_RATE_LIMIT)
    while (!stopping.signal.aborted) await counting.run(stopping.signal)
  })
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let round = 0; round < 10; round++)
      await store.commit(eventStatements([accepted(about([`w${writer}`])), opened(round)]))
  })
  await Promise.all(writers)
  stopping.abort()
  await Promise.all(counters)
  await countAll(store)
  assert.deepEqual(await countedOf(store), { accepted_outgoing: 40, opened: 40, opened_unique: 1 })
  assert.deepEqual(await countedOf(store, { tag: 'w2', unit: 'month' }), { accepted_outgoing: 10 })
})

eachStore('a unique open is one per message, recipient and kind of bot in seven days', async (store) => {
  await addDomain(store)
  const second = about([], { messageId: 'second@mg.example.com' })
  const bob = { recipient: 'bob@example.org', recipientDomain: 'example.org' }
  const click = (at: number) =>
    clickedEvent(about(), to, { ...visit(), url: 'https://example.org/' }, NOW_MS + at)
  const steps: [event: EventRecord, opened: number, clicked: number][] = [
    [opened(0), 1, 0],
    [opened(1000), 1, 0],
    [opened(2000, 'apple'), 2, 0],
    [opened(3000, 'apple'), 2, 0],
    [opened(0, '', second), 3, 0],
    [opened(0, '', about(), bob), 4, 0],
    [click(0), 4, 1],
    [click(7 * DAY - 1), 4, 1],
    [opened(7 * DAY - 1), 4, 1],
    // Seven days after the counted one, not after the last one.
    [opened(7 * DAY), 5, 1],
    [opened(14 * DAY - 1), 5, 1],
    // It was committed after a later one.
    [opened(6 * DAY), 5, 1],
  ]
  for (const [at, [event, opens, clicks]] of steps.entries()) {
    await count(store, [event])
    const { opened_unique: unique, clicked_unique: clicked = 0 } = await countedOf(store)
    assert.deepEqual([unique, clicked], [opens, clicks], `step ${at}`)
  }
  const { opened: total, clicked } = await countedOf(store, { unit: 'month' })
  assert.deepEqual([total, clicked], [10, 2])
})

eachStore('an unsubscribe counts for the tags of its message, whatever tags it covers', async (store) => {
  await addDomain(store)
  const message = about(['news', 'May'])
  const everything = unsubscribedEvent(
    { ...message, summary: { ...message.summary, tags: ['*'] } },
    to,
    visit(),
    NOW_MS,
  )
  const unknown = about(['*'], { messageId: 'long-gone@mg.example.com' })
  await count(store, [accepted(message), everything, unsubscribedEvent(unknown, to, visit(), NOW_MS)])
  assert.equal((await countedOf(store)).unsubscribed, 2)
  for (const tag of ['news', 'may']) assert.equal((await countedOf(store, { tag })).unsubscribed, 1)
  assert.deepEqual(await countedOf(store, { tag: '*' }), {})
})

eachStore('more rows than one transaction may hold are counted in several', async (store) => {
  await addDomain(store)
  const tags = (index: number) => Array.from({ length: 10 }, (_, at) => `t${index}-${at}`)
  const events = Array.from({ length: 60 }, (_, index) => accepted(about(tags(index)), NOW_MS + index * HOUR))
  await store.commit(eventStatements(events))
  let commits = 0
  const watching: Store = {
    ...store,
    commit(unit) {
      commits++
      return store.commit(unit)
    },
  }
  await countAll(
    store,
    createCounting(watching, systemClock, NO_RATE_LIMIT, createFigureStore(watching), {
      events: 60,
      rows: 200,
    }),
  )
  assert.ok(commits > 5, `${commits}`)
  assert.deepEqual(await countedOf(store), { accepted_outgoing: 60 })
  assert.deepEqual(await countedOf(store, { tag: 't59-9', unit: 'day' }), { accepted_outgoing: 1 })
})

eachStore('a message with texts that look like those of other events is counted correctly', async (store) => {
  await addDomain(store)
  const userVariables = {
    a: { 'mailing-list': 1, 'is-routed': true, transport: 'http', 'i-delivery-optimizer': 1 },
  }
  const message = about([], {}, { userVariables, subject: '"is-routed":true \u0000' })
  await count(store, [accepted(message), delivered(message)])
  assert.deepEqual(await countedOf(store), { accepted_outgoing: 1, delivered_smtp: 1, delivered_first: 1 })
})

eachStore(
  'counters of a deleted domain are removed, and its later events make no new ones',
  async (store) => {
    await addDomain(store)
    await addDomain(store, 'stays.example.com')
    const stays = about(['news'], { domainName: 'stays.example.com' })
    await count(store, [accepted(about(['news'])), accepted(stays)])
    await store.db.deleteFrom('domains').where('name', '=', DOMAIN).execute()
    await removeFiguresOf(store, { accountId: ACCOUNT, name: DOMAIN })
    await count(store, [opened(0), accepted(stays)])
    const rows = await store.db
      .selectFrom('figure_scopes')
      .select('domain_name')
      .orderBy('domain_name')
      .execute()
    assert.deepEqual(
      rows.map(({ domain_name: name }) => name),
      ['', 'stays.example.com'],
    )
    const scopes = store.db.selectFrom('figure_scopes').select('no')
    assert.deepEqual(
      await store.db.selectFrom('figures').select('scope').where('scope', 'not in', scopes).execute(),
      [],
    )
    assert.deepEqual(await countedOf(store, { domain: 'stays.example.com' }), { accepted_outgoing: 2 })
  },
)

eachStore('hours are kept for 60 days, days for a year, months for ever', async (store) => {
  await addDomain(store)
  await count(store, [accepted(about(['news'])), opened(0)])
  const left = async (days: number) => {
    await rollUp(store, NOW_MS + days * DAY)
    await removeOldCounters(store, NOW_MS + days * DAY)
    const counts = await Promise.all(
      (['hour', 'day', 'month'] as const).map((unit) => countedOf(store, { unit })),
    )
    const visits = await store.db.selectFrom('counted_visits').select('visit').execute()
    return [...counts.map(({ opened: opens = 0 }) => opens), visits.length]
  }
  assert.deepEqual(await left(6), [1, 1, 1, 1])
  assert.deepEqual(await left(59), [1, 1, 1, 0])
  assert.deepEqual(await left(61), [0, 1, 1, 0])
  assert.deepEqual(await left(365), [0, 1, 1, 0])
  assert.deepEqual(await left(367), [0, 0, 1, 0])
})

eachStore('a backlog is counted with pauses, which a stop ends', async (store) => {
  await addDomain(store)
  const { events: most } = STEP_LIMITS[store.kind]
  const events = Array.from({ length: 2 * most }, () => accepted())
  await store.commit(eventStatements(events))
  const stopping = new AbortController()
  const clock = {
    ...createTestClock(),
    setTimer() {
      setImmediate(() => stopping.abort())
      return { cancel() {} }
    },
  }
  const counting = createCounting(store, clock, NO_RATE_LIMIT)
  await eventually('a step is taken, and the pause after it has ended', async () => {
    await counting.run(stopping.signal)
    return stopping.signal.aborted
  })
  assert.deepEqual(await countedOf(store), { accepted_outgoing: most })
})

eachStore('unique visits are kept until all events of their seven days are counted', async (store) => {
  await addDomain(store)
  await count(store, [opened(0)])
  await store.commit(eventStatements([opened(1000)]))
  await removeOldCounters(store, NOW_MS + 20 * DAY)
  await countAll(store)
  assert.equal((await countedOf(store, { unit: 'month' })).opened_unique, 1)
  await removeOldCounters(store, NOW_MS + 20 * DAY)
  assert.deepEqual(await store.db.selectFrom('counted_visits').select('visit').execute(), [])
})

eachStore('the tags of a message are found by its id, however much its domain sends', async (store) => {
  await addDomain(store)
  const asked: Statement[] = []
  const watching: Store = {
    ...store,
    read(statement) {
      asked.push(statement)
      return store.read(statement)
    },
  }
  const message = about(['news'])
  const everything = { ...message, summary: { ...message.summary, tags: ['*'] } }
  await store.commit(eventStatements([accepted(message), unsubscribedEvent(everything, to, visit(), NOW_MS)]))
  await countAll(watching)
  assert.equal((await countedOf(store, { tag: 'news' })).unsubscribed, 1)
  const search = asked.find(({ sql }) => sql.includes('message_id = ?'))
  assert.ok(search)
  if (store.kind !== 'sqlite') return
  const plan = await store.read({ ...search, sql: `EXPLAIN QUERY PLAN ${search.sql}` })
  assert.match(JSON.stringify(plan), /event_index_message/)
})
