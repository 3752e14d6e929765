import assert from 'node:assert/strict'
import { randomUUID, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, before, type TestContext, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import pino from 'pino'
import { type AcmeFault, type AcmeServer, createAcmeServer } from '../../../test/support/acme-server.ts'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { type ConfigError, readConfig } from '../../platform/config/config.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** Small, so that on a busy machine the advanced clock does not run ahead of real-time work. */
const STEP_MS = 100
/** For what waits for the next run of the job, once a minute. */
const LOOK_STEP_MS = 1_000
const TARGET = 'track.service.example'

interface World {
  clock: TestClock
  dns: DnsServer
  acme: AcmeServer
  service: TestService
  /** Everything that was logged. */
  log(): string
  /** A domain of the service whose tracking host `email.<name>` points to it. */
  domain(name: string): Promise<string>
  /** Where the authority looks for the answers to its challenges. */
  web: { address: string; port: number }
  /** Advances time until the host's state is `status`; resolves to K5's body. */
  reach(host: string, status: string, stepMs?: number): Promise<StatusBody>
}

interface StatusBody {
  status: string
  error: string | null
  certificate?: string | null
}

async function createWorld(
  t: Pick<TestContext, 'after'>,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<World> {
  const clock = createTestClock(Date.now())
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const web = { address: '', port: 0 }
  const acme = await createAcmeServer({ now: () => clock.now(), reach: () => web })
  t.after(() => acme.close())
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  const service = await startTestService(
    t as TestContext,
    {
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_TRACKING_CNAME_TARGET: TARGET,
      SENDWRIGHT_HTTPS_PORT: '0',
      SENDWRIGHT_ACME_DIRECTORY: acme.directory,
      SENDWRIGHT_ACME_EMAIL: 'owner@service.example',
      ...env,
    },
    { clock, database, random: () => 0.5, log: pino({ level: 'trace' }, stream) },
  )
  Object.assign(web, { address: service.config.host, port: service.service.port })
  return {
    clock,
    dns,
    acme,
    service,
    web,
    log: () => text,
    async domain(name) {
      const { status } = await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
      assert.equal(status, 200)
      dns.set(`email.${name}`, 'CNAME', [TARGET])
      return `email.${name}`
    },
    reach: (host, status, stepMs = STEP_MS) =>
      eventually(`${host} becomes ${status}`, async () => {
        await clock.advance(stepMs)
        const { body } = await service.call('GET', `/v2/x509/${host}/status`)
        return body.status === status && (body as StatusBody)
      }),
  }
}

let world: World
const cleanUps: (() => unknown)[] = []
before(async () => {
  world = await createWorld({ after: (run) => void cleanUps.unshift(run as () => unknown) })
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
})

const post = (host: string, { service } = world) => service.call('POST', `/v2/x509/${host}`)
const put = (host: string, { service } = world) => service.call('PUT', `/v2/x509/${host}`)
const status = (host: string, { service } = world) => service.call('GET', `/v2/x509/${host}/status`)

/** The certificate that a client requesting `name` gets; verified against the authority's root if `trusting`. */
async function handshake(
  name: string | null,
  { service, acme }: World = world,
  options: { trusting?: boolean; maxVersion?: 'TLSv1.1' | 'TLSv1.2'; ciphers?: string } = {},
): Promise<X509Certificate> {
  const { trusting = false, ...rest } = options
  const socket: TLSSocket = connect({
    host: service.config.host,
    port: service.service.httpsPort as number,
    ca: acme.root,
    rejectUnauthorized: trusting,
    ...(name !== null && { servername: name }),
    ...rest,
  })
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerX509Certificate() as X509Certificate
  socket.destroy()
  return certificate
}

/** GET over TLS as a browser would: name, chain and dates are checked. */
async function fetchTls(host: string, path: string, { service, acme }: World = world) {
  const outgoing = request({
    host: service.config.host,
    port: service.service.httpsPort,
    path,
    servername: host,
    headers: { host },
    ca: acme.root,
    agent: false,
  })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response
}

/** A new host with an active certificate. */
async function activeHost(name: string, w: World = world): Promise<string> {
  const host = await w.domain(name)
  assert.equal((await post(host, w)).status, 202)
  await w.reach(host, 'active')
  return host
}

async function issuedAndRenewed(w: World): Promise<void> {
  const host = await w.domain('life.example')
  const started = await post(host, w)
  assert.equal(started.status, 202)
  assert.deepEqual(started.body, {
    message: 'Initiated x509 key pair generation',
    location: `/v2/x509/${host}/status`,
  })
  const processing = await status(host, w)
  assert.deepEqual(processing.body, { status: 'processing', error: null })

  const active = await w.reach(host, 'active')
  assert.equal(active.error, null)
  assert.equal(active.certificate, w.acme.issued.at(-1))
  assert.equal(active.certificate?.match(/BEGIN CERTIFICATE/g)?.length, 2)
  assert.deepEqual(w.acme.contacts, [['mailto:owner@service.example']])

  const first = await handshake(host, w, { trusting: true })
  assert.equal(first.checkHost(host), host)
  assert.equal(first.fingerprint256, new X509Certificate(active.certificate as string).fingerprint256)
  const answer = await fetchTls(host, '/health/live', w)
  assert.equal(answer.statusCode, 200)

  w.clock.leap(59 * DAY_MS)
  await w.clock.advance(MINUTE_MS)
  assert.equal(w.acme.orders.length, 1, 'nothing is renewed more than 30 days before the end')
  w.clock.leap(2 * DAY_MS)
  await eventually('the certificate is renewed', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    const { body } = await status(host, w)
    assert.equal(body.status, 'active', 'a renewal takes nothing away')
    return body.certificate !== active.certificate
  })
  const second = await handshake(host, w, { trusting: true })
  assert.notEqual(second.fingerprint256, first.fingerprint256)
  assert.equal(second.publicKey.equals(first.publicKey), false, 'with a key of its own')
  assert.equal(w.acme.contacts.length, 1, 'the account is made once')
}

test('a certificate is ordered, served by its name, and renewed without a restart', async (t) => {
  await issuedAndRenewed(await createWorld(t))
})

test('the same on PostgreSQL', async (t) => {
  await issuedAndRenewed(await createWorld(t, 'postgres'))
})

test('K5: a host that was never requested, and one that is not a tracking host', async () => {
  const host = await world.domain('never.example')
  const never = await status(host)
  assert.equal(never.status, 404)
  assert.deepEqual(never.body, {
    Description: `Please initiate x509 key pair generation at POST /v2/x509/${host}`,
  })
  for (const other of ['links.never.example', 'email.nowhere.example', 'never.example', 'x', 'email.'])
    for (const call of [status, post, put]) {
      const answer = await call(other)
      assert.equal(answer.status, 404, other)
      assert.deepEqual(answer.body, { Description: 'x509 cert not found' })
    }
})

test('letter case of the host does not matter, and a key is required', async () => {
  const host = await activeHost('case.example')
  assert.equal((await status(host.toUpperCase())).body.status, 'active')
  const nobody = await world.service.call('GET', `/v2/x509/${host}/status`, { key: null })
  assert.equal(nobody.status, 401)
})

test('K6 without the CNAME record, with a wrong one, and without an answer from DNS', async () => {
  const host = await world.domain('astray.example')
  const ordered = world.acme.orders.length
  const spoil: (() => void)[] = [
    () => world.dns.remove(host),
    () => world.dns.set(host, 'CNAME', ['elsewhere.example']),
    () => world.dns.misbehave(host, 'servfail'),
  ]
  for (const change of spoil) {
    change()
    const answer = await post(host)
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.body, { Reason: 'invalid CNAME record' })
  }
  assert.equal(world.acme.orders.length, ordered, 'the authority was not bothered')
  assert.equal((await status(host)).status, 404)
})

test('K6 while the order runs, and when there is a certificate', async () => {
  const host = await world.domain('twice.example')
  assert.equal((await post(host)).status, 202)
  const refusal = { Description: `x509 key pair generation has already been initiated for ${host}` }
  const again = await post(host)
  assert.deepEqual([again.status, again.body], [409, refusal])
  const early = await put(host)
  assert.equal(early.status, 429)
  assert.deepEqual(early.body, {
    Description: `x509 key pair generation job is already in progress for ${host}`,
  })
  await world.reach(host, 'active')
  const late = await post(host)
  assert.deepEqual([late.status, late.body], [409, refusal])
})

test('of two concurrent requests one makes the order', async () => {
  const host = await world.domain('race.example')
  const answers = await Promise.all([post(host), post(host), post(host)])
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [202, 409, 409])
  await world.reach(host, 'active')
  assert.equal(world.acme.orders.filter((ordered) => ordered === host).length, 1)
})

test('K7 without a certificate, with a valid one, and after it has expired', async (t) => {
  const w = await createWorld(t)
  const bare = await w.domain('bare.example')
  const none = await put(bare, w)
  assert.deepEqual([none.status, none.body], [404, { Description: 'x509 cert not found' }])

  const host = await activeHost('old.example', w)
  const end = new Date(new X509Certificate(w.acme.issued.at(-1) as string).validTo)
  const valid = await put(host, w)
  assert.equal(valid.status, 409)
  assert.deepEqual(valid.body, {
    Description: `x509 certificate is still valid until ${end.toISOString().slice(0, 10)} ${end.toISOString().slice(11, 19)} +0000 UTC`,
  })

  w.acme.fault = { kind: 'unavailable' }
  w.clock.leap(91 * DAY_MS)
  const expired = await eventually('the renewal has failed', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    const { body } = await status(host, w)
    return body.error !== null && (body as StatusBody)
  })
  assert.deepEqual([expired.status, expired.certificate], ['expired', w.acme.issued.at(-1)])
  const fallback = await handshake(host, w)
  assert.equal(fallback.checkHost('mail.test.example'), 'mail.test.example')

  w.dns.set(host, 'CNAME', ['elsewhere.example'])
  assert.deepEqual((await put(host, w)).body, { Reason: 'invalid CNAME record' })
  w.dns.set(host, 'CNAME', [TARGET])
  w.acme.fault = null
  const renewed = await put(host, w)
  assert.equal(renewed.status, 202)
  assert.equal(renewed.body.location, `/v2/x509/${host}/status`)
  await w.reach(host, 'active')
})

const FAULTS: [name: string, fault: AcmeFault | 'led astray', error: RegExp][] = [
  [
    'the authority finds another answer',
    'led astray',
    /^The certificate authority could not validate \S+: Invalid response from http:/,
  ],
  [
    'the authority hangs up',
    { kind: 'hang-up' },
    /^The certificate authority cannot be reached \([A-Z_]+\)\.$/,
  ],
  [
    'the authority is down',
    { kind: 'unavailable' },
    /^The certificate authority refused: Down for maintenance$/,
  ],
  [
    'the authority answers with something else',
    { kind: 'garbage' },
    /^The certificate authority refused: status 500$/,
  ],
  [
    'the authority limits orders',
    { kind: 'rate-limited', retryAfter: '7200' },
    /^The certificate authority refused: too many new orders recently$/,
  ],
  ['the certificate is for another key', { kind: 'other-key' }, /gave a certificate that is of no use here/],
  ['the token is no base64url', { kind: 'odd-token' }, /offers no usable http-01 challenge/],
  [
    'the authority never looks',
    { kind: 'silent' },
    /^The certificate authority was not done after 5 minutes\.$/,
  ],
]

test('a failed order reports why, and may be repeated at once', async (t) => {
  const w = await createWorld(t)
  const web = { ...w.web }
  for (const [at, [name, fault, error]] of FAULTS.entries()) {
    await t.test(name, async () => {
      const host = await w.domain(`fault-${at}.example`)
      w.acme.tokens.length = 0
      if (fault === 'led astray') Object.assign(w.web, { port: 9 })
      else w.acme.fault = fault
      await post(host, w)
      if (w.acme.fault?.kind === 'silent') {
        await eventually('the authority was notified', async () => w.acme.tokens.length > 0)
        w.clock.leap(6 * MINUTE_MS)
      }
      const body = await w.reach(host, 'error')
      assert.match(body.error as string, error)
      assert.equal(body.certificate, null)
      assert.equal((await put(host, w)).status, 404, 'there is nothing to renew')
      w.acme.fault = null
      Object.assign(w.web, web)
      assert.equal((await post(host, w)).status, 202)
      assert.deepEqual((await w.reach(host, 'active')).error, null)
    })
  }
})

test('at most four orders per host and hour, whoever requests them', async (t) => {
  const w = await createWorld(t)
  const host = await w.domain('eager.example')
  w.acme.fault = { kind: 'rate-limited', retryAfter: '60' }
  for (let order = 1; order <= 4; order++) {
    assert.equal((await post(host, w)).status, 202)
    await w.reach(host, 'error')
  }
  assert.equal((await post(host, w)).status, 202)
  await w.clock.advance(10 * MINUTE_MS)
  assert.equal((await status(host, w)).body.status, 'processing', 'the fifth waits')
  assert.equal(w.acme.orders.length, 4)
  w.acme.fault = null
  w.clock.leap(60 * MINUTE_MS)
  await w.reach(host, 'active', LOOK_STEP_MS)
})

test("the authority's Retry-After is kept", async (t) => {
  const w = await createWorld(t)
  const host = await w.domain('patient.example')
  w.acme.fault = { kind: 'rate-limited', retryAfter: String(5 * 3600) }
  await post(host, w)
  await w.reach(host, 'error')
  w.acme.fault = null
  w.clock.leap(4.9 * 3_600_000)
  await w.clock.advance(MINUTE_MS)
  assert.equal(w.acme.orders.length, 1)
  w.clock.leap(10 * MINUTE_MS)
  await w.reach(host, 'active', LOOK_STEP_MS)
  assert.equal(w.acme.orders.length, 2, 'without being asked')
})

test('a failed renewal leaves the certificate active and reports why', async (t) => {
  const w = await createWorld(t)
  const host = await activeHost('shaky.example', w)
  w.acme.fault = { kind: 'rate-limited', retryAfter: '60' }
  w.clock.leap(61 * DAY_MS)
  await eventually('the renewal has failed', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    return (await status(host, w)).body.error
  })
  assert.equal((await status(host, w)).body.status, 'active')
  assert.equal((await fetchTls(host, '/health/live', w)).statusCode, 200)
  const { body } = await w.service.call('GET', '/sendwright/v1/system/checks')
  const check = (body.items as { name: string; state: string; sentence: string }[]).find(
    ({ name }) => name === 'tracking-certificates',
  )
  assert.equal(check?.state, 'warning')
  assert.match(check?.sentence ?? '', /email\.shaky\.example \(active, ends .*too many new orders recently/)
  w.acme.fault = null
  w.clock.leap(20 * MINUTE_MS)
  await eventually('it is renewed', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    return (await status(host, w)).body.error === null
  })
})

/** The click link of a message that is sent and delivered now. */
async function deliveredLink(name: string, { service, clock }: World): Promise<string> {
  const to = `${randomUUID()}@example.org`
  const form = { from: `a@${name}`, to, subject: 's', html: '<a href="https://shop.example/">shop</a>' }
  const answer = await service.call('POST', `/v3/${name}/messages`, {
    form: { ...form, 'o:tracking-clicks': 'yes' },
  })
  assert.equal(answer.status, 200, answer.text)
  const item = await eventually('the mail in the inbox', async () => {
    await clock.advance(STEP_MS)
    const { body } = await service.call('GET', `/sendwright/v1/inbox?to=${to}`)
    return (body.items as { id: string }[])[0]
  })
  const { text } = await service.call('GET', `/sendwright/v1/inbox/${item.id}/raw`)
  const link = /href=(?:3D)?"(https?:\/\/[^/"]+)\/c\//.exec(text.replaceAll('=\r\n', ''))?.[1]
  assert.ok(link, text)
  return link
}

test('while the authority fails mail is sent with plain links, and restarts do not query it more often', async (t) => {
  const w = await createWorld(t)
  const name = 'patched.example'
  const host = await w.domain(name)
  w.acme.fault = { kind: 'rate-limited', retryAfter: '60' }
  await post(host, w)
  await w.reach(host, 'error')
  assert.match(await deliveredLink(name, w), /^http:/)
  const asked = w.acme.orders.length
  for (let restart = 1; restart <= 5; restart++) {
    await w.service.restart()
    await w.clock.advance(MINUTE_MS)
  }
  assert.equal(w.acme.orders.length, asked, 'a start orders nothing that waits')
  // A day of failures. The waits double from ten minutes: at most eight orders fit in.
  // The steps of a busy machine count as well.
  for (const end = w.clock.now() + 24 * 60 * MINUTE_MS; w.clock.now() < end; ) {
    w.clock.leap(60 * MINUTE_MS)
    const leaptTo = w.clock.now()
    await eventually('a run, and no order in progress', async () => {
      const { body } = await w.service.call('GET', '/sendwright/v1/system')
      const jobs = body.jobs as { name: string; running: boolean; last_started_at: string }[]
      const job = jobs.find((other) => other.name === 'certificates')
      // Requests of an order in progress would time out by this clock, and be repeated.
      if (job?.running !== false || (await status(host, w)).body.status !== 'error') return false
      if (Date.parse(job.last_started_at) >= leaptTo) return true
      await w.clock.advance(LOOK_STEP_MS)
      return false
    })
  }
  assert.ok(w.acme.orders.length > asked)
  // Requests that a busy machine repeats are of the same attempt.
  const attempts = w.log().match(/"no certificate"/g)?.length ?? 0
  assert.ok(attempts <= 8, `${attempts} attempts`)
  assert.match((await status(host, w)).body.error, /too many new orders/)
  assert.match(await deliveredLink(name, w), /^http:/)
})

test('a certificate that has expired by our clock is not used, and is not ordered in a loop', async (t) => {
  const w = await createWorld(t)
  const name = 'ahead.example'
  const host = await w.domain(name)
  // As our clock sees it when it is far ahead of the authority's.
  w.acme.lifetimeMs = -DAY_MS
  await post(host, w)
  const { error } = await w.reach(host, 'error')
  assert.match(error as string, /certificate/)
  await w.clock.advance(30 * LOOK_STEP_MS)
  assert.equal(w.acme.orders.length, 1)
  assert.match(await deliveredLink(name, w), /^http:/)
  w.acme.lifetimeMs = 90 * DAY_MS
  w.clock.leap(20 * MINUTE_MS)
  await w.reach(host, 'active', LOOK_STEP_MS)
})

test('a used nonce is replaced, a forgotten account registered again', async () => {
  world.acme.badNonces = 2
  await activeHost('nonce.example')
  world.acme.forgetAccounts()
  const host = await world.domain('forgotten.example')
  await post(host)
  assert.match((await world.reach(host, 'error')).error as string, /No such account/)
  await post(host)
  await world.reach(host, 'active')
})

test('the answer to a challenge is there for every Host, while the order runs and no longer', async (t) => {
  const w = await createWorld(t)
  const seen: number[] = []
  const web = { ...w.web }
  w.acme.fault = { kind: 'silent' }
  const host = await w.domain('proof.example')
  await post(host, w)
  const token = await eventually('the authority was notified', async () => w.acme.tokens[0])
  const path = `/.well-known/acme-challenge/${token}`
  const answer = await w.service.call('GET', path, { key: null })
  seen.push(answer.status)
  assert.equal(answer.text.split('.')[0], token)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
  for (const other of ['x', 'a'.repeat(200), '%2e%2e', `${token}x`])
    seen.push((await w.service.call('GET', `/.well-known/acme-challenge/${other}`, { key: null })).status)
  w.clock.leap(6 * MINUTE_MS)
  await w.reach(host, 'error')
  seen.push((await w.service.call('GET', path, { key: null })).status)
  assert.deepEqual(seen, [200, 404, 404, 404, 404, 404])
  assert.deepEqual(w.web, web)
})

test('an order interrupted by a stop is repeated after the start', async (t) => {
  const w = await createWorld(t)
  w.acme.fault = { kind: 'silent' }
  const host = await w.domain('stopped.example')
  await post(host, w)
  await eventually('the order is in progress', async () => w.acme.tokens.length === 1)
  assert.equal((await status(host, w)).body.status, 'processing')
  w.acme.fault = null // the order in progress has already been skipped
  await w.service.restart()
  await w.reach(host, 'active')
  assert.equal(w.acme.tokens.length, 2)
})

test('names without a certificate, and clients without SNI, get the identity of the service', async () => {
  for (const name of ['other.example', 'localhost', `${'a'.repeat(60)}.example`, null])
    assert.equal((await handshake(name)).checkHost('mail.test.example'), 'mail.test.example')
})

test('only TLS 1.2 and later, with forward secrecy and authenticated encryption', async () => {
  const host = await activeHost('modern.example')
  for (const name of [host, 'other.example']) {
    await assert.rejects(handshake(name, world, { maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }))
    for (const ciphers of ['ECDHE-ECDSA-AES128-SHA256', 'AES128-GCM-SHA256'])
      await assert.rejects(handshake(name, world, { maxVersion: 'TLSv1.2', ciphers }))
    await handshake(name, world, { maxVersion: 'TLSv1.2' })
  }
})

test('https tracking hosts send HSTS, no longer than their certificate is valid; others do not', async (t) => {
  const w = await createWorld(t)
  w.acme.lifetimeMs = 10 * DAY_MS
  const host = await activeHost('strict.example', w)
  const header = async (name: string, path = '/health/live') =>
    (await fetchTls(name, path, w).catch(() => null))?.headers['strict-transport-security']
  for (const path of ['/health/live', '/o/forged', '/c/forged', '/u/forged']) {
    const seconds = Number(/^max-age=(\d+)$/.exec((await header(host, path)) ?? '')?.[1])
    assert.ok(seconds > 9 * 86_400 && seconds <= 10 * 86_400, `${path}: ${seconds}`)
  }
  assert.equal(await header('other.example'), undefined)
  const plain = await w.service.call('GET', '/health/live', { headers: { host } })
  assert.equal(plain.headers.get('strict-transport-security'), null)
})

test("a tracking host that became the service's own name has the service's certificate", async (t) => {
  const data = { SENDWRIGHT_DATA: await temporaryFolder(t) }
  await t.test('before', async (before) => {
    const host = await activeHost('own.example', await createWorld(before, 'sqlite', data))
    assert.equal(host, 'email.own.example')
  })
  const w = await createWorld(t, 'sqlite', { ...data, SENDWRIGHT_PUBLIC_URL: 'https://email.own.example' })
  w.dns.set('email.own.example', 'CNAME', [TARGET])
  assert.equal((await handshake('email.own.example', w)).checkHost('email.own.example'), undefined)
  w.clock.leap(92 * DAY_MS)
  const ordered = await put('email.own.example', w)
  assert.deepEqual([ordered.status, ordered.body], [400, { Reason: 'invalid CNAME record' }])
  assert.deepEqual(w.acme.issued, [])
})

test('deleting a domain deletes its certificate', async () => {
  const host = await activeHost('gone.example')
  assert.equal((await world.service.call('DELETE', '/v3/domains/gone.example')).status, 200)
  await eventually('the certificate is gone', async () => {
    const certificate = await handshake(host)
    return certificate.checkHost(host) === undefined
  })
  await eventually('the name is free again', async () => {
    await world.clock.advance(1000)
    const form = { name: 'gone.example', dkim_key_size: '1024' }
    return (await world.service.call('POST', '/v4/domains', { form })).status === 200
  })
  assert.match((await status(host)).body.Description, /^Please initiate/)
})

test('a former tracking host keeps its certificate, since links in sent mail point there', async (t) => {
  const w = await createWorld(t)
  const host = await activeHost('moved.example', w)
  const form = { web_prefix: 'links' }
  assert.equal((await w.service.call('PUT', '/v4/domains/moved.example', { form })).status, 200)
  assert.equal((await status('links.moved.example', w)).status, 404)
  assert.equal((await status(host, w)).body.status, 'active')
  w.clock.leap(61 * DAY_MS)
  await eventually('it is renewed', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    return w.acme.issued.length === 2
  })
  // Nothing points there any more: it is dropped when it expires.
  w.dns.set(host, 'CNAME', ['elsewhere.example'])
  w.clock.leap(92 * DAY_MS)
  await eventually('it is gone', async () => {
    await w.clock.advance(LOOK_STEP_MS)
    return (await status(host, w)).status === 404
  })
})

test('private keys are in no response and no log line, and not readable in the data folder', async () => {
  const host = await activeHost('secret.example')
  const answers = await Promise.all([
    status(host),
    post(host),
    put(host),
    world.service.call('GET', '/v4/domains/secret.example'),
    world.service.call('GET', '/openapi.json'),
  ])
  for (const { text } of answers) assert.doesNotMatch(text, /PRIVATE KEY/)
  assert.match(world.log(), /certificate issued/)
  assert.doesNotMatch(world.log(), /PRIVATE KEY/)
  const folder = world.service.config.dataFolder
  for (const name of await readdir(folder, { recursive: true })) {
    if (name.startsWith('tls')) continue // the identity of the service is a pair of files
    const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0))
    assert.equal(bytes.includes('PRIVATE KEY'), false, name)
  }
})

test('without an authority K6 reports it, and nothing is queried', async (t) => {
  const w = await createWorld(t, 'sqlite', { SENDWRIGHT_ACME_DIRECTORY: '', SENDWRIGHT_HTTPS_PORT: '' })
  const host = await w.domain('alone.example')
  const answer = await post(host, w)
  assert.equal(answer.status, 400)
  assert.match(answer.body.Reason, /SENDWRIGHT_ACME_DIRECTORY are not set$/)
  assert.equal(w.service.service.httpsPort, null)
  assert.deepEqual(w.acme.orders, [])
})

test('the configuration names what is wrong with an authority', () => {
  const faults = (env: Record<string, string>) => {
    try {
      return void readConfig(env)
    } catch (error) {
      return (error as ConfigError).faults.join('\n')
    }
  }
  const directory = 'https://acme.example/directory'
  assert.match(faults({ SENDWRIGHT_ACME_DIRECTORY: directory }) ?? '', /needs SENDWRIGHT_HTTPS_PORT/)
  const https = { SENDWRIGHT_HTTPS_PORT: '443' }
  assert.equal(faults({ ...https, SENDWRIGHT_ACME_DIRECTORY: directory }), undefined)
  for (const url of ['acme.example', 'http://acme.example/', 'http://10.0.0.1/', 'ftp://x/'])
    assert.match(faults({ ...https, SENDWRIGHT_ACME_DIRECTORY: url }) ?? '', /not the https address/)
  assert.match(faults({ SENDWRIGHT_ACME_EMAIL: 'nobody' }) ?? '', /not a mail address/)
})
