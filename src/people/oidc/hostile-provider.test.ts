/** Signing in with a provider whose answers are wrong, forged, huge or missing. */
import assert from 'node:assert/strict'
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createAuthenticator } from '../../../test/support/authenticator.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { ownAddress, startTestService, type TestService } from '../../../test/support/service.ts'
import { as, cookieOf, post } from '../../../test/support/users.ts'

const CLIENT_ID = 'sendwright'
const KEYS = generateKeyPairSync('rsa', { modulusLength: 2048 })
const STRANGE_KEYS = generateKeyPairSync('rsa', { modulusLength: 2048 })

type Answer = (request: IncomingMessage, response: ServerResponse) => void

interface Fake {
  issuer: string
  /** By path; the metadata and keys are right unless replaced. */
  answers: Map<string, Answer>
  requests: string[]
  close(): Promise<unknown>
}

const json =
  (value: unknown): Answer =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))

async function createFake(t: TestContext): Promise<Fake> {
  const answers = new Map<string, Answer>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    const answer = answers.get(path)
    if (answer) answer(request, response)
    else response.writeHead(404).end()
  })
  const host = ownAddress()
  server.listen(0, host)
  await once(server, 'listening')
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`
  answers.set('/.well-known/openid-configuration', json(metadata(issuer)))
  answers.set(
    '/keys',
    json({ keys: [{ ...KEYS.publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256' }] }),
  )
  const close = async () => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.after(close)
  return { issuer, answers, requests, close }
}

const metadata = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
  response_types_supported: ['code'],
  id_token_signing_alg_values_supported: ['RS256'],
})

async function start(t: TestContext, env: Record<string, string> = {}) {
  const fake = await createFake(t)
  const clock = createTestClock(Date.now())
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_OIDC_ISSUER: fake.issuer,
      SENDWRIGHT_OIDC_CLIENT_ID: CLIENT_ID,
      SENDWRIGHT_OIDC_DOMAINS: '*',
      SENDWRIGHT_OIDC_NEW_USER_ROLE: 'basic',
      ...env,
    },
    { clock },
  )
  return { fake, service, clock }
}

const begin = (service: TestService, json = {}) =>
  service.call('POST', '/sendwright/v1/oidc/sign-ins', { key: null, json })

/** Begins a sign-in, has the provider return what `token` makes of the right claims, and comes back. */
async function signIn(
  { fake, service, clock }: Awaited<ReturnType<typeof start>>,
  token: (claims: Record<string, unknown>) => string,
  proof = false,
) {
  const begun = await begin(service, { proof })
  assert.equal(begun.status, 200, begun.text)
  const asked = new URL(begun.body.url).searchParams
  const seconds = Math.floor(clock.now() / 1000)
  const claims = {
    ...{ iss: fake.issuer, sub: 'ann', aud: CLIENT_ID, nonce: asked.get('nonce') },
    ...{ iat: seconds, exp: seconds + 60, email: 'ann@example.org', email_verified: true },
  }
  const tokens = { access_token: 'a', token_type: 'bearer', id_token: token(claims) }
  fake.answers.set('/token', json(tokens))
  const path = `/sendwright/v1/oidc/callback?code=c&state=${asked.get('state')}`
  return service.call('GET', path, { key: null, headers: { cookie: cookieOf(begun) } })
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function signed(claims: object, key: KeyObject = KEYS.privateKey): string {
  const text = `${part({ alg: 'RS256', kid: 'k' })}.${part(claims)}`
  return `${text}.${createSign('sha256').update(text).sign(key, 'base64url')}`
}

test('only a token of this provider, for this service and this sign-in is believed', async (t) => {
  const rig = await start(t)
  const cases: [what: string, token: (claims: Record<string, unknown>) => string][] = [
    ['another client', (claims) => signed({ ...claims, aud: 'other' })],
    ['another issuer', (claims) => signed({ ...claims, iss: 'https://other.example' })],
    ['another nonce', (claims) => signed({ ...claims, nonce: 'other' })],
    ['no nonce', ({ nonce: _, ...claims }) => signed(claims)],
    ['expired', (claims) => signed({ ...claims, iat: 1, exp: 100 })],
    ['a strange key', (claims) => signed(claims, STRANGE_KEYS.privateKey)],
    ['no signature', (claims) => `${part({ alg: 'none' })}.${part(claims)}.`],
    ['no subject', (claims) => signed({ ...claims, sub: '' })],
    ['a long subject', (claims) => signed({ ...claims, sub: 'x'.repeat(300) })],
    ['no JWT', () => 'x'],
  ]
  for (const [what, token] of cases) {
    const answer = await signIn(rig, token)
    assert.equal(answer.status, 403, what)
    assert.match(answer.text, /was not valid, or had been used before/, what)
    assert.equal(answer.headers.get('set-cookie'), null, what)
  }
  assert.equal((await rig.service.call('GET', '/v5/users')).body.total, 0)
  const answer = await signIn(rig, signed)
  assert.equal(answer.status, 302, answer.text)
  assert.equal(answer.headers.get('location'), `${rig.service.config.publicUrl}/`)
  assert.equal((await rig.service.call('GET', '/v5/users')).body.total, 1)
})

test('a provider that is down, huge or leads elsewhere is told to the person, and asked seldom', async (t) => {
  const rig = await start(t)
  const { fake, service, clock } = rig
  const path = '/.well-known/openid-configuration'
  const cases: [what: string, answer: Answer][] = [
    ['status', (_request, response) => void response.writeHead(500).end()],
    ['redirect', (_request, response) => void response.writeHead(302, { location: fake.issuer }).end()],
    ['huge', json({ ...metadata(fake.issuer), more: 'x'.repeat(2_000_000) })],
    ['another issuer', json({ ...metadata(fake.issuer), issuer: 'https://other.example' })],
    ['a script', json({ ...metadata(fake.issuer), authorization_endpoint: 'javascript:alert(1)' })],
    ['no JSON', (_request, response) => void response.end('<html>')],
    ['gone', (request) => void request.socket.destroy()],
  ]
  for (const [what, wrong] of cases) {
    fake.answers.set(path, wrong)
    const before = fake.requests.length
    for (let time = 0; time < 3; time++) {
      const answer = await begin(service)
      assert.equal(answer.status, 503, what)
      assert.match(answer.body.message, /does not work at the moment/, what)
    }
    // A second one where the connection was lost.
    assert.ok(fake.requests.length - before <= 2, `${what}: ${fake.requests.length - before} requests`)
    await clock.advance(10_000)
  }
  assert.equal((await service.call('GET', '/health/ready', { key: null })).status, 200)
  fake.answers.set(path, json(metadata(fake.issuer)))
  assert.equal((await begin(service)).status, 200, 'it is asked again')
})

test('without a provider there is no such sign-in', async (t) => {
  const service = await startTestService(t)
  const methods = await service.call('GET', '/sendwright/v1/sign-in-methods', { key: null })
  assert.deepEqual(methods.body, { password: true, oidc: null, passkey: null })
  assert.equal((await begin(service)).status, 404)
})

test('a session at the provider is no proof: the provider must have asked again, and say so', async (t) => {
  const rig = await start(t, { SENDWRIGHT_PUBLIC_URL: 'https://mail.example.com' })
  const { service, clock } = rig
  const authTime = (secondsAgo: number) => (claims: Record<string, unknown>) =>
    signed({ ...claims, auth_time: Math.floor(clock.now() / 1000) - secondsAgo })
  /** Whether a session of the answer may make a sensitive change. */
  const isProved = async (answer: Awaited<ReturnType<typeof signIn>>) => {
    const cookie = cookieOf(answer)
    return (await as(service, cookie, 'POST', '/sendwright/v1/me/passkeys/options', {})).status === 200
  }
  const asked = async (json: object) => {
    const { searchParams } = new URL((await begin(service, json)).body.url)
    return [searchParams.get('prompt'), searchParams.get('max_age')]
  }
  assert.deepEqual(await asked({}), [null, null])
  assert.deepEqual(await asked({ proof: true }), ['login', '0'])
  assert.equal(await isProved(await signIn(rig, signed)), false, 'the provider does not say when')
  assert.equal(await isProved(await signIn(rig, authTime(60))), false, 'from a session of the provider')
  assert.equal(await isProved(await signIn(rig, authTime(0))), true)
  for (const token of [signed, authTime(60)]) {
    const refused = await signIn(rig, token, true)
    assert.deepEqual([refused.status, refused.headers.get('set-cookie')], [403, null])
    assert.match(refused.text, /has not asked again who you are/)
  }
  assert.equal(await isProved(await signIn(rig, authTime(0), true)), true)
})

test('a passkey of a user of the provider ends when the provider has not been asked for two weeks', async (t) => {
  const origin = 'https://mail.example.com'
  const rig = await start(t, { SENDWRIGHT_PUBLIC_URL: origin })
  const { service, clock } = rig
  const now = () => Math.floor(clock.now() / 1000)
  const proved = await signIn(rig, (claims) => signed({ ...claims, auth_time: now() }))
  const cookie = cookieOf(proved)
  const key = createAuthenticator(origin)
  const me = (method: string, path: string, json: object = {}) =>
    as(service, cookie, method, `/sendwright/v1/me/${path}`, json)
  const passkey = key.create((await me('POST', 'passkeys/options')).body)
  const added = await me('POST', 'passkeys', { name: 'Laptop', passkey })
  assert.deepEqual([added.status, added.body.recovery_codes], [200, null], added.text)
  const enter = async () => {
    const options = (await post(service, 'passkeys/sign-ins', {})).body
    return (await post(service, 'session', { passkey: key.sign(options) })).status
  }
  assert.equal(await enter(), 200)
  clock.leap(10 * 60_000 + 1)
  const proof = await me('POST', 'proof', { current_password: 'correct horse battery' })
  assert.deepEqual([proof.status, proof.body.proof_required], [400, undefined])
  const options = (await me('POST', 'proof/options')).body.passkey
  assert.equal((await me('POST', 'proof', { passkey: key.sign(options) })).status, 200)
  clock.leap(14 * 24 * 60 * 60_000)
  assert.equal(await enter(), 401)
  assert.equal((await signIn(rig, signed)).status, 302)
  assert.equal(await enter(), 200)
})
