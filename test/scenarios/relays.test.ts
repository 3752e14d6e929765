/** Mail through relays: which of them gets what, and what happens when one fails (relays.md sections 2 and 4). */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { ServiceOverrides } from '../../src/service.ts'
import { selfSigned } from '../support/certificates.ts'
import { createNoonClock } from '../support/clock.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { type Answer, eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink, type SinkOptions } from '../support/smtp-sink.ts'
import { activeDomain, callAs, createSubaccount, sendFrom, startOpened } from '../support/subaccounts.ts'

const PATH = '/sendwright/v1/relays'
const LOGIN = { username: 'user', password: 'relay-secret' }
const ACCOUNT = { user: LOGIN.username, password: LOGIN.password }

async function sinkFor(t: TestContext, options: SinkOptions = {}): Promise<Sink> {
  const sink = await createSink(options)
  t.after(() => sink.close())
  return sink
}

/** In direct mode; all mail is for relays unless a test says otherwise. */
const start = (t: TestContext, env: Record<string, string> = {}, overrides: ServiceOverrides = {}) =>
  startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: 'direct',
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
      SENDWRIGHT_TRANSCRIPTS: 'all',
      ...env,
    },
    overrides,
  )

async function ok(service: TestService, method: string, path: string, json?: unknown) {
  const { status, body, text } = await service.call(method, path, json === undefined ? {} : { json })
  assert.equal(status, 200, text)
  return body
}

const addRelay = (
  service: TestService,
  name: string,
  { host, port }: { host: string; port: number },
  more = {},
) => ok(service, 'POST', PATH, { name, host, port, tls: 'none', ...more })

const setRules = (service: TestService, ...items: { match: unknown; levels: unknown }[]) =>
  ok(service, 'PUT', '/sendwright/v1/relay-rules', { items })

const inOrder = (...names: string[]) => names.map((relay) => [{ relay }])

const recipients = (count: number, domain = 'example.net') =>
  Array.from({ length: count }, (_, index) => `user${index}@${domain}`)

const recipientsOf = (...sinks: Sink[]) =>
  sinks.flatMap(({ messages }) => messages.flatMap(({ envelope }) => envelope.to)).sort()

const arrived = (count: number, ...sinks: Sink[]) =>
  eventually(`${count} messages`, async () => recipientsOf(...sinks).length >= count)

async function stateOf(service: TestService, name: string) {
  const { state } = await ok(service, 'GET', `${PATH}/${name}`)
  return state as { word: string; why: string | null }
}

async function deliveriesOf(service: TestService, { body }: Answer) {
  const id = encodeURIComponent(body.id.slice(1, -1))
  const { items } = await ok(service, 'GET', `/sendwright/v1/messages/${id}/deliveries?limit=100`)
  return items as { id: string; state: string; lane: string }[]
}

async function dialogueOf(service: TestService, id: string): Promise<string> {
  const { items } = await ok(service, 'GET', `/sendwright/v1/deliveries/${id}/transcript`)
  return (items as { lines: { line: string }[] }[])
    .flatMap(({ lines }) => lines.map(({ line }) => line))
    .join('\n')
}

const CHALLENGE = '<1896.697170952@relay.example>'
const DIGEST = createHmac('md5', LOGIN.password).update(CHALLENGE).digest('hex')
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Neither the password nor what logs in with it. */
function hasNoSecret(text: string): void {
  const { username, password } = LOGIN
  const response = `${username} ${DIGEST}`
  for (const secret of [password, base64(password), base64(`\0${username}\0${password}`)])
    assert.ok(!text.includes(secret), text)
  for (const secret of [DIGEST, base64(response)]) assert.ok(!text.includes(secret), text)
}

test('relays that die, refuse, answer 421 or have a wrong certificate: each message arrives once', async (t) => {
  const wrong = await sinkFor(t, { tls: selfSigned(['other.example']), auth: ACCOUNT })
  const locked = await sinkFor(t, { auth: { ...ACCOUNT, password: 'changed' } })
  const dying = await sinkFor(t)
  const busy = await sinkFor(t)
  const good = await sinkFor(t, { auth: ACCOUNT })
  const gone = await createSink()
  await gone.close()
  // Takes 5, then breaks off in the middle of the dialogue, for ever.
  dying.on('RCPT TO', (session) => {
    if (dying.messages.length < 5) return '250 ok'
    session.drop(true)
    return null
  })
  busy.on('MAIL FROM', (session) => {
    if (busy.messages.length < 5) return '250 ok'
    session.write('421 4.3.2 going down\r\n')
    session.drop()
    return null
  })
  const service = await start(t)
  await addRelay(service, 'gone', gone)
  await addRelay(service, 'wrong', wrong, { tls: 'starttls', login: LOGIN })
  await addRelay(service, 'locked', locked, { login: LOGIN })
  await addRelay(service, 'dying', dying, { limits: { connections: 1 } })
  await addRelay(service, 'busy', busy, { limits: { connections: 1 } })
  await addRelay(service, 'good', good, { login: LOGIN })
  await setRules(service, { match: {}, levels: inOrder('gone', 'wrong', 'locked', 'dying', 'busy', 'good') })

  const to = recipients(60)
  const sent = await service.send({ to })
  await arrived(60, dying, busy, good)
  assert.deepEqual(recipientsOf(dying, busy, good), [...to].sort())
  assert.equal(recipientsOf(wrong, locked).length, 0)
  assert.equal(
    wrong.commands.filter(([, line]) => line.startsWith('AUTH')).length,
    0,
    'no AUTH to the wrong one',
  )
  assert.equal(dying.messages.length, 5)

  for (const name of ['gone', 'wrong', 'locked', 'dying', 'busy'])
    assert.equal((await stateOf(service, name)).word, 'closed', name)
  assert.match((await stateOf(service, 'wrong')).why ?? '', /certificate/)
  assert.match((await stateOf(service, 'locked')).why ?? '', /535/)
  assert.equal((await stateOf(service, 'good')).word, 'open')

  const deliveries = await eventually('all settled', async () => {
    const all = await deliveriesOf(service, sent)
    return all.every(({ state }) => state === 'delivered') && all
  })
  const dialogues = await Promise.all(deliveries.map(({ id }) => dialogueOf(service, id)))
  assert.ok(dialogues.some((text) => /535/.test(text) && /^AUTH PLAIN \[hidden\]$/m.test(text)))
  assert.ok(dialogues.some((text) => /421 4\.3\.2 going down/.test(text)))
  hasNoSecret(dialogues.join())
})

test('what may have been accepted goes to no other relay', async (t) => {
  const [first, second] = [await sinkFor(t), await sinkFor(t)]
  first.dropAt('DATA-DOT', { times: 1, accept: true })
  const service = await start(t)
  await addRelay(service, 'first', first)
  await addRelay(service, 'second', second)
  await setRules(service, { match: {}, levels: inOrder('first', 'second') })
  const unknown = await service.send({ to: 'a@example.net' })
  await first.waitFor(1)
  await eventually('deferred', async () => (await service.events('?event=failed')).length === 1)
  await service.send({ to: 'b@example.net' })
  await first.waitFor(2)
  assert.deepEqual(recipientsOf(first, second), ['a@example.net', 'b@example.net'])
  const [waiting] = await deliveriesOf(service, unknown)
  assert.deepEqual([waiting?.state, waiting?.lane], ['queued', 'any/relay:first'])
})

test('rules: domain, recipient, provider, account, weights, and direct as a choice', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const mx = await sinkFor(t, { host: '127.0.88.1', port: 2588 })
  dns.set('receiver.example', 'MX', [[10, 'mx.receiver.example']])
  dns.set('mx.receiver.example', 'A', [mx.host])
  const [one, two, other] = [await sinkFor(t), await sinkFor(t), await sinkFor(t)]
  const service = await start(t, {
    SENDWRIGHT_DELIVERY: `smtp://${other.host}:${other.port}`,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_MX_PORT: String(mx.port),
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  await addRelay(service, 'one', one)
  await addRelay(service, 'two', two)
  await setRules(
    service,
    { match: { recipient_domain: '*.edu', domain: service.domain }, levels: inOrder('one') },
    { match: { domain: '*.elsewhere.example' }, levels: inOrder('two') },
    { match: { recipient_domain: 'receiver.example' }, levels: inOrder('direct') },
    {
      match: { recipient_domain: 'gmail.com' },
      levels: [
        [
          { relay: 'one', weight: 3 },
          { relay: 'two', weight: 1 },
        ],
      ],
    },
  )
  await service.send({ to: ['a@mit.edu', 'a@receiver.example', 'a@example.net'] })
  await arrived(3, one, mx, other)
  assert.deepEqual(
    [recipientsOf(one), recipientsOf(mx), recipientsOf(other)],
    [['a@mit.edu'], ['a@receiver.example'], ['a@example.net']],
  )
  await service.send({ to: recipients(200, 'gmail.com') })
  await arrived(201, one, two)
  const share = one.messages.length - 1
  assert.ok(share > 110 && share < 185, `${share} of 200 by weight 3 of 4`)
})

test('rules: the pool that the message asked for, and the provider of the recipient', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('hosted.example', 'MX', [[10, 'aspmx.l.google.com']])
  dns.set('aspmx.l.google.com', 'A', ['142.250.0.26'])
  const [one, two, other] = [await sinkFor(t), await sinkFor(t), await sinkFor(t)]
  const [first, second] = ['127.0.89.1', '127.0.89.2']
  const service = await start(t, {
    SENDWRIGHT_DELIVERY: `smtp://${other.host}:${other.port}`,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_IPS: `${first},${second}`,
  })
  const form = { name: 'Bulk', ip: second }
  const { status, body, text } = await service.call('POST', '/v3/ip_pools', { form })
  assert.equal(status, 200, text)
  const pool = body.pool_id
  await addRelay(service, 'one', one)
  await addRelay(service, 'two', two)
  await setRules(
    service,
    { match: { pool }, levels: inOrder('one') },
    { match: { provider: 'Google Workspace' }, levels: inOrder('two') },
  )
  const asked = await service.send({ to: 'a@hosted.example', 'o:sending-ip-pool': pool })
  assert.equal(asked.status, 200, asked.text)
  await one.waitFor(1)
  await service.send({ to: ['b@hosted.example', 'c@example.net'] })
  await arrived(3, one, two, other)
  assert.deepEqual(
    [recipientsOf(one), recipientsOf(two), recipientsOf(other)],
    [['a@hosted.example'], ['b@hosted.example'], ['c@example.net']],
  )
  assert.equal(one.messages[0]?.remoteAddress, second)
})

test('limits of a relay: connections, messages on each, and a rate', async (t) => {
  const sink = await sinkFor(t)
  const service = await start(t)
  const limits = { connections: 2, messages_per_connection: 3, messages_per_second: 40 }
  await addRelay(service, 'one', sink, { limits })
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: recipients(12) })
  await sink.waitFor(12)
  assert.ok(sink.connections.peak <= 2, String(sink.connections.peak))
  assert.ok(sink.connections.total >= 4, String(sink.connections.total))
  const { items } = await ok(service, 'GET', '/sendwright/v1/queue/lanes')
  const lane = items.find(({ site }: { site: string }) => site === 'relay:one')
  assert.deepEqual([lane.limits.connections, lane.limits.messages_per_second], [2, 40])
})

test('o:relay within the rights of the account', async (t) => {
  const [one, two] = [await sinkFor(t), await sinkFor(t)]
  const service = await start(t)
  await addRelay(service, 'one', one)
  await addRelay(service, 'two', two)
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'a@example.net', 'o:relay': 'two' })
  await two.waitFor(1)
  const unknown = await service.send({ to: 'a@example.net', 'o:relay': 'three' })
  assert.deepEqual(
    [unknown.status, unknown.body.message],
    [400, "three is not a valid relay (value of 'o:relay')"],
  )
  const mime = `From: a@${service.domain}\r\nTo: b@example.net\r\nSubject: x\r\nX-Service-Relay: two\r\n\r\nHi\r\n`
  const { status } = await service.call('POST', `/v3/${service.domain}/messages.mime`, {
    form: { to: 'b@example.net', message: new File([mime], 'message') },
  })
  assert.equal(status, 200)
  await two.waitFor(2)
  assert.equal(one.messages.length, 0)
  assert.doesNotMatch(two.messages[1]?.raw.toString() ?? '', /X-Service-Relay/)
})

test('a subaccount asks for the relays that it is offered, and for no other way', async (t) => {
  const [one, two, other] = [await sinkFor(t), await sinkFor(t), await sinkFor(t)]
  const opened = await startOpened(t, {
    SENDWRIGHT_DELIVERY: `smtp://${other.host}:${other.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  })
  const { service, core } = opened
  const id = await createSubaccount(service, 'tenant')
  const call = callAs(service, id)
  await activeDomain(core, call, 'tenant.example')
  const send = (relay?: string) =>
    sendFrom(call, 'tenant.example', relay === undefined ? {} : { 'o:relay': relay })
  await addRelay(service, 'one', one)
  await addRelay(service, 'two', two)
  await setRules(service, { match: { account_id: id }, levels: inOrder('one') })
  for (const name of ['two', 'default', 'direct']) {
    const { status, body } = await send(name)
    assert.deepEqual([name, status], [name, 400])
    assert.equal(body.message, `${name} is not a valid relay (value of 'o:relay')`)
  }
  assert.equal((await send()).status, 200)
  await one.waitFor(1)
  const { host, port } = two
  await ok(service, 'PUT', `${PATH}/two`, { host, port, tls: 'none', offered_to: [id] })
  assert.equal((await send('two')).status, 200)
  await two.waitFor(1)
  // Its operations are the operator's.
  for (const [method, path] of [
    ['GET', PATH],
    ['GET', `${PATH}/one`],
    ['GET', '/sendwright/v1/relay-rules'],
    ['POST', `${PATH}/one/test`],
  ] as const) {
    const json = method === 'POST' ? { from: 'a@tenant.example', to: 'b@example.net' } : undefined
    assert.equal((await call(method, path, { json })).status, 403, `${method} ${path}`)
  }
  assert.deepEqual(
    [one, two, other].map(({ messages }) => messages.length),
    [1, 1, 0],
  )
})

test('a pause, a limit of size and a limit of the day send mail to the next choice', async (t) => {
  const [one, two] = [await sinkFor(t), await sinkFor(t)]
  const service = await start(t, {}, { clock: createNoonClock() })
  await addRelay(service, 'one', one, { limits: { max_message_size: 20_000, messages_per_day: 2 } })
  await addRelay(service, 'two', two)
  // Larger than all: it fails at once.
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'huge@example.net', text: 'x'.repeat(30_000) })
  const [failed] = await eventually('failed', async () => {
    const events = await service.events('?event=failed&severity=permanent')
    return events.length > 0 && events
  })
  assert.equal((failed?.['delivery-status'] as { code: number })?.code, 554)
  await setRules(service, { match: {}, levels: inOrder('one', 'two') })
  await service.send({ to: 'large@example.net', text: 'x'.repeat(30_000) })
  await two.waitFor(1)
  await ok(service, 'PUT', `${PATH}/one/pause?reason=maintenance`)
  await service.send({ to: 'paused@example.net' })
  await two.waitFor(2)
  assert.equal((await ok(service, 'DELETE', `${PATH}/one/pause`)).pause, null)
  await service.send({ to: recipients(5) })
  await arrived(7, one, two)
  assert.equal(one.messages.length, 2)
  assert.equal((await ok(service, 'GET', `${PATH}/one`)).used_today, 2)
  await service.restart()
  await service.send({ to: 'later@example.net' })
  await arrived(8, one, two)
  assert.equal(one.messages.length, 2, 'the count outlives a restart')
  await setRules(service)
  await ok(service, 'DELETE', `${PATH}/one`)
  await addRelay(service, 'one', one, { limits: { messages_per_day: 3 } })
  assert.equal((await ok(service, 'GET', `${PATH}/one`)).used_today, 2)
  await setRules(service, { match: {}, levels: inOrder('one', 'two') })
  await service.send({ to: recipients(2) })
  await arrived(10, one, two)
  assert.equal(one.messages.length, 3, 'and the relay')
})

test('a relay that refuses the login is open again once it is replaced or a test of it succeeds, and its dialogue has no secret', async (t) => {
  const one = await sinkFor(t, { auth: ACCOUNT })
  const service = await start(t)
  await addRelay(service, 'one', one, { login: { ...LOGIN, password: 'wrong' } })
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'a@example.net' })
  await eventually('closed', async () => (await stateOf(service, 'one')).word === 'closed')
  const trial = { from: `a@${service.domain}`, to: 'b@example.net' }
  const refused = await ok(service, 'POST', `${PATH}/one/test`, trial)
  assert.equal(refused.accepted, false)
  assert.match(refused.result, /535/)
  const { host, port } = one
  const wrong = { ...LOGIN, password: 'wrong' }
  assert.equal((await stateOf(service, 'one')).word, 'closed')
  const replaced = await ok(service, 'PUT', `${PATH}/one`, { host, port, tls: 'none', login: LOGIN })
  assert.equal(replaced.state.word, 'open')
  // A message finds the fault that is there again.
  await ok(service, 'PUT', `${PATH}/one`, { host, port, tls: 'none', login: wrong })
  await service.send({ to: 'd@example.net' })
  await eventually('closed again', async () => (await stateOf(service, 'one')).word === 'closed')
  await ok(service, 'PUT', `${PATH}/one`, { host, port, tls: 'none', login: LOGIN })
  const accepted = await ok(service, 'POST', `${PATH}/one/test`, trial)
  assert.equal(accepted.accepted, true)
  const said = accepted.lines.map(({ line }: { line: string }) => line)
  assert.ok(said.includes('AUTH PLAIN [hidden]'), said.join('\n'))
  hasNoSecret(JSON.stringify([refused, accepted]))
  assert.equal((await stateOf(service, 'one')).word, 'open')
  await service.send({ to: 'c@example.net' })
  await one.waitFor(2)
  assert.deepEqual(recipientsOf(one), ['b@example.net', 'c@example.net'])
})

test('of a relay that was removed no pause and no alert stays, nor for another one of its name', async (t) => {
  const one = await sinkFor(t, { auth: ACCOUNT })
  const service = await start(t)
  await addRelay(service, 'one', one, { login: { ...LOGIN, password: 'wrong' } })
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'a@example.net' })
  await eventually('closed', async () => (await stateOf(service, 'one')).word === 'closed')
  await ok(service, 'PUT', `${PATH}/one/pause`)
  await setRules(service)
  await ok(service, 'DELETE', `${PATH}/one`)
  assert.deepEqual((await ok(service, 'GET', '/sendwright/v1/shaping')).overrides, [])
  await addRelay(service, 'one', one, { login: LOGIN })
  const { state, pause } = await ok(service, 'GET', `${PATH}/one`)
  assert.deepEqual([state.word, state.times, pause], ['open', 0, null])
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'b@example.net' })
  await arrived(1, one)
})

test('a relay that moves to another port gets nothing on a connection to the old one', async (t) => {
  const [before, after] = [await sinkFor(t), await sinkFor(t)]
  const service = await start(t)
  await addRelay(service, 'one', before, { tls: 'starttls' })
  await setRules(service, { match: {}, levels: inOrder('one') })
  await service.send({ to: 'a@example.net' })
  await before.waitFor(1)
  const { host, port } = after
  await ok(service, 'PUT', `${PATH}/one`, { host, port, tls: 'starttls' })
  await service.send({ to: 'b@example.net' })
  await after.waitFor(1)
  assert.equal(before.messages.length, 1)
})

test('a relay that offers CRAM-MD5 gets no password without TLS, and no dialogue has the digest', async (t) => {
  const sink = await sinkFor(t)
  sink.on('EHLO', '250-sink.test\r\n250 AUTH PLAIN LOGIN CRAM-MD5')
  sink.on('AUTH CRAM-MD5', `334 ${base64(CHALLENGE)}`)
  const response = base64(`${LOGIN.username} ${DIGEST}`)
  sink.on(response, '235 2.7.0 welcome')
  const service = await start(t)
  await addRelay(service, 'one', sink, { login: LOGIN })
  await setRules(service, { match: {}, levels: inOrder('one') })
  const sent = await service.send({ to: 'a@example.net' })
  await sink.waitFor(1)
  assert.deepEqual(
    sink.commands.map(([, line]) => line).filter((line) => line.startsWith('AUTH') || line === response),
    ['AUTH CRAM-MD5', response],
  )
  const [delivery] = await eventually('settled', async () => {
    const all = await deliveriesOf(service, sent)
    return all[0]?.state === 'delivered' && all
  })
  const lines = (await dialogueOf(service, delivery?.id ?? '')).split('\n')
  const at = lines.indexOf('AUTH CRAM-MD5')
  assert.deepEqual(lines.slice(at, at + 4), [
    'AUTH CRAM-MD5',
    `334 ${base64(CHALLENGE)}`,
    '[hidden]',
    '235 2.7.0 welcome',
  ])
  hasNoSecret(lines.join('\n'))
})

test('smtps:// is TLS from the first byte', async (t) => {
  const sink = await sinkFor(t, { tls: { ...selfSigned(['localhost']), implicit: true } })
  const service = await start(t, { SENDWRIGHT_DELIVERY: `smtps://${sink.host}:${sink.port}` })
  await service.send({ to: 'a@example.net' })
  const [message] = await sink.waitFor(1)
  assert.equal(message?.tls, true)
  const relay = await ok(service, 'GET', `${PATH}/default`)
  assert.deepEqual([relay.from_setting, relay.tls, relay.login], [true, 'implicit', null])
  assert.equal((await service.call('DELETE', `${PATH}/default`)).status, 400)
})
