/** Which address mail leaves from: domains, pools, switches, warm-up (ips-pools.md sections 1 and 4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import type { Sink } from '../support/smtp-sink.ts'

const [ONE, TWO, THREE, SHARED] = ['127.0.78.1', '127.0.78.2', '127.0.78.3', '127.0.78.8'] as const
const IPS = `${ONE},${TWO},${THREE},${SHARED}=shared,2001:db8::5=spare`
const DOMAIN = 'one.example'
const HOUR_MS = 3_600_000
/** Of the first stage. */
const HOURLY = 42

const people = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index}@${DOMAIN}`)

/** Source addresses that the sink saw for mail to such people. */
function sourcesOf(sink: Sink, name: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { envelope, remoteAddress } of sink.messages)
    if (envelope.to[0]?.startsWith(name)) counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1)
  return counts
}

const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, n) => sum + n, 0)

async function deliveriesOf(service: TestService, id: string) {
  const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries?limit=1000`
  return (await service.call('GET', path)).body.items as {
    state: string
    attempts: number
    reason: { code: string }
    due_at: string
  }[]
}

const ok = async (service: TestService, method: string, path: string, form?: Record<string, string>) => {
  const answer = await service.call(method, path, form && { form })
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
  return answer.body
}

eachDatabase((database) => {
  test('mail leaves from the set that its domain has at the attempt', async (t) => {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN])
    const env = { ...internet.env, SENDWRIGHT_IPS: IPS, SENDWRIGHT_RETRY_SCHEDULE: '1s,1s,1s,1s' }
    const service = await startTestService(t, env, { database })
    const ips = `/v3/domains/${service.domain}/ips`
    const send = async (name: string, count: number, more: Record<string, string> = {}) =>
      (await service.send({ to: people(name, count), ...more })).body.id as string
    const seen = (name: string, count: number) =>
      eventually(name, async () => {
        const counts = sourcesOf(sink, name)
        return total(counts) === count && counts
      })

    await send('all', 60)
    const all = await seen('all', 60)
    assert.deepEqual([...all.keys()].sort(), [ONE, TWO, THREE])
    assert.ok(
      [...all.values()].every((count) => count >= 8),
      'about evenly',
    )

    const { pool_id: id } = await ok(service, 'POST', '/v3/ip_pools', { name: 'Bulk', ips: `${ONE},${TWO}` })
    await send('asked', 10, { 'o:sending-ip-pool': id })
    assert.deepEqual(
      [...(await seen('asked', 10)).keys()].filter((ip) => ip === THREE),
      [],
    )
    await ok(service, 'DELETE', `${ips}/${ONE}`)
    await ok(service, 'DELETE', `${ips}/${TWO}`)
    await send('own', 5)
    assert.deepEqual([...(await seen('own', 5)).keys()], [THREE])
    await ok(service, 'POST', ips, { pool_id: id })
    await ok(service, 'DELETE', `/v3/ip_pools/${id}/ips/${TWO}`)
    await send('linked', 5)
    assert.deepEqual([...(await seen('linked', 5)).keys()], [ONE])
    await send('single', 5, { 'o:sending-ip': SHARED })
    assert.deepEqual([...(await seen('single', 5)).keys()], [SHARED])

    const events = await eventually('events', async () => {
      const found = await service.events(`?event=delivered&recipient=linked0@${DOMAIN}`)
      return found.length > 0 && found
    })
    const [{ envelope }] = events as [{ envelope: Record<string, string> }]
    const pool = [envelope['sending-ip'], envelope['i-ip-pool-id'], envelope['i-ip-pool-name']]
    assert.deepEqual(pool, [ONE, id, 'Bulk'])

    // Nothing can be used: it waits, and leaves once something can.
    await ok(service, 'PUT', `/sendwright/v1/ips/${ONE}`, { enabled: 'no' })
    const waiting = await send('waits', 3)
    const [failed] = await eventually('a failed attempt', async () => {
      const found = await service.events('?event=failed&severity=temporary')
      return found.length > 0 && found
    })
    const { 'delivery-status': status = {}, reason } = failed as Record<string, Record<string, unknown>>
    assert.deepEqual([status['code'], status['message'], reason], [421, 'No sending IP available', 'generic'])
    const lanes = (await ok(service, 'GET', '/sendwright/v1/queue/lanes')).items
    const none = lanes.find(({ lane }: { lane: string }) => lane.startsWith('none/'))
    assert.equal(none?.backed_off_until, null, 'no server was asked')
    await ok(service, 'PUT', `/sendwright/v1/ips/${ONE}`, { enabled: 'yes' })
    assert.deepEqual([...(await seen('waits', 3)).keys()], [ONE])
    const items = await deliveriesOf(service, waiting)
    assert.ok(items.every(({ attempts }) => attempts >= 1))

    // An address that the destination cannot be reached from is none.
    await ok(service, 'POST', '/v3/ips/request/new')
    const six = await send('six', 1, { 'o:sending-ip': '2001:DB8::5' })
    await eventually('no address', async () => {
      const found = await service.events(`?event=failed&recipient=six0@${DOMAIN}`)
      return found.some(({ 'delivery-status': of }) => (of as { code: number }).code === 421)
    })
    assert.ok(six)
    const refusedIp = await service.send({ 'o:sending-ip': '192.0.2.1' })
    assert.deepEqual(
      [refusedIp.status, refusedIp.body.message],
      [403, "Rejected: IP 192.0.2.1 can't be used to send the message"],
    )
    const refusedPool = await service.send({ 'o:sending-ip-pool': '0'.repeat(24) })
    assert.equal(refusedPool.status, 400)
  })

  test('an address on warm-up sends its number, the rest goes elsewhere or waits', async (t) => {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN])
    const clock = createTestClock(Math.floor(Date.now() / HOUR_MS) * HOUR_MS + HOUR_MS / 4)
    const env = { ...internet.env, SENDWRIGHT_IPS: `${ONE},${TWO},${SHARED}=shared` }
    const service = await startTestService(t, env, { database, clock })
    const ips = `/v3/domains/${service.domain}/ips`
    const until = <T>(what: string, look: () => Promise<T | false>) =>
      eventually(what, async () => {
        await clock.advance(100)
        return look()
      })
    await ok(service, 'POST', `/v3/ip_warmups/${ONE}`)

    await service.send({ to: people('two', 150) })
    const two = await until('all sent', async () => {
      const counts = sourcesOf(sink, 'two')
      return total(counts) === 150 && counts
    })
    assert.deepEqual([...two.keys()].sort(), [ONE, TWO], 'shared ones are not of the set')
    assert.equal(two.get(ONE), HOURLY)
    const status = await until('the count', async () => {
      const { details } = await ok(service, 'GET', `/v3/ip_warmups/${ONE}`)
      return details.throttle > 0 && details
    })
    assert.deepEqual([status.sent_within_stage, status.hourly_limit], ['4%', HOURLY])

    // Alone in its set: the rest waits for hours with room.
    await ok(service, 'DELETE', `${ips}/${TWO}`)
    assert.deepEqual((await ok(service, 'GET', ips)).items, [ONE, SHARED], 'an extra one that is warm')
    await ok(service, 'DELETE', `${ips}/${SHARED}`)
    const asked = { 'o:sending-ip': ONE }
    const id = (await service.send({ to: people('late', 100), ...asked })).body.id
    const { id: short } = (
      await service.send({ to: people('short', 1), ...asked, 'o:deliver-within': '0h30m' })
    ).body
    const waiting = await until('all wait', async () => {
      const items = await deliveriesOf(service, id)
      return items.every(({ reason }) => reason.code === 'warm-up') && items
    })
    assert.ok(waiting.every(({ attempts }) => attempts === 0))
    assert.equal(total(sourcesOf(sink, 'late')), 0)
    const ends = clock.now() + HOUR_MS / 2
    await until('its window ends', async () => {
      // In large steps to its end only: on a busy machine the hour would be over before that is seen.
      if (clock.now() < ends) clock.leap(60_000)
      return (await deliveriesOf(service, short))[0]?.state === 'expired'
    })
    assert.ok(clock.now() % HOUR_MS > HOUR_MS / 2, 'before the hour')

    for (const [hour, expected] of [HOURLY, 2 * HOURLY, 100].entries()) {
      clock.leap(HOUR_MS - (clock.now() % HOUR_MS))
      await clock.advance(1_000)
      const counts = await until(`hour ${hour}`, async () => {
        const sent = sourcesOf(sink, 'late')
        return total(sent) >= expected && sent
      })
      await clock.advance(5_000)
      assert.deepEqual([...counts], [[ONE, expected]])
    }
    // Cancelled, it is warm.
    await ok(service, 'DELETE', `/v3/ip_warmups/${ONE}`)
    await service.send({ to: people('warm', 60), ...asked })
    await until('all at once', async () => total(sourcesOf(sink, 'warm')) === 60)
  })
})
