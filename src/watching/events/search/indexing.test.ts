import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../../test/support/clock.ts'
import { deliveredAt, eventStatement, follow, NOW_MS, request } from '../../../../test/support/events.ts'
import { seededNumbers } from '../../../../test/support/random.ts'
import { openNewSqlite, temporaryFolder } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { readMigrations, VERSION_TABLE } from '../../../platform/store/migrate.ts'
import { openSqlite } from '../../../platform/store/sqlite/sqlite.ts'
import type { SqlValue, Statement, Store } from '../../../platform/store/store.ts'
import { type EventRecord, recipientHash } from '../event.ts'
import { createEventRetention } from '../kept/event-retention.ts'
import { recipientKeys } from './event-keys.ts'
import { indexEvents, toRecipients } from './indexing.ts'
import type { Gap } from './page-request.ts'
import type { Key } from './plan.ts'
import { createEventReader } from './query.ts'

const LATER_MS = NOW_MS + 2 * DAY_MS

function sqliteTest(name: string, run: (store: Store) => Promise<void>): void {
  test(name, async (t) => {
    const store = await openNewSqlite(t)
    try {
      await run(store)
    } finally {
      await store.close()
    }
  })
}

/** Inserts an event with a chosen `seq`: filling segments of 16,384 events would take too long. */
function statementAt(seq: number, event: EventRecord): Statement {
  const { sql, values } = eventStatement(event)
  return { sql: sql.replace('(', '(seq, ').replace('(?', '(?, ?'), values: [seq as SqlValue, ...values] }
}

sqliteTest(
  'pages of a recipient cover all segments and unindexed events, in order of time',
  async (store) => {
    const random = seededNumbers(7)
    const people = ['alice@example.org', 'bob@example.org', 'carol@example.org']
    const events: EventRecord[] = []
    for (let number = 0; number < 160; number++) {
      // Late by up to three segments, and many with the same time.
      const atMs = 1000 * Math.floor(number / 2 - random() * 16)
      const event = deliveredAt(atMs, people[Math.floor(random() ** 2 * people.length)])
      events.push(event)
      await store.commit([statementAt(1 + number * 3000, event)])
      if (number === 140) await indexEvents(store)
    }
    const reader = createEventReader(store, 30 * DAY_MS)
    const place = ({ id }: EventRecord) => events.findIndex((event) => event.id === id)
    const sorted = events.toSorted((a, b) => a.timestampUs - b.timestampUs || place(a) - place(b))
    for (const limit of [1, 3, 7, 50]) {
      for (const names of [[people[0]], [people[2]], [people[1], people[2]], ['nobody@example.org']]) {
        for (const ascending of [true, false]) {
          const filters = [['recipient', names.join(' OR ')]] as [['recipient', string]]
          const bounds = { lowUs: (NOW_MS + 9000) * 1000, highUs: (NOW_MS + 71_000) * 1000 }
          for (const range of [{ lowUs: 0, highUs: Number.MAX_SAFE_INTEGER }, bounds]) {
            const wanted = sorted.filter(
              ({ recipient, timestampUs }) =>
                names.includes(recipient as string) &&
                timestampUs >= range.lowUs &&
                timestampUs <= range.highUs,
            )
            const ids = wanted.map(({ id }) => id)
            const { ids: seen } = await follow(
              reader,
              request({ filters, limit, ascending, ...range }),
              LATER_MS,
            )
            assert.deepEqual(
              seen,
              ascending ? ids : ids.toReversed(),
              JSON.stringify({ limit, names, ascending, range }),
            )
          }
        }
      }
    }
  },
)

sqliteTest('a search for a recipient takes a part of the time, and its rest continues', async (store) => {
  const random = seededNumbers(11)
  const events: EventRecord[] = []
  for (let number = 0; number < 160; number++) {
    // Late by up to five segments; some lie in all of them.
    const late = number % 40 === 0 ? number / 2 : random() * 26
    const event = deliveredAt(1000 * Math.floor(number / 2 - late))
    events.push(event)
    await store.commit([statementAt(1 + number * 3000, event)])
    if (number === 140) await indexEvents(store)
  }
  const hash = recipientHash('mg.example.com', 'alice@example.org')
  // One segment, besides those that lie at the beginning of the time.
  const costMax = 1
  const common = {
    scope: { accountIds: ['account-1'], domainNames: null },
    plan: { branches: [{ by: 'recipient' as const, hash }], events: null, hashes: [hash] },
    start: { tx: 0, seq: 1_000_000 },
  }
  for (const up of [true, false]) {
    const range = { lowUs: (NOW_MS - 90_000) * 1000, highUs: (NOW_MS + 90_000) * 1000 }
    const search = { ...common, ...range, request: { ascending: up, up } }
    const found: number[] = []
    let parts = 0
    for (let gap: Gap | null = null; ; parts++) {
      const { keys, restUs }: { keys: Key[]; restUs: number | null } = await recipientKeys(
        store,
        search,
        gap,
        7,
        costMax,
      )
      found.push(...keys.map(({ seq }) => seq))
      const last = keys.at(-1)
      if (keys.length === 7 && last) {
        gap = { in: 'settled', us: last.timestamp_us, seq: up ? last.seq + 1 : last.seq }
      } else if (restUs === null) break
      else gap = { in: 'settled', us: up ? restUs : restUs + 1, seq: 0 }
    }
    const all = events
      .map(({ timestampUs }, number) => ({ timestampUs, seq: 1 + number * 3000 }))
      .toSorted((a, b) => a.timestampUs - b.timestampUs || a.seq - b.seq)
      .map(({ seq }) => seq)
    assert.deepEqual(found, up ? all : all.toReversed())
    assert.ok(parts > 160 / 7, `${parts} parts: some of them end before they are full`)
  }
})

test('an upgrade indexes existing events', async (t) => {
  const folder = await temporaryFolder(t)
  const events = [deliveredAt(0), deliveredAt(1000, 'bob@example.org', { tags: ['a'] })]
  const old = new DatabaseSync(join(folder, 'sendwright.db'))
  old.exec(VERSION_TABLE)
  for (const { version, name, sql } of readMigrations('sqlite').filter(
    (migration) => migration.version <= 21,
  )) {
    old.exec(sql)
    old.prepare("INSERT INTO schema_versions VALUES (?, ?, 'then')").run(version, name)
  }
  for (const { sql, values } of events.map(eventStatement)) old.prepare(sql).run(...values)
  old.close()
  const store = await openSqlite(folder)
  t.after(() => store.close())
  assert.equal((await store.db.selectFrom('event_index').select('seq').execute()).length, 2)
  await store.commit([eventStatement(deliveredAt(2000, 'bob@example.org'))])
  await indexEvents(store)
  const reader = createEventReader(store, 30 * DAY_MS)
  const found = async (name: 'recipient' | 'tags', value: string) =>
    (await follow(reader, request({ filters: [[name, value]] }), LATER_MS)).ids.length
  assert.deepEqual([await found('recipient', 'bob@example.org'), await found('tags', 'a')], [2, 1])
})

sqliteTest('the events of some recipients are found by their segments', async (store) => {
  const people = ['alice@example.org', 'bob@example.org', 'carol@example.org']
  for (let number = 0; number < 12; number++) {
    await store.commit([statementAt(1 + number * 9000, deliveredAt(number * 1000, people[number % 3]))])
    if (number === 9) await indexEvents(store)
  }
  const hashes = people.slice(0, 2).map((recipient) => recipientHash('mg.example.com', recipient))
  const query = store.db
    .selectFrom('events')
    .select('timestamp_us')
    .where(toRecipients(store, hashes, (NOW_MS + 3000) * 1000, (NOW_MS + 10_000) * 1000))
    .orderBy('seq')
  const seconds = (await query.execute()).map(({ timestamp_us }) => (timestamp_us / 1000 - NOW_MS) / 1000)
  assert.deepEqual(seconds, [3, 4, 6, 7, 9, 10])
  const { sql, parameters } = query.compile()
  const plan = await store.read({ sql: `EXPLAIN QUERY PLAN ${sql}`, values: parameters as SqlValue[] })
  assert.match(JSON.stringify(plan), /event_index_recipient \(segment=\? AND recipient_hash=\?/)
  assert.doesNotMatch(JSON.stringify(plan), /SCAN (events|event_index)\b/)
})

sqliteTest(
  'an event that is indexed between two statements of a search is found exactly once',
  async (store) => {
    const events = Array.from({ length: 9 }, (_, number) => deliveredAt(number * 1000))
    for (const [number, event] of events.entries())
      await store.commit([statementAt(1 + number * 9000, event)])
    for (const ascending of [true, false]) {
      for (const limit of [1, 2, 100]) {
        await store.commit([
          { sql: 'DELETE FROM event_index', values: [] },
          { sql: 'DELETE FROM event_segments', values: [] },
          { sql: 'UPDATE event_index_place SET seq = 30000', values: [] },
          {
            sql: `INSERT INTO event_index (seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash)
          SELECT seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash FROM events
          WHERE seq <= 30000`,
            values: [],
          },
          {
            sql: `INSERT INTO event_segments SELECT segment, min(timestamp_us), max(timestamp_us)
          FROM event_index GROUP BY segment`,
            values: [],
          },
        ])
        let statements = 0
        const db = store.db.withPlugin({
          transformQuery: ({ node }) => node,
          async transformResult({ result }) {
            // After the settled position and the unindexed events were read, before the segments.
            if (++statements === 2) await indexEvents(store)
            return result
          },
        })
        const reader = createEventReader({ ...store, db }, 30 * DAY_MS)
        const filters = [['recipient', 'alice@example.org']] as [['recipient', string]]
        const { ids } = await follow(reader, request({ filters, limit, ascending }), LATER_MS)
        assert.ok(statements > 2)
        const all = events.map(({ id }) => id)
        assert.deepEqual(ids, ascending ? all : all.toReversed())
      }
    }
  },
)

sqliteTest('deleted events leave the index and its segments, indexed or not', async (store) => {
  for (let number = 0; number < 6; number++) {
    await store.commit([statementAt(1 + number * 20_000, deliveredAt(number * DAY_MS))])
    if (number === 3) await indexEvents(store)
  }
  const clock = createTestClock(NOW_MS + 7 * DAY_MS)
  const log = pino({ level: 'silent' })
  const retention = createEventRetention({ store, clock, log, days: 3, bytesMax: null })
  assert.equal(await retention.run(), 4)
  await indexEvents(store)
  const counted = async (table: 'event_index' | 'event_segments' | 'event_tags' | 'event_keys') =>
    (await store.db.selectFrom(table).selectAll().execute()).length
  assert.equal(await counted('event_keys'), 2)
  assert.equal(await counted('event_index'), 2)
  assert.equal(await counted('event_tags'), 2)
  assert.equal(await counted('event_segments'), 2)
})
