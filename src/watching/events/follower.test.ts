// Both databases: each tells in its own way which events are committed.
import assert from 'node:assert/strict'
import type { Insertable } from 'kysely'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { deliveredAt, eventStatement, NOW_MS } from '../../../test/support/events.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { EventRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { EventRecord } from './event.ts'
import { createEventFollower, type EventFollower, type FollowedKey } from './follower.ts'
import { adoptCopiedEvents, createEventRetention } from './kept/event-retention.ts'

type Row = FollowedKey & { id: string }

/** A follower that writes each event into a table without a key: an event processed twice is in it twice. */
function recording(store: Store, more: { takes?: number; fails?: () => boolean } = {}): EventFollower {
  return createEventFollower<Row>(store, {
    name: 'counters',
    columns: 'id',
    rowsMax: 10,
    async apply(rows) {
      const taken = Math.min(more.takes ?? rows.length, rows.length)
      const statements = rows
        .slice(0, taken)
        .map(({ id }) => ({ sql: 'INSERT INTO seen VALUES (?)', values: [id] }))
      if (more.fails?.()) statements.push({ sql: 'INSERT INTO nowhere VALUES (?)', values: [''] })
      return { taken, statements }
    },
  })
}

const makeTable = (store: Store) =>
  store.commit([{ sql: 'CREATE TABLE seen (id TEXT NOT NULL)', values: [] }])

const seen = async (store: Store) =>
  (await store.read({ sql: 'SELECT id FROM seen', values: [] })).map(({ id }) => id as string)

async function write(store: Store, count: number, atMs = 0): Promise<string[]> {
  const events = Array.from({ length: count }, (_, index) => deliveredAt(atMs + index))
  await store.commit(events.map(eventStatement))
  return events.map(({ id }) => id)
}

/** Steps until that many events were processed: on PostgreSQL transactions of other tests may delay it. */
async function follow(store: Store, follower: EventFollower, count: number): Promise<void> {
  await eventually(`${count} events are followed`, async () => {
    while ((await follower.step()) === 'more');
    return (await seen(store)).length >= count
  })
}

eachStore(
  'each event is processed once, in order, in steps that take all their events or a part',
  async (store) => {
    await makeTable(store)
    assert.equal(await recording(store).step(), 'done')
    const ids = await write(store, 25)
    await follow(store, recording(store, { takes: 3 }), 25)
    assert.deepEqual(await seen(store), ids)
    assert.equal(await recording(store).step(), 'done')
    const more = await write(store, 10)
    await follow(store, recording(store), 35)
    assert.deepEqual(await seen(store), [...ids, ...more])
  },
)

eachStore('a failed step has no effect and is repeated', async (store) => {
  await makeTable(store)
  const ids = await write(store, 25)
  let tries = 0
  const follower = recording(store, { fails: () => tries++ % 2 === 0 })
  await eventually('all are followed', async () => {
    await follower.step().catch((error: Error) => assert.match(error.message, /nowhere/))
    return (await seen(store)).length >= 25
  })
  assert.deepEqual(await seen(store), ids)
  assert.ok(tries >= 6)
})

eachStore('several followers and several writers: every event is processed once', async (store) => {
  await makeTable(store)
  const written: string[] = []
  let writing = true
  const writers = Array.from({ length: 4 }, async () => {
    for (let round = 0; round < 20; round++) written.push(...(await write(store, 3)))
  })
  const results = new Set<string>()
  const followers = Array.from({ length: 3 }, async () => {
    const follower = recording(store)
    while (writing) results.add(await follower.step())
  })
  await Promise.all(writers)
  writing = false
  await Promise.all(followers)
  await follow(store, recording(store), written.length)
  assert.deepEqual((await seen(store)).sort(), written.sort())
  assert.ok(results.has('more') || results.has('done'))
})

eachStore('an event whose transaction began early and ends late is not skipped', async (store) => {
  await makeTable(store)
  const late = deliveredAt(0)
  const follower = recording(store)
  let others: string[] = []
  await store.transaction(async (tx) => {
    await tx.insertInto('events').values(rowOf(late)).execute()
    // SQLite has one writer, so nothing can be written in between there.
    if (store.kind === 'postgres') others = await write(store, 5)
    while ((await follower.step()) === 'more');
    assert.deepEqual(await seen(store), [])
  })
  await follow(store, follower, others.length + 1)
  assert.deepEqual((await seen(store)).sort(), [late.id, ...others].sort())
})

eachStore('retention keeps events that a follower has not processed', async (store) => {
  await makeTable(store)
  await write(store, 40)
  const clock = { ...createTestClock(NOW_MS + 90 * DAY_MS), setTimer: immediately }
  const follower = recording(store, { takes: 15 })
  const parts = { store, clock, log: pino({ level: 'silent' }), days: 3, bytesMax: 1 }
  const retention = createEventRetention({ ...parts, followers: [follower] })
  assert.equal(await retention.run(), 0)
  await eventually('one step is taken', async () => {
    await follower.step()
    return (await seen(store)).length > 0
  })
  const taken = (await seen(store)).length
  assert.equal(await retention.run(), taken)
  await follow(store, follower, 40)
  assert.equal(await retention.run(), 39 - taken)
})

eachStore('events of a copied database are neither lost nor processed twice', async (store) => {
  await makeTable(store)
  const ids = await write(store, 30)
  const follower = recording(store)
  await follow(store, follower, 30)
  if (store.kind === 'postgres') {
    // As if they came from a server with much higher numbers, and the last ten were not processed.
    const far = 9_000_000_000
    const [{ seq }] = (await store.read({
      sql: 'SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET 19',
      values: [],
    })) as [{ seq: number }]
    await store.db.updateTable('events').set({ tx: far }).execute()
    await store.db.updateTable('event_followers').set({ tx: far, seq }).execute()
    await store.commit([
      { sql: 'DELETE FROM seen WHERE id NOT IN (SELECT id FROM events WHERE seq <= ?)', values: [seq] },
    ])
    assert.equal((await seen(store)).length, 20)
  }
  await adoptCopiedEvents(store, [follower])
  await adoptCopiedEvents(store, [follower])
  const more = await write(store, 5)
  await follow(store, follower, 35)
  assert.deepEqual((await seen(store)).sort(), [...ids, ...more].sort())
})

/** The values of an event's row by the names of their columns. */
function rowOf(event: EventRecord): Insertable<EventRow> {
  const { sql, values } = eventStatement(event)
  const columns = /\(([^)]+)\)/.exec(sql)?.[1]?.split(', ') ?? []
  return Object.fromEntries(columns.map((name, at) => [name, values[at]])) as unknown as Insertable<EventRow>
}

function immediately(_: number, run: () => void) {
  const handle = setImmediate(run)
  return { cancel: () => clearImmediate(handle) }
}
