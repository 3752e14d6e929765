import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { eachIndexing } from '../../../../test/support/event-index.ts'
import {
  DELIVERED,
  deliveredAt,
  eventStatement,
  follow,
  idsOf,
  NOW_MS,
  request,
  testMessage,
} from '../../../../test/support/events.ts'
import { eventually } from '../../../../test/support/service.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import type { Store } from '../../../platform/store/store.ts'
import { type EventRecord, failedEvent } from '../event.ts'
import type { FieldName } from './filter.ts'
import type { PageRequest } from './page-request.ts'
import { createEventReader } from './query.ts'

const MONTH_MS = 30 * DAY_MS
const LATER_MS = NOW_MS + 60_000

async function write(store: Store, ...events: EventRecord[]): Promise<void> {
  await store.commit(events.map(eventStatement))
  await settled(store)
}

/** Resolves once ascending pages can show every event: on PostgreSQL transactions of other tests may be open. */
async function settled(store: Store): Promise<void> {
  if (store.kind === 'sqlite') return
  await eventually('the events are settled', async () => {
    const open = await sql<{ count: string }>`
      SELECT count(*) FROM events WHERE tx >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint`.execute(
      store.db,
    )
    return Number(open.rows[0]?.count) === 0
  })
}

/** Events one second apart. */
async function writeSome(store: Store, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, (_, index) => deliveredAt(index * 1000))
  const parts = 3
  for (let part = 0; part < parts; part++) {
    const some = events.slice((part * count) / parts, ((part + 1) * count) / parts)
    if (some.length > 0) await write(store, ...some)
  }
  return events.map(({ id }) => id)
}

eachIndexing('next and previous walk the same pages in both directions', async (store) => {
  const ids = await writeSome(store, 10)
  const reader = createEventReader(store, MONTH_MS)
  for (const ascending of [true, false]) {
    const expected = ascending ? ids : ids.toReversed()
    const start = request({ ascending, limit: 4 })
    const forward = await follow(reader, start, LATER_MS)
    assert.deepEqual(forward.ids, expected)
    const pages: string[][] = []
    let at = (await reader.page(forward.next, LATER_MS)).links.previous
    for (;;) {
      const page = await reader.page(at, LATER_MS)
      if (page.items.length === 0) break
      pages.unshift(idsOf(page))
      at = page.links.previous
    }
    assert.deepEqual(pages.flat(), expected)
    const first = await reader.page(start, LATER_MS)
    assert.deepEqual(idsOf(await reader.page(first.links.last, LATER_MS)), expected.slice(-4))
    assert.deepEqual(idsOf(await reader.page(first.links.first, LATER_MS)), expected.slice(0, 4))
    assert.deepEqual((await reader.page(first.links.previous, LATER_MS)).items, [])
  }
})

eachIndexing('the same next returns newer events later, also after an empty page', async (store) => {
  const reader = createEventReader(store, MONTH_MS)
  const empty = await reader.page(request(), LATER_MS)
  assert.deepEqual(empty.items, [])
  const one = deliveredAt(0)
  await write(store, one)
  const second = await reader.page(empty.links.next, LATER_MS)
  assert.deepEqual(idsOf(second), [one.id])
  assert.deepEqual((await reader.page(second.links.next, LATER_MS)).items, [])
  const two = deliveredAt(1000)
  await write(store, two)
  assert.deepEqual(idsOf(await reader.page(second.links.next, LATER_MS)), [two.id])
  assert.deepEqual(idsOf(await reader.page(empty.links.next, LATER_MS)), [one.id, two.id])
  assert.deepEqual(idsOf(await reader.page(second.links.previous, LATER_MS)), [])
})

eachIndexing('an event that commits late with an older timestamp is still reached by next', async (store) => {
  const reader = createEventReader(store, MONTH_MS)
  const ids = await writeSome(store, 3)
  const page = await reader.page(request(), LATER_MS)
  assert.deepEqual(idsOf(page), ids)
  const late = deliveredAt(500)
  await write(store, late)
  const next = await reader.page(page.links.next, LATER_MS)
  assert.deepEqual(idsOf(next), [late.id])
  assert.deepEqual(idsOf(await reader.page(next.links.previous, LATER_MS)), ids)
})

eachIndexing('a list in progress shows late events at its end, not among earlier pages', async (store) => {
  const reader = createEventReader(store, MONTH_MS)
  const ids = await writeSome(store, 6)
  const page = await reader.page(request({ limit: 4 }), LATER_MS)
  const late = deliveredAt(500)
  await write(store, late)
  // The second page is completed with later events, and sorted by timestamp.
  const second = await reader.page(page.links.next, LATER_MS)
  assert.deepEqual(idsOf(second), [late.id, ids[4], ids[5]])
  assert.deepEqual((await reader.page(second.links.next, LATER_MS)).items, [])
})

eachIndexing('bounds are inclusive, and events older than the retention are hidden', async (store) => {
  const ids = await writeSome(store, 5)
  const reader = createEventReader(store, MONTH_MS)
  const at = (seconds: number) => (NOW_MS + seconds * 1000) * 1000
  const between = await reader.page(request({ lowUs: at(1), highUs: at(3) }), LATER_MS)
  assert.deepEqual(idsOf(between), ids.slice(1, 4))
  const later = await reader.page(request(), NOW_MS + MONTH_MS + 2000)
  assert.deepEqual(idsOf(later), ids.slice(2))
  const before = await reader.page(request({ highUs: at(4) }), NOW_MS + 2 * MONTH_MS)
  assert.deepEqual(before.items, [])
})

eachIndexing('no query returns events of other accounts and domains', async (store) => {
  const own = deliveredAt(0)
  const foreign = deliveredAt(1, 'alice@example.org', {}, { accountId: 'account-2' })
  const other = deliveredAt(2, 'alice@example.org', {}, { domainName: 'other.example.com' })
  const reader = createEventReader(store, MONTH_MS)
  const before = await reader.page(request(), LATER_MS)
  await write(store, own, foreign, other)
  const filters: [FieldName, string][][] = [
    [],
    [['event', 'delivered']],
    [['recipient', 'alice@example.org']],
    [['tags', 'welcome']],
    [['message-id', own.messageId ?? '']],
  ]
  for (const some of filters) {
    for (const ascending of [true, false]) {
      const page = await reader.page(request({ filters: some, ascending }), LATER_MS)
      assert.deepEqual(idsOf(page), [own.id], JSON.stringify(some))
    }
  }
  assert.deepEqual(idsOf(await reader.page(before.links.next, LATER_MS)), [own.id])
  assert.equal(await reader.hasEvents('account-1', 'mg.example.com'), true)
  assert.equal(await reader.hasEvents('account-1', 'other.example.net'), false)
})

/** Filters, and which of the mixed events they match. */
const CASES: [[FieldName, string][], (number | undefined)[]][] = [
  [[['event', 'failed']], [2, 3]],
  [
    [
      ['event', 'failed'],
      ['severity', 'permanent'],
    ],
    [3],
  ],
  [[['severity', 'temporary']], [2]],
  [
    [
      ['event', 'delivered OR failed'],
      ['tags', 'a AND b'],
    ],
    [1, 3],
  ],
  [[['tags', 'A']], [0, 1, 3]],
  [[['tags', 'a OR b']], [0, 1, 3]],
  [[['tags', 'NOT a']], [2, 4]],
  [[['recipient', 'Bob@example.net']], [1, 3]],
  [[['recipient', 'bob']], [1, 3]],
  [
    [
      ['recipient', 'bob@example.net'],
      ['event', 'delivered'],
    ],
    [1],
  ],
  [
    [
      ['recipient', 'bob@example.net'],
      ['tags', 'b'],
      ['event', 'failed'],
    ],
    [3],
  ],
  [[['message-id', '<M4@mg.example.com>']], [4]],
  [
    [
      ['message-id', 'M4@mg.example.com'],
      ['recipient', 'bob@example.net'],
    ],
    [],
  ],
  [[['subject', 'spring']], [4]],
  [[['size', '>2000']], [4]],
  [[['attachment', 'report.pdf']], [4]],
  [[['event', 'opened']], []],
  [
    [
      ['event', 'delivered'],
      ['event', 'failed'],
    ],
    [],
  ],
  [[['event', 'nonsense']], []],
]

function mixedEvents(): EventRecord[] {
  const failed = (atMs: number, severity: 'temporary' | 'permanent', recipient: string, tags: string[]) =>
    failedEvent(
      testMessage({ tags }),
      { recipient, recipientDomain: 'example.net' },
      { ...DELIVERED, severity, reason: 'generic' },
      NOW_MS + atMs,
    )
  const attachments = [{ filename: 'Report.pdf', 'content-type': 'application/pdf', size: 9 }]
  const special = { tags: [], subject: 'Spring sale', sizeBytes: 5000, attachments }
  return [
    deliveredAt(0, 'alice@example.org', { tags: ['A'] }),
    deliveredAt(1, 'Bob@example.net', { tags: ['a', 'b'] }),
    failed(2, 'temporary', 'carol@example.net', []),
    failed(3, 'permanent', 'bob@example.net', ['a', 'b']),
    deliveredAt(4, 'dave@example.org', special, { messageId: 'M4@mg.example.com' }),
  ]
}

eachIndexing('every filter returns its events in both directions, and when following next', async (store) => {
  const reader = createEventReader(store, MONTH_MS)
  const before = await reader.page(request(), LATER_MS)
  const events = mixedEvents()
  await write(store, ...events.slice(0, 2))
  await write(store, ...events.slice(2))
  for (const [filters, indexes] of CASES) {
    const expected = indexes.map((index) => events[index as number]?.id)
    const name = JSON.stringify(filters)
    for (const limit of [1, 100]) {
      const up = await follow(reader, request({ filters, limit }), LATER_MS)
      assert.deepEqual(up.ids, expected, name)
      const down = await follow(reader, request({ filters, limit, ascending: false }), LATER_MS)
      assert.deepEqual(down.ids, expected.toReversed(), name)
    }
    const since: PageRequest = { ...before.links.next, filters }
    assert.deepEqual((await follow(reader, since, LATER_MS)).ids, expected, name)
  }
})

eachIndexing('a filter that no index supports fills its pages from many rows', async (store) => {
  const events = Array.from({ length: 1500 }, (_, index) =>
    deliveredAt(index, 'alice@example.org', { subject: index % 300 === 7 ? 'rare' : 'common' }),
  )
  await write(store, ...events)
  const reader = createEventReader(store, MONTH_MS)
  const page = await reader.page(request({ filters: [['subject', 'rare']], limit: 5 }), LATER_MS)
  assert.deepEqual(
    idsOf(page),
    [7, 307, 607, 907, 1207].map((index) => events[index]?.id),
  )
  await assert.rejects(
    reader.page(request({ filters: [['subject', 'none']] }), LATER_MS, AbortSignal.abort()),
    { name: 'AbortError' },
  )
})

const WRITERS = 8
const EVENTS_PER_WRITER = 250

eachIndexing(
  'eight writers at full speed: a client that follows next sees each event exactly once',
  async (store) => {
    const reader = createEventReader(store, MONTH_MS)
    const written: string[] = []
    let writing = WRITERS
    const writer = async (number: number) => {
      for (let count = 0; count < EVENTS_PER_WRITER; count += 1) {
        // Timestamps are set first; commits then complete in another order.
        const event = deliveredAt(performance.now() % 100_000, `user${count}@example${number}.org`)
        if (count % 3 === 0) await turn()
        await store.commit([eventStatement(event)])
        written.push(event.id)
      }
      writing -= 1
    }
    const seen: string[] = []
    const poller = async () => {
      let at = request({ limit: 37, filters: [['event', 'delivered OR opened']] })
      for (let drained = false; !drained; ) {
        const done = writing === 0
        if (done) await settled(store)
        const page = await reader.page(at, NOW_MS + 200_000)
        seen.push(...idsOf(page))
        at = page.links.next
        drained = done && page.items.length === 0
      }
    }
    await Promise.all([poller(), ...Array.from({ length: WRITERS }, (_, number) => writer(number))])
    assert.equal(seen.length, WRITERS * EVENTS_PER_WRITER)
    assert.deepEqual(seen.toSorted(), written.toSorted())
  },
)

eachIndexing('an open transaction delays only events that began after it', async (store) => {
  const reader = createEventReader(store, MONTH_MS)
  const held = deliveredAt(0)
  const quick = deliveredAt(5)
  if (store.kind === 'sqlite') return assert.ok(held.id < quick.id) // a single writer commits in order
  let next = request()
  await store.transaction(async (tx) => {
    const { values } = eventStatement(held)
    const [id, account_id, domain_name, event, timestamp_us, , , payload_json] = values
    await tx
      .insertInto('events')
      .values({
        id: id as string,
        account_id: account_id as string,
        domain_name: domain_name as string,
        event: event as string,
        timestamp_us: timestamp_us as number,
        payload_json: payload_json as string,
        recipient: null,
        message_id: null,
        tags_json: null,
        recipient_hash: null,
      })
      .execute()
    await store.commit([eventStatement(quick)])
    const page = await reader.page(next, LATER_MS)
    assert.deepEqual(page.items, [])
    const newestFirst = await reader.page(request({ ascending: false }), LATER_MS)
    assert.deepEqual(idsOf(newestFirst), [quick.id])
    next = page.links.next
  })
  await settled(store)
  assert.deepEqual(idsOf(await reader.page(next, LATER_MS)), [held.id, quick.id])
})
