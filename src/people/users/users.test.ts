import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, type TestContext, test } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
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

let service: TestService
/** The first admin who accepts is the master user. */
let master: { id: string; cookie: string }

before(async (t) => {
  service = await startTestService(t as TestContext)
  master = await activeUser(service, 'master@example.org', 'admin')
})

const VOID = { message: 'This link has been used or is too old' }

test('a user is invited by mail, chooses a password, and has the rights of the role', async () => {
  const invited = await service.call('POST', '/v5/users', {
    form: { email: 'Ann@Example.org', name: 'Ann', role: 'support' },
  })
  assert.equal(invited.status, 200, invited.text)
  const { id, account_id } = invited.body
  assert.match(id, /^[0-9a-f]{24}$/)
  const blank = {
    id,
    activated: false,
    name: 'Ann',
    is_disabled: false,
    email: 'ann@example.org',
    email_details: {
      address: 'ann@example.org',
      is_valid: true,
      parts: { domain: 'example.org', local_part: 'ann', display_name: 'Ann' },
    },
    role: 'support',
    account_id,
    opened_ip: '',
    is_master: false,
    metadata: {},
    tfa_enabled: false,
    tfa_active: false,
    tfa_created_at: null,
    password_updated_at: null,
    preferences: { time_zone: 'UTC', time_format: '24h', programming_language: 'curl' },
    auth: { method: 'password' },
    github_user_id: null,
    salesforce_user_id: null,
    migration_status: 'done',
  }
  assert.deepEqual(invited.body, blank)
  assert.equal((await signIn(service, 'ann@example.org', '')).status, 400)
  assert.equal((await signIn(service, 'ann@example.org', 'null')).status, 401)

  const token = await mailedToken(service, 'ann@example.org', 'invitation')
  const refused = await post(service, 'invitations/accept', { token, password: 'short' })
  assert.deepEqual(
    [refused.status, refused.body.message],
    [400, 'the password must have 12 to 256 characters'],
  )
  const accepted = await post(service, 'invitations/accept', { token, password: PASSWORD })
  assert.equal(accepted.status, 200, accepted.text)
  assert.match(accepted.headers.get('set-cookie') ?? '', /; HttpOnly; SameSite=Strict; Max-Age=1209600$/)
  const again = await post(service, 'invitations/accept', { token, password: `${PASSWORD}2` })
  assert.deepEqual([again.status, again.body], [404, VOID])

  const signedIn = await signIn(service, 'ANN@example.org')
  assert.equal(signedIn.status, 200, signedIn.text)
  const cookie = cookieOf(signedIn)
  const { body } = await as(service, cookie, 'GET', '/v5/users/me')
  assert.match(body.password_updated_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/)
  assert.match(body.opened_ip, /^127\./)
  const changed = {
    activated: true,
    opened_ip: body.opened_ip,
    password_updated_at: body.password_updated_at,
  }
  assert.deepEqual(body, { ...blank, ...changed })
  assert.equal((await as(service, cookie, 'GET', '/v4/domains')).status, 200)
  assert.equal((await as(service, cookie, 'POST', '/v4/domains', { name: 'x.example' })).status, 403)
  assert.equal((await as(service, cookie, 'GET', '/v5/users')).status, 403)
  assert.equal((await as(service, cookie, 'GET', `/v5/users/${id}`)).status, 403)
})

test('users are listed by role, in pages, and read by id', async () => {
  await invite(service, 'list-one@example.org', 'billing')
  const two = await invite(service, 'list-two@example.org', 'billing')
  const list = async (query: string) => (await service.call('GET', `/v5/users${query}`)).body
  const billing = await list('?role=billing')
  assert.equal(billing.total, 2)
  const page = await list('?role=billing&limit=1&skip=1')
  assert.deepEqual([page.total, page.users.length, page.users[0].id], [2, 1, two])
  assert.deepEqual((await service.call('GET', `/v5/users/${two}`)).body, page.users[0])
  const is = async (method: string, path: string, status: number, message: string) => {
    const answer = await service.call(method, path)
    assert.deepEqual([answer.status, answer.body.message], [status, message])
  }
  await is('GET', '/v5/users/000000000000000000000000', 404, 'No such user exists')
  await is('GET', '/v5/users/a%00b', 404, 'No such user exists')
  await is('GET', '/v5/users/me', 403, 'Incompatible key for this endpoint')
  await is('GET', '/v5/users?role=king', 400, "'king' is not a valid value for role")
  await is('GET', '/v5/users?limit=1001', 400, "The 'limit' parameter can't be larger than 1000")
})

test('invalid users are refused', async () => {
  const given = { email: 'bad@example.org', name: 'B', role: 'basic' }
  const refused = async (form: Record<string, string>, message: RegExp) => {
    const answer = await service.call('POST', '/v5/users', { form: { ...given, ...form } })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.body.message, message)
  }
  await refused({ email: '' }, /^Missing mandatory parameter: email$/)
  await refused({ email: 'no address' }, /^Invalid format for parameter email/)
  await refused({ email: 'Name <a@example.org>' }, /^Invalid format for parameter email/)
  await refused({ email: 'a@example.org,b@example.org' }, /^Invalid format for parameter email/)
  await refused({ email: 'a\r\nBcc: b@example.org' }, /^Invalid format for parameter email/)
  await refused({ role: 'sending' }, /^'sending' is not a valid value for role$/)
  await refused({ name: 'a\0b' }, /^the name must have/)
  await refused({ email: 'MASTER@example.org' }, /exists already$/)
  const twice = await Promise.all(
    [1, 2].map(() => service.call('POST', '/v5/users', { form: { ...given, email: 'twice@example.org' } })),
  )
  assert.deepEqual(twice.map(({ status }) => status).sort(), [200, 400])
})

test('the first admin is the master user and stays that', async () => {
  const read = await service.call('GET', `/v5/users/${master.id}`)
  assert.equal(read.body.is_master, true)
  const stays = { message: 'The master user stays an admin and cannot be disabled or removed' }
  const change = (form: Record<string, string>) => service.call('PUT', `/v5/users/${master.id}`, { form })
  for (const answer of [
    await change({ role: 'basic' }),
    await change({ is_disabled: 'yes' }),
    await service.call('DELETE', `/v5/users/${master.id}`),
  ])
    assert.deepEqual([answer.status, answer.body], [400, stays])
  assert.equal((await change({ name: 'Chief', role: 'admin', is_disabled: 'no' })).body.name, 'Chief')
  const second = await activeUser(service, 'second-admin@example.org', 'admin')
  assert.equal((await service.call('GET', `/v5/users/${second.id}`)).body.is_master, false)
})

test('a changed role applies at once; disabling and removing end sessions, links and web keys', async () => {
  const { id, cookie } = await activeUser(service, 'bob@example.org', 'admin')
  const status = async (path: string) => (await as(service, cookie, 'GET', path)).status
  const key = async () => {
    const form = { role: 'basic', kind: 'web', user_id: id, email: 'bob@example.org' }
    const { body } = await service.call('POST', '/v1/keys', { form })
    return body.key.secret as string
  }
  const [webKey, otherKey] = [await key(), await key()]
  const me = await service.call('GET', '/v5/users/me', { key: webKey })
  assert.equal(me.body.id, id)
  assert.equal(await status('/v1/keys'), 200)
  const change = (form: Record<string, string>) => service.call('PUT', `/v5/users/${id}`, { form })
  assert.equal((await change({ role: 'basic' })).body.role, 'basic')
  assert.equal(await status('/v1/keys'), 403)
  assert.equal(await status('/v4/domains'), 200)
  assert.equal((await change({})).status, 400)

  await post(service, 'password-resets', { email: 'bob@example.org' })
  const reset = await mailedToken(service, 'bob@example.org', 'Reset')
  assert.equal((await change({ is_disabled: 'true' })).body.is_disabled, true)
  assert.equal(await status('/v4/domains'), 401)
  assert.equal((await signIn(service, 'bob@example.org')).status, 401)
  assert.equal(
    (await post(service, 'password-resets/redeem', { token: reset, password: PASSWORD })).status,
    404,
  )
  await eventually('the web key is refused', async () => {
    return (await service.call('GET', '/v4/domains', { key: webKey })).status === 401
  })
  assert.equal((await change({ is_disabled: 'false' })).body.is_disabled, false)
  assert.equal(await status('/v4/domains'), 401, 'a session that has ended stays so')
  const signedIn = await signIn(service, 'bob@example.org')
  assert.equal(signedIn.status, 200)
  assert.equal((await service.call('DELETE', `/v5/users/${id}`)).body.message, 'User has been removed')
  assert.equal((await as(service, cookieOf(signedIn), 'GET', '/v4/domains')).status, 401)
  assert.equal((await service.call('GET', '/v4/domains', { key: otherKey })).status, 401)
  assert.equal((await service.call('GET', `/v5/users/${id}`)).status, 404)
  const keys = (await service.call('GET', '/v1/keys?kind=web')).body.items
  assert.deepEqual(new Set(keys.map((each: { is_disabled: boolean }) => each.is_disabled)), new Set([true]))
})

test('an invitation sent again voids the older link', async () => {
  const id = await invite(service, 'carol@example.org')
  const seen = new Set<string>()
  const older = await mailedToken(service, 'carol@example.org', 'invitation', seen)
  const again = `/sendwright/v1/users/${id}/invitation`
  assert.equal((await service.call('POST', again)).status, 200)
  const newer = await mailedToken(service, 'carol@example.org', 'invitation', seen)
  const accept = (token: string) => post(service, 'invitations/accept', { token, password: PASSWORD })
  assert.equal((await accept(older)).status, 404)
  assert.equal(
    (await post(service, 'password-resets/redeem', { token: newer, password: PASSWORD })).status,
    404,
  )
  const both = await Promise.all([accept(newer), accept(newer)])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 404], 'once, also at the same time')
  assert.equal((await service.call('POST', again)).status, 400)
})

test("mailed links are shown to admins only, and not in the account's messages and events", async () => {
  await invite(service, 'dave@example.org', 'admin')
  await mailedToken(service, 'dave@example.org', 'invitation')
  const developer = await activeUser(service, 'spy@example.org', 'developer')
  const query = '/sendwright/v1/inbox?to=dave@example.org'
  const [mail] = (await service.call('GET', query)).body.items
  assert.deepEqual((await as(service, developer.cookie, 'GET', query)).body.items, [])
  for (const rest of ['', '/raw', '/attachments/0'])
    assert.equal(
      (await as(service, developer.cookie, 'GET', `/sendwright/v1/inbox/${mail.id}${rest}`)).status,
      404,
    )
  const { body } = await service.call('GET', `/sendwright/v1/inbox/${mail.id}`)
  const stored = `/v3/domains/${service.domain}/messages/${body.storage_key}`
  assert.equal((await as(service, developer.cookie, 'GET', stored)).status, 404)
  assert.equal((await service.call('GET', stored)).status, 404)
  assert.deepEqual(await service.events('?recipient=dave@example.org'), [])
  assert.match(body.from, /^Sendwright <no-reply@/)
  assert.equal(body.headers.find(([name]: [string]) => name === 'Auto-Submitted')?.[1], 'auto-generated')
})

test('mail of the service is not tracked or archived, and ignores unsubscribes', async (t) => {
  const own = await startTestService(t)
  const domain = `/v3/domains/${own.domain}`
  assert.equal((await own.call('PUT', `${domain}/tracking/click`, { form: { active: 'yes' } })).status, 200)
  const archive = { archive_to: 'https://archive.example/copies' }
  assert.equal((await own.call('PUT', `/v4/domains/${own.domain}`, { form: archive })).status, 200)
  const address = 'gone@example.org'
  assert.equal((await own.call('POST', `/v3/${own.domain}/unsubscribes`, { form: { address } })).status, 200)
  await invite(own, address)
  await mailedToken(own, address, 'invitation')
  await own.send({ to: 'other@example.org' })
  const outbox = () => {
    const database = new DatabaseSync(join(own.config.dataFolder, 'sendwright.db'), { readOnly: true })
    try {
      return database.prepare('SELECT account_id FROM archive_outbox').all()
    } finally {
      database.close()
    }
  }
  const archived = await eventually('the other message is archived', async () => {
    const rows = outbox()
    return rows.length > 0 && rows
  })
  assert.deepEqual(
    archived.map((row) => ({ ...row })),
    [{ account_id: own.service.first.accountId }],
  )
})

test('a login link created by a user opens a session of the user, and ends with it', async () => {
  const { id, cookie } = await activeUser(service, 'erin@example.org', 'admin')
  const link = async () => {
    const { body } = await as(service, cookie, 'POST', '/sendwright/v1/login-links')
    return new URL(body.url).pathname
  }
  const [first, second] = [await link(), await link()]
  const opened = await service.call('GET', first, { key: null })
  assert.equal((await as(service, cookieOf(opened), 'GET', '/v5/users/me')).body.id, id)
  await service.call('PUT', `/v5/users/${id}`, { form: { is_disabled: 'yes' } })
  assert.equal((await as(service, cookieOf(opened), 'GET', '/v4/domains')).status, 401)
  assert.equal((await service.call('GET', second, { key: null })).status, 404)
})

test('the activation mail is the invitation of the first admin, until somebody is active', async (t) => {
  const fresh = await startTestService(t)
  const resend = async () => {
    const { status, body } = await fresh.call('POST', '/v5/accounts/resend_activation_email')
    assert.deepEqual([status, body], [200, { success: true }])
  }
  await resend()
  await invite(fresh, 'basic@example.org', 'basic')
  await invite(fresh, 'first@example.org', 'admin')
  await invite(fresh, 'second@example.org', 'admin')
  const seen = new Set<string>()
  const [former] = [await mailedToken(fresh, 'first@example.org', 'invitation', seen)]
  await resend()
  const token = await mailedToken(fresh, 'first@example.org', 'invitation', seen)
  const accept = (one: string) => post(fresh, 'invitations/accept', { token: one, password: PASSWORD })
  assert.equal((await accept(former)).status, 404, 'the older link is void')
  assert.equal((await accept(token)).status, 200)
  await resend()
  const mails = await eventually('four mails', async () => {
    const { items } = (await fresh.call('GET', '/sendwright/v1/inbox?subject=invitation')).body
    return items.length === 4 && items
  })
  assert.equal(mails.filter(({ to }: { to: string }) => to.includes('first@')).length, 2)
})
