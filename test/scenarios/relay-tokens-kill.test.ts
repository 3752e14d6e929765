/** The process dies between the token server's answer and our commit: what is stored, and what mail does. */
// Slow: it kills processes of the service.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { post, queueTotals } from '../support/crash-rig.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'
import { demandTokens, startTokenServer, tokenLogin } from '../support/token-server.ts'

const RELAYS = '/sendwright/v1/relays'

async function call({ url }: ServiceProcess, method: string, path: string, json?: unknown) {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return JSON.parse(text)
}

/** Up to the death after the first token; resolves with the next process on the same data. */
async function dieWithToken(t: TestContext, isLenient: boolean) {
  const server = await startTokenServer(t, { rotates: true })
  server.isLenient = isLenient
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  demandTokens(sink, () => true)
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  }
  const first = await startProcess(host, { ...env, SENDWRIGHT_TEST_FAIL_POINT: 'token-before-commit:1' })
  t.after(() => first.end('SIGKILL'))
  const relay = { host: sink.host, port: sink.port, tls: 'none', login: tokenLogin(server) }
  await call(first, 'POST', RELAYS, { name: 'm365', ...relay })
  await call(first, 'PUT', '/sendwright/v1/relay-rules', {
    items: [{ match: {}, levels: [[{ relay: 'm365' }]] }],
  })
  const death = once(first.child, 'exit')
  await post(first, { to: 'user@example.org', subject: 'Hello', text: 'Hi.' })
  await death
  assert.equal(first.child.signalCode, 'SIGKILL')
  assert.deepEqual([server.used, sink.messages.length], [['refresh-0'], 0])
  const second = await startProcess(host, env)
  t.after(() => second.end('SIGKILL'))
  return { server, sink, second, relay }
}

test('a server that takes the old refresh token again: the message arrives once', async (t) => {
  const { server, sink, second } = await dieWithToken(t, true)
  await eventually('an empty queue', async () => (await queueTotals(second)) === 0)
  assert.deepEqual([server.used, sink.messages.length], [['refresh-0', 'refresh-0'], 1])
})

test('a server that does not: the relay says so, and another refresh token sends the message', async (t) => {
  const { server, sink, second, relay } = await dieWithToken(t, false)
  const shown = await eventually('the refusal', async () => {
    const { login } = await call(second, 'GET', `${RELAYS}/m365`)
    return login.oauth.error
  })
  assert.match(shown, /invalid_grant/)
  assert.equal(sink.messages.length, 0)
  const login = tokenLogin(server)
  server.valid = 'refresh-new'
  const oauth = { ...login.oauth, refresh_token: 'refresh-new' }
  await call(second, 'PUT', `${RELAYS}/m365`, { ...relay, login: { ...login, oauth } })
  // The refusal has closed the relay; a test that it accepts opens it.
  const from = `sender@${second.domain}`
  const { accepted } = await call(second, 'POST', `${RELAYS}/m365/test`, { from, to: 'trial@example.org' })
  assert.equal(accepted, true)
  // The first message waits for its next attempt.
  await post(second, { to: 'other@example.org', subject: 'Hello', text: 'Hi.' })
  await sink.waitFor(2)
  assert.deepEqual(
    sink.messages.flatMap(({ envelope }) => envelope.to),
    ['trial@example.org', 'other@example.org'],
  )
  assert.equal(server.used.at(-1), 'refresh-new')
})
