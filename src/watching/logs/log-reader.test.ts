// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { eachIndexing } from '../../../test/support/event-index.ts'
import { DELIVERED, eventStatements, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore, openNewSqlite } from '../../../test/support/stores.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import { deliveredEvent, type EventRecord, failedEvent } from '../events/event.ts'
import { clickedEvent, openedEvent, type Visit } from '../events/later-events.ts'
import { settledPosition } from '../events/search/walk.ts'
import { type Condition, passesAll } from './log-filter.ts'
import type { LogItem } from './log-item.ts'
import { LIMIT_DEFAULT, type LogQuery } from './log-query.ts'
import { createLogReader, type LogPage } from './log-reader.ts'
import type { LogPosition } from './log-token.ts'
import { isCounted } from './metric-events.ts'

const INDEXED = 'seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash'
const LATER_MS = NOW_MS + 60_000
const SIGNAL = new AbortController().signal
const facts = { isRateLimit: (ruleId: string) => ruleId === 'slow' }

const readerOf = (store: Store, children: string[] = []) =>
  createLogReader({
    store,
    accounts: {
      byId: () => null,
      childrenOf: async () => children,
    },
    facts,
    retentionMs: 30 * DAY_MS,
  })

function queryOf(more: Partial<LogQuery> = {}): LogQuery {
  return {
    start: '',
    end: '',
    lowUs: (NOW_MS - DAY_MS) * 1000,
    highUs: null,
    ascending: true,
    limit: LIMIT_DEFAULT,
    events: null,
    metrics: null,
    filter: [],
    subaccounts: false,
    totals: false,
    ...more,
  }
}

type Reader = ReturnType<typeof readerOf>
const first = (query: LogQuery): LogPosition => ({ gap: null, up: query.ascending, start: null })
const pageAt = (reader: Reader, query: LogQuery, at: LogPosition, now = LATER_MS): Promise<LogPage> =>
  reader.page({ accountId: 'account-1', query, totals: null, ...at }, now, SIGNAL)
const idsOf = (items: readonly LogItem[]) => items.map((item) => item['id'] as string)

/** The pages from the first one on, or from the last one backwards. */
async function walk(
  reader: Reader,
  query: LogQuery,
  link: 'next' | 'previous' = 'next',
): Promise<string[][]> {
  const pages: string[][] = []
  const start = first(query)
  let at: LogPosition | undefined = link === 'next' ? start : { ...start, up: !start.up }
  while (at) {
    const page: LogPage = await pageAt(reader, query, at)
    pages.push(idsOf(page.items))
    at = page.links[link]
  }
  return link === 'next' ? pages : pages.reverse()
}

/** Commits, and waits until ascending pages show it: on PostgreSQL transactions of other tests may be open. */
async function write(store: Store, events: readonly EventRecord[]): Promise<void> {
  await store.commit(eventStatements(events))
  const newest = async () => {
    const [row] = await store.read({ sql: 'SELECT max(tx) AS tx FROM events', values: [] })
    return Number(row?.['tx'] ?? 0)
  }
  await eventually('the events are settled', async () => {
    const { tx } = await settledPosition(store)
    return store.kind === 'sqlite' || tx > (await newest())
  })
}

const visit = (bot = ''): Visit => ({
  ip: '192.0.2.1',
  client: { bot, 'device-type': 'mobile' } as Visit['client'],
  geolocation: { country: 'DE' } as Visit['geolocation'],
  recipientProvider: 'Gmail',
  deliveredAt: null,
})

/** Events of two accounts with two domains each. */
function mixedEvents(count: number): EventRecord[] {
  return Array.from({ length: count }, (_, at) => {
    const account = at % 3 === 2 ? 2 : 1
    const domainName = at % 2 === 0 ? `mg.account${account}.example` : `news.account${account}.example`
    const message = testMessage(
      { tags: at % 5 === 0 ? ['Sale', 'b'] : ['b'], subject: `Number ${at % 7}`, sizeBytes: at },
      { accountId: `account-${account}`, domainName, messageId: `M${at % 11}@x` },
    )
    const to = { recipient: `User${at % 4}@example.org`, recipientDomain: 'example.org' }
    const when = NOW_MS + Math.floor(at / 2) * 1000 + (at % 13)
    if (at % 6 === 1) return openedEvent(message, to, visit(at % 4 === 1 ? 'gmail' : ''), when)
    if (at % 6 === 3) {
      const severity = at % 4 === 3 ? 'permanent' : 'temporary'
      return failedEvent(message, to, { ...DELIVERED, severity, reason: 'generic', ruleId: 'slow' }, when)
    }
    return deliveredEvent(message, to, DELIVERED, when)
  })
}

const equal = (attribute: Condition['attribute'], ...values: string[]): Condition => ({
  attribute,
  comparator: '=',
  values,
})

const QUERIES: Partial<LogQuery>[] = [
  {},
  { subaccounts: true },
  { events: ['opened'] },
  { events: ['opened'], metrics: ['rate_limit'] },
  { events: ['trapped'] },
  { metrics: ['permanent_failed'], subaccounts: true },
  { filter: [equal('event', 'Failed')] },
  { filter: [equal('tag', 'SALE')] },
  { filter: [equal('tag', 'sale', 'b')], events: ['delivered'], subaccounts: true },
  { filter: [equal('recipient', 'user1@example.org')], subaccounts: true },
  { filter: [equal('recipient', 'user1@example.org'), equal('tag', 'sale')] },
  { filter: [equal('message_id', '<M3@x>')] },
  { filter: [equal('domain', 'NEWS.account1.example')] },
  { filter: [equal('domain', 'mg.account2.example')] },
  { filter: [equal('domain', 'mg.account2.example')], subaccounts: true },
  { filter: [equal('subaccount', 'account-2')], subaccounts: true },
  { filter: [equal('severity', 'permanent')], subaccounts: true },
  { filter: [equal('bot', 'gmail')], subaccounts: true },
  { filter: [{ attribute: 'subject', comparator: 'contains', values: ['number 3'] }] },
  {
    filter: [
      equal('domain', 'news.account1.example', 'mg.account1.example'),
      { attribute: 'subject', comparator: 'contains', values: ['number 3'] },
    ],
  },
  { filter: [{ attribute: 'size', comparator: '>', values: ['40'] }], subaccounts: true },
  { lowUs: (NOW_MS + 5_000) * 1000, highUs: (NOW_MS + 20_000) * 1000, subaccounts: true },
]

/** The ids of a list by its definition alone. */
function expectedOf(
  all: readonly EventRecord[],
  query: LogQuery,
  accounts = query.subaccounts ? ['account-1', 'account-2'] : ['account-1'],
): string[] {
  const passes = passesAll(query.filter)
  const { events, metrics } = query
  const found = all.filter(
    (event) =>
      accounts.includes(event.accountId) &&
      event.timestampUs >= query.lowUs &&
      event.timestampUs <= (query.highUs ?? Number.MAX_SAFE_INTEGER) &&
      passes(event) &&
      (events === null && metrics === null
        ? true
        : events?.includes(event.event) ||
          metrics?.some((name) => isCounted(name, event.event, event.payload, facts))),
  )
  const sign = query.ascending ? 1 : -1
  return found
    .sort((a, b) => sign * (a.timestampUs - b.timestampUs || (a.id < b.id ? -1 : 1)))
    .map(({ id }) => id)
}

eachIndexing('every query lists its events, forwards and backwards, page by page', async (store) => {
  const events = mixedEvents(60)
  for (let at = 0; at < events.length; at += 20) await write(store, events.slice(at, at + 20))
  const reader = readerOf(store, ['account-2'])
  for (const given of QUERIES) {
    for (const ascending of [true, false]) {
      for (const limit of [3, 100]) {
        const query = queryOf({ ...given, ascending, limit })
        const name = JSON.stringify({ given, ascending, limit })
        const expected = expectedOf(events, query)
        const pages = await walk(reader, query)
        assert.deepEqual(pages.flat(), expected, name)
        assert.ok(pages.length <= Math.max(1, Math.ceil(expected.length / limit)), name)
        const items = await reader.items('account-1', { ...query, limit: 1000 }, LATER_MS, SIGNAL)
        const listed: LogItem[] = []
        for await (const item of items) listed.push(item)
        assert.deepEqual(idsOf(listed), expected, name)
        const { totals } = await pageAt(reader, { ...query, totals: true }, first(query))
        assert.equal(totals?.all, expected.length, name)
        if (limit > 3) continue
        assert.deepEqual((await walk(reader, query, 'previous')).flat(), expected, name)
      }
    }
  }
})

eachStore('links exist where there is a page', async (store) => {
  await write(
    store,
    mixedEvents(12).map((event) => ({ ...event, accountId: 'account-1' })),
  )
  const reader = readerOf(store)
  const linksAt = async (query: LogQuery, at: LogPosition) => {
    const { links } = await pageAt(reader, query, at)
    return { links, names: Object.keys(links).sort().join(' ') }
  }
  for (const ascending of [true, false]) {
    assert.equal((await linksAt(queryOf({ ascending, limit: 12 }), first(queryOf({ ascending })))).names, '')
    const query = queryOf({ ascending, limit: 5 })
    const one = await linksAt(query, first(query))
    assert.equal(one.names, 'first last next')
    const two = await linksAt(query, one.links.next as LogPosition)
    assert.equal(two.names, 'first last next previous')
    const three = await linksAt(query, two.links.next as LogPosition)
    assert.equal(three.names, 'first last previous')
    const back = await linksAt(query, three.links.previous as LogPosition)
    assert.equal(back.names, 'first last next previous')
    assert.equal((await linksAt(query, back.links.previous as LogPosition)).names, 'first last next')
    assert.equal((await linksAt(query, one.links.last as LogPosition)).names, 'first last previous')
  }
})

eachStore('a page over many accounts', async (store) => {
  const accounts = Array.from({ length: 150 }, (_, at) => `child-${at}`)
  const domains = accounts.map((account) => `mg.${account}.example`)
  const message = (at: number) =>
    testMessage(
      { sizeBytes: at },
      { accountId: accounts[at % 150] as string, domainName: domains[at % 150] as string },
    )
  const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
  const events = Array.from({ length: 450 }, (_, at) =>
    deliveredEvent(message(at), to, DELIVERED, NOW_MS + ((at * 7) % 450) * 10),
  )
  await write(store, events)
  const reader = readerOf(store, accounts)
  for (const ascending of [true, false]) {
    const query = queryOf({ ascending, limit: 40, subaccounts: true })
    const ids = events
      .toSorted((a, b) => (ascending ? 1 : -1) * (a.timestampUs - b.timestampUs))
      .map(({ id }) => id)
    assert.deepEqual((await walk(reader, query)).flat(), ids)
    const { totals } = await pageAt(reader, { ...query, totals: true }, first(query))
    assert.deepEqual(totals, { all: 450, metrics: { delivered: 450 } })
    // Neither has an index: a page reads on where it found too few.
    const large: Condition = { attribute: 'size', comparator: '>', values: ['299'] }
    for (const filter of [[large], [large, equal('domain', ...domains.slice(0, 100))]]) {
      const expected = expectedOf(events, { ...query, filter }, accounts)
      assert.equal(expected.length, filter.length === 1 ? 150 : 100)
      assert.deepEqual((await walk(reader, { ...query, filter })).flat(), expected)
      assert.deepEqual((await walk(reader, { ...query, filter }, 'previous')).flat(), expected)
    }
  }
})

eachStore(
  'unique opens are the first in seven days of their message, recipient and kind of client',
  async (store) => {
    const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
    const message = testMessage()
    const open = (days: number, bot = '', recipient = to) =>
      openedEvent(message, recipient, visit(bot), NOW_MS - 20 * DAY_MS + days * DAY_MS)
    const firsts = [
      open(0),
      open(1, 'gmail'),
      open(2, '', { ...to, recipient: 'bob@example.org' }),
      open(8),
      open(16),
      openedEvent(testMessage({}, { messageId: 'other@x' }), to, visit(), NOW_MS),
    ]
    const others = [open(3), open(9), open(14), open(7.5, 'gmail')]
    const clicks = [
      clickedEvent(message, to, { ...visit(), url: 'https://example.org' }, NOW_MS),
      clickedEvent(message, to, { ...visit(), url: 'https://example.org/2' }, NOW_MS + 1),
    ]
    await write(store, [...others, ...firsts, ...clicks])
    const reader = readerOf(store)
    const list = async (metrics: LogQuery['metrics'], days = 30) => {
      const lowUs = (LATER_MS - days * DAY_MS) * 1000
      return (await walk(reader, queryOf({ metrics, events: [], lowUs, limit: 2 }))).flat()
    }
    assert.deepEqual((await list(['unique_opened'])).sort(), firsts.map(({ id }) => id).sort())
    assert.deepEqual(await list(['unique_clicked']), [clicks[0]?.id])
    const ofLastDays = await list(['unique_opened'], 13)
    assert.deepEqual(
      ofLastDays,
      [firsts[3]?.id, firsts[4]?.id, firsts[5]?.id],
      'also if the first was before the range',
    )
    const both = await list(['unique_opened', 'opened'])
    assert.equal(both.length, firsts.length + others.length)
  },
)

eachStore('a filter without an index reads a bounded part of the list for each page', async (store) => {
  const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
  const events = Array.from({ length: 5_000 }, (_, at) =>
    deliveredEvent(
      testMessage({ subject: at === 0 ? 'Rare' : 'Common', tags: [] }),
      to,
      DELIVERED,
      NOW_MS + at,
    ),
  )
  for (let at = 0; at < events.length; at += 3_000)
    await store.commit(eventStatements(events.slice(at, at + 3_000)))
  const reader = readerOf(store)
  const rare = { attribute: 'subject', comparator: '=', values: ['rare'] } as const
  const query = queryOf({ ascending: false, filter: [rare], totals: true })
  const one = await pageAt(reader, query, first(query))
  assert.deepEqual([one.items, one.totals], [[], { all: 0, metrics: {}, partial: true }])
  const two = await pageAt(reader, query, one.links.next as LogPosition)
  assert.deepEqual([idsOf(two.items), two.links.next], [[events[0]?.id], undefined])
  await assert.rejects(
    reader.page({ accountId: 'a', query, totals: null, ...first(query) }, LATER_MS, AbortSignal.abort()),
    { name: 'AbortError' },
  )
})

test('sqlite: a page of a recipient under many domains searches a part of the time', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const domains = Array.from({ length: 900 }, (_, at) => `mg${at}.example`)
  const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
  const eventAt = (atMs: number, at: number) =>
    deliveredEvent(
      testMessage({}, { domainName: domains[(at * 7) % 900] as string }),
      to,
      DELIVERED,
      NOW_MS + atMs,
    )
  // Each in a segment of its own; every fourth is late.
  const events = Array.from({ length: 160 }, (_, at) => eventAt(1000 * (at % 4 === 0 ? at - 9.5 : at), at))
  await store.commit([
    ...eventStatements(events),
    { sql: 'UPDATE events SET seq = seq * 16384', values: [] },
    { sql: 'UPDATE event_index_place SET seq = (SELECT max(seq) FROM events)', values: [] },
    {
      sql: `INSERT INTO event_index (${INDEXED}) SELECT ${INDEXED} FROM events`,
      values: [],
    },
    {
      sql: 'INSERT INTO event_segments SELECT segment, min(timestamp_us), max(timestamp_us) FROM event_index GROUP BY segment',
      values: [],
    },
  ])
  const filter = [equal('recipient', to.recipient), equal('domain', ...domains)]
  for (const ascending of [false, true]) {
    const query = queryOf({ ascending, limit: 300, filter })
    const expected = expectedOf(events, query)
    const reader = readerOf(store)
    const one = await pageAt(reader, query, first(query))
    assert.ok(one.items.length > 40 && one.items.length < 100, `${one.items.length} items`)
    if (ascending) {
      // Written while the pages are read, with a time that was passed.
      events.push(eventAt(5_000, 1))
      await store.commit(eventStatements(events.slice(-1)))
      expected.push(events.at(-1)?.id as string)
    }
    const found = idsOf(one.items)
    for (let at = one.links.next; at; ) {
      const page = await pageAt(reader, query, at)
      found.push(...idsOf(page.items))
      at = page.links.next
    }
    // A page is in order of time, so that the late one may be within the last.
    assert.deepEqual(found.toSorted(), expected.toSorted())
    if (!ascending) assert.deepEqual(found, expected)
    if (!ascending) assert.deepEqual((await walk(reader, query, 'previous')).flat(), expected)
  }
})

const WRITERS = 8
const EVENTS_PER_WRITER = 100

eachStore('eight writers at full speed: a poller that pages sees every event exactly once', async (store) => {
  const reader = readerOf(store, ['account-2'])
  const written: string[] = []
  let writing = WRITERS
  const writer = async (number: number) => {
    const owner = { accountId: `account-${1 + (number % 2)}`, domainName: `mg${number}.example.com` }
    for (let count = 0; count < EVENTS_PER_WRITER; count += 1) {
      // Timestamps are set first; commits then complete in another order.
      const to = { recipient: `user${count}@example.org`, recipientDomain: 'example.org' }
      const event = deliveredEvent(
        testMessage({}, owner),
        to,
        DELIVERED,
        NOW_MS + (performance.now() % 100_000),
      )
      if (count % 3 === 0) await turn()
      await store.commit(eventStatements([event]))
      written.push(event.id)
    }
    writing -= 1
  }
  const seen = new Map<string, number>()
  const query = queryOf({ limit: 37, subaccounts: true })
  // The last page is read again until it is full: only what is new in it counts.
  const poller = async () => {
    let at = first(query)
    let known = new Set<string>()
    for (let drained = false; !drained; ) {
      const done = writing === 0
      if (done) await write(store, [])
      const page = await pageAt(reader, query, at, NOW_MS + 200_000)
      const fresh = idsOf(page.items).filter((id) => !known.has(id))
      for (const id of fresh) seen.set(id, (seen.get(id) ?? 0) + 1)
      // The first page has no position yet, so it is no page of a walk until there is a second.
      known = page.links.next ? new Set() : new Set([...known, ...fresh])
      at = page.links.next ?? at
      drained = done && !page.links.next
    }
  }
  await Promise.all([poller(), ...Array.from({ length: WRITERS }, (_, number) => writer(number))])
  assert.equal(seen.size, WRITERS * EVENTS_PER_WRITER)
  assert.deepEqual([...seen.keys()].sort(), written.toSorted())
  assert.deepEqual(
    [...seen.values()].filter((times) => times > 1),
    [],
  )
})
