/** HTTPS for the service's own name by one setting, against a certificate authority on loopback. */
import assert from 'node:assert/strict'
import type { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import pino from 'pino'
import { type AcmeServer, createAcmeServer } from '../../../test/support/acme-server.ts'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { Dialogue } from '../../../test/support/smtp-dialogue.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'

const DAY_MS = 86_400_000
const STEP_MS = 1_000
const NAME = 'mail.own.example'

interface World {
  clock: TestClock
  dns: DnsServer
  acme: AcmeServer
  service: TestService
}

async function authorityFor(t: TestContext, now: () => number) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set(NAME, 'A', ['192.0.2.7'])
  const web = { address: '', port: 0 }
  const acme = await createAcmeServer({ now, reach: () => web })
  t.after(() => acme.close())
  const env = {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_HOSTNAME: NAME,
    SENDWRIGHT_ACME: 'yes',
    SENDWRIGHT_ACME_DIRECTORY: acme.directory,
    SENDWRIGHT_HTTPS_PORT: '8443',
  }
  return { dns, acme, web, env }
}

async function createWorld(
  t: TestContext,
  { env = {}, before }: { env?: Record<string, string>; before?: (dns: DnsServer) => void } = {},
): Promise<World> {
  const clock = createTestClock(Date.now())
  const { dns, acme, web, env: basic } = await authorityFor(t, () => clock.now())
  before?.(dns)
  // The order may begin with the start.
  const known = Object.assign(web, { port: 8080 })
  const service = await startTestService(
    t,
    { ...basic, ...env },
    { clock, random: () => 0.5, log: pino({ level: 'silent' }) },
  )
  known.address = service.config.host
  return { clock, dns, acme, service }
}

const stateOf = async ({ service }: World, name = 'tls-certificate') => {
  const { body } = await service.call('GET', '/sendwright/v1/system/checks')
  const found = (body.items as { name: string; state: string; sentence: string }[]).find(
    (check) => check.name === name,
  )
  assert.ok(found)
  return found
}

/** `leapMs`: what passes between two looks, for what waits until its next attempt. */
const untilServed = (world: World, leapMs = 0) =>
  eventually('the certificate is served', async () => {
    world.clock.leap(leapMs)
    await world.clock.advance(STEP_MS)
    return trusted(world, NAME).catch(() => null)
  })

/** The certificate that a client gets that trusts the authority; rejects when it does not match the name. */
async function trusted(
  { service, acme }: { service: { config: { host: string } }; acme: AcmeServer },
  servername: string | null,
  port = 8443,
): Promise<X509Certificate> {
  const socket = connect({
    host: service.config.host,
    port,
    ca: acme.root,
    ...(servername === null
      ? { checkServerIdentity: (_host: string, peer: { subjectaltname?: string }) => wrongName(peer) }
      : { servername }),
  })
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerX509Certificate() as X509Certificate
  socket.destroy()
  return certificate
}

const wrongName = ({ subjectaltname }: { subjectaltname?: string }) =>
  subjectaltname === `DNS:${NAME}` ? undefined : new Error(`another name: ${subjectaltname}`)

/** As an MTA does: STARTTLS, without naming a host. */
async function trustedMail({ service, acme }: World): Promise<void> {
  const plain = connectPlain({ host: service.config.host, port: service.service.smtp.port })
  await once(plain, 'connect')
  const dialogue = new Dialogue(plain)
  await dialogue.reply()
  await dialogue.say('EHLO client.example')
  assert.match((await dialogue.say('STARTTLS')) ?? '', /^220/)
  plain.removeAllListeners('data')
  const socket = connect({
    socket: plain,
    ca: acme.root,
    checkServerIdentity: (_host, peer) => wrongName(peer),
  })
  await once(socket, 'secureConnect')
  socket.destroy()
}

/** `headers.host` is the name; over TLS it is the one that the certificate is checked for too. */
async function ask(
  world: Pick<World, 'service' | 'acme'>,
  options: { tls?: boolean; method?: string; path: string; headers?: Record<string, string> },
): Promise<IncomingMessage> {
  const { tls = false, path, method = 'GET', headers = {} } = options
  const all = { host: NAME, ...headers }
  const common = { host: world.service.config.host, path, method, headers: all, agent: false }
  const outgoing = tls
    ? requestHttps({ ...common, port: 8443, servername: NAME, ca: world.acme.root })
    : requestHttp({ ...common, port: 8080 })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response
}

test('one setting orders, serves and renews the certificate of the service, for SMTP as well', async (t) => {
  // What a client on another machine sends is what this proxy says.
  const world = await createWorld(t, { env: { SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8' } })
  const { acme, clock, service } = world
  assert.equal((await ask(world, { path: '/overview' })).statusCode, 200, 'no redirect without a certificate')
  const first = await untilServed(world)
  assert.deepEqual(acme.orders, [NAME])
  assert.equal(service.config.publicUrl, `https://${NAME}`)
  const unnamed = await trusted(world, null)
  assert.equal(unnamed.fingerprint256, first.fingerprint256)
  await trustedMail(world)

  await t.test('pages move to https, requests of programs do not', async () => {
    for (const path of ['/', '/overview?x=1', '/domains/a.example']) {
      const page = await ask(world, { path })
      assert.equal(page.statusCode, 308, path)
      assert.equal(page.headers.location, `https://${NAME}${path}`)
      assert.equal(page.headers['strict-transport-security'], undefined, 'not a promise over plain HTTP')
      assert.equal((await ask(world, { tls: true, path })).statusCode, 200, path)
    }
    const auth = { authorization: `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}` }
    assert.equal((await ask(world, { path: '/v4/domains', headers: auth })).statusCode, 200)
    assert.equal((await ask(world, { method: 'POST', path: '/v4/domains' })).statusCode, 401)
    assert.equal((await ask(world, { path: '/health/ready' })).statusCode, 200)
    for (const headers of [
      { host: '127.0.0.1' },
      { host: 'other.example' },
      { 'x-forwarded-for': '1.2.3.4' },
    ])
      assert.equal((await ask(world, { path: '/overview', headers })).statusCode, 200)
  })

  await t.test('calls with secrets from other machines are answered over https only', async () => {
    const client = { 'x-forwarded-for': '192.0.2.99', host: NAME }
    const ask = async (proto: string, method: string, path: string, form?: Record<string, string>) => {
      const headers = { ...client, 'x-forwarded-proto': proto }
      return service.call(method, path, { headers, ...(form && { form }) })
    }
    const calls: [method: string, path: string, overHttps: number, form?: Record<string, string>][] = [
      ['GET', '/v4/domains', 200],
      ['POST', `/v3/${service.domain}/messages`, 400, { text: 'Without a recipient nothing is sent.' }],
      ['POST', '/sendwright/v1/session', 200, { key: service.key }],
    ]
    for (const [method, path, overHttps, form] of calls) {
      const refused = await ask('http', method, path, form)
      assert.deepEqual(
        [refused.status, refused.body],
        [
          403,
          { message: `Call https://${NAME} instead: over plain http others can read keys and passwords` },
        ],
      )
      assert.equal(refused.headers.get('set-cookie'), null)
      const { status, text } = await ask('https', method, path, form)
      assert.equal(status, overHttps, text)
    }
    for (const path of ['/health/ready', '/c/none', '/.well-known/acme-challenge/none'])
      assert.notEqual((await ask('http', 'GET', path)).status, 403, path)
    assert.notEqual(
      (await ask('http', 'POST', '/u/none', {})).status,
      403,
      'a link to unsubscribe may be http',
    )
  })

  await t.test('a one-time link opened over plain http moves to https unused', async () => {
    const { body } = await service.call('POST', '/sendwright/v1/login-links')
    const path = new URL(body.url).pathname
    const open = (proto: string) =>
      fetch(service.url + path, {
        headers: { 'x-forwarded-for': '192.0.2.99', 'x-forwarded-proto': proto },
        redirect: 'manual',
      })
    const plain = await open('http')
    assert.equal(plain.status, 307)
    assert.equal(plain.headers.get('location'), `https://${NAME}${path}`)
    assert.equal(plain.headers.get('set-cookie'), null)
    const secure = await open('https')
    assert.equal(secure.status, 200)
    assert.match(secure.headers.get('set-cookie') ?? '', /; Secure/)
    assert.equal((await open('https')).status, 404, 'used up')
  })

  const secure = await ask(world, { tls: true, path: '/health/ready' })
  assert.match(secure.headers['strict-transport-security'] ?? '', /^max-age=\d{7}$/)
  assert.match(
    (await stateOf(world)).sentence,
    /^The certificate of mail\.own\.example is valid for 89 more days/,
  )

  clock.leap(61 * DAY_MS)
  const second = await eventually('the renewed one is served', async () => {
    await clock.advance(STEP_MS)
    const now = await trusted(world, NAME)
    return now.fingerprint256 !== first.fingerprint256 && now
  })
  assert.equal((await trusted(world, null)).fingerprint256, second.fingerprint256)
  assert.equal(acme.orders.length, 2)
  await service.restart()
  assert.equal((await trusted(world, NAME)).fingerprint256, second.fingerprint256, 'at once after a restart')
  assert.equal(acme.orders.length, 2)
})

test('a failed order is visible, is tried again, and never given up', async (t) => {
  const world = await createWorld(t, { before: (dns) => dns.remove(NAME) })
  const { acme, clock, dns, service } = world
  const failed = await eventually('the failure is reported', async () => {
    await clock.advance(STEP_MS)
    const check = await stateOf(world)
    return check.sentence.includes('The last order failed') && check
  })
  assert.equal(failed.state, 'failed')
  assert.match(failed.sentence, /DNS has no address of mail\.own\.example: publish an A record/)
  assert.deepEqual(acme.orders, [], 'the authority was not bothered')
  assert.equal((await ask(world, { path: '/overview' })).statusCode, 200)

  dns.set(NAME, 'A', ['192.0.2.7'])
  clock.leap(15 * 60_000)
  await untilServed(world)

  acme.fault = { kind: 'unavailable' }
  clock.leap(77 * DAY_MS)
  const late = await eventually('doctor warns', async () => {
    await clock.advance(STEP_MS)
    const check = await stateOf(world)
    return check.state === 'warning' && check.sentence.includes('failed') && check
  })
  assert.match(
    late.sentence,
    /valid for 1[23] more days and renewed by itself\. The last order failed: .*maintenance/,
  )
  const alert = await eventually('the alert', async () => {
    clock.leap(3_600_000)
    await clock.advance(STEP_MS)
    const { items } = (await service.call('GET', '/sendwright/v1/alerts')).body as {
      items: { name: string; triggered?: { advice: string }[] }[]
    }
    const text = JSON.stringify(items)
    return text.includes(`The certificate of ${NAME} (this service) ends at`) && text
  })
  assert.match(alert, /port 80 is open/)

  clock.leap(60 * DAY_MS)
  await eventually('it has ended', async () => {
    await clock.advance(STEP_MS)
    return (await stateOf(world)).state === 'failed'
  })
  acme.fault = null
  await untilServed(world, 3_600_000)
})

test("the operator's own files come first: nothing is ordered, and their promises hold", async (t) => {
  const folder = await temporaryFolder(t)
  const authority = createAuthority()
  const { cert, key } = authority.issue([NAME])
  await writeFile(join(folder, 'own.crt'), cert)
  await writeFile(join(folder, 'own.key'), key)
  const env = { SENDWRIGHT_TLS_CERT: join(folder, 'own.crt'), SENDWRIGHT_TLS_KEY: join(folder, 'own.key') }
  const { service, acme, clock } = await createWorld(t, { env })
  const world = { service, acme: { ...acme, root: authority.cert } }
  await trusted(world, NAME)
  assert.equal((await ask(world, { path: '/overview' })).statusCode, 308)
  const secure = await ask(world, { tls: true, path: '/health/ready' })
  assert.match(secure.headers['strict-transport-security'] ?? '', /^max-age=\d+$/)

  const next = authority.issue([NAME])
  await writeFile(join(folder, 'own.crt'), next.cert)
  await writeFile(join(folder, 'own.key'), next.key)
  await eventually('the new files are served', async () => {
    await clock.advance(STEP_MS)
    return next.cert.includes((await trusted(world, NAME)).toString().slice(30, 200))
  })
  await eventually('also to clients that name no host', async () => {
    await clock.advance(STEP_MS)
    return next.cert.includes((await trusted(world, null)).toString().slice(30, 200))
  })
  assert.deepEqual(acme.orders, [])
})

test('of several nodes one orders, and all serve what it got', async (t) => {
  const { acme, web, env } = await authorityFor(t, Date.now)
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const start = (more: Record<string, string> = {}) =>
    startTestService(t, {
      ...env,
      SENDWRIGHT_DATABASE_URL: database.url,
      SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789-abcdef',
      ...more,
    })
  // Any node answers the challenge, also one with other settings.
  const answering = await start({ SENDWRIGHT_ACME: 'no' })
  Object.assign(web, { address: answering.config.host, port: 8080 })
  const both = await Promise.all([start(), start()])
  for (const service of both)
    await eventually('it is served', () => trusted({ service, acme }, NAME).catch(() => null))
  assert.deepEqual(acme.orders, [NAME])
})
