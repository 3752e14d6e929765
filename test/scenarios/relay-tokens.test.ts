/** Mail through a relay that takes access tokens, from the operations that set it up to the messages that arrive. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { demandTokens, startTokenServer, tokenLogin } from '../support/token-server.ts'

const MINUTE_MS = 60_000
const RELAY = '/sendwright/v1/relays/m365'

async function start(t: TestContext) {
  const clock = createTestClock()
  const ticking = Promise.withResolvers<NodeJS.Timeout>()
  t.after(() => ticking.resolve(setInterval(() => void clock.advance(1_000), 10)))
  const server = await startTokenServer(t, { rotates: true })
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: 'direct',
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    },
    { clock, random: () => 0 },
  )
  t.after(async () => clearInterval(await ticking.promise))
  const relay = {
    ...{ host: sink.host, port: sink.port, tls: 'none', login: tokenLogin(server) },
    limits: { connections: 3, messages_per_connection: 2 },
  }
  await ok(service, 'POST', '/sendwright/v1/relays', { name: 'm365', ...relay })
  await ok(service, 'PUT', '/sendwright/v1/relay-rules', {
    items: [{ match: {}, levels: [[{ relay: 'm365' }]] }],
  })
  const until = <T>(what: string, look: () => Promise<T | null | undefined | false>) =>
    eventually(what, async () => {
      await clock.advance(50)
      return look()
    })
  /** Sends messages and waits until all of them have arrived. */
  async function run(count: number): Promise<void> {
    const before = sink.messages.length
    const sent = await Promise.all(
      Array.from({ length: count }, (_, index) => service.send({ to: `u${index}@example.org` })),
    )
    assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([200]))
    await until(`${count} messages`, async () => sink.messages.length >= before + count)
  }
  return { clock, server, sink, service, relay, until, run }
}

async function ok(service: TestService, method: string, path: string, json?: unknown) {
  const answer = await service.call(method, path, json === undefined ? {} : { json })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

test('a token that ends, or is revoked, during a run of messages: each arrives once', async (t) => {
  const { clock, server, sink, service, run } = await start(t)
  let valid = 'access-1'
  const { refused } = demandTokens(sink, (token) => token === valid)
  await run(10)
  assert.deepEqual([server.used, refused], [['refresh-0'], []])
  // Revoked: the relay refuses it before its end.
  clock.leap(2 * MINUTE_MS)
  valid = 'access-2'
  await run(10)
  assert.deepEqual(server.used, ['refresh-0', 'refresh-1'])
  assert.ok(refused.length > 0 && refused.every((token) => token === 'access-1'), refused.join(' '))
  const before = refused.length
  // Ended.
  clock.leap(61 * MINUTE_MS)
  valid = 'access-3'
  await run(10)
  assert.deepEqual([server.used.length, refused.length], [3, before])
  const recipients = sink.messages.map(({ envelope }) => envelope.to[0])
  assert.equal(recipients.length, 30)
  assert.equal((await service.events('?event=failed')).length, 0)
  const { login } = await ok(service, 'GET', RELAY)
  assert.equal(Date.parse(login.oauth.expires_at) > clock.now(), true)
})

test('mail waits with the words of the token server, which the relay and an alert show, and leaves once there is a token', async (t) => {
  const { clock, server, sink, service, relay, until } = await start(t)
  demandTokens(sink, (token) => token === 'access-2')
  const words = 'AADSTS700082: The refresh token has expired due to inactivity.'
  server.fault = { status: 400, body: { error: 'invalid_grant', error_description: words } }
  await service.send({ 'o:require-tls': 'no' })
  const failed = await until('the failed attempt', async () =>
    (await service.events()).find(({ event }) => event === 'failed'),
  )
  const { message } = failed['delivery-status'] as { message: string }
  assert.match(
    message,
    /cannot log in: 127\.0\.0\.1:\d+: invalid_grant: AADSTS700082: The refresh token has expired/,
  )
  assert.ok(!sink.commands.some(([, line]) => line.startsWith('AUTH')))
  const { login } = await ok(service, 'GET', RELAY)
  assert.match(login.oauth.error, /invalid_grant: AADSTS700082/)
  assert.equal(login.oauth.expires_at, null)
  // Once: leaps while it is looked for would use up the attempts, or the time, of the message.
  clock.leap(5 * MINUTE_MS)
  const advice = await until('the alert', async () => {
    const { items } = await ok(service, 'GET', '/sendwright/v1/alerts')
    const check = items.find(({ name }: { name: string }) => name === 'sendwright:relay-logins')
    return check.hits[0]?.advice
  })
  assert.match(advice, /The relay m365 gets no new access token: ".*AADSTS700082/)
  server.fault = null
  server.used.length = 1
  await ok(service, 'PUT', RELAY, relay)
  await ok(service, 'POST', '/sendwright/v1/queue/actions', {
    ...{ action: 'retry', filter: { domain: service.domain } },
  })
  await until('the message', async () => sink.messages.length > 0)
  assert.equal(sink.messages.length, 1)
  assert.equal((await ok(service, 'GET', RELAY)).login.oauth.error, null)
})
