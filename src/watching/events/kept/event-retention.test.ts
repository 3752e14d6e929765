// Both databases: the events of PostgreSQL are in partitions by time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../../test/support/clock.ts'
import { deliveredAt, eventStatement, idsOf, NOW_MS, request } from '../../../../test/support/events.ts'
import { addDomain } from '../../../../test/support/figures.ts'
import { eventually } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { ConfigError, readConfig } from '../../../platform/config/config.ts'
import { insert, type Statement, type Store } from '../../../platform/store/store.ts'
import { indexEvents } from '../search/indexing.ts'
import { createEventReader } from '../search/query.ts'
import { settledPosition } from '../search/walk.ts'
import { adoptCopiedEvents, createEventRetention } from './event-retention.ts'

/** A clock whose timers fire at once, so that a run completes. */
function clockAt(nowMs: number) {
  const clock = createTestClock(nowMs)
  return {
    ...clock,
    setTimer(_: number, run: () => void) {
      const handle = setImmediate(run)
      return { cancel: () => clearImmediate(handle) }
    },
  }
}

const retention = (store: Store, nowMs: number, days: number, bytesMax: number | null = null) =>
  createEventRetention({ store, clock: clockAt(nowMs), log: pino({ level: 'silent' }), days, bytesMax })

async function writeDaily(store: Store, days: number, perDay: number): Promise<string[]> {
  const events = Array.from({ length: days * perDay }, (_, index) =>
    deliveredAt(Math.floor(index / perDay) * DAY_MS + (index % perDay)),
  )
  for (let from = 0; from < events.length; from += 500) {
    await store.commit(events.slice(from, from + 500).map(eventStatement))
  }
  return events.map(({ id }) => id)
}

const count = async (store: Store, table: 'events' | 'event_tags' | 'event_keys') => {
  const row = await store.db
    .selectFrom(table)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

eachStore('old events are deleted in batches, with their tags; the newest row stays', async (store) => {
  const ids = await writeDaily(store, 4, 400)
  await indexEvents(store)
  const now = NOW_MS + 5 * DAY_MS
  assert.equal(await retention(store, now, 3).run(), 800)
  assert.equal(await count(store, 'events'), 800)
  assert.equal(await count(store, 'event_tags'), 800)
  const reader = createEventReader(store, 30 * DAY_MS)
  // Transactions of other databases of the server hide events until they end.
  const oldest = await eventually('a settled event', async () => {
    const page = await reader.page(request({ limit: 1 }), now)
    return idsOf(page).length > 0 && page
  })
  assert.deepEqual(idsOf(oldest), [ids[800]])
  assert.equal(await retention(store, now + 365 * DAY_MS, 3).run(), 799)
  assert.equal(await count(store, 'events'), 1)
  assert.equal(await count(store, 'event_tags'), 1)
  assert.equal(await count(store, 'event_keys'), 1)
})

eachStore(
  'events beyond the allowed space are deleted, but never those of the last three days',
  async (store) => {
    await writeDaily(store, 5, 100)
    const now = NOW_MS + 5 * DAY_MS - 1000
    const total = await store.db.selectFrom('events').select('payload_json').execute()
    const bytes = total.reduce((sum, row) => sum + Buffer.byteLength(row.payload_json), 0)
    const perRow = bytes / total.length + 400
    assert.equal(await retention(store, now, 30, Math.ceil(perRow * 460)).run(), 40)
    assert.equal(await retention(store, now, 30, Math.ceil(perRow)).run(), 160)
    assert.equal(await count(store, 'events'), 300)
  },
)

eachStore(
  'events of domains and accounts with a shorter time go earlier, those of others stay',
  async (store) => {
    const written = (accountId: string, domainName: string) =>
      [0, 10, 20].map((day) => deliveredAt(day * DAY_MS, 'alice@example.org', {}, { accountId, domainName }))
    // Of more than one batch; the domain 'gone' was deleted.
    const many = Array.from({ length: 1_200 }, (_, at) =>
      deliveredAt(at, 'alice@example.org', {}, { accountId: 'a', domainName: 'short.example' }),
    )
    const events = [
      ...many,
      ...written('a', 'short.example'),
      ...written('a', 'long.example'),
      ...written('a', 'gone.example'),
      ...written('b', 'other.example'),
    ]
    for (let from = 0; from < events.length; from += 500)
      await store.commit(events.slice(from, from + 500).map(eventStatement))
    await indexEvents(store)
    const now = NOW_MS + 21 * DAY_MS
    const left = async () => {
      const rows = await store.db
        .selectFrom('events')
        .select(['domain_name', 'timestamp_us'])
        .orderBy('seq')
        .execute()
      return rows.map((row) => `${row.domain_name} ${(Number(row.timestamp_us) / 1000 - NOW_MS) / DAY_MS}`)
    }
    assert.equal(await retention(store, now, 30).run(), 0, 'nobody has set anything')

    for (const id of ['short', 'long']) await addDomain(store, `${id}.example`, 'a')
    const setting = (domain_id: string, days: number) =>
      insert('retention_settings', { account_id: 'a', domain_id, kind: 'events', days })
    await store.commit([setting('', 15), setting('id-short.example', 1), setting('id-long.example', 300)])
    assert.equal(await retention(store, now, 30).run(), 1_203)
    const others = ['other.example 0', 'other.example 10', 'other.example 20']
    const long = ['long.example 0', 'long.example 10', 'long.example 20']
    const gone = ['gone.example 10', 'gone.example 20']
    assert.deepEqual(
      await left(),
      ['short.example 20', ...long, ...gone, ...others],
      'three days are the least',
    )

    // The gaps do not count as space.
    const rows = await store.db.selectFrom('events').select('payload_json').execute()
    const perRow = rows.reduce((sum, row) => sum + Buffer.byteLength(row.payload_json), 0) / rows.length + 400
    const counted: number[] = []
    const watched: Store = Object.assign(Object.create(store), {
      read(statement: Statement) {
        const [from, to] = statement.values
        if (statement.sql.includes('count(*)')) counted.push(Number(to) - Number(from))
        return store.read(statement)
      },
    })
    assert.equal(await retention(watched, now, 30, Math.ceil(perRow * 9.5)).run(), 0)
    assert.equal(counted.length, 1)
    assert.ok(Math.max(...counted) <= 200_000, 'rows are counted in steps')
    counted.length = 0
    assert.equal(await retention(watched, now, 30, Math.ceil(perRow * 5_000)).run(), 0)
    assert.deepEqual(counted, [], 'not where their numbers fit')
  },
)

eachStore('transaction numbers of another database are made settled', async (store) => {
  await writeDaily(store, 1, 10)
  await store.db.updateTable('events').set({ tx: 9_000_000_000 }).where('seq', '>', 3).execute()
  await adoptCopiedEvents(store)
  const reader = createEventReader(store, 30 * DAY_MS)
  const settled = await settledPosition(store)
  if (store.kind === 'postgres') {
    assert.ok(settled.tx < 9_000_000_000)
    // Open transactions of other tests on the same server may hide events for a moment.
    await eventually('all ten are shown', async () => {
      return (await reader.page(request(), NOW_MS + 60_000)).items.length === 10
    })
  }
})

test('retention is configured in days, at least three, and in megabytes', () => {
  const config = readConfig({
    SENDWRIGHT_EVENT_RETENTION_DAYS: '3',
    SENDWRIGHT_EVENT_RETENTION_MEGABYTES: '500',
  })
  assert.equal(config.eventRetentionDays, 3)
  assert.equal(config.eventRetentionBytes, 500_000_000)
  assert.equal(readConfig({}).eventRetentionDays, 30)
  for (const bad of ['2', '0', 'x', '1.5']) {
    assert.throws(() => readConfig({ SENDWRIGHT_EVENT_RETENTION_DAYS: bad }), ConfigError)
  }
})
