// Both databases: deliveries are claimed with row locks on PostgreSQL.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { bareRecorder } from '../../../test/support/events.ts'
import { DELIVERED, fakeTransport } from '../../../test/support/fake-transport.ts'
import { connectInProcess } from '../../../test/support/in-process-sqlite.ts'
import { seededCopy, seededEngine, seedQueue } from '../../../test/support/seed-queue.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore, openNewSqlite } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import { type Store, StoreFull, StoreUnavailable } from '../../platform/store/store.ts'
import { connectionFailure, type Outcome } from './attempt/outcome.ts'
import { createQueue } from './claim/queue.ts'
import type { Delivery, Reservation } from './contract.ts'

const soon = () => new Promise<void>((resolve) => setImmediate(resolve))

eachStore(
  'a tenant with thousands queued delays the single message of another by a few turns',
  async (store) => {
    const transport = fakeTransport(5, async () => {
      await soon()
      return DELIVERED
    })
    const now = systemClock.now()
    await seedQueue(store, {
      accountId: 'big',
      domainId: 'big',
      recipientDomain: 'gmail.example',
      count: 3_000,
      dueAt: now - 1000,
    })
    const engine = seededEngine(store, systemClock, transport)
    await engine.start()
    await eventually('some of the big one', async () => transport.attempts.length > 100)
    await seedQueue(store, {
      accountId: 'small',
      domainId: 'small',
      recipientDomain: 'gmail.example',
      count: 1,
      dueAt: systemClock.now(),
    })
    const before = transport.attempts.length
    engine.wake()
    await eventually('the single one', async () =>
      transport.attempts.some(({ account_id }) => account_id === 'small'),
    )
    const at = transport.attempts.findIndex(({ account_id }) => account_id === 'small')
    assert.ok(at - before < 1_500, `${at - before} of the other went before it`)
    await engine.stop(5_000)
  },
)

eachStore('destinations that never answer do not fill the window', async (store) => {
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(2, async ({ recipient_domain }) =>
    recipient_domain === 'healthy.example' ? DELIVERED : hanging.promise,
  )
  const now = systemClock.now()
  for (let n = 0; n < 5; n++)
    await seedQueue(store, {
      accountId: 'a',
      domainId: 'd',
      recipientDomain: `dead${n}.example`,
      count: 1_000,
      dueAt: now - 2000,
    })
  await seedQueue(store, {
    accountId: 'a',
    domainId: 'd',
    recipientDomain: 'healthy.example',
    count: 200,
    dueAt: now - 1000,
  })
  for (let n = 5; n < 8; n++)
    await seedQueue(store, {
      accountId: 'a',
      domainId: 'd',
      recipientDomain: `dead${n}.example`,
      count: 1_000,
      dueAt: now,
    })
  const engine = seededEngine(store, systemClock, transport)
  await engine.start()
  await eventually('all healthy ones', async () => {
    const healthy = transport.attempts.filter(
      ({ recipient_domain }) => recipient_domain === 'healthy.example',
    )
    return healthy.length === 200
  })
  assert.equal(transport.attempts.length - 200, 16, 'two attempts in each of the eight dead lanes')
  hanging.resolve(connectionFailure('gone'))
  await engine.stop(5_000)
})

eachStore(
  'an outcome that the database refuses is written later, and nothing new is begun meanwhile',
  async (store) => {
    const clock = createTestClock()
    const transport = fakeTransport(1, async () => DELIVERED)
    let refusing = true
    const broken = {
      ...store,
      commit: async (unit: Parameters<typeof store.commit>[0]) => {
        if (refusing && unit[0]?.sql.includes('attempts = ?')) throw new StoreFull('disk full')
        return store.commit(unit)
      },
    }
    await seedQueue(store, {
      accountId: 'a',
      domainId: 'd',
      recipientDomain: 'x.example',
      count: 5,
      dueAt: clock.now() - 1,
    })
    const engine = seededEngine(broken, clock, transport)
    await engine.start()
    await eventually('the first attempt', async () => transport.attempts.length > 0)
    for (let n = 0; n < 5; n++) await clock.advance(1_000)
    assert.equal(transport.attempts.length, 1)
    refusing = false
    await eventually('the rest', async () => {
      await clock.advance(500)
      return transport.attempts.length === 5
    })
    await eventually('all settled', async () => {
      const rows = await store.db.selectFrom('deliveries').select('state').execute()
      return rows.every(({ state }) => state === 'delivered')
    })
    assert.equal(new Set(transport.attempts.map(({ id }) => id)).size, 5, 'none was sent twice')
    await engine.stop(0)
  },
)

test('an outcome that cannot be written by its own fault delays no other mail, and is written once it can be', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const clock = createTestClock()
  const transport = fakeTransport(1, async () => DELIVERED)
  let isBroken = true
  const [bad] = await seedQueue(store, seedOf('d', 3, clock.now() - 1))
  const refusesOne: Store = {
    ...store,
    async commit(unit, order) {
      const isItsOutcome = unit[0]?.sql.includes('SET state = ?') && unit[0].values.includes(bad as string)
      if (isBroken && isItsOutcome) throw new Error('value out of range')
      return store.commit(unit, order)
    },
  }
  const engine = seededEngine(refusesOne, clock, transport)
  await engine.start()
  const rows = () => store.db.selectFrom('deliveries').select(['id', 'state']).execute()
  await eventually('the others', async () => {
    await clock.advance(500)
    return (await rows()).every(({ id, state }) => state === (id === bad ? 'sending' : 'delivered'))
  })
  isBroken = false
  await eventually('its outcome', async () => {
    await clock.advance(5_000)
    return (await rows()).every(({ state }) => state === 'delivered')
  })
  assert.equal(transport.attempts.length, 3, 'none was sent twice')
  await engine.stop(0)
})

test('while outcomes wait for their commit, further messages stop before their final dot', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const [CONNECTIONS, HELD_BACK_AT] = [20, 8]
  /** Attempts that wait at their final dot; outcomes that wait at their commit. */
  const atDot: (() => void)[] = []
  const atCommit: (() => void)[] = []
  let dots = 0
  const transport = fakeTransport(CONNECTIONS, async () => DELIVERED)
  const { deliver } = transport
  transport.deliver = (lane, delivery, prepared, beforeFinalDot) =>
    deliver(lane, delivery, prepared, async () => {
      await new Promise<void>((resolve) => atDot.push(resolve))
      await beforeFinalDot()
      dots++
    })
  const slow = {
    ...store,
    commit: async (unit: Parameters<typeof store.commit>[0]) => {
      if (unit[0]?.sql.includes('attempts = ?')) await new Promise<void>((resolve) => atCommit.push(resolve))
      return store.commit(unit)
    },
  }
  const seed = { accountId: 'a', domainId: 'd', recipientDomain: 'x.example', count: CONNECTIONS }
  await seedQueue(store, { ...seed, dueAt: systemClock.now() - 1 })
  // After the careful time (final-dots.ts).
  let ahead = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead }
  const engine = seededEngine(slow, clock, transport)
  await engine.start()
  ahead = 10_000
  await eventually('all at their final dot', async () => atDot.length === CONNECTIONS)
  for (const goOn of atDot.splice(0, HELD_BACK_AT)) goOn()
  await eventually('the first at their commit', async () => atCommit.length === HELD_BACK_AT)
  for (const goOn of atDot.splice(0)) goOn()
  for (let turn = 0; turn < 20; turn++) await soon()
  assert.equal(dots, HELD_BACK_AT, 'none passes while eight outcomes are not on disk')
  atCommit.shift()?.()
  await eventually('one for one', async () => dots === HELD_BACK_AT + 1)
  for (let turn = 0; turn < 20; turn++) await soon()
  assert.equal(dots, HELD_BACK_AT + 1)
  await eventually('all of them', async () => {
    for (const commit of atCommit.splice(0)) commit()
    const rows = await store.db.selectFrom('deliveries').select('state').execute()
    return rows.every(({ state }) => state === 'delivered')
  })
  assert.equal(dots, CONNECTIONS)
  await engine.stop(0)
})

test('a claim returns only what still waits', async (t) => {
  const { createQueue } = await import('./claim/queue.ts')
  const store = await openNewSqlite(t)
  const now = systemClock.now()
  const ids = await seedQueue(store, {
    accountId: 'a',
    domainId: 'd',
    recipientDomain: 'x.example',
    count: 20,
    dueAt: now - 1,
  })
  const [one, two] = [createQueue(store, 'one', bareRecorder), createQueue(store, 'two', bareRecorder)]
  assert.equal((await one.claim(ids.slice(0, 12), now)).length, 12)
  assert.equal((await two.claim(ids, now)).length, 8)
  assert.equal((await two.claim(ids, now)).length, 0)
  await store.close()
})

const LANE_OF = (domainId: string) => ({ domain_id: domainId, recipient_domain: 'x.example' })
const seedOf = (domainId: string, count: number, dueAt: number) => ({
  accountId: domainId,
  domainId,
  recipientDomain: 'x.example',
  count,
  dueAt,
})

test('a sender takes one slot in a lane that others have filled, however much it sends at once', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(2, async ({ domain_id }) =>
    domain_id === 'small' ? DELIVERED : hanging.promise,
  )
  const engine = seededEngine(store, systemClock, transport)
  t.after(() => engine.stop(0))
  await engine.start()
  await seedQueue(store, seedOf('small', 1, systemClock.now() - 1))
  engine.wake()
  await eventually('the lane of the small one', async () => engine.laneOfGroup(LANE_OF('small')))
  await seedQueue(store, seedOf('big', 40, systemClock.now() - 1))
  engine.wake()
  await eventually('a full lane', async () => {
    const lane = engine.laneOfGroup(LANE_OF('big'))
    return lane !== null && lane.running + lane.waiting >= 4
  })
  const first = engine.reserve(LANE_OF('small'))
  assert.ok(first)
  assert.equal(engine.reserve(LANE_OF('small')), null, 'its slot is taken')
  first.cancel()
  assert.ok(engine.reserve(LANE_OF('small')), 'a slot that is given back is free again')
})

/** An engine whose lane of `d`, with two connections, has delivered one message. */
async function startIdleLane(t: TestContext) {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const clock = createTestClock()
  const transport = fakeTransport(2, async () => DELIVERED)
  const engine = seededEngine(store, clock, transport)
  t.after(() => engine.stop(0))
  await engine.start()
  await seedQueue(store, seedOf('d', 1, clock.now() - 1))
  engine.wake()
  await eventually('an idle lane', async () => engine.laneOfGroup(LANE_OF('d'))?.running === 0)
  return { store, clock, transport, engine }
}

test('fresh mail may wait in a full lane while no mail for it waits in the database', async (t) => {
  const { engine } = await startIdleLane(t)
  const slots: Reservation[] = []
  for (;;) {
    const slot = engine.reserve(LANE_OF('d'))
    if (!slot) break
    slots.push(slot)
  }
  assert.equal(slots.length, 100, 'one delivery is no throughput that would make it more')
  slots.pop()?.cancel()
  const again = engine.reserve(LANE_OF('d'))
  assert.ok(again, 'a slot that is given back is free again')
  again.cancel()
  engine.inserted([LANE_OF('d')])
  assert.equal(engine.reserve(LANE_OF('d')), null, 'it would overtake what waits in the database')
  for (const slot of slots) slot.cancel()
})

/** One message of `big`, as acceptance hands it over. */
async function takeIn(engine: Delivery, store: Store, due: number): Promise<void> {
  const slot = engine.reserve(LANE_OF('big'))
  assert.ok(slot)
  // Due later, so that no poll sees the row before it is marked as claimed.
  const [id = ''] = await seedQueue(store, seedOf('big', 1, due + 3_600_000))
  const claimed = { state: 'sending' as const, ...slot.lease }
  const [row] = await store.db
    .updateTable('deliveries')
    .set(claimed)
    .where('id', '=', id)
    .returningAll()
    .execute()
  slot.enter(row as DeliveryRow)
}

/** One connection for all domains, on which attempts of `big` wait in `inFlight` once it is `slow`. */
async function startSharedLane(t: TestContext) {
  let unanswered = 0
  const store = await openNewSqlite(t, {
    connect(options, sizes) {
      const connection = connectInProcess(options, sizes)
      connection.on('message', () => {
        unanswered -= 1
      })
      return {
        ...connection,
        postMessage(request, transfer) {
          unanswered += 1
          connection.postMessage(request, transfer)
        },
      }
    },
  })
  const clock = createTestClock()
  const big = { slow: false, inFlight: [] as (() => void)[] }
  const transport = fakeTransport(1, async ({ domain_id }) => {
    if (big.slow && domain_id === 'big') await new Promise<void>((resolve) => big.inFlight.push(resolve))
    return DELIVERED
  })
  const { laneOf } = transport
  transport.laneOf = (delivery) => laneOf({ ...delivery, recipient_domain: 'site.example' })
  const engine = seededEngine(store, clock, transport)
  t.after(async () => {
    big.slow = false
    for (const end of big.inFlight) end()
    await engine.stop(0)
    await store.close()
  })
  await engine.start()
  const answered = () => eventually('answers of the database', async () => unanswered === 0)
  /** An attempt of `big` ends, and what follows from that in the database. */
  async function turn(): Promise<void> {
    await eventually('an attempt', async () => big.inFlight.length > 0)
    big.inFlight.shift()?.()
    await answered()
    await clock.advance(50)
    await answered()
  }
  return { store, clock, transport, engine, big, turn }
}

test('fresh mail that fills a lane does not keep the mail of others waiting', async (t) => {
  const { store, clock, transport, engine, big, turn } = await startSharedLane(t)
  const due = clock.now() - 1
  for (const domain of ['big', 'small']) await seedQueue(store, seedOf(domain, 1, due))
  engine.wake()
  await eventually('an idle lane that both use', async () => {
    const lane = engine.laneOfGroup(LANE_OF('big'))
    return transport.attempts.length === 2 && lane?.running === 0
  })
  big.slow = true
  for (let n = 0; n < 60; n++) await takeIn(engine, store, due)
  await seedQueue(store, seedOf('small', 3, due))
  engine.inserted([LANE_OF('small')])
  const ofSmall = () => transport.attempts.filter(({ domain_id }) => domain_id === 'small').length
  for (let turns = 0; turns < 40 && ofSmall() < 4; turns++) await turn()
  assert.equal(ofSmall(), 4)
})

test('a sender whose last delivery left a full lane has a turn for its mail to another domain there', async (t) => {
  const { store, clock, transport, engine, big, turn } = await startSharedLane(t)
  const oneSite = { ...LANE_OF('small'), recipient_domain: 'other.example' }
  const due = clock.now() - 1
  const toOther = { ...seedOf('small', 1, due), recipientDomain: 'other.example' }
  for (const seed of [seedOf('big', 1, due), seedOf('small', 1, due), toOther]) await seedQueue(store, seed)
  engine.wake()
  await eventually('an idle lane that all use', async () => {
    return transport.attempts.length === 3 && engine.laneOfGroup(oneSite)?.running === 0
  })
  big.slow = true
  for (let n = 0; n < 60; n++) await takeIn(engine, store, due)
  const [first = ''] = await seedQueue(store, seedOf('small', 1, due))
  engine.inserted([LANE_OF('small')])
  await eventually('the turn of the first', async () => engine.progressOf(first) !== null)
  const [second] = await seedQueue(store, toOther)
  engine.inserted([oneSite])
  const wasSent = () => transport.attempts.some(({ id }) => id === second)
  for (let turns = 0; turns < 40 && !wasSent(); turns++) await turn()
  assert.ok(wasSent())
})

test('what was inserted while slots were reserved is claimed at once when they are given back', async (t) => {
  const { store, clock, transport, engine } = await startIdleLane(t)
  const slots = Array.from({ length: 3 }, () => engine.reserve(LANE_OF('d')))
  await seedQueue(store, seedOf('d', 1, clock.now() - 1))
  engine.inserted([LANE_OF('d')])
  for (const slot of slots) slot?.cancel()
  await eventually('the attempt', async () => transport.attempts.length === 2)
})

test('what enters during a pause is claimed again after it', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const clock = createTestClock()
  const transport = fakeTransport(2, async () => DELIVERED)
  const release = Promise.withResolvers<void>()
  const givenBack = Promise.withResolvers<void>()
  let polls = 0
  const slow: typeof store = {
    ...store,
    async commit(unit, order) {
      if (unit[0]?.sql.includes("state = 'sending' AND lease_owner = ? AND id IN")) {
        givenBack.resolve()
        await release.promise
      }
      return store.commit(unit, order)
    },
    async read(statement) {
      const rows = await store.read(statement)
      if (statement.sql.startsWith('SELECT due_at')) polls++
      return rows
    },
  }
  const engine = seededEngine(slow, clock, transport)
  t.after(() => engine.stop(0))
  await engine.start()
  const now = clock.now()
  await seedQueue(store, seedOf('d', 1, now - 1))
  engine.wake()
  await eventually('an idle lane', async () => engine.laneOfGroup(LANE_OF('d'))?.running === 0)
  const slot = engine.reserve(LANE_OF('d'))
  assert.ok(slot)
  await engine.whileIdle(async () => {
    const [id = ''] = await seedQueue(store, seedOf('d', 1, now - 1))
    await store.db
      .updateTable('deliveries')
      .set({ state: 'sending', ...slot.lease })
      .where('id', '=', id)
      .execute()
    slot.enter(
      await store.db.selectFrom('deliveries').selectAll().where('id', '=', id).executeTakeFirstOrThrow(),
    )
    await givenBack.promise
    polls = 0
  })
  await eventually('a round that sees nothing', async () => polls > 0)
  release.resolve()
  await eventually('the attempt', async () => transport.attempts.length === 2)
})

test('mail of writes that had no answer is sent when the database is back, before its leases run out', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const clock = createTestClock()
  const transport = fakeTransport(2, async () => DELIVERED)
  let breaks = false
  let isAway = false
  const cutOff: Store = {
    ...store,
    read: async (query) => {
      if (isAway) throw new StoreUnavailable('away')
      return store.read(query)
    },
    commit: async (unit, order) => {
      const results = await store.commit(unit, order)
      // Done, but nobody learns of it.
      if (breaks && unit[0]?.sql.includes("SET state = 'sending'")) isAway = true
      if (isAway) throw new StoreUnavailable('went away')
      return results
    },
  }
  const engine = seededEngine(cutOff, clock, transport)
  t.after(() => engine.stop(0))
  await seedQueue(store, seedOf('d', 1, clock.now() - 1))
  await engine.start()
  await eventually('an idle lane', async () => engine.laneOfGroup(LANE_OF('d'))?.running === 0)

  const slot = engine.reserve(LANE_OF('d'))
  assert.ok(slot)
  const [fresh = '', claimed] = await seedQueue(store, seedOf('d', 2, clock.now() - 1))
  await store.db
    .updateTable('deliveries')
    .set({ state: 'sending', ...slot.lease })
    .where('id', '=', fresh)
    .execute()
  const rows = () =>
    store.db.selectFrom('deliveries').select(['id', 'state']).where('state', '<>', 'delivered').execute()
  slot.cancel({ id: fresh } as DeliveryRow)
  breaks = true
  engine.wake()
  await eventually('a claim without an answer', async () => isAway)
  assert.deepEqual(
    (await rows()).map(({ id, state }) => [id, state]).sort(),
    [fresh, claimed].map((id) => [id, 'sending']).sort(),
  )
  breaks = false
  isAway = false
  await clock.advance(2_000)
  await eventually('both', async () => transport.attempts.length === 3)
})

test('mail that falls due is sent at its time, while other mail waits for a stalled lane', async (t) => {
  const store = await openNewSqlite(t)
  const clock = createTestClock()
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(1, async ({ domain_id }) =>
    domain_id === 'timely' ? DELIVERED : hanging.promise,
  )
  const engine = seededEngine(store, clock, transport)
  t.after(async () => {
    hanging.resolve(DELIVERED)
    await engine.stop(0)
    await store.close()
  })
  const now = clock.now()
  await seedQueue(store, seedOf('stuck', 50, now - 1))
  await seedQueue(store, { ...seedOf('timely', 1, now + 5_000), recipientDomain: 'y.example' })
  await engine.start()
  await eventually('the stalled lane', async () => transport.attempts.length === 1)
  await eventually('the attempt', async () => {
    if (clock.now() < now + 6_000) await clock.advance(1_000)
    return transport.attempts.length === 2
  })
})

eachStore('prefetched mail that waits for a connection returns to the queue for a pause', async (store) => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const transport = fakeTransport(2, async () => {
    await answered
    return DELIVERED
  })
  const now = systemClock.now()
  const group = { accountId: 'a', domainId: 'd', recipientDomain: 'slow.example' }
  await seedQueue(store, { ...group, count: 4, dueAt: now - 1000 })
  const engine = seededEngine(store, systemClock, transport)
  const inState = async (state: string) => {
    const rows = await store.read({ sql: 'SELECT id FROM deliveries WHERE state = ?', values: [state] })
    return rows.length
  }
  await engine.start()
  await eventually(
    'all in hand',
    async () => transport.attempts.length === 2 && (await inState('sending')) === 4,
  )
  await engine.whileIdle(async () => {
    assert.deepEqual([await inState('sending'), await inState('queued')], [2, 2])
    assert.equal(transport.attempts.length, 2)
  })
  answer()
  await eventually('all delivered', async () => (await inState('delivered')) === 4)
  assert.equal(new Set(transport.attempts.map(({ id }) => id)).size, 4)
  await engine.stop(1000)
})

eachStore('nothing that is being claimed or prepared escapes a pause', async (store) => {
  const [claimed, readiness] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(1, async () => hanging.promise)
  const slow: typeof store = {
    ...store,
    async commit(unit, order) {
      const late = unit[0]?.sql.includes("SET state = 'sending'") && unit[0].values.includes(lateId)
      const results = await store.commit(unit, order)
      if (late) await claimed.promise
      return results
    },
  }
  const preparing: string[] = []
  const engine = seededEngine(slow, systemClock, transport, {
    async prepare(delivery) {
      preparing.push(delivery.id)
      if (preparing.length > 1) await readiness.promise
      return seededCopy(delivery)
    },
  })
  const statesOf = async () => {
    const rows = await store.db.selectFrom('deliveries').select('state').execute()
    return rows.map(({ state }) => state).sort()
  }
  let lateId = ''
  await seedQueue(store, seedOf('d', 3, systemClock.now() - 1))
  await engine.start()
  await eventually('one being sent, one being prepared', async () => {
    return transport.attempts.length === 1 && preparing.length === 2
  })
  ;[lateId = ''] = await seedQueue(store, { ...seedOf('e', 1, systemClock.now() - 1) })
  engine.wake()
  await eventually('the late one claimed', async () =>
    (await statesOf()).every((state) => state === 'sending'),
  )
  const seen = engine.whileIdle(statesOf)
  claimed.resolve()
  readiness.resolve()
  assert.deepEqual(await seen, ['queued', 'queued', 'queued', 'sending'])
  hanging.resolve(DELIVERED)
  await eventually('all', async () => (await statesOf()).every((state) => state === 'delivered'))
  assert.equal(new Set(transport.attempts.map(({ id }) => id)).size, transport.attempts.length, 'none twice')
  await engine.stop(5_000)
})

test('what is being claimed when the service stops is given back, and does not look like a crash', async (t) => {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const transport = fakeTransport(1, async () => DELIVERED)
  const [claiming, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const claimed = Promise.withResolvers<unknown>()
  const slow = {
    ...store,
    commit: async (unit: Parameters<typeof store.commit>[0]) => {
      if (!unit[0]?.sql.includes("state = 'sending', lease_owner = ?")) return store.commit(unit)
      claiming.resolve()
      await gate.promise
      const claim = store.commit(unit)
      claim.then(claimed.resolve, claimed.reject)
      return claim
    },
  }
  const now = systemClock.now()
  await seedQueue(store, {
    accountId: 'a',
    domainId: 'd',
    recipientDomain: 'x.example',
    count: 3,
    dueAt: now - 1,
  })
  const engine = seededEngine(slow, systemClock, transport)
  await engine.start()
  await claiming.promise
  const stopped = engine.stop(5_000)
  gate.resolve()
  await Promise.all([stopped, claimed.promise])
  await eventually('all are given back', async () => {
    const rows = await store.read({ sql: 'SELECT state FROM deliveries', values: [] })
    return rows.every(({ state }) => state === 'queued')
  })
  assert.equal(transport.attempts.length, 0)
})

test('a lane is refilled when it is half empty, not for each slot that becomes free', async (t) => {
  const store = await openNewSqlite(t)
  const clock = createTestClock()
  const inFlight: (() => void)[] = []
  let holds = true
  const transport = fakeTransport(50, async () => {
    if (holds) await new Promise<void>((resolve) => inFlight.push(resolve))
    return DELIVERED
  })
  let polls = 0
  const counted: typeof store = {
    ...store,
    // A slot becomes free during each poll.
    async read(statement) {
      if (!statement.sql.includes('ORDER BY due_at, id LIMIT ?')) return store.read(statement)
      polls++
      const rows = await store.read(statement)
      inFlight.shift()?.()
      for (let turn = 0; turn < 20; turn++) await soon()
      return rows
    },
  }
  const engine = seededEngine(counted, clock, transport)
  t.after(async () => {
    holds = false
    for (const end of inFlight) end()
    await engine.stop(0)
    await store.close()
  })
  await seedQueue(store, seedOf('d', 1_000, clock.now() - 1))
  await engine.start()
  await eventually('all connections in use', async () => engine.laneOfGroup(LANE_OF('d'))?.running === 50)
  while (transport.attempts.length < 400) {
    await eventually('an attempt in flight', async () => inFlight.length > 0)
    inFlight.shift()?.()
    await soon()
  }
  assert.ok(polls <= 40, `${polls} polls for 400 messages`)
})

eachStore('a process that loses all it chose to another one polls again soon', async (store) => {
  const clock = createTestClock()
  const transport = fakeTransport(50, async () => DELIVERED)
  const other = createQueue(store, 'other', bareRecorder)
  const lost: string[] = []
  const contested: typeof store = {
    ...store,
    async commit(unit, order) {
      const claim = unit[0]?.sql.includes("state = 'sending', lease_owner = ?") ? unit[0] : null
      if (claim && lost.length === 0) {
        const ids = claim.values.filter((value): value is string => seeded.has(value as string))
        lost.push(...(await other.claim(ids, clock.now())).map(({ id }) => id))
      }
      return store.commit(unit, order)
    },
  }
  const seeded = new Set<unknown>(await seedQueue(store, seedOf('d', 100, clock.now() - 1)))
  const startedAt = clock.monotonic()
  const engine = seededEngine(contested, clock, transport)
  await engine.start()
  await eventually('a claim that found nothing left', async () => lost.length > 0)
  await eventually('the others sent', async () => {
    // Far from the thirty seconds that an engine without work sleeps for.
    if (clock.monotonic() < startedAt + 10_000) await clock.advance(10)
    return transport.attempts.length === 100 - lost.length
  })
  await engine.stop(0)
})
