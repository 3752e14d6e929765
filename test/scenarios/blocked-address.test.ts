/** A provider that blocks an address, as sender and operator see it: HTTP, SMTP, database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createInternet } from '../support/internet.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'

const BASE = '/sendwright/v1'
const [BLOCKED, OTHER] = ['127.0.91.1', '127.0.91.2']
const DOMAIN = 'one.example'
const SITE = `mx.${DOMAIN}`
const LANE = `${BLOCKED}/${SITE}`
const REPLY = '554 5.7.1 Client host [127.0.91.1] blocked using dnsbl.example.net'

interface Item {
  recipient: string
  state: string
  attempts: number
  reason: { code: string; sentence: string }
}

const itemsOf = async (service: TestService, id: string) =>
  (await service.call('GET', `${BASE}/messages/${encodeURIComponent(id)}/deliveries`)).body.items as Item[]

async function blocksOf(service: TestService) {
  const { items } = (await service.call('GET', `${BASE}/ips`)).body
  return items.find(({ ip }: { ip: string }) => ip === BLOCKED).blocked_by
}

eachDatabase((database) => {
  test('a blocked address is left, also after a restart, until the operator uses it again', async (t) => {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN])
    sink.on('MAIL', ({ remoteAddress }) => (remoteAddress === BLOCKED ? REPLY : '250 2.1.0 Ok'))
    const env = { ...internet.env, SENDWRIGHT_IPS: `${BLOCKED},${OTHER}` }
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const service = await startTestService(t, env, { clock, database })
    const send = async (to: string, form: Record<string, string> = {}) =>
      (await service.send({ to: `${to}@${DOMAIN}`, ...form })).body.id as string
    const ended = (id: string) =>
      eventually('ended', async () => {
        const [item] = await itemsOf(service, id)
        return item && ['delivered', 'bounced'].includes(item.state) ? item : null
      })

    for (const to of ['one', 'two', 'three']) {
      assert.deepEqual(await blocksOf(service), [])
      const { state } = await ended(await send(to, { 'o:sending-ip': BLOCKED }))
      assert.equal(state, 'bounced')
    }
    const [block] = await eventually('closed', async () => {
      const found = await blocksOf(service)
      return found.length > 0 ? found : null
    })
    assert.equal(block.reply, REPLY.replace(/^554 /, '554 '))
    assert.deepEqual([block.site, block.state, block.times], [SITE, 'closed', 1])
    assert.ok(Date.parse(block.until) - Date.parse(block.since) === 3_600_000)

    await t.test('a message that may leave from nowhere else waits with a reason', async () => {
      const id = await send('waits', { 'o:sending-ip': BLOCKED })
      const item = await eventually('it waits', async () => {
        const [found] = await itemsOf(service, id)
        return found?.reason.code === 'address-blocked' ? found : null
      })
      assert.deepEqual([item.state, item.attempts], ['queued', 0])
      assert.match(item.reason.sentence, /^The provider blocks every address that it may leave from\. /)
    })

    await t.test('others leave from the other address, after a restart as well', async () => {
      await service.restart()
      assert.deepEqual(await blocksOf(service), [block])
      const to = Array.from({ length: 20 }, (_, at) => `user${at}@${DOMAIN}`)
      await service.send({ to })
      const messages = await sink.waitFor(20)
      assert.deepEqual(new Set(messages.map(({ remoteAddress }) => remoteAddress)), new Set([OTHER]))
      const { items } = (await service.call('GET', `${BASE}/queue/lanes`)).body
      const lane = items.find((one: { lane: string }) => one.lane === LANE)
      assert.deepEqual(lane.blocked, block)
    })

    await t.test('the operator is alerted, and uses the address again', async () => {
      await runJobAfter(service, clock, 'alert-blocked-addresses', 61_000)
      const checks = (await service.call('GET', `${BASE}/alerts`)).body.items
      const check = checks.find(({ name }: { name: string }) => name === 'sendwright:blocked-addresses')
      const [alert] = check.hits
      assert.equal(alert.dimension_value, LANE)
      assert.match(alert.advice, /blocked using dnsbl\.example\.net/)
      sink.clearRules()
      const path = `${BASE}/ips/${BLOCKED}/blocks/${SITE}`
      assert.deepEqual((await service.call('DELETE', path)).body, { message: 'success' })
      assert.deepEqual(await blocksOf(service), [])
      const again = await service.call('DELETE', path)
      assert.deepEqual([again.status, again.body.message], [404, 'the IP is not blocked by that provider'])
      const filter = { lane: LANE }
      const retried = await service.call('POST', `${BASE}/queue/actions`, {
        json: { action: 'retry', filter },
      })
      assert.deepEqual(retried.body, { matched: 1, changed: 1 })
      const messages = await sink.waitFor(21)
      assert.equal(messages.at(-1)?.remoteAddress, BLOCKED)
    })
  })
})

test('a reply about one domain, or one that others contradict, closes nothing', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  let reply = '554 5.7.1 Your domain is listed in the Spamhaus DBL'
  sink.on('RCPT TO', (_session, event) => (event.includes('accepted') ? '250 2.1.5 Ok' : reply))
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_IPS: `${BLOCKED}` })
  const send = async (to: string) => {
    const { id } = (await service.send({ to: `${to}@${DOMAIN}` })).body
    await eventually('ended', async () =>
      (await itemsOf(service, id)).every(({ state }) => ['delivered', 'bounced'].includes(state)),
    )
  }
  for (const to of ['a', 'b', 'c', 'd']) await send(to)
  assert.deepEqual(await blocksOf(service), [])
  reply = REPLY
  for (const to of ['a', 'b', 'accepted', 'c', 'd']) await send(to)
  assert.deepEqual(await blocksOf(service), [])
  await send('e')
  await eventually('closed', async () => (await blocksOf(service)).length === 1)
})
