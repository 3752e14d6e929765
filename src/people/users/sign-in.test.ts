import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type Answer, eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import {
  activeUser,
  as,
  cookieOf,
  invite,
  mailedToken,
  PASSWORD,
  post,
  signIn,
} from '../../../test/support/users.ts'
import { fromBase32 } from '../../base/base32.ts'
import { totpCode, totpStep } from '../sign-in/totp.ts'

const ME = '/sendwright/v1/me'
const NEW_PASSWORD = 'another staple entirely'
const WRONG = { message: 'The address or the password is wrong' }

let service: TestService
before(async (t) => {
  service = await startTestService(t as TestContext)
})

const isSignedIn = async (cookie: string, on = service) =>
  (await as(on, cookie, 'GET', '/v5/users/me')).status === 200
const is = (answer: Answer, status: number, body: unknown) => {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.body, body)
}
/** Header fields that must not differ between responses: all except dates and ids. */
const headersOf = ({ headers }: Answer) =>
  [...headers].filter(([name]) => !/^(date|x-service-request-id)$/.test(name))

test('unknown addresses, invited and disabled users and wrong passwords get the same response', async () => {
  await activeUser(service, 'known@example.org')
  await invite(service, 'invited@example.org')
  const { id } = await activeUser(service, 'disabled@example.org')
  await service.call('PUT', `/v5/users/${id}`, { form: { is_disabled: 'yes' } })
  const wrong = await signIn(service, 'known@example.org', 'wrong password')
  is(wrong, 401, WRONG)
  for (const [email, password] of [
    ['nobody@example.org', PASSWORD],
    ['invited@example.org', PASSWORD],
    ['disabled@example.org', PASSWORD],
    ['no address', PASSWORD],
    ['a\0b', PASSWORD],
    ['known@example.org', 'x'.repeat(2_000)],
    ['known@example.org', '\u0000'],
  ] as const) {
    const answer = await signIn(service, email, password)
    is(answer, 401, WRONG)
    assert.deepEqual(headersOf(answer), headersOf(wrong))
  }
})

test('an unknown address takes as long as a wrong password', async () => {
  await activeUser(service, 'timed@example.org')
  const medians = { known: 0, unknown: 0 }
  const times = { known: [] as number[], unknown: [] as number[] }
  const once = async (which: 'known' | 'unknown') => {
    const begun = process.cpuUsage()
    await signIn(service, which === 'known' ? 'timed@example.org' : 'untimed@example.org', 'wrong password')
    const { user, system } = process.cpuUsage(begun)
    times[which].push((user + system) / 1_000)
  }
  for (let n = 0; n < 15; n++) {
    await once('known')
    await once('unknown')
  }
  for (const which of ['known', 'unknown'] as const)
    medians[which] = times[which].sort((a, b) => a - b)[7] as number
  // Of the processor, which other load does not stretch. The hash alone takes 20 ms: without it the unknown one would
  // be several times faster.
  assert.ok(medians.unknown > medians.known / 2, JSON.stringify(medians))
})

test('a password is read from the body only', async () => {
  await activeUser(service, 'query@example.org')
  const query = new URLSearchParams({ email: 'query@example.org', password: PASSWORD })
  const answer = await service.call('POST', `/sendwright/v1/session?${query}`, { key: null })
  is(answer, 400, { message: 'Missing mandatory parameter: key' })
})

test('a page of another site cannot sign a browser in or change anything', async () => {
  const { cookie } = await activeUser(service, 'cross@example.org')
  const email = 'cross@example.org'
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }] as Record<
    string,
    string
  >[]) {
    const calls = [
      signIn(service, email, PASSWORD, undefined, headers),
      post(service, 'password-resets', { email }, headers),
      post(service, 'password-resets/redeem', { token: 'x', password: PASSWORD }, headers),
      post(service, 'invitations/accept', { token: 'x', password: PASSWORD }, headers),
      service.call('DELETE', `${ME}/sessions`, { key: null, headers: { ...headers, cookie } }),
    ]
    for (const answer of await Promise.all(calls)) is(answer, 403, { message: 'Forbidden' })
  }
  assert.ok(await isSignedIn(cookie))
})

test('signing in creates a new secret and ends the previous session of the browser', async () => {
  const { cookie } = await activeUser(service, 'fixed@example.org')
  const planted = `sendwright_session=${'A'.repeat(43)}`
  const first = await signIn(service, 'fixed@example.org', PASSWORD, undefined, { cookie: planted })
  assert.notEqual(cookieOf(first), planted)
  const second = await signIn(service, 'fixed@example.org', PASSWORD, undefined, { cookie: cookieOf(first) })
  assert.ok(!(await isSignedIn(planted)))
  assert.ok(!(await isSignedIn(cookieOf(first))))
  assert.ok((await isSignedIn(cookieOf(second))) && (await isSignedIn(cookie)))
})

test('a password is changed with the current one; all other sessions end', async () => {
  const { cookie } = await activeUser(service, 'change@example.org')
  const other = cookieOf(await signIn(service, 'change@example.org'))
  const change = (current_password: string, password: string) =>
    as(service, cookie, 'PUT', `${ME}/password`, { current_password, password })
  is(await change('wrong password', NEW_PASSWORD), 400, { message: 'The password is wrong' })
  is(await change(PASSWORD, 'aaaaaaaaaaaaaa'), 400, { message: 'the password is too easy to guess' })
  is(await change(PASSWORD, 'my change@example.org'), 400, { message: 'the password is too easy to guess' })
  assert.ok(await isSignedIn(other))
  const changed = await change(PASSWORD, NEW_PASSWORD)
  is(changed, 200, { message: 'Password changed' })
  assert.deepEqual([await isSignedIn(cookie), await isSignedIn(other)], [false, false])
  assert.ok(await isSignedIn(cookieOf(changed)))
  is(await signIn(service, 'change@example.org'), 401, WRONG)
  assert.equal((await signIn(service, 'change@example.org', NEW_PASSWORD)).status, 200)
  await eventually('the owner learns of it', async () => {
    const { body } = await service.call(
      'GET',
      '/sendwright/v1/inbox?to=change@example.org&subject=was+changed',
    )
    return body.items.length === 1
  })
})

test('own settings are for sessions of users', async () => {
  const json = { current_password: PASSWORD, password: NEW_PASSWORD, code: '123456' }
  const { cookie } = { cookie: cookieOf(await post(service, 'session', { key: service.key })) }
  for (const [method, path] of [
    ['PUT', 'password'],
    ['DELETE', 'sessions'],
    ['POST', 'totp'],
    ['PUT', 'totp'],
    ['DELETE', 'totp'],
    ['POST', 'recovery-codes'],
  ] as const) {
    const refused = { message: 'Incompatible key for this endpoint' }
    is(await service.call(method, `${ME}/${path}`, { json }), 403, refused)
    is(await as(service, cookie, method, `${ME}/${path}`, json), 403, refused)
    assert.equal((await service.call(method, `${ME}/${path}`, { json, key: null })).status, 401)
  }
})

test('signing out everywhere ends all sessions and links of the user, and no others', async () => {
  const { cookie } = await activeUser(service, 'everywhere@example.org', 'admin')
  const other = cookieOf(await signIn(service, 'everywhere@example.org'))
  const foreign = await activeUser(service, 'elsewhere@example.org')
  const { body } = await as(service, other, 'POST', '/sendwright/v1/login-links')
  const left = await as(service, cookie, 'DELETE', `${ME}/sessions`)
  assert.match(left.headers.get('set-cookie') ?? '', /^sendwright_session=;.*Max-Age=0$/)
  assert.deepEqual([await isSignedIn(cookie), await isSignedIn(other)], [false, false])
  assert.ok(await isSignedIn(foreign.cookie))
  assert.equal((await service.call('GET', new URL(body.url).pathname, { key: null })).status, 404)
})

test('a forgotten password is reset by mail, once, without revealing who is a user', async () => {
  const { cookie } = await activeUser(service, 'forgot@example.org')
  const ask = (email: string) => post(service, 'password-resets', { email })
  const [known, unknown] = [await ask('FORGOT@example.org'), await ask('nobody@example.org')]
  assert.deepEqual([known.status, known.body, headersOf(known)], [200, unknown.body, headersOf(unknown)])
  await invite(service, 'never@example.org')
  await ask('never@example.org')
  const token = await mailedToken(service, 'forgot@example.org', 'Reset')
  const redeem = (password: string, given = token) =>
    post(service, 'password-resets/redeem', { token: given, password })
  assert.equal((await redeem('short')).status, 400)
  assert.equal((await redeem(NEW_PASSWORD, `${token.slice(1)}A`)).status, 404)
  assert.ok(await isSignedIn(cookie), 'nothing has changed so far')
  const redeemed = await redeem(NEW_PASSWORD)
  is(redeemed, 200, { message: 'Password changed' })
  assert.match(redeemed.headers.get('set-cookie') ?? '', /^sendwright_session=;/, 'it signs nobody in')
  is(await redeem(PASSWORD), 404, { message: 'This link has been used or is too old' })
  assert.ok(!(await isSignedIn(cookie)))
  is(await signIn(service, 'forgot@example.org'), 401, WRONG)
  assert.equal((await signIn(service, 'forgot@example.org', NEW_PASSWORD)).status, 200)
  const { body } = await service.call('GET', '/sendwright/v1/inbox?subject=Reset')
  const to = body.items.map(({ envelope }: { envelope: { to: string[] } }) => envelope.to[0])
  assert.ok(!to.includes('nobody@example.org') && !to.includes('never@example.org'))
})

test('a user gets at most three mails an hour, and each of their links works', async () => {
  await activeUser(service, 'bombed@example.org')
  for (let n = 0; n < 6; n++) await post(service, 'password-resets', { email: 'bombed@example.org' })
  // Processed in order: once this mail has arrived, the others are done.
  await activeUser(service, 'behind@example.org')
  await post(service, 'password-resets', { email: 'behind@example.org' })
  await mailedToken(service, 'behind@example.org', 'Reset')
  const seen = new Set<string>()
  const tokens = [1, 2, 3].map(() => mailedToken(service, 'bombed@example.org', 'Reset', seen))
  const oldest = (await Promise.all(tokens)).at(-1)
  const { body } = await service.call('GET', '/sendwright/v1/inbox?to=bombed@example.org&subject=Reset')
  assert.equal(body.items.length, 3)
  assert.equal(
    (await post(service, 'password-resets/redeem', { token: oldest, password: NEW_PASSWORD })).status,
    200,
  )
})

/** A service with a test clock, and no exempt addresses. */
async function clocked(t: TestContext): Promise<{ on: TestService; clock: TestClock }> {
  const clock = createTestClock(Date.now())
  return { clock, on: await startTestService(t, {}, { clock, isExempt: () => false }) }
}

/** Advances the clock over delays of responses. */
async function passing<T>(clock: TestClock, call: Promise<T>): Promise<T> {
  let isDone = false
  const done = call.finally(() => {
    isDone = true
  })
  while (!isDone) {
    await clock.advance(100)
    await sleep(5)
  }
  return done
}

/** An authenticator app enrolled for the user. */
async function enrol(on: TestService, cookie: string, clock: TestClock) {
  const begun = await as(on, cookie, 'POST', `${ME}/totp`, { current_password: PASSWORD })
  assert.equal(begun.status, 200, begun.text)
  const secret = fromBase32(begun.body.secret) as Buffer
  assert.equal(new URL(begun.body.otpauth_url).searchParams.get('secret'), begun.body.secret)
  const code = () => totpCode(secret, totpStep(clock.now()))
  const confirmed = await as(on, cookie, 'PUT', `${ME}/totp`, { current_password: PASSWORD, code: code() })
  assert.equal(confirmed.status, 200, confirmed.text)
  return { code, recovery: confirmed.body.recovery_codes as string[] }
}

test('with an authenticator app a code is needed, and each is valid once', async (t) => {
  const clock = createTestClock(Date.now())
  const on = await startTestService(t, {}, { clock })
  const { cookie } = await activeUser(on, 'totp@example.org')
  is(await as(on, cookie, 'POST', `${ME}/totp`, { current_password: 'wrong password' }), 400, {
    message: 'The password is wrong',
  })
  const confirm = (code: string, current_password = PASSWORD) =>
    as(on, cookie, 'PUT', `${ME}/totp`, { current_password, code })
  is(await confirm('123456', 'wrong password'), 400, { message: 'The password is wrong' })
  is(await confirm('123456'), 400, {
    message: 'There is no authenticator app to confirm',
  })
  await as(on, cookie, 'POST', `${ME}/totp`, { current_password: PASSWORD })
  is(await confirm('abc'), 400, { message: 'The code is wrong' })
  assert.equal((await signIn(on, 'totp@example.org')).status, 200, 'not in force yet')
  const app = await enrol(on, cookie, clock)
  assert.equal((await as(on, cookie, 'POST', `${ME}/totp`, { current_password: PASSWORD })).status, 400)
  const me = (await as(on, cookie, 'GET', '/v5/users/me')).body
  assert.deepEqual([me.tfa_enabled, me.tfa_active, typeof me.tfa_created_at], [true, true, 'string'])

  const enter = (code?: string, password = PASSWORD) => signIn(on, 'totp@example.org', password, code)
  is(await enter(), 401, { message: 'A code is needed', tfa_required: true })
  is(await enter(app.code(), 'wrong password'), 401, WRONG)
  const used = { message: 'The code is wrong, or was used before', tfa_required: true }
  is(await enter(app.code()), 401, used)
  clock.leap(30_000)
  const code = app.code()
  const both = await Promise.all([enter(code), enter(` ${code.slice(0, 3)} ${code.slice(3)}`)])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401], 'once, also at the same time')
  is(await enter(code), 401, used)
  clock.leap(30_000)
  assert.equal((await enter(app.code())).status, 200)
  is(await enter(code), 401, used)

  const remove = (code?: string) =>
    as(on, cookie, 'DELETE', `${ME}/totp`, { current_password: PASSWORD, ...(code && { code }) })
  is(await remove(), 400, { message: 'Missing mandatory parameter: code' })
  clock.leap(30_000)
  assert.equal((await remove(app.code())).status, 200)
  assert.equal((await enter()).status, 200)
  is(await enter(app.recovery[0]), 200, { message: 'Signed in' })
})

test('recovery codes replace those of the app, each once, until new ones are created', async (t) => {
  const clock = createTestClock(Date.now())
  const on = await startTestService(t, {}, { clock, database: 'postgres' })
  const { id, cookie } = await activeUser(on, 'lost@example.org')
  is(await signIn(on, 'a\0b'), 401, WRONG)
  const { code, recovery } = await enrol(on, cookie, clock)
  assert.equal(new Set(recovery).size, 10)
  const [first = '', second = '', third = ''] = recovery
  assert.match(first, /^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
  const enter = async (given: string) => (await signIn(on, 'lost@example.org', PASSWORD, given)).status
  const shouted = first.toUpperCase().replaceAll('-', ' ')
  const both = await Promise.all([enter(shouted), enter(first)])
  assert.deepEqual(both.sort(), [200, 401], 'once, also at the same time')
  clock.leap(60_000)
  const renew = await as(on, cookie, 'POST', `${ME}/recovery-codes`, {
    current_password: PASSWORD,
    code: code(),
  })
  assert.equal(renew.status, 200, renew.text)
  assert.deepEqual([await enter(second), await enter(renew.body.recovery_codes[0])], [401, 200])
  // A reset by mail leaves the second factor as it is.
  await post(on, 'password-resets', { email: 'lost@example.org' })
  const token = await mailedToken(on, 'lost@example.org', 'Reset')
  await post(on, 'password-resets/redeem', { token, password: PASSWORD })
  is(await signIn(on, 'lost@example.org'), 401, { message: 'A code is needed', tfa_required: true })
  assert.equal((await on.call('DELETE', `/sendwright/v1/users/${id}/totp`)).body.tfa_active, false)
  assert.equal((await signIn(on, 'lost@example.org')).status, 200)
  assert.equal(await enter(third), 200, 'no code is asked for')
})

test('attempts at codes of the app are limited; recovery codes are always checked', async (t) => {
  const clock = createTestClock(Date.now())
  const on = await startTestService(t, {}, { clock })
  const { cookie } = await activeUser(on, 'codes@example.org')
  const { recovery } = await enrol(on, cookie, clock)
  const statuses: number[] = []
  for (let n = 0; n < 21; n++)
    statuses.push((await signIn(on, 'codes@example.org', PASSWORD, '000000')).status)
  assert.deepEqual([statuses.slice(0, 20), statuses[20]], [Array(20).fill(401), 429])
  assert.equal((await signIn(on, 'codes@example.org', PASSWORD, recovery[0])).status, 200)
  // The user is known here by now.
  assert.equal((await signIn(on, 'codes@example.org', PASSWORD, '000000')).status, 401)
})

test('guessing is delayed, then refused, per address; the owner can sign in from a known network', async (t) => {
  const { on, clock } = await clocked(t)
  await activeUser(on, 'owner@example.org')
  await activeUser(on, 'stranger@example.org')
  assert.equal((await signIn(on, 'owner@example.org')).status, 200)
  const guess = (n: number) => passing(clock, signIn(on, 'stranger@example.org', `wrong password ${n}`))
  const statuses: number[] = []
  for (let n = 0; n < 11; n++) statuses.push((await guess(n)).status)
  assert.deepEqual([statuses.slice(0, 10), statuses[10]], [Array(10).fill(401), 429])
  const refused = await passing(clock, signIn(on, 'stranger@example.org'))
  assert.equal(refused.status, 429, 'unseen, so that it says nothing about the guess')
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  assert.equal((await passing(clock, signIn(on, 'owner@example.org'))).status, 200)
  assert.equal((await guess(11)).status, 429)
  clock.leap(61_000)
  assert.equal((await passing(clock, signIn(on, 'stranger@example.org'))).status, 200)
})

test('excess sign-ins in parallel are refused before they cost anything', async (t) => {
  const { on, clock } = await clocked(t)
  const answers = await passing(
    clock,
    Promise.all(Array.from({ length: 80 }, (_, n) => signIn(on, `n${n}@example.org`))),
  )
  const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length
  assert.equal(count(401), 10, 'as many as an address may try in a minute')
  assert.equal(count(401) + count(429) + count(503), 80)
  assert.ok(count(503) > 0)
})

eachDatabase((database) => {
  test("sessions end by the account's two times", async (t) => {
    const clock = createTestClock(Date.now())
    const on = await startTestService(t, {}, { clock, database })
    const { cookie } = await activeUser(on, 'idle@example.org')
    const byKey = cookieOf(await post(on, 'session', { key: on.key }))
    const minutes = async (count: number) => {
      for (let n = 0; n < count; n++) {
        clock.leap(60_000)
        assert.ok(await isSignedIn(cookie, on))
      }
    }
    const set = (form: Record<string, string>) => on.call('PUT', '/v5/accounts', { form })
    const times = { inactive_session_timeout: '300', absolute_session_timeout: '3600' }
    is(await set(times), 200, { message: 'Account info has been updated' })
    await minutes(20)
    assert.equal((await as(on, byKey, 'GET', '/v4/domains')).status, 401, 'not used for 20 minutes')
    clock.leap(300_000)
    assert.ok(!(await isSignedIn(cookie, on)))
    const second = await signIn(on, 'idle@example.org')
    assert.match(second.headers.get('set-cookie') ?? '', /Max-Age=3600/)
    for (let n = 0; n < 59; n++) {
      clock.leap(60_000)
      assert.ok(await isSignedIn(cookieOf(second), on))
    }
    clock.leap(60_000)
    assert.ok(!(await isSignedIn(cookieOf(second), on)), 'in use, and over')
    assert.equal((await on.call('GET', '/sendwright/v1/sessions')).body.total_count, 0)
    const bad = async (form: Record<string, string>, message: RegExp) => {
      const answer = await set(form)
      assert.equal(answer.status, 400)
      assert.match(answer.body.message, message)
    }
    await bad({}, /^Either `name`, `absolute_timeout`, /)
    await bad({ inactive_session_timeout: '299' }, /^Invalid format/)
    await bad({ absolute_session_timeout: '2592001' }, /can't be larger than 2592000$/)
    await bad({ inactive_session_timeout: '3601' }, /must not be above/)
    await bad({ logout_redirect_url: 'javascript:alert(1)' }, /^Invalid format/)
    await set({ logout_redirect_url: 'https://example.org/bye', name: 'Ours' })
    const third = cookieOf(await signIn(on, 'idle@example.org'))
    is(await as(on, third, 'DELETE', '/sendwright/v1/session'), 200, {
      message: 'Signed out',
      logout_redirect_url: 'https://example.org/bye',
    })
  })
})

test('links expire', async (t) => {
  const clock = createTestClock(Date.now())
  const on = await startTestService(t, {}, { clock })
  await activeUser(on, 'late@example.org')
  await post(on, 'password-resets', { email: 'late@example.org' })
  const reset = await mailedToken(on, 'late@example.org', 'Reset')
  clock.leap(60 * 60_000)
  assert.equal(
    (await post(on, 'password-resets/redeem', { token: reset, password: NEW_PASSWORD })).status,
    404,
  )
  await invite(on, 'later@example.org')
  const token = await mailedToken(on, 'later@example.org', 'invitation')
  clock.leap(7 * 24 * 3_600_000)
  assert.equal((await post(on, 'invitations/accept', { token, password: PASSWORD })).status, 404)
})
