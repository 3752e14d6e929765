// Both databases: each measures its tables in its own way.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tablesOf } from '../../../../test/support/account-traces.ts'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { runJobAfter } from '../../../../test/support/jobs.ts'
import { eventually, startTestService } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { report } from './sizes.ts'
import { TABLE_KINDS } from './table-kinds.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MB = 1_000_000

/** Tables of one of the databases only. */
const ONLY = { sqlite: ['event_index', 'event_index_place', 'event_segments'], postgres: ['rate_buckets'] }
/** Which migrations were applied. */
const VERSIONS = 'schema_versions'

eachStore('each table has its kind, and something that bounds it', async (store) => {
  const others = store.kind === 'sqlite' ? ONLY.postgres : ONLY.sqlite
  const known = Object.values(TABLE_KINDS).flatMap((tables) => Object.keys(tables))
  const expected = [...known.filter((name) => !others.includes(name)), VERSIONS]
  assert.deepEqual((await tablesOf(store)).toSorted(), expected.toSorted())
})

test('growth and the day on which the disk is full, by the trend of the samples', () => {
  const samples = (hours: number, freePerHour: number) =>
    Array.from({ length: hours + 1 }, (_, at) => [
      { kind: 'events' as const, at: at * HOUR_MS, value: 100 * MB + at * MB, rows: at },
      { kind: 'free' as const, at: at * HOUR_MS, value: 1_000 * MB - at * freePerHour, rows: 0 },
    ]).flat()
  const tenDays = report(samples(24, 2 * MB), 472 * MB)
  assert.deepEqual(tenDays.kinds, [{ kind: 'events', bytes: 124 * MB, rows: 24, growthPerDay: 24 * MB }])
  assert.deepEqual(tenDays.disk, { freeBytes: 952 * MB, growthPerDay: 48 * MB, fullAt: 11 * DAY_MS })
  assert.equal(report(samples(1, 2 * MB), 0).disk.growthPerDay, null, 'an hour says nothing')
  assert.equal(report(samples(24, -MB), 0).disk.fullAt, null, 'it becomes more')
  assert.equal(report(samples(24, 10), 0).disk.fullAt, null, 'not within ten years')
  assert.equal(report(samples(24, 2 * MB), 952 * MB).disk.fullAt, DAY_MS, 'it is full')
})

eachDatabase((database) =>
  test("the system's storage by kind, measured every hour", async (t) => {
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(100), 5)
    t.after(() => clearInterval(ticking))
    const service = await startTestService(
      t,
      { SENDWRIGHT_EVENT_RETENTION_MEGABYTES: '50' },
      { database, clock, restingJobs: [] },
    )
    const storage = async () => (await service.call('GET', '/sendwright/v1/system')).body.storage
    const first: Json = await eventually('the first sizes', storage)
    const kind = (of: Json, name: string) => of.kinds.find((one: Json) => one.kind === name)
    assert.equal(kind(first, 'files').bytes, 0)
    assert.equal(kind(first, 'events').kept_days, 30)
    assert.equal(kind(first, 'events').limit_bytes, 50 * MB)
    assert.ok(kind(first, 'settings').bytes > 10_000)
    assert.ok(first.disk.free_bytes > 0)
    assert.equal(first.disk.growth_bytes_per_day, null)

    const attachment = new File([Buffer.alloc(4_000_000, 'x')], 'x.txt')
    assert.equal((await service.send({ attachment })).status, 200)
    await runJobAfter(service, clock, 'sizes', 2 * DAY_MS)
    const later: Json = await storage()
    assert.ok(kind(later, 'files').bytes >= 3_000_000)
    assert.ok(kind(later, 'files').growth_bytes_per_day > 1_000_000)
    if (database === 'sqlite') assert.equal(kind(later, 'messages').rows, 2, 'message and delivery')

    const { key } = (await service.call('POST', '/v1/keys', { form: { role: 'basic' } })).body
    const basic = await service.call('GET', '/sendwright/v1/system', { key: key.secret })
    assert.equal(basic.status, 200)
    assert.equal(basic.body.storage, undefined, 'for admins only')
  }),
)
