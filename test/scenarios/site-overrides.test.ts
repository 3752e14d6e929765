/** An operator pauses a provider and orders other limits for it: HTTP, SMTP, database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createInternet } from '../support/internet.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import {
  activeDomain,
  callAs,
  closeSubaccount,
  createSubaccount,
  sendFrom,
  startOpened,
} from '../support/subaccounts.ts'

const BASE = '/sendwright/v1'
const [PAUSED, OTHER] = ['one.example', 'two.example']
const SITE = `mx.${PAUSED}`
const PATH = `${BASE}/shaping/${SITE}`

async function reasonsOf(service: TestService, id: string) {
  const { items } = (await service.call('GET', `${BASE}/messages/${encodeURIComponent(id)}/deliveries`)).body
  return (items as { state: string; attempts: number; reason: { code: string; sentence: string } }[]).map(
    ({ state, attempts, reason }) => ({ state, attempts, ...reason }),
  )
}

async function laneOf(service: TestService, site: string) {
  const { items } = (await service.call('GET', `${BASE}/queue/lanes`)).body
  return items.find((lane: { site: string }) => lane.site === site)
}

/** Waits until nothing but the pause keeps the message. */
const kept = (service: TestService, id: string) =>
  eventually('kept', async () => {
    const found = await reasonsOf(service, id)
    return found.length > 0 && found.every(({ code }) => code === 'provider-paused') ? found : null
  })

eachDatabase((database) => {
  test('nothing goes to a paused provider, also after a restart, until it is resumed', async (t) => {
    const internet = await createInternet(t)
    const [sink, other] = [await internet.site([PAUSED]), await internet.site([OTHER])]
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const opened = await startOpened(t, internet.env, { clock, database })
    const { service } = opened
    const send = async (...to: string[]) => (await service.send({ to })).body.id as string

    const ordered = await service.call('PUT', `${PATH}/pause`, { form: { reason: 'They asked us to' } })
    assert.equal(ordered.status, 200, ordered.text)
    assert.deepEqual(
      [ordered.body.site, ordered.body.pause.reason, ordered.body.pause.until, ordered.body.limits],
      [SITE, 'They asked us to', null, null],
    )
    const id = await send(`a@${PAUSED}`, `b@${PAUSED}`)
    const [first] = await kept(service, id)
    assert.deepEqual([first?.state, first?.attempts], ['queued', 0])
    assert.match(first?.sentence ?? '', /^The operator has paused mail to its destination\./)
    await send(`c@${OTHER}`)
    await other.waitFor(1)

    await service.restart()
    const lane = await laneOf(service, SITE)
    assert.equal(lane.override.pause.reason, 'They asked us to')
    const { overrides } = (await service.call('GET', `${BASE}/shaping`)).body
    assert.deepEqual(overrides, [lane.override])
    const later = await send(`d@${PAUSED}`)
    await kept(service, later)
    assert.equal(sink.messages.length, 0)

    await t.test('another account learns of the pause, not of its reason', async () => {
      const id = await createSubaccount(service, 'tenant')
      const call = callAs(service, id)
      await activeDomain(opened.core, call, 'tenant.example')
      assert.equal((await sendFrom(call, 'tenant.example', { to: `x@${PAUSED}` })).status, 200)
      const own = await eventually('its mail waits', async () => {
        const { items } = (await call('GET', `${BASE}/queue/lanes`)).body
        return items.find(
          ({ site, queued }: { site: string; queued: number }) => site === SITE && queued === 1,
        )
      })
      assert.deepEqual([own.override.pause.reason, own.override.pause.until], ['', null])
      await closeSubaccount(service, id)
    })

    await t.test('a recipients’ domain is paused for itself', async () => {
      await service.call('PUT', `${BASE}/shaping/${OTHER}/pause`)
      const waiting = await send(`e@${OTHER}`)
      await kept(service, waiting)
      assert.deepEqual((await service.call('DELETE', `${BASE}/shaping/${OTHER}/pause`)).body, {
        message: 'success',
      })
      await other.waitFor(2)
      assert.equal(sink.messages.length, 0, 'the other pause still keeps its mail')
    })

    await t.test('all of it leaves at once when the pause ends', async () => {
      assert.equal((await service.call('DELETE', `${PATH}/pause`)).status, 200)
      await sink.waitFor(3)
      const again = await service.call('DELETE', `${PATH}/pause`)
      assert.deepEqual([again.status, again.body.message], [404, 'mail to this site is not paused'])
      assert.equal((await laneOf(service, SITE))?.override ?? null, null)
    })

    await t.test('a pause ends by itself', async () => {
      const until = String(Math.floor(clock.now() / 1000) + 600)
      await service.call('PUT', `${PATH}/pause`, { form: { until } })
      await kept(service, await send(`f@${PAUSED}`))
      await runJobAfter(service, clock, 'delivery-overrides', 601_000)
      await sink.waitFor(4)
      assert.deepEqual((await service.call('GET', `${BASE}/shaping`)).body.overrides, [])
    })
  })
})

test('ordered limits hold at once, over a restart, and end with the order', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([PAUSED])
  const service = await startTestService(t, internet.env)
  const setLimits = (form: Record<string, string>) => service.call('PUT', `${PATH}/limits`, { form })
  const held = Array.from({ length: 4 }, () => sink.hold('DATA-DOT'))
  await setLimits({ connections: '1' })
  const to = Array.from({ length: 20 }, (_, index) => `user${index}@${PAUSED}`)
  await service.send({ to })
  await eventually('one connection', async () => sink.connections.open === 1)
  assert.equal((await laneOf(service, SITE)).set_limits.connections, 1)

  const raised = await setLimits({ connections: '4', rate: 'none' })
  assert.deepEqual(raised.body.limits, { connections: 4, rate: 'none', until: null })
  await eventually('all held', async () => sink.connections.open === 4)
  await Promise.all(held.map(({ reached }) => reached))
  assert.equal(sink.connections.peak, 4)
  for (const { release } of held) release()
  await sink.waitFor(to.length)

  await setLimits({ rate: '120/1m' })
  await service.restart()
  await service.send({ to: `later@${PAUSED}` })
  await sink.waitFor(to.length + 1)
  const lane = await laneOf(service, SITE)
  assert.equal(lane.set_limits.messages_per_second, 2)
  assert.equal(lane.override.limits.connections, null)
  assert.equal((await service.call('DELETE', `${PATH}/limits`)).status, 200)
  assert.equal((await laneOf(service, SITE)).set_limits.messages_per_second, null)

  await t.test('what is no order is refused', async () => {
    const refused = [
      [{}, 'give connections, rate, or both'],
      [{ rate: 'fast' }, 'Invalid format for parameter rate: fast'],
      [{ connections: '2', until: '1000' }, 'until must be in the future, and within a year'],
    ] as const
    for (const [form, message] of refused) {
      const answer = await setLimits(form)
      assert.deepEqual([answer.status, answer.body.message], [400, message])
    }
    assert.equal((await setLimits({ connections: '1001' })).status, 400)
    assert.equal((await service.call('DELETE', `${PATH}/limits`)).status, 404)
    assert.equal((await service.call('PUT', `${BASE}/shaping/a%20b/pause`)).status, 400)
    const { body } = await service.call('POST', '/v1/keys', { form: { role: 'support' } })
    const support = { key: body.key.secret }
    assert.equal((await service.call('PUT', `${PATH}/pause`, support)).status, 403)
  })
})
