/** One sending domain, one destination, several sources: each is a lane of its own. */
// Both databases: nodes take the mail of their own addresses only.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bareRecorder } from '../../../test/support/events.ts'
import { DELIVERED, fakeTransport } from '../../../test/support/fake-transport.ts'
import { type Seed, seededEngine, seedQueue } from '../../../test/support/seed-queue.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore, openNewSqlite } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Outcome } from './attempt/outcome.ts'
import { createQueue } from './claim/queue.ts'

const [SLOW, FREE] = ['#0', '#1']
const DOMAIN = 'x.example'
const group = (source_key: string) => ({ domain_id: 'd', recipient_domain: DOMAIN, source_key })
const seedOf = (sourceKey: string, count: number, dueAt: number): Seed => ({
  accountId: 'a',
  domainId: 'd',
  recipientDomain: DOMAIN,
  sourceKey,
  count,
  dueAt,
})
const from = (source: string, attempts: readonly { source_key?: string | undefined }[]) =>
  attempts.filter(({ source_key }) => source_key === source)

async function sqlite(t: test.TestContext) {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  return store
}

test('a source that gets "too many connections" is slowed down, the other one is not', async (t) => {
  const store = await sqlite(t)
  const tooMany: Outcome = {
    kind: 'deferred',
    failure: { code: 421, enhanced: '4.7.0', message: 'too many connections', description: '' },
  }
  const transport = fakeTransport(4, async ({ source_key }) => (source_key === SLOW ? tooMany : DELIVERED))
  const engine = seededEngine(store, systemClock, transport)
  t.after(() => engine.stop(0))
  const now = systemClock.now()
  for (const source of [SLOW, FREE]) await seedQueue(store, seedOf(source, 20, now - 1))
  await engine.start()
  await eventually('all of the free one', async () => from(FREE, transport.attempts).length === 20)
  const slowed = await eventually('slowed down', async () => {
    const lane = engine.laneOfGroup(group(SLOW))
    return lane?.backedOffUntil ? lane : null
  })
  assert.deepEqual([slowed.info.name, slowed.why], ['#0/x.example', 'too many connections'])
  assert.ok(slowed.connectionsMax < 4)
  const free = engine.laneOfGroup(group(FREE))
  assert.deepEqual(
    [free?.info.name, free?.connectionsMax, free?.backedOffUntil, free?.why],
    ['#1/x.example', 4, null, null],
  )
})

test('each source has connections of its own to a site, and no more', async (t) => {
  const store = await sqlite(t)
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(3, async () => hanging.promise)
  const engine = seededEngine(store, systemClock, transport)
  t.after(() => engine.stop(1_000))
  for (const source of [SLOW, FREE]) await seedQueue(store, seedOf(source, 30, systemClock.now() - 1))
  await engine.start()
  await eventually('both full', async () => transport.attempts.length === 6)
  const lanes = engine.lanes().map(({ info, running }) => [info.name, running])
  assert.deepEqual(lanes.sort(), [
    ['#0/x.example', 3],
    ['#1/x.example', 3],
  ])
  assert.equal(from(SLOW, transport.attempts).length, 3)
  hanging.resolve(DELIVERED)
  await eventually('all', async () => transport.attempts.length === 60)
})

eachStore('mail of one source is sent although thousands wait for another one', async (store) => {
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(2, async ({ source_key }) =>
    source_key === SLOW ? hanging.promise : DELIVERED,
  )
  const now = systemClock.now()
  // More than a poll reads, before and after: only the scan of groups finds what is between.
  await seedQueue(store, seedOf(SLOW, 2_000, now - 2_000))
  await seedQueue(store, seedOf(FREE, 200, now - 1_000))
  await seedQueue(store, seedOf(SLOW, 1_000, now))
  const engine = seededEngine(store, systemClock, transport)
  await engine.start()
  await eventually('all of the free one', async () => from(FREE, transport.attempts).length === 200)
  assert.equal(from(SLOW, transport.attempts).length, 2, 'as many as it has connections')
  const held = engine.laneOfGroup(group(SLOW))
  assert.ok(
    held && held.waiting + held.running <= 20,
    'it holds no more than was claimed before its lane was known',
  )
  await seedQueue(store, seedOf(FREE, 1, systemClock.now()))
  engine.inserted([group(FREE)])
  await eventually('one more', async () => from(FREE, transport.attempts).length === 201)
  hanging.resolve(DELIVERED)
  await engine.stop(5_000)
})

test('fresh mail gets a slot by its source, without a poll of the database', async (t) => {
  const store = await sqlite(t)
  const hanging = Promise.withResolvers<Outcome>()
  let polls = 0
  const counted: typeof store = {
    ...store,
    read: (statement) => {
      polls++
      return store.read(statement)
    },
  }
  const transport = fakeTransport(2, async ({ source_key, recipient }) =>
    source_key === SLOW && recipient !== `user0@${DOMAIN}` ? hanging.promise : DELIVERED,
  )
  const engine = seededEngine(counted, systemClock, transport)
  t.after(async () => {
    hanging.resolve(DELIVERED)
    await engine.stop(1_000)
  })
  for (const source of [SLOW, FREE]) await seedQueue(store, seedOf(source, 1, systemClock.now() - 1))
  await engine.start()
  await eventually('both lanes', async () => transport.attempts.length === 2)
  await seedQueue(store, seedOf(SLOW, 50, systemClock.now() - 1))
  engine.wake()
  await eventually('a full lane', async () => engine.laneOfGroup(group(SLOW))?.running === 2)
  await eventually('and a backlog', async () => {
    const slot = engine.reserve(group(SLOW))
    slot?.cancel()
    return slot === null
  })
  const before = polls
  const slots = [engine.reserve(group(FREE)), engine.reserve(group(SLOW)), engine.reserve(group('#2'))]
  assert.deepEqual(
    slots.map((slot) => slot !== null),
    [true, false, false],
    'room; full; not known yet',
  )
  assert.equal(polls, before)
  slots[0]?.cancel()
})

eachStore('what is moved to another source while it waits uses the lane of that one', async (store) => {
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(1, async ({ source_key }) =>
    source_key === SLOW ? hanging.promise : DELIVERED,
  )
  const engine = seededEngine(store, systemClock, transport)
  const ids = await seedQueue(store, seedOf(SLOW, 50, systemClock.now() - 1))
  await engine.start()
  await eventually('a stalled lane', async () => transport.attempts.length === 1)
  await engine.whileIdle(() =>
    store.db
      .updateTable('deliveries')
      .set({ source_key: 'shared#0' })
      .where('state', '=', 'queued')
      .where('id', 'in', ids)
      .execute(),
  )
  await eventually('the moved ones', async () => from('shared#0', transport.attempts).length === 49)
  assert.equal(from(SLOW, transport.attempts).length, 1)
  hanging.resolve(DELIVERED)
  await engine.stop(5_000)
  const rows = await store.db.selectFrom('deliveries').select('state').execute()
  assert.ok(rows.every(({ state }) => state === 'delivered'))
})

eachStore(
  'groups are distinguished by source, and a scan continues where the last one ended',
  async (store) => {
    const now = systemClock.now()
    const queue = createQueue(store, 'one', bareRecorder)
    for (const sourceKey of ['', '#0', '#1'])
      for (const recipientDomain of ['a.example', 'b.example'])
        await seedQueue(store, { ...seedOf(sourceKey, 30, now - 1), recipientDomain })
    await seedQueue(store, { ...seedOf('#0', 1, now - 1), domainId: 'e', recipientDomain: 'a.example' })
    await seedQueue(store, seedOf('ip:192.0.2.1', 1, now + 60_000))
    const all = await queue.dueGroups(100, now, null)
    assert.deepEqual(
      all.map(({ recipient_domain, domain_id, source_key }) => [recipient_domain, domain_id, source_key]),
      [
        ['a.example', 'd', ''],
        ['a.example', 'd', '#0'],
        ['a.example', 'd', '#1'],
        ['a.example', 'e', '#0'],
        ['b.example', 'd', ''],
        ['b.example', 'd', '#0'],
        ['b.example', 'd', '#1'],
      ],
    )
    const parts = []
    for (let after = null; ; after = parts.at(-1) ?? null) {
      const found = await queue.dueGroups(2, now, after)
      parts.push(...found)
      if (found.length < 2) break
    }
    assert.deepEqual(parts, all)
    const rows = await queue.dueOf(all[1] as (typeof all)[0], 100, now)
    assert.equal(rows.length, 30)
    assert.ok(rows.every(({ source_key, domain_id }) => source_key === '#0' && domain_id === 'd'))
  },
)

test('many sources times many destinations that never answer leave room for the others', async (t) => {
  const store = await sqlite(t)
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(10, async ({ recipient_domain }) =>
    recipient_domain === 'healthy.example' ? DELIVERED : hanging.promise,
  )
  const engine = seededEngine(store, systemClock, transport)
  t.after(async () => {
    hanging.resolve(DELIVERED)
    await engine.stop(0)
  })
  const now = systemClock.now()
  const seed = (recipientDomain: string, source: number, count: number, dueAt: number) =>
    seedQueue(store, { ...seedOf(`#${source}`, count, dueAt), recipientDomain })
  // 256 lanes of 20 would be the whole window.
  for (let source = 0; source < 16; source++)
    for (let n = 0; n < 16; n++) await seed(`dead${n}.example`, source, 22, now - 2_000)
  await seed('healthy.example', 0, 100, now - 1_000)
  for (let n = 16; n < 32; n++) await seed(`dead${n}.example`, 0, 22, now)
  await engine.start()
  await eventually('the healthy ones', async () => {
    const healthy = transport.attempts.filter((attempt) => attempt.recipient_domain === 'healthy.example')
    return healthy.length === 100
  })
  // Until all lanes have been polled for.
  await eventually('something from each', async () => engine.lanes().length === 16 * 16 + 16 + 1)
  const held = engine.lanes().reduce((sum, { waiting, running }) => sum + waiting + running, 0)
  assert.ok(held < 4_000, `${held} held`)
})
