/** Clients behind balancers that hand connections over with PROXY headers, on every listener. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { writeProxyHeader } from '../../src/protocols/proxy/header.ts'
import { type Balanced, balanced, balancedDialogue, balancedRequest } from '../support/balancer.ts'
import { selfSigned } from '../support/certificates.ts'
import { eventually, startTestService, TEST_KEY, type TestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { temporaryFolder } from '../support/stores.ts'

const BALANCER = '127.99.0.1'
const OUTSIDE = '127.98.0.1'
const PASSWORD = 'long enough'
const [ONE, TWO, SIX] = ['203.0.113.9', '203.0.113.10', '2001:db8::9']
const AUTHORIZATION = `Authorization: Basic ${Buffer.from(`api:${TEST_KEY}`).toString('base64')}`

const ENV = {
  SENDWRIGHT_SMTP_PORT: '0',
  SENDWRIGHT_SMTPS_PORT: '4650',
  SENDWRIGHT_SMTP_PROXY_PROTOCOL: '192.0.2.0/24,127.99.0.0/24',
  SENDWRIGHT_HTTP_PROXY_PROTOCOL: '127.99.0.0/24',
  SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'yes',
}

/** A service with its lines of the log, and an SMTP login. */
async function start(t: TestContext, env: Record<string, string> = {}) {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const service = await startTestService(t, { ...ENV, ...env }, { isExempt: () => false, log })
  const path = `/v3/domains/${service.domain}/credentials`
  const made = await service.call('POST', path, { form: { login: 'app', password: PASSWORD } })
  assert.equal(made.status, 200, made.text)
  return { service, lines }
}

const smtpOf = ({ config, service }: TestService, header: Balanced['header']): Balanced => ({
  ...{ host: config.smtpHost, port: service.smtp.port, localAddress: BALANCER, header },
})

const httpOf = ({ config, service }: TestService, header: Balanced['header']): Balanced => ({
  ...{ host: config.host, port: service.port, localAddress: BALANCER, header },
})

/** The code of the reply to one login. */
async function logIn(t: TestContext, to: Balanced, user: string, password: string): Promise<string> {
  const dialogue = await balancedDialogue(t, to)
  await dialogue.reply()
  await dialogue.say('EHLO app.example')
  const reply = await dialogue.say(`AUTH PLAIN ${plainLogin(user, password)}`)
  dialogue.destroy()
  return reply?.slice(0, 3) ?? 'closed'
}

test('guesses of one client behind a balancer shut out that client alone, and are noted under its address', async (t) => {
  const { service, lines } = await start(t)
  const user = `app@${service.domain}`
  const guess = (n: number) => logIn(t, smtpOf(service, ONE), `nobody${n}@${service.domain}`, 'guess')
  const codes = await Promise.all(Array.from({ length: 20 }, (_, n) => guess(n)))
  assert.deepEqual(new Set(codes), new Set(['535', '421']))
  assert.equal(await logIn(t, smtpOf(service, ONE), user, PASSWORD), '421')
  for (const other of [TWO, SIX])
    assert.equal(await logIn(t, smtpOf(service, other), user, PASSWORD), '235', other)
  const failed = lines.filter(({ msg }) => msg === 'SMTP login failed')
  assert.deepEqual(new Set(failed.map(({ remoteAddress }) => remoteAddress)), new Set([ONE]))
})

test('version 1, STARTTLS and TLS from the first byte: the header comes before them', async (t) => {
  const { service } = await start(t, { SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no' })
  const login = `AUTH PLAIN ${plainLogin(`app@${service.domain}`, PASSWORD)}`
  const later = await balancedDialogue(
    t,
    smtpOf(service, Buffer.from(`PROXY TCP4 ${ONE} 192.0.2.1 40000 25\r\n`)),
  )
  assert.match((await later.reply()) ?? '', /^220 /)
  await later.say('EHLO app.example')
  assert.match((await later.say('STARTTLS')) ?? '', /^220 /)
  await later.secure()
  await later.say('EHLO app.example')
  assert.match((await later.say(login)) ?? '', /^235 /)

  const implicit = { ...smtpOf(service, SIX), port: 4650, implicitTls: true }
  const atOnce = await balancedDialogue(t, implicit)
  assert.match((await atOnce.reply()) ?? '', /^220 /)
  await atOnce.say('EHLO app.example')
  assert.match((await atOnce.say(login)) ?? '', /^235 /)
})

test('a client whose TLS ends at the balancer may send its password, and one whose does not may not', async (t) => {
  const { service } = await start(t, { SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no' })
  const [source, target] = [ONE, '127.0.0.1'].map((address) => ({ address, port: 25 }))
  assert.ok(source && target)
  const login = (header: Balanced['header']) =>
    logIn(t, smtpOf(service, header), `app@${service.domain}`, PASSWORD)
  assert.equal(await login(writeProxyHeader(source, target, true)), '235')
  assert.equal(await login(writeProxyHeader(source, target)), '538')
})

test('connections count for the clients that the headers name', async (t) => {
  const { service } = await start(t, { SENDWRIGHT_SMTP_MAX_CONNECTIONS_PER_IP: '2' })
  const greeting = async (client: string) => (await balancedDialogue(t, smtpOf(service, client))).reply()
  for (const client of [ONE, ONE, TWO, SIX]) assert.match((await greeting(client)) ?? '', /^220 /, client)
  assert.match((await greeting(ONE)) ?? '', /^421 /)
  assert.match((await greeting('2001:db8::ffff')) ?? '', /^220 /)
  assert.match((await greeting('2001:db8::aaaa')) ?? '', /^421 /, 'a network of 64 bits is one client')
})

test('nobody else can name a client: the header of another peer is no header', async (t) => {
  const { service } = await start(t)
  const { config, service: running } = service
  const dialogue = await openDialogue(t, {
    host: config.smtpHost,
    port: running.smtp.port,
    localAddress: OUTSIDE,
  })
  assert.match((await dialogue.reply()) ?? '', /^220 /, 'it need not send one')
  assert.match((await dialogue.say(`PROXY TCP4 ${ONE} 192.0.2.1 1 2`)) ?? '', /^500 /)
  const forged = await balancedRequest(t, { ...httpOf(service, ONE), localAddress: OUTSIDE }, [
    'GET /health/live HTTP/1.1',
  ])
  assert.equal(forged?.status, 400)
  const allowed = await service.call('POST', '/v2/ip_whitelist', {
    form: { address: `${ONE}/32`, force: 'yes' },
  })
  assert.equal(allowed.status, 200, allowed.text)
  const line = Buffer.from(`PROXY TCP4 ${ONE} 192.0.2.1 1 2\r\n`)
  const claimed = await balancedRequest(t, { ...httpOf(service, line), localAddress: OUTSIDE }, [
    'GET /v4/domains HTTP/1.1',
    AUTHORIZATION,
  ])
  assert.equal(claimed?.status, 400)
})

for (const tls of [false, true]) {
  test(`an HTTP${tls ? 'S' : ''} client is who the header names; X-Forwarded-For of a client is not believed`, async (t) => {
    const folder = await temporaryFolder(t)
    const { cert, key } = selfSigned(['mail.test.example'])
    const [certificateFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    await writeFile(certificateFile, cert)
    await writeFile(keyFile, key, { mode: 0o600 })
    const { service } = await start(t, {
      SENDWRIGHT_HTTPS_PORT: '8443',
      SENDWRIGHT_TLS_CERT: certificateFile,
      SENDWRIGHT_TLS_KEY: keyFile,
      // The balancer is one that speaks HTTP too.
      SENDWRIGHT_TRUSTED_PROXIES: '127.99.0.0/24',
      SENDWRIGHT_HTTP_MAX_CONNECTIONS_PER_IP: '3',
    })
    const to = (client: Balanced['header']): Balanced => ({
      ...httpOf(service, client),
      ...(tls && { port: 8443, implicitTls: true }),
    })
    const form = { address: `${ONE}/32`, force: 'yes' }
    assert.equal((await service.call('POST', '/v2/ip_whitelist', { form })).status, 200)
    const status = async (client: string, ...more: string[]) =>
      (await balancedRequest(t, to(client), ['GET /v4/domains HTTP/1.1', AUTHORIZATION, ...more]))?.status
    assert.equal(await status(ONE), 200)
    assert.equal(await status(TWO), 403)
    assert.equal(await status(TWO, `X-Forwarded-For: ${ONE}`), 403)
    // LOCAL: the balancer itself, whose X-Forwarded-For counts as ever.
    const local = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')
    const health = await balancedRequest(t, to(local), ['GET /health/live HTTP/1.1'])
    assert.equal(health?.status, 200)
    const forwarded = [`GET /v4/domains HTTP/1.1`, AUTHORIZATION, `X-Forwarded-For: ${ONE}`]
    assert.equal((await balancedRequest(t, to(local), forwarded))?.status, 200)

    const open = await Promise.all([1, 2, 3].map(() => balanced(t, to(TWO))))
    const beyond = await balancedRequest(t, to(TWO), ['GET /health/live HTTP/1.1']).catch(() => null)
    assert.equal(beyond?.status, tls ? undefined : 503)
    assert.equal(await status(ONE), 200, 'another client is not affected')
    for (const socket of open) socket.destroy()
  })
}

test('what is no header is closed without an answer and logged once; a check of the port leaves no line', async (t) => {
  const { service, lines } = await start(t)
  const closed = async (to: Balanced) => {
    const dialogue = await balancedDialogue(t, to)
    return dialogue.rest()
  }
  const logged = () => lines.filter(({ msg }) => String(msg).includes('of a balancer'))
  for (const listener of [smtpOf, httpOf]) {
    const bare = await balanced(t, listener(service, Buffer.alloc(0)))
    bare.end()
    await new Promise<void>((resolve) => bare.once('close', () => resolve()).resume())
  }
  assert.deepEqual(logged(), [])
  for (const header of [
    'EHLO app.example\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'PROXY TCP4 localhost 1.2.3.4 1 2\r\n',
  ])
    for (const listener of [smtpOf, httpOf])
      assert.deepEqual(await closed(listener(service, Buffer.from(header))), [], header)
  const found = await eventually('both lines', async () => logged().length === 2 && logged())
  assert.deepEqual(
    found.map(({ msg, peer, fault, times }) => ({ msg, peer, fault, times })),
    ['SMTP', 'HTTP'].map((kind) => ({
      ...{ msg: `${kind}: a connection of a balancer was closed`, peer: BALANCER, times: 1 },
      fault: 'it does not begin with a PROXY header',
    })),
  )
})
