// Both databases: figures are packed by functions of each database.
import assert from 'node:assert/strict'
import { longestBlockHere } from '../../../../test/support/block-probe.ts'
import { eventStatements, NOW_MS, testMessage } from '../../../../test/support/events.ts'
import { ACCOUNT, addDomain, DOMAIN, NO_RATE_LIMIT } from '../../../../test/support/figures.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { systemClock } from '../../../base/time/clock.ts'
import type { Store } from '../../../platform/store/store.ts'
import { acceptedEvent, type EventRecord } from '../../events/event.ts'
import { createCounting } from '../counting.ts'
import type { FigureQuery } from '../figures.ts'
import { startOf } from '../intervals.ts'
import { createFigures } from './figure-reader.ts'
import { keepPacks } from './packing.ts'
import { placesOf, startPacks } from './places.ts'
import { removeFiguresOf } from './removal.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const BLOCK_MS_MAX = 200

const accepted = (at: number, recipientDomain = 'one.example', domainName = DOMAIN): EventRecord =>
  acceptedEvent(
    testMessage({ tags: ['news'] }, { domainName }),
    { recipient: `ann@${recipientDomain}`, recipientDomain },
    at,
    null,
  )

/** Hours of a domain's tag by recipient domain: only rows of all values have these. */
const query: FigureQuery = {
  accountIds: [ACCOUNT],
  startMs: NOW_MS - 30 * DAY,
  endMs: NOW_MS + 30 * DAY,
  resolution: 'hour',
  dimensions: ['time', 'tag', 'recipient_domain'],
  filter: [{ attribute: 'domain', comparator: '=', values: [DOMAIN] }],
}

async function shown(store: Store, asked = query): Promise<string[]> {
  const rows = await createFigures(store).read(asked)
  return rows
    .map(({ values: [time, ...rest], counts }) =>
      [(Number(time) - startOf('day', NOW_MS)) / HOUR, ...rest, counts.accepted_outgoing].join(' '),
    )
    .sort()
}

async function packs(store: Store): Promise<string[]> {
  const rows = await store.db.selectFrom('figure_packs').selectAll().orderBy('start_at').execute()
  return rows.map(({ unit, start_at, entries }) =>
    [unit, new Date(Number(start_at)).toISOString().slice(0, 10), entries].join(' '),
  )
}

const rowsOfAll = async (store: Store): Promise<number> =>
  (await store.read({ sql: 'SELECT 1 AS one FROM figures WHERE split = 5', values: [] })).length

const setPacked = (store: Store, value: 0 | 1) =>
  store.commit([{ sql: 'UPDATE figure_places SET until = ? WHERE unit = 4', values: [value] }])

async function count(store: Store, ...events: EventRecord[]): Promise<void> {
  await store.commit(eventStatements(events))
  await createCounting(store, systemClock, NO_RATE_LIMIT).follower.stepToEnd()
}

/** The store of a process that is overtaken by `act` before its first commit. */
function late(store: Store, act: () => Promise<void>): Store {
  let isFirst = true
  return {
    ...store,
    async commit(statements) {
      if (isFirst) {
        isFirst = false
        await act()
      }
      return store.commit(statements)
    },
  }
}

eachStore('packs of a day are merged when it is over, and again after a late event', async (store) => {
  await addDomain(store)
  await count(store, accepted(NOW_MS), accepted(NOW_MS + HOUR))
  await count(store, accepted(NOW_MS), accepted(NOW_MS, 'two.example'))
  const before = await shown(store)
  assert.deepEqual(before, ['12 news one.example 2', '12 news two.example 1', '13 news one.example 1'])
  await keepPacks(store, NOW_MS + HOUR)
  assert.deepEqual(await packs(store), ['0 2026-06-01 2', '0 2026-06-01 2'], 'the day is not over')
  await keepPacks(store, NOW_MS + DAY)
  assert.deepEqual(await packs(store), ['0 2026-06-01 3'])
  assert.deepEqual(await shown(store), before)
  await count(store, accepted(NOW_MS))
  assert.deepEqual((await packs(store)).length, 2)
  await keepPacks(store, NOW_MS + 2 * DAY)
  assert.deepEqual(await packs(store), ['0 2026-06-01 3'])
  assert.deepEqual(await shown(store), ['12 news one.example 3', ...before.slice(1)])
})

eachStore('many packs of a day are merged while it lasts', async (store) => {
  await addDomain(store)
  const counting = createCounting(store, systemClock, NO_RATE_LIMIT)
  const { signal } = new AbortController()
  for (let at = 0; at < 40; at++) {
    await store.commit(eventStatements([accepted(NOW_MS)]))
    await counting.follower.stepToEnd()
    await counting.run(signal)
  }
  const found = await packs(store)
  assert.ok(found.length < 40 && found.length >= 9, String(found.length))
  assert.deepEqual(await shown(store), ['12 news one.example 40'])
})

eachStore('a pack that another process has merged meanwhile is not merged again', async (store) => {
  await addDomain(store)
  for (const domain of ['one.example', 'two.example']) await count(store, accepted(NOW_MS, domain))
  const before = await shown(store)
  let others = 0
  const overtaken = late(store, async () => {
    others++
    await keepPacks(store, NOW_MS + DAY)
  })
  await keepPacks(overtaken, NOW_MS + DAY)
  assert.equal(others, 1)
  assert.deepEqual(await packs(store), ['0 2026-06-01 2'])
  assert.deepEqual(await shown(store), before)
})

eachStore('hours become days, and days months, some at a time', async (store) => {
  await addDomain(store)
  await count(store, accepted(NOW_MS), accepted(NOW_MS + HOUR), accepted(NOW_MS + DAY, 'two.example'))
  await count(store, accepted(NOW_MS + HOUR))
  await keepPacks(store, NOW_MS + 62 * DAY)
  assert.deepEqual(await packs(store), ['1 2026-06-01 1', '1 2026-06-02 1'])
  assert.deepEqual(await shown(store), [], 'there are no hours')
  const daily = { ...query, resolution: 'day' } as const
  assert.deepEqual(await shown(store, daily), ['0 news one.example 3', '24 news two.example 1'])
  await keepPacks(store, NOW_MS + 400 * DAY)
  assert.deepEqual(await packs(store), ['2 2026-06-01 2'])
  const monthly = { ...query, resolution: 'month' } as const
  assert.deepEqual(await shown(store, monthly), ['0 news one.example 3', '0 news two.example 1'])
})

eachStore('rows of the release before become packs, while it may still add to them', async (store) => {
  await addDomain(store)
  await setPacked(store, 0)
  await count(store, accepted(NOW_MS), accepted(NOW_MS + HOUR), accepted(NOW_MS + DAY, 'two.example'))
  assert.equal(await rowsOfAll(store), 3)
  const before = await shown(store)
  await keepPacks(store, NOW_MS)
  assert.equal(await rowsOfAll(store), 3, 'a node of that release may run, which reads no packs')
  await setPacked(store, 1)
  await keepPacks(
    late(store, async () => {
      // A step that began before packs are written.
      await setPacked(store, 0)
      await count(store, accepted(NOW_MS))
      await setPacked(store, 1)
    }),
    NOW_MS,
  )
  assert.equal(await rowsOfAll(store), 0)
  assert.deepEqual(await packs(store), ['0 2026-06-01 2', '0 2026-06-02 1'])
  assert.equal(before.length, 3)
  assert.deepEqual(await shown(store), [before[0]?.replace(/1$/, '2'), ...before.slice(1)])
})

eachStore('packs are written once no node of an earlier release runs', async (store) => {
  const { arePacked } = await placesOf(store)
  assert.equal(arePacked, true, 'of a new database')
  if (store.kind === 'sqlite') return
  await setPacked(store, 0)
  const node = (id: string, startedAt: number) => ({
    sql: `INSERT INTO nodes (id, host, roles_json, addresses_json, version, state, started_at, last_seen_at)
      VALUES (?, 'a', '[]', '[]', '', 'running', ?, 0)`,
    values: [id, startedAt],
  })
  await store.commit([node('old', 1), node('new', Date.now() + DAY)])
  await store.commit([startPacks])
  assert.equal((await placesOf(store)).arePacked, false)
  await store.commit([{ sql: `DELETE FROM nodes WHERE id = 'old'`, values: [] }, startPacks])
  assert.equal((await placesOf(store)).arePacked, true)
})

eachStore('packs go with their domain, and a new one of the name begins with none', async (store) => {
  await addDomain(store)
  await addDomain(store, 'other.example')
  const counting = createCounting(store, systemClock, NO_RATE_LIMIT)
  const add = async (...events: EventRecord[]) => {
    await store.commit(eventStatements(events))
    await counting.follower.stepToEnd()
  }
  await add(accepted(NOW_MS), accepted(NOW_MS, 'two.example', 'other.example'))
  await store.commit([{ sql: 'DELETE FROM domains WHERE name = ?', values: [DOMAIN] }])
  await removeFiguresOf(store, { accountId: ACCOUNT, name: DOMAIN })
  assert.deepEqual(await packs(store), ['0 2026-06-01 1'])
  // Its last event arrives late, when its number may belong to another domain.
  await addDomain(store, 'third.example')
  await add(accepted(NOW_MS, 'three.example', 'third.example'))
  await add(accepted(NOW_MS))
  assert.deepEqual(await shown(store), [])
  await addDomain(store)
  assert.deepEqual(await shown(store), [])
  await add(accepted(NOW_MS))
  assert.deepEqual(await shown(store), ['12 news one.example 1'])
  const filter = [{ attribute: 'domain', comparator: '=', values: ['third.example'] } as const]
  assert.deepEqual(await shown(store, { ...query, filter }), ['12 news three.example 1'])
})

eachStore('a query of more than may be read is refused before it is read', async (store) => {
  await addDomain(store)
  const domains = Array.from({ length: 30 }, (_, at) => `d${at}.example`)
  await count(store, ...domains.map((domain) => accepted(NOW_MS, domain)))
  const packsRead: number[] = []
  const watching: Store = {
    ...store,
    async read(statement) {
      const rows = await store.read(statement)
      packsRead.push(rows.filter(({ packed }) => packed !== undefined).length)
      return rows
    },
  }
  const [sum] = await store.read({ sql: 'SELECT sum(length(packed)) AS bytes FROM figure_packs', values: [] })
  const rowsMax = Number(sum?.['bytes']) / 64
  await assert.rejects(createFigures(watching, rowsMax - 1).read(query), BadRequest)
  assert.deepEqual(Math.max(...packsRead), 0)
  assert.equal((await createFigures(watching, rowsMax).read(query)).length, 30)
})

eachStore('a broken pack holds up its own domain only', async (store) => {
  await addDomain(store)
  await addDomain(store, 'other.example')
  for (let times = 0; times < 2; times++)
    await count(store, accepted(NOW_MS), accepted(NOW_MS, 'two.example', 'other.example'))
  const [first] = await store.read({ sql: 'SELECT min(scope) AS scope FROM figure_packs', values: [] })
  const values = [Buffer.from('broken'), Number(first?.['scope'])]
  await store.commit([{ sql: 'UPDATE figure_packs SET packed = ? WHERE scope = ?', values }])
  await assert.rejects(keepPacks(store, NOW_MS + DAY), /packs of 1 domains cannot be kept/)
  assert.equal((await packs(store)).length, 3)
})

eachStore('filters of many values leave turns for others', async (store) => {
  await addDomain(store)
  const events = Array.from({ length: 5_000 }, (_, at) => accepted(NOW_MS, `d${at}.example`))
  await count(store, ...events)
  const filter = Array.from({ length: 19 }, (_, at) => ({
    attribute: 'recipient_domain' as const,
    comparator: 'not contains' as const,
    values: Array.from({ length: 100 }, (_none, value) => `x${at}y${value}`),
  }))
  const asked = { ...query, filter: [...query.filter, ...filter] }
  const busyMs = await longestBlockHere(BLOCK_MS_MAX, async () => {
    assert.equal((await createFigures(store).read(asked)).length, 5_000)
  })
  assert.ok(busyMs < BLOCK_MS_MAX, `busy for ${busyMs} ms`)
})
