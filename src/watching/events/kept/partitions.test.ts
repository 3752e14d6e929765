import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import pino from 'pino'
import { createTestClock, type TestClock } from '../../../../test/support/clock.ts'
import {
  deliveredAt,
  eventStatement,
  eventStatements,
  follow,
  NOW_MS,
  request,
} from '../../../../test/support/events.ts'
import { createMigratedDatabase } from '../../../../test/support/migrated.ts'
import { createTestDatabase } from '../../../../test/support/postgres.ts'
import { eventually } from '../../../../test/support/service.ts'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { folderPlace } from '../../../carry/migrate/blobs.ts'
import { copyAll } from '../../../carry/migrate/migration.ts'
import { openPostgresSource, openPostgresTarget } from '../../../carry/migrate/postgres-side.ts'
import { openSqliteSource, openSqliteTarget } from '../../../carry/migrate/sqlite-side.ts'
import { readMigrations } from '../../../platform/store/migrate.ts'
import { openPostgres } from '../../../platform/store/postgres/postgres.ts'
import { ownLeaseTimes, type Store } from '../../../platform/store/store.ts'
import type { EventRecord } from '../event.ts'
import { createEventReader } from '../search/query.ts'
import { createEventRetention } from './event-retention.ts'
import { createEventPartitions, partitionsOf, spanUs } from './partitions.ts'
import { timeParts } from './time-parts.ts'

const SPAN_MS = spanUs(30) / 1000
const log = pino({ level: 'silent' })

/** Timers fire at once. */
function clockAt(nowMs: number): TestClock {
  const clock = createTestClock(nowMs)
  const setTimer = (_: number, run: () => void) => {
    const handle = setImmediate(run)
    return { cancel: () => clearImmediate(handle) }
  }
  return { ...clock, setTimer } as TestClock
}

interface Fixture {
  store: Store
  url: string
  query(sql: string): Promise<Record<string, unknown>[]>
  /** As of a time; `isChecked`: rows are checked while others write, however few. */
  at(nowMs: number, isChecked?: boolean): ReturnType<typeof createEventPartitions>
}

async function fixture(t: TestContext): Promise<Fixture> {
  const database = await createMigratedDatabase()
  const store = await openPostgres(database.url, { leaseTimes: ownLeaseTimes })
  t.after(async () => {
    await store.close()
    await database.drop()
  })
  return fixtureOf(store, database.url)
}

function fixtureOf(store: Store, url: string): Fixture {
  return {
    store,
    url,
    query: (sql) => store.read({ sql, values: [] }),
    at: (nowMs, isChecked = false) =>
      createEventPartitions({
        ...{ store, clock: clockAt(nowMs), log, days: 30, partitionedFromBytes: 0 },
        checkedFromBytes: isChecked ? -1 : 64_000_000,
      }),
  }
}

/** One partition after the other, as a service that runs for so many days. */
async function live({ at }: Fixture, days: number): Promise<void> {
  for (let day = 0; day <= days; day++) await at(NOW_MS + day * DAY_MS).advance()
}

const startsOf = async ({ store }: Fixture) => (await partitionsOf(store.db)).map(({ fromUs }) => fromUs)
const partitionOf = async ({ query }: Fixture, id: string, table = 'events') =>
  (
    await query(`SELECT tableoid::regclass::text AS name FROM ${table} WHERE
    seq = (SELECT seq FROM events WHERE id = '${id}')`)
  )[0]?.['name']
const write = (store: Store, events: readonly EventRecord[]) => store.commit(eventStatements(events))
const countOf = async ({ query }: Fixture, table: string) =>
  Number((await query(`SELECT count(*) AS count FROM ${table}`))[0]?.['count'])

test('partitions are added before their time comes, and follow each other without a hole', async (t) => {
  const parts = await fixture(t)
  await write(parts.store, [deliveredAt(0)])
  for (let day = 0; day <= 40; day++) {
    const nowMs = NOW_MS + day * DAY_MS
    await parts.at(nowMs).advance()
    const all = await partitionsOf(parts.store.db)
    await parts.at(nowMs).advance()
    assert.deepEqual(await partitionsOf(parts.store.db), all, 'a second run adds nothing')
    assert.equal(all[0]?.fromUs, null)
    assert.equal(all.at(-1)?.toUs, null)
    for (const [index, { toUs }] of all.entries())
      if (toUs !== null) assert.equal(all[index + 1]?.fromUs, toUs)
    assert.ok((all.at(-1)?.fromUs ?? 0) >= (nowMs + 2 * DAY_MS) * 1000)
  }
  const starts = (await startsOf(parts)).slice(1) as number[]
  assert.ok(starts.length >= 10)
  for (const start of starts) assert.equal((start / 1000) % SPAN_MS, 0)
  const names = await parts.query(
    "SELECT relname AS name FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1",
  )
  assert.equal(names.length, 2 * (starts.length + 1), 'and as many of tags')
})

test('small tables stay in one partition', async (t) => {
  const { store, query } = await fixture(t)
  await write(store, [deliveredAt(0)])
  await createEventPartitions({ store, clock: clockAt(NOW_MS), log, days: 30 }).advance()
  assert.equal((await partitionsOf(store.db)).length, 1)
  const rows = await query("SELECT reltuples::int AS rows FROM pg_class WHERE relname = 'events'")
  assert.deepEqual(rows, [{ rows: 1 }], 'the table is analysed, which the server leaves to others')
})

test('events at the border of two partitions are in one each, with their tags', async (t) => {
  const parts = await fixture(t)
  await live(parts, 10)
  const border = (await startsOf(parts)).at(-2) as number
  const [before, after] = [deliveredAt(border / 1000 - NOW_MS - 0.001), deliveredAt(border / 1000 - NOW_MS)]
  assert.deepEqual([before.timestampUs, after.timestampUs], [border - 1, border])
  await write(parts.store, [after, before])
  const name = `events_${new Date(border / 1000).toISOString().slice(0, 10).replaceAll('-', '')}`
  assert.equal(await partitionOf(parts, after.id), name)
  assert.notEqual(await partitionOf(parts, before.id), name)
  assert.equal(await partitionOf(parts, after.id, 'event_tags'), name.replace('events', 'event_tags'))
  const reader = createEventReader(parts.store, 30 * DAY_MS)
  const nowMs = border / 1000 + DAY_MS
  const ids = (await reader.page(request({ ascending: false }), nowMs)).items.map(({ id }) => id)
  assert.deepEqual(ids, [after.id, before.id])
  await parts.store.commit([{ sql: 'DELETE FROM events', values: [] }])
  assert.equal(await countOf(parts, 'event_tags'), 0)
})

for (const isChecked of [false, true])
  test(`rows of the newest partition stay where they are when it is ended late${isChecked ? ', while others write' : ''}`, async (t) => {
    const parts = await fixture(t)
    await live(parts, 0)
    // Nothing ran for a month.
    const events = Array.from({ length: 60 }, (_, at) => deliveredAt(at * (DAY_MS / 2)))
    await write(parts.store, events)
    const nowMs = NOW_MS + 30 * DAY_MS
    let isOver = false
    const meanwhile = (async () => {
      const written: EventRecord[] = []
      while (!isOver) {
        const event = deliveredAt(30 * DAY_MS + written.length)
        await write(parts.store, [event])
        written.push(event)
      }
      return written
    })()
    await parts.at(nowMs, isChecked).advance()
    isOver = true
    const written = await meanwhile
    assert.equal(await countOf(parts, 'events'), events.length + written.length)
    assert.equal(await countOf(parts, 'event_tags'), events.length + written.length)
    const newest = (await partitionsOf(parts.store.db)).at(-1)
    assert.ok((newest?.fromUs ?? 0) > (nowMs + (isChecked ? 7 : 2) * DAY_MS) * 1000)
    assert.equal(await countOf(parts, `events_${newest?.suffix}`), 0)
  })

test('a bound that was announced by a process that died is used by the next, or taken back in time', async (t) => {
  const parts = await fixture(t)
  await write(parts.store, [deliveredAt(0)])
  const boundUs = (NOW_MS + 8 * DAY_MS) * 1000 - (((NOW_MS + 8 * DAY_MS) * 1000) % (DAY_MS * 1000))
  const announce = async () => {
    for (const table of ['events_first', 'event_tags_first'])
      await parts.query(
        `ALTER TABLE ${table} ADD CONSTRAINT ends_at_${boundUs} CHECK (timestamp_us < ${boundUs}) NOT VALID`,
      )
  }
  const late = deliveredAt(9 * DAY_MS)
  await announce()
  await assert.rejects(write(parts.store, [late]), /ends_at/, 'so the bound must not come near')
  await parts.at(boundUs / 1000 - 2 * DAY_MS).repair()
  await assert.rejects(write(parts.store, [late]), /ends_at/)
  await parts.at(boundUs / 1000 - DAY_MS).repair()
  await write(parts.store, [late])
  await parts.store.commit([{ sql: 'DELETE FROM events WHERE id = ?', values: [late.id] }])
  await announce()
  await parts.at(NOW_MS).advance()
  assert.deepEqual(await startsOf(parts), [null, boundUs])
  await write(parts.store, [late])
  assert.match(String(await partitionOf(parts, late.id)), /^events_\d{8}$/)
})

test('a bound that comes near is taken back although a forgotten session holds the table', async (t) => {
  const { store, url, query } = await fixture(t)
  const boundUs = (NOW_MS + DAY_MS) * 1000
  for (const table of ['events_first', 'event_tags_first'])
    await query(
      `ALTER TABLE ${table} ADD CONSTRAINT ends_at_${boundUs} CHECK (timestamp_us < ${boundUs}) NOT VALID`,
    )
  const forgotten = new pg.Client({ connectionString: url })
  const ended = new Promise((resolve) => forgotten.on('error', resolve))
  await forgotten.connect()
  await forgotten.query('BEGIN')
  await forgotten.query('SELECT count(*) FROM events')
  await createEventPartitions({ store, clock: clockAt(NOW_MS), log, days: 30, forgottenMs: 0 }).repair()
  await ended
  await write(store, [deliveredAt(2 * DAY_MS)])
})

test('an event after the announced bound, written before it, is kept, and the bound taken back', async (t) => {
  const parts = await fixture(t)
  const late = deliveredAt(9 * DAY_MS)
  await write(parts.store, [deliveredAt(0), late])
  const boundUs = (NOW_MS + 8 * DAY_MS) * 1000
  await parts.query(
    `ALTER TABLE events_first ADD CONSTRAINT ends_at_${boundUs} CHECK (timestamp_us < ${boundUs}) NOT VALID`,
  )
  await parts.query(
    `ALTER TABLE event_tags_first ADD CONSTRAINT ends_at_${boundUs} CHECK (timestamp_us < ${boundUs}) NOT VALID`,
  )
  await parts.at(NOW_MS).advance()
  assert.deepEqual(await startsOf(parts), [null])
  await write(parts.store, [deliveredAt(9 * DAY_MS + 1)])
  await parts.at(NOW_MS, true).advance()
  assert.equal((await startsOf(parts)).length, 2)
  assert.equal(await countOf(parts, 'events'), 3)
})

test('an event of a clock that is years ahead keeps the partition open, and nothing fails', async (t) => {
  const parts = await fixture(t)
  await write(parts.store, [deliveredAt(0), deliveredAt(3_000 * DAY_MS)])
  await parts.at(NOW_MS).advance()
  assert.deepEqual(await startsOf(parts), [null])
})

test('a partition is added although a reader holds the table for a while, and writers do not wait for that reader', async (t) => {
  const parts = await fixture(t)
  await write(parts.store, [deliveredAt(0)])
  const reader = new pg.Client(parts.url)
  await reader.connect()
  await reader.query('BEGIN; SELECT count(*) FROM events')
  const advanced = parts.at(NOW_MS).advance()
  await eventually(
    'it has tried',
    async () =>
      (await parts.query("SELECT 1 FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted"))
        .length > 0,
  )
  await write(parts.store, [deliveredAt(1)])
  assert.equal((await startsOf(parts)).length, 1)
  await reader.query('COMMIT')
  await reader.end()
  await advanced
  // Its tries may have ended before the reader did.
  await parts.at(NOW_MS).advance()
  assert.equal((await startsOf(parts)).length, 2)
})

test('retention drops partitions that are too old as a whole, unless a follower has not read them', async (t) => {
  const parts = await fixture(t)
  const { store } = parts
  await live(parts, 40)
  await write(
    store,
    Array.from({ length: 80 }, (_, at) => deliveredAt(at * (DAY_MS / 2))),
  )
  const nowMs = NOW_MS + 45 * DAY_MS
  const before = await partitionsOf(store.db)
  const cutoffUs = (nowMs - 30 * DAY_MS) * 1000
  const over = before.filter(({ toUs }) => toUs !== null && toUs <= cutoffUs)
  assert.ok(over.length >= 3)
  const run = (processed: boolean) => {
    const followers = processed ? [] : [{ step: async () => 'done' as const, stepToEnd: async () => {} }]
    const retained = { store, clock: clockAt(nowMs), log, days: 30, bytesMax: null, followers }
    return createEventRetention({ ...retained, partitions: parts.at(nowMs) }).run()
  }
  await run(false)
  assert.equal((await partitionsOf(store.db)).length, before.length, 'nobody has counted these events')
  assert.equal(await countOf(parts, 'events'), 80)
  assert.equal(await run(true), 0, 'no row was deleted by itself')
  const left = await partitionsOf(store.db)
  assert.equal(left.length, before.length - over.length)
  assert.equal(left[0]?.fromUs, null)
  const [oldest] = await parts.query('SELECT min(timestamp_us) AS us FROM events')
  assert.ok(Number(oldest?.['us']) >= (over.at(-1)?.toUs ?? 0))
  assert.equal(await countOf(parts, 'events'), await countOf(parts, 'event_tags'))
  // Whatever a clock says, an event has a place.
  await write(store, [deliveredAt(-400 * DAY_MS), deliveredAt(400 * DAY_MS)])
  await createEventReader(store, 500 * DAY_MS).page(request(), nowMs)
  await parts.at(nowMs).drop((nowMs + 500 * DAY_MS) * 1000, null, false)
  assert.deepEqual(await startsOf(parts), [null], 'the newest stays')
  assert.equal(await countOf(parts, 'events'), 1)
})

test('partitions that were emptied because events take too much space are dropped', async (t) => {
  const parts = await fixture(t)
  const { store } = parts
  await live(parts, 20)
  await write(
    store,
    Array.from({ length: 40 }, (_, at) => deliveredAt(at * (DAY_MS / 2))),
  )
  const nowMs = NOW_MS + 20 * DAY_MS
  const before = (await partitionsOf(store.db)).length
  const retained = { store, clock: clockAt(nowMs), log, days: 30, bytesMax: 1 }
  const deleted = await createEventRetention({ ...retained, partitions: parts.at(nowMs) }).run()
  assert.equal(deleted, 34)
  assert.equal(await countOf(parts, 'events'), 6)
  assert.ok((await partitionsOf(store.db)).length <= before - 3)
})

test('pages over several partitions miss and repeat nothing, in all kinds of lists', async (t) => {
  const parts = await fixture(t)
  await live(parts, 40)
  const store = await openPostgres(parts.url, { leaseTimes: ownLeaseTimes })
  t.after(() => store.close())
  const events = Array.from({ length: 90 }, (_, at) =>
    deliveredAt(
      ((at * 37) % 90) * (DAY_MS / 3),
      `r${at % 7}@example.org`,
      { tags: [`t${at % 3}`, `t${at % 5}`] },
      { messageId: `m${at % 11}@mg.example.com` },
    ),
  )
  for (const event of events) await store.commit([eventStatement(event)])
  const nowMs = NOW_MS + 31 * DAY_MS
  // Partitions that have begun by the clock of the database are split; these have.
  const whole = { lowUs: NOW_MS * 1000, highUs: nowMs * 1000 }
  const starts = (await startsOf(parts)).filter(
    (start) => start !== null && start <= whole.highUs,
  ) as number[]
  const split = { ...store, eventBounds: { begun: async () => starts, emptyFrom: async () => null } }
  assert.equal((await timeParts(split, whole, true)).length, 2)
  const reader = createEventReader(split, 60 * DAY_MS)
  const inOrder = (matches: (event: EventRecord, at: number) => boolean) =>
    events
      .filter(matches)
      .sort((a, b) => a.timestampUs - b.timestampUs)
      .map(({ id }) => id)
  const lists: [Parameters<typeof request>[0], string[]][] = [
    [{}, inOrder(() => true)],
    [{ filters: [['recipient', 'r3@example.org']] }, inOrder((_, at) => at % 7 === 3)],
    [
      { filters: [['tags', 't1 OR t2']] },
      inOrder((_, at) => [1, 2].includes(at % 3) || [1, 2].includes(at % 5)),
    ],
    [{ filters: [['event', 'delivered OR failed']] }, inOrder(() => true)],
    [{ filters: [['message-id', 'm4@mg.example.com']] }, inOrder((_, at) => at % 11 === 4)],
    [{ filters: [['event', 'failed']] }, []],
    [
      { lowUs: (NOW_MS + 5 * DAY_MS) * 1000, highUs: (NOW_MS + 20 * DAY_MS) * 1000 },
      inOrder(
        ({ timestampUs }) =>
          timestampUs >= (NOW_MS + 5 * DAY_MS) * 1000 && timestampUs <= (NOW_MS + 20 * DAY_MS) * 1000,
      ),
    ],
  ]
  await eventually('all are settled', async () => (await reader.page(request(), nowMs)).items.length === 90)
  for (const [more, ids] of lists)
    for (const limit of [7, 100])
      for (const ascending of [true, false]) {
        const from = request({ ...more, ascending, limit })
        const what = JSON.stringify(from)
        const wanted = ascending ? ids : ids.toReversed()
        const found = await follow(reader, from, nowMs)
        assert.deepEqual(found.ids, wanted, what)
        const back = await follow(reader, { ...from, up: !ascending }, nowMs, 'previous')
        assert.deepEqual(new Set(back.ids), new Set(wanted), `back: ${what}`)
        assert.equal(back.ids.length, wanted.length)
      }
})

test('a large old table becomes the first partition while an older program writes', async (t) => {
  const database = await createTestDatabase()
  const old = await openPostgresTarget(database.url)
  await old.prepare(
    readMigrations('postgres')
      .map(({ version }) => version)
      .filter((version) => version < 250),
  )
  await old.write(async (writer) =>
    writer.run(
      `INSERT INTO events (id, account_id, domain_name, event, timestamp_us, payload_json, tags_json)
        SELECT 'old' || n, 'account-1', 'mg.example.com', 'delivered', ${NOW_MS * 1000} - n::bigint * 1000000, '{}', '["a"]'
        FROM generate_series(1, 20000) AS n`,
    ),
  )
  await old.close()
  const writer = new pg.Client(database.url)
  await writer.connect()
  let isOver = false
  t.after(() => {
    isOver = true
  })
  const writing = (async () => {
    let written = 0
    for (; !isOver; written++)
      // Prepared once, as those of a program that is running.
      await writer.query({
        name: 'insert',
        text: `INSERT INTO events (id, account_id, domain_name, event, timestamp_us, payload_json, tags_json)
          VALUES ($1, 'account-1', 'mg.example.com', 'delivered', $2, '{}', '["b"]')`,
        values: [`new${written}`, NOW_MS * 1000 + written],
      })
    return written
  })()
  const store = await openPostgres(database.url, { leaseTimes: ownLeaseTimes })
  t.after(async () => {
    await store.close()
    await database.drop()
  })
  const parts = fixtureOf(store, database.url)
  await parts.at(NOW_MS, true).advance()
  await live(parts, 9)
  isOver = true
  const written = await writing
  await writer.end()
  assert.ok(written > 0)
  assert.equal(await countOf(parts, 'events'), 20_000 + written)
  assert.equal(await countOf(parts, 'event_tags'), 20_000 + written)
  assert.equal(await countOf(parts, 'events_first'), 20_000 + written)
  const [numbers] = await parts.query('SELECT count(DISTINCT seq) AS count, max(seq) AS last FROM events')
  assert.deepEqual(
    [Number(numbers?.['count']), Number(numbers?.['last'])],
    [20_000 + written, 20_000 + written],
  )
  assert.ok((await startsOf(parts)).length >= 2)
  const next = deliveredAt(20 * DAY_MS)
  await write(store, [next])
  assert.match(String(await partitionOf(parts, next.id)), /^events_\d{8}$/)
})

test('events of several partitions are copied to SQLite and to another PostgreSQL, and back', async (t) => {
  const parts = await fixture(t)
  await live(parts, 20)
  await write(
    parts.store,
    Array.from({ length: 40 }, (_, at) => deliveredAt(at * (DAY_MS / 2))),
  )
  await parts.store.commit([{ sql: "INSERT INTO installation VALUES ('secret-mark', '\\x00')", values: [] }])
  const folder = join(await temporaryFolder(t), 'data')
  const other = await createTestDatabase()
  t.after(() => other.drop())
  const copy = async (
    source: Parameters<typeof copyAll>[0]['source'],
    target: Parameters<typeof copyAll>[0]['target'],
  ) => {
    const result = await copyAll({ source, target, blobs: { from: folderPlace(folder), to: null } }, () => {})
    await source.close()
    await target.close()
    assert.deepEqual(result.differences, [])
    assert.equal(result.tables.find(({ name }) => name === 'events')?.rows.target, 40)
    assert.equal(
      result.tables.some(({ name }) => name.startsWith('events_')),
      false,
    )
    return result
  }
  const there = await copy(await openPostgresSource(parts.url), openSqliteTarget(folder))
  const again = await copy(openSqliteSource(folder), await openPostgresTarget(other.url))
  assert.deepEqual(again.tags.rows, there.tags.rows)
})
