/** Checks on their schedule (dynamic-pools.md sections 3 and 4): a stepped clock, and events by the service's recorder. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { callsOf, type MailCounts, recordMail, setPools } from '../../../test/support/dynamic-pools.ts'
import { eventually } from '../../../test/support/service.ts'
import { startOpened } from '../../../test/support/subaccounts.ts'
import { nextCheckAt } from './bands.ts'

const [GOOD_IP, POOR_IP, NEW_IP] = ['127.0.62.1', '127.0.62.2', '127.0.62.3'] as const
const DAY_MS = 86_400_000
const DOMAINS = '/v1/dynamic_pools/domains'

interface Item {
  id: string
  name: string
  pool: string
  registered_at: string
  processed_count: number
}

eachDatabase((database) => {
  test('the band follows the figures, but not for pinned domains', async (t) => {
    const clock = createTestClock()
    const env = { SENDWRIGHT_IPS: [GOOD_IP, POOR_IP, NEW_IP].join(',') }
    const opened = await startOpened(t, env, { database, clock })
    const { service } = opened
    const calls = callsOf(service.call)
    const { get, ok } = calls
    await setPools(calls, GOOD_IP, POOR_IP, NEW_IP)
    const names = ['free.example', 'pinned.example']
    for (const name of names) await ok('POST', '/v4/domains', { name })
    const until = <T>(what: string, look: () => Promise<T | false>) =>
      eventually(what, async () => {
        await clock.advance(100)
        return look()
      })
    const processed = async (name: string) =>
      (await get(`${DOMAINS}/${name}/preview`)).results.processed_count.value as number
    /** Waits until it is counted as well. */
    const mail = async (name: string, counts: MailCounts) => {
      const before = await processed(name)
      await recordMail(opened.core, name, counts)
      const more = (counts.delivered ?? 0) + (counts.bounced ?? 0)
      await until('counted', async () => (await processed(name)) === before + more)
    }
    const items = async (): Promise<Item[]> => (await get(DOMAINS)).items
    const bands = async () => (await items()).map(({ pool }) => pool.slice('dynamic_'.length)).join(' ')
    const nextOf = async (name: string) => {
      const query = opened.core.store.db.selectFrom('dynamic_pool_domains').select('next_check_at')
      return Number((await query.where('name', '=', name).executeTakeFirstOrThrow()).next_check_at)
    }
    /** Lets the clock pass the next check of the first domain, and waits until it was made. */
    const check = async () => {
      const due = await nextOf('free.example')
      clock.leap(Math.max(0, due - clock.now()))
      await until('the check', async () => (await nextOf('free.example')) > due)
    }

    for (const name of names) {
      await mail(name, { delivered: 1_000 })
      await ok('POST', `/v3/domains/${name}/dynamic_pools`)
    }
    assert.equal(await bands(), 'good good')
    const [free] = (await items()) as [Item]
    const enrolledAt = Date.parse(free.registered_at)
    assert.equal(await nextOf('free.example'), nextCheckAt(free.id, enrolledAt, DAY_MS))
    await ok('PUT', `${DOMAINS}/pinned.example/override`, { pool: 'dynamic_good' })

    // 64 of 1064 is above 5 %; mail in test mode does not hide it.
    for (const name of names) await mail(name, { bounced: 64, tests: 1_000 })
    const before = await processed('free.example')
    assert.equal(before, 1_064)
    assert.equal(await bands(), 'good good', 'before the check')
    await check()
    assert.equal(await bands(), 'poor good')
    assert.deepEqual(await get('/v3/domains/free.example/ips'), { items: [POOR_IP], total_count: 1 })
    const moved = await get(`${DOMAINS}/free.example/history`)
    assert.deepEqual(
      [moved.reason, moved.prev_band, moved.new_band, moved.initiated_by, moved.processed_count],
      ['bounce_rate in poor threshold', 'dynamic_good', 'dynamic_poor', 'system', 1_064],
    )
    assert.equal(moved.bounce_rate, 0.06015)
    await check()
    assert.equal(await bands(), 'poor good')
    assert.equal((await get(`${DOMAINS}/free.example/history`)).total_items, 2, 'the same again is no record')

    // Clean once the bounces are out of the window, after two checks.
    clock.leap(7 * DAY_MS)
    await check()
    await mail('free.example', { delivered: 1_200 })
    assert.equal((await get(`${DOMAINS}/free.example/preview`)).pool, 'dynamic_good')
    assert.equal(await bands(), 'poor good', 'one check is not enough')
    await check()
    assert.equal(await bands(), 'good good')
    const { items: records, total_items: total } = await get(`${DOMAINS}/free.example/history`)
    assert.deepEqual(
      records.map(({ new_band: band, reason }: { new_band: string; reason: string }) => `${band}: ${reason}`),
      [
        'dynamic_good: Multiple metrics in good threshold',
        'dynamic_poor: bounce_rate in poor threshold',
        'dynamic_good: enrolled',
      ],
    )
    assert.equal(total, 3)
    assert.equal((await items())[0]?.processed_count, 1_200)

    // Complaints.
    await recordMail(opened.core, 'free.example', { complained: 2 })
    await until('counted', async () => (await get(`${DOMAINS}/free.example/preview`)).pool === 'dynamic_poor')
    await check()
    assert.equal((await get(`${DOMAINS}/free.example/history`)).reason, 'complaint_rate in poor threshold')

    // The pinned one has been left alone, and is checked at once when it is released.
    assert.equal((await get(`${DOMAINS}/pinned.example/history`)).total_items, 1)
    await mail('pinned.example', { delivered: 90, bounced: 10 })
    await ok('DELETE', `${DOMAINS}/pinned.example/override`)
    await until('its check', async () => (await bands()) === 'poor poor')
    assert.equal((await get(`${DOMAINS}/pinned.example/history`)).initiated_by, 'system')

    // A service that was away for days checks once.
    await mail('free.example', { delivered: 100 })
    const due = await nextOf('free.example')
    await opened.service.restart()
    clock.leap(5 * DAY_MS + due - clock.now())
    await until('the check', async () => (await nextOf('free.example')) > due)
    const present = clock.now()
    const next = await nextOf('free.example')
    assert.ok(next > present && next <= present + DAY_MS)
    assert.equal((next - due) % DAY_MS, 0, 'at the same time of the day')

    // Records go after a year.
    clock.leap(400 * DAY_MS)
    await until('removed', async () => {
      const left = await opened.core.store.db
        .selectFrom('dynamic_pool_history')
        .select('id')
        .where('at', '<', clock.now() - 366 * DAY_MS)
        .execute()
      return left.length === 0
    })
  })
})
