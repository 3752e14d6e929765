/** Mail leaves from the pool of its domain's band (dynamic-pools.md), by real sends over several addresses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { callsOf, setPools } from '../support/dynamic-pools.ts'
import { createInternet } from '../support/internet.ts'
import { eventually } from '../support/service.ts'
import { activeDomain, callAs, createSubaccount, sendFrom, startOpened } from '../support/subaccounts.ts'

const [GOOD, POOR, NEW, OTHER] = ['127.0.63.1', '127.0.63.2', '127.0.63.3', '127.0.63.4'] as const
const DOMAIN = 'one.example'
const DAY_MS = 86_400_000
const BAD = 6
const ALL = 100

eachDatabase((database) => {
  test('a domain with 6 % bounces sends from the poor pool after its next check', async (t) => {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN])
    for (let n = 0; n < BAD; n++) sink.on(`RCPT TO:<first${n}@${DOMAIN}>`, '550 5.1.1 no such user')
    const clock = createTestClock(Date.now())
    const env = {
      ...internet.env,
      SENDWRIGHT_IPS: [GOOD, POOR, NEW, OTHER].join(','),
      SENDWRIGHT_RETRY_SCHEDULE: '1m',
    }
    const opened = await startOpened(t, env, { database, clock })
    const { service } = opened
    const calls = callsOf(service.call)
    const { get, ok } = calls
    const until = <T>(what: string, look: () => Promise<T | false>) =>
      eventually(what, async () => {
        await clock.advance(100)
        return look()
      })
    const people = (name: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${name}${index}@${DOMAIN}`)
    /** Addresses that mail to such people came from. */
    const sources = (name: string, count: number) =>
      until(name, async () => {
        const found = sink.messages.filter(({ envelope }) => envelope.to[0]?.startsWith(name))
        return found.length === count && [...new Set(found.map(({ remoteAddress }) => remoteAddress))].sort()
      })
    const domains = '/v1/dynamic_pools/domains'

    await setPools(calls, GOOD, POOR, NEW)
    await ok('POST', `/v3/domains/${service.domain}/dynamic_pools`)
    await service.send({ to: people('first', ALL) })
    assert.deepEqual(await sources('first', ALL - BAD), [NEW], 'too little mail to be known')
    await until('counted', async () => {
      const { results } = await get(`${domains}/${service.domain}/preview`)
      return results.processed_count.value === ALL && results.bounce_rate.value === BAD / ALL
    })
    await service.send({ to: people('before', 5) })
    assert.deepEqual(await sources('before', 5), [NEW], 'a preview moves nothing')

    clock.leap(DAY_MS)
    await until('the check', async () => (await get(domains)).items[0].pool === 'dynamic_poor')
    await service.send({ to: people('after', 5) })
    assert.deepEqual(await sources('after', 5), [POOR])
    const pool = (await get('/v3/dynamic_pools')).pools[1]
    const [event] = await until('its event', async () => {
      const found = await service.events(`?event=delivered&recipient=after0@${DOMAIN}`)
      return found.length > 0 && found
    })
    const { envelope } = event as { envelope: Record<string, string> }
    assert.deepEqual(
      [envelope['sending-ip'], envelope['i-ip-pool-id'], envelope['i-ip-pool-name']],
      [POOR, pool.id, 'dynamic_poor'],
    )

    // A pool with several addresses uses all of them; a message may request another one.
    await ok('POST', `/v3/dynamic_pools/dynamic_poor/${OTHER}`)
    await service.send({ to: people('both', 40) })
    assert.deepEqual(await sources('both', 40), [POOR, OTHER])
    await service.send({ to: people('asked', 2), 'o:sending-ip': GOOD })
    assert.deepEqual(await sources('asked', 2), [GOOD])
    await ok('PUT', `${domains}/${service.domain}/override`, { pool: 'dynamic_good' })
    await service.send({ to: people('pinned', 5) })
    assert.deepEqual(await sources('pinned', 5), [GOOD])

    // Queued mail chooses at its next attempt.
    sink.on('RCPT TO:<late0@one.example>', '451 4.3.0 not now', { times: 1 })
    await service.send({ to: people('late', 1) })
    await until(
      'deferred',
      async () => (await service.events('?event=failed&severity=temporary')).length === 1,
    )
    await ok('PUT', `${domains}/${service.domain}/override`, { pool: 'dynamic_new' })
    await clock.advance(61_000)
    assert.deepEqual(await sources('late', 1), [NEW])

    // A subaccount's domain sends from the pools of its parent.
    const child = callAs(service, await createSubaccount(service, 'Child'))
    await activeDomain(opened.core, child, 'child.example')
    await callsOf(child).ok('POST', '/v3/domains/child.example/dynamic_pools')
    await sendFrom(child, 'child.example', { to: people('child', 3) })
    assert.deepEqual(await sources('child', 3), [NEW])

    await ok('PATCH', '/v3/dynamic_pools/dynamic_poor', { remove_ip: OTHER })
    await ok('DELETE', `/v3/domains/${service.domain}/dynamic_pools`, { replacement_ip: OTHER })
    await service.send({ to: people('left', 3) })
    assert.deepEqual(await sources('left', 3), [OTHER])
  })
})
