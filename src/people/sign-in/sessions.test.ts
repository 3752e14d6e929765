// Both databases: a session is locked against the end of its user.
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import pg from 'pg'
import { addAccount, changeRows } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { NotFound } from '../../base/process/errors.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createKeys, type NewKey } from '../keys/api-keys.ts'
import { createSessions } from './sessions.ts'

const SESSIONS = '/sendwright/v1/sessions'
const WHO = { remoteAddress: '192.0.2.1', userAgent: 'Test' }

let service: TestService
before(async (t) => {
  service = await startTestService(t as TestContext)
})

async function makeKey(form: Record<string, string> = {}): Promise<{ id: string; secret: string }> {
  const { body } = await service.call('POST', '/v1/keys', { form: { role: 'admin', ...form } })
  return body.key
}

/** Signs in with a key; returns the cookie. */
async function signIn(key: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await service.call('POST', '/sendwright/v1/session', { key: null, form: { key }, headers })
  assert.equal(answer.status, 200, answer.text)
  return (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
}

const as = (cookie: string, method: string, path: string, form?: Record<string, string>) =>
  service.call(method, path, { key: null, headers: { cookie }, ...(form && { form }) })
const statusOf = async (cookie: string, path = '/v1/keys') => (await as(cookie, 'GET', path)).status

test('a session ends with its key, and creates no keys afterwards', async () => {
  const key = await makeKey()
  const cookie = await signIn(key.secret)
  const link = (await as(cookie, 'POST', '/sendwright/v1/login-links')).body.url as string
  assert.equal(await statusOf(cookie), 200)
  assert.equal((await service.call('DELETE', `/v1/keys/${key.id}`)).status, 200)
  assert.equal(await statusOf(cookie), 401)
  assert.equal((await as(cookie, 'POST', '/v1/keys', { role: 'admin' })).status, 401)
  const opened = await service.call('GET', new URL(link).pathname, { key: null })
  assert.equal(opened.status, 404, 'a link that the session made ends as well')
  assert.equal(opened.headers.get('set-cookie'), null)
})

test('a link created by a key opens a session of that key', async () => {
  const key = await makeKey()
  const { body } = await service.call('POST', '/sendwright/v1/login-links', { key: key.secret })
  const opened = await service.call('GET', new URL(body.url).pathname, { key: null })
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
  assert.equal(await statusOf(cookie), 200)
  await service.call('DELETE', `/v1/keys/${key.id}`)
  assert.equal(await statusOf(cookie), 401)
})

test('a session ends when its key expires; its cookie says when', async () => {
  const key = await makeKey({ expiration: '2' })
  const answer = await service.call('POST', '/sendwright/v1/session', {
    key: null,
    form: { key: key.secret },
  })
  const [cookie = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ')
  const maxAge = Number(attributes.find((each) => each.startsWith('Max-Age='))?.slice(8))
  assert.ok(maxAge >= 0 && maxAge <= 2, `Max-Age=${maxAge}`)
  await eventually('the session has ended', async () => (await statusOf(cookie)) === 401)
})

test('a session has the rights that its key has now', async () => {
  const key = await makeKey()
  const cookie = await signIn(key.secret)
  changeRows(service, `UPDATE api_keys SET role = 'basic' WHERE id = '${key.id}'`)
  assert.equal(await statusOf(cookie, '/v4/domains'), 200)
  assert.equal(await statusOf(cookie), 403)
  assert.equal((await as(cookie, 'POST', '/v1/keys', { role: 'admin' })).status, 403)
  changeRows(service, `UPDATE api_keys SET disabled_reason = 'by hand' WHERE id = '${key.id}'`)
  assert.equal(await statusOf(cookie, '/v4/domains'), 401)
})

test('sessions are listed without secrets and ended one by one, or all except the current one', async () => {
  const key = await makeKey()
  const cookies = [
    await signIn(key.secret, { 'user-agent': 'First/1.0' }),
    await signIn(key.secret),
    await signIn(key.secret),
  ] as const
  const { body, text } = await as(cookies[0], 'GET', SESSIONS)
  const own = body.items.filter((each: { key_id: string }) => each.key_id === key.id)
  assert.equal(own.length, 3)
  const current = own.find((each: { current: boolean }) => each.current)
  const dates = { created_at: '', last_used_at: '', expires_at: '' }
  assert.deepEqual(
    { ...current, ...dates },
    {
      id: current.id,
      key_id: key.id,
      user_id: null,
      remote_address: current.remote_address,
      user_agent: 'First/1.0',
      ...dates,
      current: true,
    },
  )
  assert.match(current.remote_address, /^127\./)
  assert.match(current.expires_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  for (const cookie of cookies) assert.ok(!text.includes(cookie.split('=')[1] as string))
  assert.equal(await statusOf(`sendwright_session=${current.id}`), 401, 'an id is no secret')

  const other = own.find((each: { current: boolean }) => !each.current)
  assert.equal((await as(cookies[0], 'DELETE', `${SESSIONS}/${other.id}`)).status, 200)
  assert.equal((await as(cookies[0], 'DELETE', `${SESSIONS}/${other.id}`)).status, 404)
  const ended = await as(cookies[0], 'DELETE', SESSIONS)
  assert.equal(ended.status, 200)
  const left = await Promise.all(cookies.map((cookie) => statusOf(cookie)))
  assert.deepEqual(left, [200, 401, 401])
  assert.deepEqual((await service.call('GET', SESSIONS)).body.items, [{ ...current, current: false }])
  assert.equal((await service.call('DELETE', SESSIONS)).body.count, 1, 'a key has no session of its own')
})

test('listing sessions requires the right to read keys, ending them the right to change keys', async () => {
  const developer = await signIn((await makeKey({ role: 'developer' })).secret)
  const basic = await signIn((await makeKey({ role: 'basic' })).secret)
  const { body } = await as(developer, 'GET', SESSIONS)
  assert.equal(await statusOf(basic, SESSIONS), 403)
  for (const cookie of [developer, basic]) {
    assert.equal((await as(cookie, 'DELETE', SESSIONS)).status, 403)
    assert.equal((await as(cookie, 'DELETE', `${SESSIONS}/${body.items[0].id}`)).status, 403)
    assert.equal((await as(cookie, 'DELETE', '/sendwright/v1/session')).status, 200, 'its own')
    assert.equal(await statusOf(cookie, '/v4/domains'), 401)
  }
})

test('a caller learns its account, role and rights, also on behalf of a subaccount', async () => {
  const who = async (cookie: string, headers = {}) =>
    service.call('GET', '/sendwright/v1/session', { key: null, headers: { cookie, ...headers } })
  const { body } = await who(await signIn((await makeKey({ role: 'support' })).secret))
  const account = {
    ...{ id: service.service.first.accountId, parent_id: null, is_first: true, strict_parameters: false },
  }
  assert.deepEqual({ ...body.account, name: '' }, { ...account, name: '' })
  assert.deepEqual([body.kind, body.role, body.user_id], ['session', 'support', null])
  assert.equal(body.acting_account_id, account.id)
  assert.deepEqual(
    [body.rights.suppressions, body.rights.domains, body.rights.keys, body.rights['messages:send']],
    ['RW', 'R', '-', '-'],
  )
  const created = await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'Branch' } })
  const { id } = created.body.subaccount
  const admin = await signIn(service.key)
  const branch = (await who(admin, { 'x-service-on-behalf-of': id })).body
  assert.deepEqual(branch.account, {
    ...{ id, name: 'Branch', parent_id: account.id, is_first: false, strict_parameters: false },
  })
  assert.deepEqual([branch.role, branch.acting_account_id], ['admin', account.id])
  assert.equal((await service.call('GET', '/sendwright/v1/session', { key: null })).status, 401)
})

test("another account's sessions are neither shown nor ended", async () => {
  const other = addAccount(service).key
  const cookie = await signIn(other)
  const { body } = await as(cookie, 'GET', SESSIONS)
  assert.equal(body.total_count, 1)
  const id = body.items[0].id as string
  const ours = (await service.call('GET', SESSIONS)).body.items as { id: string }[]
  assert.ok(!ours.some((each) => each.id === id))
  assert.equal((await service.call('DELETE', `${SESSIONS}/${id}`)).status, 404)
  await service.call('DELETE', SESSIONS)
  assert.equal(await statusOf(cookie), 200)
})

test('a key that signs in over and over ends its own oldest sessions and links only', async () => {
  const [key, other] = [await makeKey(), await makeKey()]
  const kept = await signIn(other.secret)
  const first = await signIn(key.secret)
  for (let n = 0; n < 19; n++) await signIn(key.secret)
  assert.equal(await statusOf(first), 200)
  const last = await signIn(key.secret)
  assert.deepEqual([await statusOf(first), await statusOf(last), await statusOf(kept)], [401, 200, 200])

  const link = async () => {
    const { body } = await service.call('POST', '/sendwright/v1/login-links', { key: key.secret })
    return new URL(body.url).pathname
  }
  const token = await service.service.sessions.createLink({
    accountId: service.service.first.accountId,
    keyId: null,
  })
  const oldest = await link()
  for (let n = 0; n < 20; n++) await link()
  assert.equal((await service.call('GET', oldest, { key: null })).status, 404)
  assert.equal((await service.call('GET', `/login/${token}`, { key: null })).status, 200)
})

test('HEAD or prefetching does not use a link up', async () => {
  const { body } = await service.call('POST', '/sendwright/v1/login-links')
  const path = new URL(body.url).pathname
  const head = await service.call('HEAD', path, { key: null })
  assert.deepEqual([head.status, head.text, head.headers.get('set-cookie')], [200, '', null])
  for (const headers of [
    { 'sec-purpose': 'prefetch;prerender' },
    { purpose: 'prefetch' },
    { 'x-moz': 'prefetch' },
  ]) {
    const ahead = await service.call('GET', path, { key: null, headers })
    assert.deepEqual([ahead.status, ahead.headers.get('set-cookie')], [503, null])
  }
  const opened = await service.call('GET', path, { key: null })
  assert.equal(opened.status, 200)
  assert.match(opened.headers.get('set-cookie') ?? '', /^sendwright_session=.{43};/)
  assert.equal((await service.call('GET', path, { key: null })).status, 404)
})

const NEW_KEY: NewKey = {
  accountId: 'one',
  kind: 'user',
  role: 'admin',
  description: '',
  domainName: null,
  requestor: null,
  userName: null,
  expiresAt: null,
}

eachStore('sessions never outlive their key, nor links; other accounts reach neither', async (store) => {
  const clock = createTestClock()
  const sealer = createSealer('s'.repeat(32))
  const keys = createKeys(store, sealer, clock)
  const sessions = createSessions(store, sealer, clock)
  for (const id of ['one', 'two']) {
    const account = { id, parent_id: null, name: id, signing_key_sealed: Buffer.from('x'), created_at: 0 }
    await store.db.insertInto('accounts').values(account).execute()
  }
  const { row } = await keys.create({ ...NEW_KEY, expiresAt: clock.now() + 60_000 })
  const source = { accountId: 'one', keyId: row.id }
  assert.equal(await sessions.open({ accountId: 'two', keyId: row.id }, WHO), null)
  const opened = await sessions.open(source, WHO)
  assert.ok(opened)
  assert.equal(opened.lifetimeMs, 60_000)
  assert.deepEqual(await sessions.find(opened.secret), { ...source, id: opened.id, role: 'admin' })
  await assert.rejects(sessions.end('two', opened.id), NotFound)
  assert.equal(await sessions.endAll('two', null), 0)

  await clock.advance(10 * 60_000)
  assert.equal(await sessions.find(opened.secret), null)
  assert.equal(await sessions.open(source, WHO), null, 'an expired key opens none')
  const byOperator = await sessions.open({ accountId: 'one', keyId: null }, WHO)
  assert.ok(byOperator)
  await clock.advance(6 * 60_000)
  assert.equal((await sessions.find(byOperator.secret))?.role, 'admin')
  const [listed] = await sessions.list('one')
  assert.equal((listed?.last_used_at ?? 0) - (listed?.created_at ?? 0), 6 * 60_000)

  const lasting = await keys.create(NEW_KEY)
  await keys.create(NEW_KEY)
  const token = await sessions.createLink({ accountId: 'one', keyId: lasting.row.id })
  await sessions.open({ accountId: 'one', keyId: lasting.row.id }, WHO)
  await keys.remove('one', lasting.row.id)
  assert.equal(await sessions.redeemLink(token), null)
  const rows = await store.db.selectFrom('sessions').select('key_id').execute()
  assert.deepEqual(rows, [{ key_id: null }], 'no row is left behind')
  await clock.advance(14 * 24 * 3_600_000)
  assert.equal(await sessions.find(byOperator.secret), null)
})

eachStore('a session of a user ends after a day without use, and an open stream is no use', async (store) => {
  const clock = createTestClock()
  const sessions = createSessions(store, createSealer('s'.repeat(32)), clock)
  const account = {
    id: 'one',
    parent_id: null,
    name: '',
    signing_key_sealed: Buffer.from('x'),
    created_at: 0,
  }
  await store.db.insertInto('accounts').values(account).execute()
  await store.db
    .insertInto('users')
    .values({
      ...{ id: 'ann', account_id: 'one', email: 'ann@example.org', name: '', role: 'support', created_at: 0 },
      ...{ is_master: 0, is_disabled: 0, session_epoch: 3, totp_step: 0, totp_failures: 0 },
      totp_failures_since: 0,
    } as never)
    .execute()
  const source = { accountId: 'one', keyId: null, user: { id: 'ann', epoch: 3 } }
  assert.equal(await sessions.open({ ...source, user: { id: 'ann', epoch: 2 } }, WHO), null)
  assert.equal(await sessions.open({ ...source, user: { id: 'bob', epoch: 3 } }, WHO), null)
  assert.equal(await sessions.open({ ...source, accountId: 'two' }, WHO), null)
  const opened = await sessions.open(source, WHO)
  assert.ok(opened)
  const HOUR_MS = 3_600_000
  clock.leap(23 * HOUR_MS)
  assert.deepEqual(await sessions.find(opened.secret), { ...source, id: opened.id, role: 'support' })
  clock.leap(23 * HOUR_MS)
  assert.ok(await sessions.find(opened.secret, false))
  clock.leap(HOUR_MS)
  assert.deepEqual([await sessions.find(opened.secret), await sessions.list('one')], [null, []])
  const second = await sessions.open(source, WHO)
  await store.db.updateTable('users').set({ session_epoch: 4 }).execute()
  assert.equal(await sessions.find(second?.secret ?? ''), null)
})

test('a key that is deleted while it signs in or makes a link is refused with 401 (postgres)', async (t) => {
  const on = await startTestService(t, {}, { database: 'postgres' })
  const other = new pg.Client({ connectionString: on.config.databaseUrl as string })
  await other.connect()
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  try {
    for (const path of ['session', 'login-links']) {
      const { body } = await on.call('POST', '/v1/keys', { form: { role: 'admin' } })
      const { id, secret } = body.key
      // The key is known to the service.
      assert.equal((await on.call('GET', '/v1/keys', { key: secret })).status, 200)
      await other.query('BEGIN')
      await other.query('DELETE FROM api_keys WHERE id = $1', [id])
      const given = path === 'session' ? { key: null, form: { key: secret } } : { key: secret }
      const refused = on.call('POST', `/sendwright/v1/${path}`, given)
      await eventually('the call waits for the deletion', async () => (await other.query(waiting)).rowCount)
      await other.query('COMMIT')
      const answer = await refused
      assert.equal(answer.status, 401, answer.text)
    }
  } finally {
    await other.end()
  }
})
