import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type Authenticator, createAuthenticator } from '../../../test/support/authenticator.ts'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { type Answer, eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { activeUser, as, cookieOf, mailedToken, PASSWORD, post, signIn } from '../../../test/support/users.ts'

const ME = '/sendwright/v1/me'
const ORIGIN = 'https://mail.example.com'
const REFUSED = { message: 'The passkey was not accepted' }
const PROOF_NEEDED = { message: 'Missing mandatory parameter: current_password', proof_required: true }

let clock: TestClock
let service: TestService
before(async (t) => {
  clock = createTestClock(Date.now())
  const env = { SENDWRIGHT_PUBLIC_URL: ORIGIN }
  service = await startTestService(t as TestContext, env, { clock, isExempt: () => true })
})

const is = (answer: Answer, status: number, body: unknown) => {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.body, body)
}

/** A user with a passkey. */
async function owner(email: string, on = service) {
  const { id, cookie } = await activeUser(on, email)
  const key = createAuthenticator(ORIGIN)
  const added = await add(cookie, key, 'Phone', on)
  assert.equal(added.status, 200, added.text)
  const { passkey, recovery_codes: codes } = added.body
  return { id, cookie, key, passkeyId: passkey.id as string, codes: codes as string[], email }
}

async function add(cookie: string, key: Authenticator, name = 'Phone', on = service) {
  const { body } = await as(on, cookie, 'POST', `${ME}/passkeys/options`)
  return as(on, cookie, 'POST', `${ME}/passkeys`, { name, passkey: key.create(body) })
}

const options = async (on = service) => (await post(on, 'passkeys/sign-ins', {})).body
const enter = async (key: Authenticator, on = service) =>
  post(on, 'session', { passkey: key.sign(await options(on)) })
const isSignedIn = async (cookie: string) => (await as(service, cookie, 'GET', '/v5/users/me')).status === 200

test('a passkey signs in alone, once for each challenge, and the session is of its user', async () => {
  const { id, key, email } = await owner('alone@example.org')
  const given = await options()
  assert.deepEqual(
    [given.rpId, given.userVerification, given.allowCredentials],
    ['mail.example.com', 'required', []],
  )
  const passkey = key.sign(given)
  const both = await Promise.all([
    post(service, 'session', { passkey }),
    post(service, 'session', { passkey }),
  ])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401], 'once, also at the same time')
  is(await post(service, 'session', { passkey }), 401, REFUSED)
  const signedIn = await enter(key)
  is(signedIn, 200, { message: 'Signed in' })
  const { body } = await as(service, cookieOf(signedIn), 'GET', '/sendwright/v1/session')
  assert.deepEqual([body.user_id, body.user.email], [id, email])
  const { items } = (await as(service, cookieOf(signedIn), 'GET', `${ME}/passkeys`)).body
  assert.equal(typeof items[0].last_used_at, 'string')
})

test('a response for another site, purpose, user or time is refused, and so is a copy of the authenticator', async () => {
  const { cookie, key } = await owner('strict@example.org')
  const other = await owner('other@example.org')
  const stranger = createAuthenticator(ORIGIN)
  const proof = (await as(service, cookie, 'POST', `${ME}/proof/options`)).body.passkey
  const late = await options()
  clock.leap(5 * 60_000 + 1)
  const now = await options()
  const cases: [what: string, response: string][] = [
    ['another origin', key.sign(now, { origin: 'https://evil.example' })],
    ['another host', key.sign(now, { rpId: 'evil.example' })],
    ['the user was not verified', key.sign(now, { isVerified: false })],
    ['a challenge for something else', key.sign(proof)],
    ['too late', key.sign(late)],
    ['a challenge of its own making', key.sign({ ...now, challenge: 'A'.repeat(71) })],
    ['unknown', stranger.sign(now)],
    [
      'not signed',
      JSON.stringify({
        ...JSON.parse(key.sign(now)),
        id: other.key.credentialId,
        rawId: other.key.credentialId,
      }),
    ],
    ['NUL', JSON.stringify({ ...JSON.parse(key.sign(now)), id: 'a\0b', rawId: 'a\0b' })],
    ['no response', '{"id":"a"}'],
    ['no object', '[[[['],
    ['no JSON of the client', JSON.stringify({ id: 'a', response: { clientDataJSON: '!!' } })],
  ]
  for (const [what, passkey] of cases) is(await post(service, 'session', { passkey }), 401, REFUSED) ?? what
  assert.equal((await enter(key)).status, 200)
  key.counter -= 1
  is(await enter(key), 401, REFUSED)
  key.counter += 5
  assert.equal((await enter(key)).status, 200)
})

test('an authenticator that does not count signs in again and again', async () => {
  const { cookie } = await activeUser(service, 'uncounted@example.org')
  const key = createAuthenticator(ORIGIN, 'none')
  assert.equal((await add(cookie, key)).status, 200)
  assert.deepEqual([(await enter(key)).status, (await enter(key)).status], [200, 200])
})

test('after the password a passkey or a recovery code is asked for', async () => {
  const { key, codes, email, cookie } = await owner('second@example.org')
  assert.equal(codes.length, 10)
  const asked = await signIn(service, email)
  assert.equal(asked.status, 401)
  const { message, tfa_required, passkey } = asked.body
  assert.deepEqual(
    [message, tfa_required, passkey.allowCredentials[0].id],
    ['A code is needed', true, key.credentialId],
  )
  const withKey = (response: string, password = PASSWORD) =>
    post(service, 'session', { email, password, passkey: response })
  assert.equal((await withKey(key.sign(await options()))).status, 401, 'a challenge for signing in alone')
  is(await withKey(key.sign(passkey), 'wrong password'), 401, {
    message: 'The address or the password is wrong',
  })
  assert.equal((await withKey(key.sign(passkey, { isVerified: false }))).status, 200, 'to have it is enough')
  assert.equal((await signIn(service, email, PASSWORD, codes[0])).status, 200)
  assert.equal((await signIn(service, email, PASSWORD, codes[0])).status, 401)
  const me = (await as(service, cookie, 'GET', '/v5/users/me')).body
  assert.equal(me.tfa_active, true)
})

test('a second passkey brings no codes; with the last second factor they are void', async () => {
  const { cookie, passkeyId, codes, email } = await owner('two@example.org')
  const second = await add(cookie, createAuthenticator(ORIGIN), 'Key')
  assert.equal(second.body.recovery_codes, null)
  const remove = (id: string) => as(service, cookie, 'DELETE', `${ME}/passkeys/${id}`)
  assert.equal((await remove(passkeyId)).status, 200)
  assert.equal((await remove(passkeyId)).status, 404)
  assert.equal((await as(service, cookie, 'GET', ME)).body.recovery_codes_left, 10)
  assert.equal((await remove(second.body.passkey.id)).status, 200)
  const { body } = await as(service, cookie, 'GET', ME)
  assert.deepEqual([body.passkeys, body.recovery_codes_left], [0, 0])
  assert.equal((await signIn(service, email, PASSWORD, codes[0])).status, 200, 'no code is asked for')
})

test('a passkey is not added twice, by another session, with another attestation, or beyond twenty', async () => {
  const { cookie, key } = await owner('adding@example.org')
  const other = await activeUser(service, 'adding-other@example.org')
  const invalid = { message: 'The passkey is not valid, or came too late' }
  const begin = async (by = cookie) => (await as(service, by, 'POST', `${ME}/passkeys/options`)).body
  const put = (passkey: string, by = cookie) =>
    as(service, by, 'POST', `${ME}/passkeys`, { name: 'Key', passkey })
  const given = await begin()
  assert.equal(given.excludeCredentials[0].id, key.credentialId)
  is(await put(key.create(given)), 400, {
    message: 'The passkey was added before, or your user was changed meanwhile',
  })
  const fresh = createAuthenticator(ORIGIN)
  is(await put(fresh.create(given), other.cookie), 400, invalid)
  is(await put(fresh.create(given, { origin: 'https://evil.example' })), 400, invalid)
  // {"x5c": []}, which would be read as certificates.
  const statement = Buffer.from([0xa1, 0x63, 0x78, 0x35, 0x63, 0x80])
  is(await put(fresh.create(given, { attestation: { format: 'packed', statement } })), 400, invalid)
  is(await put('x'.repeat(9_000)), 400, invalid)
  // Deep arrays in place of a statement.
  const deep = Buffer.concat([Buffer.alloc(4_000, 0x81), Buffer.of(0x80)])
  is(await put(fresh.create(given, { attestation: { format: 'none', statement: deep } })), 400, invalid)
  assert.equal((await put(fresh.create(given))).status, 200)
  for (let count = 2; count < 20; count++)
    assert.equal((await put(createAuthenticator(ORIGIN).create(await begin()))).status, 200)
  is(await put(createAuthenticator(ORIGIN).create(await begin())), 400, {
    message: 'A user may have 20 passkeys',
  })
})

test('ten minutes after the sign-in a change needs a password or a passkey again', async () => {
  const { cookie, key, passkeyId, codes } = await owner('stale@example.org')
  const begin = (json: object = {}) => as(service, cookie, 'POST', `${ME}/passkeys/options`, json)
  assert.equal((await begin()).status, 200)
  clock.leap(10 * 60_000 + 1)
  for (const [method, path, json] of [
    ['POST', 'passkeys/options', {}],
    ['DELETE', `passkeys/${passkeyId}`, {}],
    ['PUT', 'password', { password: 'another staple entirely' }],
    ['POST', 'totp', {}],
    ['PUT', 'totp', { code: '123456' }],
    ['DELETE', 'totp', {}],
    ['POST', 'recovery-codes', {}],
    ['POST', 'proof', {}],
  ] as const)
    is(await as(service, cookie, method, `${ME}/${path}`, json), 400, PROOF_NEEDED)
  is(await begin({ current_password: 'wrong password' }), 400, { message: 'The password is wrong' })
  is(await begin({ current_password: PASSWORD }), 400, { message: 'Missing mandatory parameter: code' })
  const asked = (await as(service, cookie, 'POST', `${ME}/proof/options`)).body.passkey
  const prove = (passkey: string) => as(service, cookie, 'POST', `${ME}/proof`, { passkey })
  is(await prove(key.sign(asked, { isVerified: false })), 400, REFUSED)
  is(await prove(key.sign(asked)), 200, { message: 'Thank you' })
  assert.equal((await begin()).status, 200)
  clock.leap(10 * 60_000 + 1)
  assert.equal((await begin()).status, 400)
  const proved = await as(service, cookie, 'POST', `${ME}/proof`, {
    current_password: PASSWORD,
    code: codes[0],
  })
  assert.equal(proved.status, 200, proved.text)
  assert.equal((await begin()).status, 200)
})

test('a session from a login link has shown nothing', async () => {
  const { cookie } = await activeUser(service, 'link@example.org', 'admin')
  const { url } = (await as(service, cookie, 'POST', '/sendwright/v1/login-links')).body
  const opened = await service.call('GET', new URL(url).pathname, { key: null })
  is(await as(service, cookieOf(opened), 'POST', `${ME}/passkeys/options`), 400, PROOF_NEEDED)
})

test('disabled users and those whom the operator has reset sign in with no passkey', async () => {
  const { id, key, email, cookie } = await owner('blocked@example.org')
  await service.call('PUT', `/v5/users/${id}`, { form: { is_disabled: 'yes' } })
  is(await enter(key), 401, REFUSED)
  await service.call('PUT', `/v5/users/${id}`, { form: { is_disabled: 'no' } })
  assert.equal((await enter(key)).status, 200)
  const reset = await service.call('DELETE', `/sendwright/v1/users/${id}/totp`)
  assert.equal(reset.body.tfa_active, false)
  is(await enter(key), 401, REFUSED)
  assert.equal((await signIn(service, email)).status, 200, 'and no code is asked for')
  assert.ok(!(await isSignedIn(cookie)), 'ended when the user was disabled')
})

test('a new password ends all sessions and leaves passkeys, of which the owner has been told', async () => {
  const { cookie, key, email } = await owner('told@example.org')
  const mail = await eventually('the owner learns of the passkey', async () => {
    const query = new URLSearchParams({ to: email, subject: 'sign-in was changed' })
    return (await service.call('GET', `/sendwright/v1/inbox?${query}`)).body.items[0]
  })
  const { body } = await service.call('GET', `/sendwright/v1/inbox/${mail.id}`)
  assert.match(body.text, /A passkey was added/)
  await post(service, 'password-resets', { email })
  const token = await mailedToken(service, email, 'Reset')
  await post(service, 'password-resets/redeem', { token, password: PASSWORD })
  assert.ok(!(await isSignedIn(cookie)))
  assert.equal((await enter(key)).status, 200)
})

test('refused passkeys count for their network, and a right one is still accepted', async (t) => {
  const strict = createTestClock(Date.now())
  const env = { SENDWRIGHT_PUBLIC_URL: ORIGIN }
  const on = await startTestService(t, env, { clock: strict, isExempt: () => false, database: 'postgres' })
  const { key } = await owner('network@example.org', on)
  const passkey = createAuthenticator(ORIGIN).sign(await options(on))
  const statuses: number[] = []
  for (let n = 0; n < 52; n++) {
    const call = post(on, 'session', { passkey })
    const done = call.then(() => true)
    while (!(await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 5, false))])))
      await strict.advance(1_000)
    statuses.push((await call).status)
  }
  assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429])
  assert.equal((await enter(key, on)).status, 200)
})

test('passkeys are for the host of the public URL, whatever Host a request names', async (t) => {
  const spoofed = await service.call('POST', '/sendwright/v1/passkeys/sign-ins', {
    key: null,
    headers: { 'x-forwarded-host': 'evil.example' },
  })
  assert.equal(spoofed.body.rpId, 'mail.example.com')
  const methods = await service.call('GET', '/sendwright/v1/sign-in-methods', { key: null })
  assert.deepEqual(methods.body.passkey, { origin: ORIGIN })
  const address = await startTestService(t, { SENDWRIGHT_PUBLIC_URL: 'http://192.0.2.1:8080' })
  assert.equal(
    (await address.call('GET', '/sendwright/v1/sign-in-methods', { key: null })).body.passkey,
    null,
  )
  assert.equal((await post(address, 'passkeys/sign-ins', {})).status, 400)
  assert.equal((await post(address, 'session', { passkey: '{}' })).status, 401)
})

test('a user names itself, chooses how dates are written, and ends its own sessions only', async () => {
  const { cookie, id } = await activeUser(service, 'self@example.org')
  const foreign = await activeUser(service, 'foreign@example.org')
  const other = cookieOf(await signIn(service, 'self@example.org'))
  const change = (json: object) => as(service, cookie, 'PUT', ME, json)
  const changed = await change({ name: 'Ann', language: 'de', time_zone: 'Europe/Berlin' })
  assert.deepEqual(
    [changed.body.name, changed.body.language, changed.body.time_zone],
    ['Ann', 'de', 'Europe/Berlin'],
  )
  const seen = (await as(service, cookie, 'GET', '/sendwright/v1/session')).body.user
  assert.deepEqual(seen, {
    name: 'Ann',
    email: 'self@example.org',
    language: 'de',
    time_zone: 'Europe/Berlin',
  })
  assert.equal((await as(service, cookie, 'GET', '/v5/users/me')).body.preferences.time_zone, 'Europe/Berlin')
  is(await change({ time_zone: 'Mars/Olympus' }), 400, { message: 'Unknown time zone "Mars/Olympus"' })
  is(await change({ language: 'x'.repeat(100) }), 400, { message: `Unknown language "${'x'.repeat(40)}"` })
  assert.equal((await change({ name: 'a\0b' })).status, 400)
  assert.equal((await change({ language: '', time_zone: '' })).body.time_zone, null)
  const list = (await as(service, cookie, 'GET', `${ME}/sessions`)).body
  assert.deepEqual(
    [list.total_count, list.items.every((item: { user_id: string }) => item.user_id === id)],
    [2, true],
  )
  const foreignId = (await as(service, foreign.cookie, 'GET', `${ME}/sessions`)).body.items[0].id
  assert.equal((await as(service, cookie, 'DELETE', `${ME}/sessions/${foreignId}`)).status, 404)
  const otherId = list.items.find(({ current }: { current: boolean }) => !current).id
  assert.equal((await as(service, cookie, 'DELETE', `${ME}/sessions/${otherId}`)).status, 200)
  assert.ok(!(await isSignedIn(other)))
  const third = cookieOf(await signIn(service, 'self@example.org'))
  assert.equal((await as(service, cookie, 'DELETE', `${ME}/sessions`, { keep_current: true })).status, 200)
  assert.deepEqual(
    [await isSignedIn(cookie), await isSignedIn(third), await isSignedIn(foreign.cookie)],
    [true, false, true],
  )
})
