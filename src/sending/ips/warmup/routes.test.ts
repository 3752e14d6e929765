/** Warm-ups over HTTP (ips-pools.md section 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { startTestService } from '../../../../test/support/service.ts'

const IPS = ['127.0.76.1', '127.0.76.2', '127.0.76.3'] as const
const [ONE, TWO] = IPS
const SHARED = '127.0.76.8'
const PATH = '/v3/ip_warmups'
const NOT_OWN = 'ip must be dedicated and belong to the account'

eachDatabase((database) => {
  test('a warm-up is started, listed, read and cancelled', async (t) => {
    const clock = createTestClock(Date.UTC(2026, 5, 1, 12, 30))
    const env = {
      SENDWRIGHT_IPS: `${IPS.join()},${SHARED}=shared,127.0.76.9=spare,127.0.77.9=spare`,
      SENDWRIGHT_AUTO_WARMUP: 'yes',
    }
    const service = await startTestService(t, env, { database, clock })
    const call = async (method: string, path: string, form?: Record<string, string>) => {
      const { status, body } = await service.call(method, path, form && { form })
      return { status, body }
    }
    const refused = async (method: string, path: string, status: number, message: string) =>
      assert.deepEqual(await call(method, path), { status, body: { message } }, `${method} ${path}`)

    await refused('GET', `${PATH}/${ONE}`, 404, 'warmup not found')
    await refused('DELETE', `${PATH}/${ONE}`, 404, 'warmup not found')
    for (const ip of IPS) assert.deepEqual((await call('POST', `${PATH}/${ip}`)).body, { message: 'success' })
    await refused('POST', `${PATH}/${ONE}`, 400, 'warmup is already in progress')
    await refused('POST', `${PATH}/${SHARED}`, 400, NOT_OWN)
    await refused('POST', `${PATH}/192.0.2.1`, 404, 'ip not found')

    const at = '2026-06-01T12:30:00.000Z'
    const values = {
      ...{ sent_within_stage: '0%', throttle: 0, stage_number: 1, stage_start_volume: 0 },
      ...{ stage_start_time: at, stage_volume_limit: 1000 },
    }
    assert.deepEqual((await call('GET', `${PATH}/${ONE}`)).body.details, {
      ...values,
      ...{ stage: 1, start_volume: 0, stage_limit: 1000, hourly_limit: 42, stage_started_at: at },
      ...{ hour_started_at: '2026-06-01T12:00:00.000Z', plan_started_at: at, plan_last_updated_at: at },
      ...{ total_stages: 15, stage_history: [] },
    })
    const first = (await call('GET', `${PATH}?limit=2`)).body
    assert.deepEqual(
      first.items,
      [ONE, TWO].map((ip) => ({ ip, ...values })),
    )
    const next = new URL(first.paging.next)
    const second = (await call('GET', next.pathname + next.search)).body
    assert.deepEqual(
      second.items.map(({ ip }: { ip: string }) => ip),
      [IPS[2]],
    )
    const last = new URL(second.paging.next)
    assert.deepEqual((await call('GET', last.pathname + last.search)).body.items, [])
    assert.equal((await call('GET', `${PATH}?limit=101`)).status, 400)
    assert.equal((await call('GET', '/v3/ips')).body.details[0].is_on_warmup, true)

    // What was counted is there after a restart.
    const sent = await service.send({ to: 'one@example.org', 'o:sending-ip': ONE })
    assert.equal(sent.status, 200)
    for (;;) {
      await clock.advance(1_000)
      const deliveries = await call('GET', `/sendwright/v1/messages/${sent.body.id.slice(1, -1)}/deliveries`)
      if (deliveries.body.items[0].state === 'delivered') break
    }
    const own = `/sendwright/v1/ip-warmups/${ONE}`
    const stage = { stage_number: 1, stage_start_time: at, stage_volume_limit: 1000, hourly_limit: 42 }
    const nothing = { sent_within_stage: '0%', throttle: 0 }
    const { providers, ...inAll } = (await call('GET', own)).body
    assert.deepEqual(inAll, { ip: ONE, paused_at: null, total_stages: 15, ...stage, ...nothing })
    assert.equal(providers.length, 1)
    assert.equal(providers[0].provider, '*', 'no shaping names where this mail goes')
    assert.equal(providers[0].stage_number, 1)
    await refused('POST', `${own}/resume`, 400, 'warmup is not paused')
    assert.equal((await call('POST', `${own}/pause`)).status, 200)
    await refused('POST', `${own}/pause`, 400, 'warmup is already paused')
    assert.ok((await call('GET', own)).body.paused_at > at)
    assert.equal((await call('POST', `${own}/resume`)).status, 200)
    assert.equal((await call('GET', own)).body.paused_at, null)
    for (const path of ['', '/pause', '/resume']) {
      const method = path === '' ? 'GET' : 'POST'
      await refused(method, `/sendwright/v1/ip-warmups/${SHARED}${path}`, 400, NOT_OWN)
      await refused(method, `/sendwright/v1/ip-warmups/192.0.2.1${path}`, 404, 'ip not found')
    }
    await service.restart()
    const used = (await call('GET', `${PATH}/${ONE}`)).body.details
    assert.deepEqual([used.sent_within_stage, used.stage_number], ['0%', 1])

    for (const ip of IPS) assert.equal((await call('DELETE', `${PATH}/${ip}`)).status, 200)
    assert.deepEqual((await call('GET', PATH)).body.items, [])

    // An address obtained by request begins with its first use.
    const [used1, used2] = ['127.0.76.9', '127.0.77.9']
    assert.equal((await call('POST', '/v3/ips/request/new')).status, 200)
    assert.equal((await call('GET', PATH)).body.items[0].ip, used1, 'the domain uses all of the account')
    assert.equal((await call('DELETE', `/v3/domains/${service.domain}/ips/${used1}`)).status, 200)
    assert.equal((await call('DELETE', `${PATH}/${used1}`)).status, 200)
    assert.equal((await call('POST', '/v3/ips/request/new')).status, 200)
    assert.deepEqual((await call('GET', PATH)).body.items, [])
    const pool = await call('POST', '/v3/ip_pools', { name: 'New', ip: used2 })
    assert.equal(pool.status, 200)
    const started = (await call('GET', PATH)).body.items
    assert.deepEqual(
      started.map(({ ip }: { ip: string }) => ip),
      [used2],
    )
    await call('DELETE', `${PATH}/${used2}`)
    await call('PUT', `/v3/ip_pools/${pool.body.pool_id}/ips/${TWO}`)
    assert.deepEqual((await call('GET', PATH)).body.items, [], 'once')
  })
})
