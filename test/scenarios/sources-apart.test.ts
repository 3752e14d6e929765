/** Several source addresses: what a receiver does to one of them does not affect the others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import type { Sink } from '../support/smtp-sink.ts'

const BASE = '/sendwright/v1'
const [SLOWED, OTHER, SHARED] = ['127.0.0.11', '127.0.0.12', '127.0.0.13']
const DOMAIN = 'one.example'
const SITE = `mx.${DOMAIN}`

interface LaneItem {
  lane: string
  source: string
  queued: number
  limits: { connections: number | null }
  backed_off_until: string | null
  backed_off_why: string | null
}

interface Item {
  attempts: number
  recipient: string
  state: string
  reason: { code: string; sentence: string }
  lane: string | null
}

async function lanesOf(service: TestService): Promise<Map<string, LaneItem>> {
  const { items } = (await service.call('GET', `${BASE}/queue/lanes`)).body as { items: LaneItem[] }
  return new Map(items.filter(({ lane }) => lane.endsWith(`/${SITE}`)).map((item) => [item.source, item]))
}

async function deliveriesOf(service: TestService, id: string): Promise<Item[]> {
  const path = `${BASE}/messages/${encodeURIComponent(id)}/deliveries?limit=1000`
  return ((await service.call('GET', path)).body as { items: Item[] }).items
}

const recipients = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index}@${DOMAIN}`)

/** Source addresses that the sink saw, by recipient. */
const seenBy = (sink: Sink) =>
  new Map(sink.messages.map(({ envelope, remoteAddress }) => [envelope.to[0], remoteAddress]))

eachDatabase((database) => {
  test('a receiver that slows down one address gets the mail of the others as before', async (t) => {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN])
    sink.on('MAIL', ({ remoteAddress }) =>
      remoteAddress === SLOWED ? '421 4.7.0 too many connections from your address' : '250 2.1.0 Ok',
    )
    const env = { ...internet.env, SENDWRIGHT_IPS: `${SLOWED},${OTHER},${SHARED}=shared` }
    const service = await startTestService(t, env, { database })
    const { id } = (await service.send({ to: recipients('user', 80) })).body
    const items = await eventually('everything tried', async () => {
      const found = await deliveriesOf(service, id)
      return found.every(({ state, reason }) => state === 'delivered' || reason.code === 'deferred')
        ? found
        : null
    })
    const delivered = items.filter(({ state }) => state === 'delivered')
    const deferred = items.filter(({ state }) => state === 'queued')

    await t.test('the addresses share the mail, and each delivery names its lane', () => {
      assert.ok(delivered.length > 10 && deferred.length > 10, `${delivered.length} and ${deferred.length}`)
      assert.ok(delivered.every(({ lane }) => lane === `${OTHER}/${SITE}`))
      assert.ok(deferred.every(({ lane }) => lane === `${SLOWED}/${SITE}`))
      assert.deepEqual(new Set(seenBy(sink).values()), new Set([OTHER]))
    })
    await t.test('one lane is slowed down, the other one is not', async () => {
      const lanes = await lanesOf(service)
      const [slowed, other] = [lanes.get(SLOWED), lanes.get(OTHER)]
      assert.match(slowed?.backed_off_why ?? '', /too many connections/)
      assert.ok((slowed?.limits.connections ?? 0) < 10)
      assert.equal(slowed?.queued, deferred.length)
      assert.deepEqual([other?.backed_off_until, other?.limits.connections, other?.queued], [null, 10, 0])
    })
    await t.test('mail with a requested address or pool uses its lane', async () => {
      await service.send({ to: recipients('asked', 5), 'o:sending-ip': OTHER })
      await service.send({ to: recipients('pooled', 5), 'o:sending-ip-pool': 'shared' })
      await sink.waitFor(delivered.length + 10)
      const seen = seenBy(sink)
      for (const to of recipients('asked', 5)) assert.equal(seen.get(to), OTHER)
      for (const to of recipients('pooled', 5)) assert.equal(seen.get(to), SHARED)
      assert.ok((await lanesOf(service)).has(SHARED))
    })
    await t.test(
      'mail moved away from the slowed lane counts for the other one, and is sent by it',
      async () => {
        const act = async (order: object) =>
          (await service.call('POST', `${BASE}/queue/actions`, { json: order })).body
        const count = { matched: deferred.length, changed: deferred.length }
        assert.deepEqual(
          await act({ action: 'move', pool: 'shared', filter: { lane: `${SLOWED}/${SITE}` } }),
          count,
        )
        const lanes = await lanesOf(service)
        assert.deepEqual([lanes.get(SHARED)?.queued, lanes.get(SLOWED)?.queued ?? 0], [deferred.length, 0])
        const moved = (await deliveriesOf(service, id)).filter(({ state }) => state === 'queued')
        assert.ok(moved.every(({ lane }) => lane === `${SHARED}/${SITE}`))
        assert.deepEqual(await act({ action: 'retry', filter: { lane: `${SHARED}/${SITE}` } }), count)
        await sink.waitFor(90)
        const seen = seenBy(sink)
        for (const { recipient } of deferred) assert.equal(seen.get(recipient), SHARED)
        assert.equal(seen.size, 90, 'everything once')
      },
    )
  })
})

test('an address that this host cannot send from does not make a destination count as down for the others', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  // From a documentation network (RFC 5737): no host has it.
  const missing = '192.0.2.77'
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_IPS: `${missing},${OTHER}` })
  const { id } = (await service.send({ to: recipients('user', 20), 'o:sending-ip': missing })).body
  await eventually('all tried', async () => {
    const found = await deliveriesOf(service, id)
    // Not the destination's fault: the mail waits until the address exists, and no attempt is counted.
    return found.every(({ reason, attempts }) => reason.code === 'local-fault' && attempts === 0)
  })
  await service.send({ to: recipients('good', 20), 'o:sending-ip': OTHER })
  await sink.waitFor(20)
  assert.deepEqual(new Set(seenBy(sink).values()), new Set([OTHER]))
})
