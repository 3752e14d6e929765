/** Accounts and domains that stop themselves: slowed, held, released by hand and by time; daily budgets; disabled domains. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { runJobAfter } from '../support/jobs.ts'
import { type Answer, eventually } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import {
  activeDomain,
  type Call,
  callAs,
  createSubaccount,
  sendFrom,
  startOpened,
} from '../support/subaccounts.ts'

const HOUR_MS = 3_600_000
const MIN = 40
const CUSTOM = { policy: 'custom', min_messages: String(MIN), hold_hours: '20' }
const STANDING = '/sendwright/v1/standing'
const TRAP = 'trap@traps.example'

const ok = (answer: Answer) => {
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

async function startScene(t: TestContext, database: 'sqlite' | 'postgres') {
  const clock = createTestClock()
  // A stop waits for what the clock ends.
  const ticking = Promise.withResolvers<NodeJS.Timeout>()
  t.after(() => ticking.resolve(setInterval(() => void clock.advance(1_000), 10)))
  const sink = await createSink()
  t.after(() => sink.close())
  sink.on('RCPT TO', (_session, event) =>
    event.includes('gone') ? '550 5.1.1 No such user here' : '250 2.1.5 Ok',
  )
  const env = {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RETRY_SCHEDULE: '1m,1m',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  }
  const opened = await startOpened(t, env, { database, clock, random: () => 0 })
  t.after(async () => clearInterval(await ticking.promise))
  const { service } = opened
  const ticker = setInterval(() => void clock.advance(250), 5)
  t.after(() => clearInterval(ticker))
  ok(await service.call('PUT', `${STANDING}/policy`, { form: CUSTOM }))

  async function account(name: string, ...domains: string[]) {
    const id = await createSubaccount(service, name)
    const call = callAs(service, id)
    for (const domain of domains) await activeDomain(opened.core, call, domain)
    return { id, call }
  }
  let sent = 0
  /** `bad` of them to mailboxes that do not exist. */
  async function send(call: Call, domain: string, count: number, bad: number, form = {}): Promise<void> {
    for (let number = 0; number < count; number++) {
      const to = `${number < bad ? 'gone' : 'user'}${sent++}@example.org`
      ok(await sendFrom(call, domain, { to, ...form }))
    }
  }
  const standing = async (id: string) =>
    ok(await service.call('GET', `/sendwright/v1/accounts/${id}/standing`))
  const sentOf = (domain: string) =>
    sink.messages.filter(({ envelope }) => envelope.from.endsWith(`@${domain}`)).length
  return {
    ...{ service, clock, sink, account, send, standing, sentOf },
    check: () => runJobAfter(service, clock, 'standing-checks', 21_000),
    counted: (id: string, sent: number) =>
      eventually(`${sent} counted`, async () => (await standing(id)).figures.sent === sent),
    arrived: (domain: string, count: number) =>
      eventually(`${count} of ${domain}`, async () => sentOf(domain) >= count),
    release: (id: string, form = {}) =>
      service.call('POST', `/sendwright/v1/accounts/${id}/standing/release`, { form }),
    async reasons(call: Call, domain: string): Promise<string[]> {
      const { items } = ok(await call('GET', `/v3/${domain}/events?event=accepted&limit=300`))
      const found = new Set<string>()
      for (const { message } of items) {
        const path = `/sendwright/v1/messages/${encodeURIComponent(`<${message.headers['message-id']}>`)}/deliveries`
        for (const { reason } of ok(await call('GET', path)).items) if (reason) found.add(reason.code)
      }
      return [...found]
    },
  }
}

eachDatabase((database) => {
  test('an account with too many bounces is slowed, held and released; the other one goes on', async (t) => {
    const scene = await startScene(t, database)
    const { service, clock, check, counted, standing, send, arrived } = scene
    const bad = await scene.account('Bad', 'bad.example')
    const good = await scene.account('Good', 'good.example')
    const receiver = await createReceiver()
    t.after(() => receiver.close())
    const settings = { url: `${receiver.url}/standing` }
    for (const event_type of ['sender_stopped', 'sender_released'])
      ok(
        await bad.call('POST', '/v1/alerts/settings/events', {
          json: { event_type, channel: 'webhook', settings },
        }),
      )
    await send(bad.call, 'bad.example', 3, 3, { 'o:testmode': 'yes' })
    await send(bad.call, 'bad.example', MIN - 1, 6)
    await send(good.call, 'good.example', MIN, 0)
    await counted(bad.id, MIN - 1)
    await check()
    assert.equal((await standing(bad.id)).state, 'good', 'fewer are not judged')

    await send(bad.call, 'bad.example', 1, 0)
    await counted(bad.id, MIN)
    await check()
    const slowed = await standing(bad.id)
    assert.equal(slowed.state, 'slowed')
    const [{ code, reason, figures, messages_per_minute: rate }] = slowed.stopped
    assert.deepEqual([code, rate, figures.sent, figures.bounced], ['bounces', 60, MIN, 6])
    assert.equal(reason, '15 % (6 of 40) messages bounced in 24 hours; the limit is 5 %')

    // At one a second, and after as many as are judged again.
    const begun = clock.now()
    await send(bad.call, 'bad.example', MIN, 3)
    await send(good.call, 'good.example', 5, 0)
    await arrived('good.example', MIN + 5)
    await counted(bad.id, 2 * MIN)
    assert.ok(clock.now() - begun >= (MIN - 2) * 1_000, 'slowed')
    await check()
    const held = await standing(bad.id)
    assert.deepEqual([held.state, held.stopped.length], ['held', 1])
    assert.equal((await standing(good.id)).state, 'good')

    const before = scene.sentOf('bad.example')
    await send(bad.call, 'bad.example', 3, 0)
    await send(good.call, 'good.example', 3, 0)
    await arrived('good.example', MIN + 8)
    await eventually('waiting', async () =>
      (await scene.reasons(bad.call, 'bad.example')).includes('account-held'),
    )
    assert.equal(scene.sentOf('bad.example'), before, 'held')
    // A window that its sender has set does not stand still: it ends before the hold.
    await send(bad.call, 'bad.example', 1, 0, { to: 'a@window.example', 'o:deliver-within': '2h' })
    const waiting = await eventually('held within its window', async () => {
      const path = '/sendwright/v1/queue/deliveries?recipient_domain=window.example&reason=account-held'
      return ok(await bad.call('GET', path)).items[0]
    })
    assert.equal(waiting.next_attempt_at, waiting.expires_at)

    // Only the operator releases, and is told; the tenant reads.
    const path = `/sendwright/v1/accounts/${bad.id}/standing`
    assert.equal((await bad.call('POST', `${path}/release`)).status, 403)
    assert.equal((await bad.call('PUT', `${path}/policy`, { form: { policy: 'off' } })).status, 403)
    assert.equal((await good.call('GET', path)).status, 403)
    assert.equal(ok(await bad.call('GET', path)).state, 'held')
    const listed = ok(await service.call('GET', STANDING))
    assert.deepEqual(
      listed.items.map((item: { account_id: string }) => item.account_id),
      [bad.id],
    )
    await runJobAfter(service, clock, 'alert-stopped-senders', 61_000)
    const { items: alerts } = ok(await service.call('GET', '/sendwright/v1/alerts'))
    const alert = alerts.find(({ name }: { name: string }) => name === 'sendwright:stopped-senders')
    assert.match(alert.hits[0].advice, /is held: .* messages bounced/)

    await service.restart()
    assert.equal((await standing(bad.id)).state, 'held')
    assert.equal(ok(await scene.release(bad.id)).state, 'good')
    await arrived('bad.example', before + 3)
    assert.equal((await standing(bad.id)).figures.bounced, 0, 'its figures begin anew')
    assert.equal((await scene.release(bad.id)).status, 400)
    const audit = ok(await service.call('GET', `/sendwright/v1/audit?subaccount=${bad.id}`)).items
    assert.deepEqual(
      audit
        .filter(({ status }: { status: number }) => status === 200)
        .map(({ action }: { action: string }) => action)
        .filter((action: string) => action.startsWith('standing.')),
      ['standing.release', 'standing.held', 'standing.slowed'],
    )
    const notices = await eventually('the account is notified', async () => {
      const found = receiver.posts
        .filter(({ method }) => method === 'POST')
        .map(({ body }) => body['event-data'])
      return found.length >= 3 && found
    })
    assert.deepEqual(
      notices.map(({ event, sender }) => [event, sender.account_id, sender.state]),
      [
        ['sender_stopped', bad.id, 'slowed'],
        ['sender_stopped', bad.id, 'held'],
        ['sender_released', bad.id, 'good'],
      ],
    )
  })

  test('a domain is stopped alone, shows why, and is released by time; nothing is lost', async (t) => {
    const scene = await startScene(t, database)
    const { clock, check, counted, standing, send, arrived } = scene
    const { id, call } = await scene.account('Both', 'one.example', 'two.example')
    await send(call, 'one.example', MIN, 0)
    await counted(id, MIN)
    await send(call, 'two.example', MIN, 6)
    await counted(id, 2 * MIN)
    await check()
    const stopped = async () =>
      (await standing(id)).stopped.map(({ domain, state }: Record<string, string>) => [domain, state])
    assert.deepEqual(await stopped(), [['two.example', 'slowed']])
    await send(call, 'two.example', MIN, 3)
    // Maybe before all of these were sent: it was judged before all of the others were counted.
    await eventually('held', async () => (await stopped())[0]?.[1] === 'held')
    assert.deepEqual(await stopped(), [['two.example', 'held']])
    const { domain } = ok(await call('GET', '/v4/domains/two.example'))
    assert.deepEqual([domain.state, domain.is_disabled], ['disabled', true])
    const { until, ...disabled } = domain.disabled
    assert.deepEqual(disabled, {
      code: 'reputation',
      note: 'bounces',
      reason: (await standing(id)).stopped[0].reason,
      permanently: false,
    })
    assert.ok(Date.parse(until) > clock.now())
    assert.equal((await call('DELETE', '/v3/domains/two.example')).body.message, 'Domain is disabled')

    await send(call, 'two.example', 2, 0)
    await send(call, 'two.example', 1, 0, { 'o:deliver-within': '1h' })
    await send(call, 'two.example', 1, 0, { 'o:tag': 'unwanted' })
    await send(call, 'one.example', 2, 0)
    await arrived('one.example', MIN + 2)
    await eventually('waiting', async () =>
      (await scene.reasons(call, 'two.example')).includes('account-held'),
    )
    const json = { action: 'expire', filter: { tag: 'unwanted' } }
    await eventually('one is expired', async () => {
      const { body } = await call('POST', '/sendwright/v1/queue/actions', { json })
      return body.changed === 1
    })
    await eventually('its end', async () => {
      const { items } = ok(await call('GET', '/v3/two.example/events?event=failed&tags=unwanted'))
      return items[0]?.reason === 'old'
    })
    // Longer than a message is tried; its sender's own window is kept.
    clock.leap(21 * HOUR_MS)
    const all = 2 * MIN - 9 + 2
    await arrived('two.example', all)
    await eventually('the end', async () => (await stopped()).length === 0)
    assert.equal(ok(await call('GET', '/v4/domains/two.example')).domain.state, 'active')
    const failed = await eventually('the one that is too old', async () => {
      const { items } = ok(
        await call('GET', '/v3/two.example/events?event=failed&severity=permanent&limit=2'),
      )
      return items[1]?.reason === 'old' && items[0]
    })
    assert.equal(failed['delivery-status'].code, 602)
    assert.equal(scene.sentOf('two.example'), all)
  })

  test('spam traps stop an account at once; the own account of the operator is only warned', async (t) => {
    const scene = await startScene(t, database)
    const { service, check, standing, send, arrived } = scene
    const form = { address: TRAP.toUpperCase(), note: 'old list' }
    assert.equal(ok(await service.call('POST', '/sendwright/v1/spam-traps', { form })).address, TRAP)
    const { id, call } = await scene.account('Trapped', 'list.example')
    await send(call, 'list.example', 3, 0, { to: TRAP })
    const own = service.service.first.accountId
    await send(service.call, service.domain, MIN, 6)
    await scene.counted(id, 3)
    await scene.counted(own, MIN)
    await check()
    const { stopped } = await standing(id)
    assert.deepEqual(
      [stopped[0].code, stopped[0].state, stopped[0].figures.spam_trap_hits],
      ['spam-traps', 'slowed', 3],
    )
    assert.deepEqual(
      [(await standing(own)).state, (await standing(own)).stopped[0].code],
      ['warned', 'bounces'],
    )
    await send(service.call, service.domain, 3, 0)
    await arrived(service.domain, MIN - 6 + 3)
    ok(await service.call('DELETE', `/sendwright/v1/spam-traps/${TRAP}`))
    assert.deepEqual(ok(await service.call('GET', '/sendwright/v1/spam-traps')).items, [])
  })

  test('a new account sends its daily budget, and the rest on the next days', async (t) => {
    const scene = await startScene(t, database)
    const { service, clock, standing, send, arrived } = scene
    // An attempt would take as long as the time that is leapt over.
    const idle = () =>
      eventually('no attempt', async () => {
        const { queue } = ok(await service.call('GET', '/sendwright/v1/system'))
        return queue.sending === 0
      })
    ok(await service.call('PUT', `${STANDING}/policy`, { form: { policy: 'off', new_account_daily: '4' } }))
    const { id, call } = await scene.account('New', 'new.example')
    await send(call, 'new.example', 14, 0)
    await arrived('new.example', 4)
    await eventually('waiting', async () =>
      (await scene.reasons(call, 'new.example')).includes('daily-budget'),
    )
    assert.deepEqual((await standing(id)).daily_budget, { limit: 4, used: 4 })
    assert.equal(scene.sentOf('new.example'), 4)
    await idle()
    clock.leap(24 * HOUR_MS)
    await arrived('new.example', 12)
    await eventually('the second day', async () => (await standing(id)).daily_budget.used === 8)
    await idle()
    assert.equal(scene.sentOf('new.example'), 12)
    clock.leap(24 * HOUR_MS)
    await arrived('new.example', 14)
  })

  test('a domain that the operator disables takes no mail, and what it has waits until it is enabled', async (t) => {
    const scene = await startScene(t, database)
    const { service, sink, send, arrived } = scene
    const { id, call } = await scene.account('Child', 'off.example')
    sink.on('RCPT TO', '451 4.3.0 not now', { times: 1 })
    await send(call, 'off.example', 1, 0, { to: 'later@example.org' })
    await eventually('a deferral', async () =>
      (await scene.reasons(call, 'off.example')).includes('deferred'),
    )
    const path = '/sendwright/v1/domains/off.example'
    const form = { reason: 'abuse', note: 'ticket 7' }
    assert.equal((await call('POST', `${path}/disable`, { form })).status, 403)
    ok(await service.call('POST', `${path}/disable`, { form }))
    assert.equal((await service.call('POST', `${path}/disable`, { form })).status, 400)
    assert.deepEqual(ok(await call('GET', '/v4/domains/off.example')).domain.disabled, {
      ...{ code: 'operator', note: 'ticket 7', reason: 'abuse', permanently: true },
    })
    assert.match((await sendFrom(call, 'off.example')).body.message, /The domain is disabled$/)
    await eventually('held', async () => (await scene.reasons(call, 'off.example')).includes('account-held'))
    assert.equal((await call('POST', `${path}/enable`)).status, 403)
    ok(await service.call('POST', `${path}/enable`))
    await arrived('off.example', 1)
    assert.equal((await service.call('POST', `${path}/enable`)).status, 400)
    assert.equal((await scene.standing(id)).state, 'good')
  })
})
