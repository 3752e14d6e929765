/** API keys and the public key over HTTP, on both databases. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { activeUser, as } from '../../../test/support/users.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createKeys, keyRetention } from '../keys/api-keys.ts'

type Form = Record<string, string>

const DAY_MS = 86_400_000
const ROLES = 'expected `role` param to be one of [admin basic sending developer support]'
const KINDS = 'expected `kind` param to be one of [domain user web] or absent'

const create = (service: TestService, form: Form, key?: string) =>
  service.call('POST', '/v1/keys', { form, ...(key !== undefined && { key }) })

eachDatabase((database) => {
  test('keys: each kind and role, the errors, and the end', async (t) => {
    const clock = createTestClock()
    const service = await startTestService(t, {}, { database, clock })
    const { domain } = service
    const { id: userId } = await invited(service)

    const refused: [Form, number, string][] = [
      [{}, 400, 'Missing mandatory parameter: role'],
      [{ role: 'owner' }, 400, ROLES],
      [{ role: 'billing' }, 400, ROLES],
      [{ role: 'admin', kind: 'other' }, 400, KINDS],
      [{ role: 'sending', kind: 'domain' }, 400, 'Missing mandatory parameter: domain_name'],
      [{ role: 'sending', kind: 'domain', domain_name: 'absent.example' }, 404, 'Domain not found'],
      [{ role: 'basic', domain_name: 'absent.example' }, 404, 'Domain not found'],
      [
        { role: 'admin', kind: 'domain', domain_name: domain },
        400,
        'a key of kind domain must have the role sending',
      ],
      [{ role: 'sending' }, 400, 'the role sending is for keys of kind domain'],
      [{ role: 'admin', kind: 'web', email: 'a@example.org' }, 400, 'Missing mandatory parameter: user_id'],
      [{ role: 'admin', kind: 'web', user_id: userId }, 400, 'Missing mandatory parameter: email'],
      [{ role: 'admin', user_id: 'f'.repeat(24) }, 404, 'No such user exists'],
      [{ role: 'admin', expiration: '0' }, 400, 'Invalid format for parameter expiration: 0'],
      [
        { role: 'admin', expiration: '999999999999999' },
        400,
        "The 'expiration' parameter can't be larger than 3155760000",
      ],
    ]
    for (const [form, status, message] of refused) {
      const answer = await create(service, form)
      assert.deepEqual([answer.status, answer.body], [status, { message }])
    }
    const long = await create(service, { role: 'admin', description: 'x'.repeat(256) })
    assert.equal(long.status, 400)

    const made = await create(service, {
      ...{ role: 'developer', description: 'deploys', user_name: 'Ann', email: 'ann@example.org' },
      expiration: '60',
    })
    const { secret, ...key } = made.body.key
    assert.deepEqual([made.status, made.body.message], [200, 'great success'])
    assert.match(key.id, /^[0-9a-f]{8}-[0-9a-f]{8}$/)
    assert.match(secret, new RegExp(`^[0-9a-f]{32}-${key.id}$`))
    const at = (ms: number) => new Date(clock.now() + ms).toISOString().slice(0, 19)
    assert.deepEqual(key, {
      ...{ id: key.id, description: 'deploys', kind: 'user', role: 'developer' },
      ...{ created_at: at(0), updated_at: at(0), expires_at: at(60_000), is_disabled: false },
      ...{ domain_name: null, requestor: 'ann@example.org', user_name: 'Ann' },
    })
    const web = (
      await create(service, { role: 'basic', kind: 'web', user_id: userId, email: 'u@example.org' })
    ).body.key
    assert.equal(web.expires_at, at(DAY_MS))
    const sending = (await create(service, { role: 'sending', kind: 'domain', domain_name: domain })).body.key
    assert.deepEqual([sending.domain_name, 'expires_at' in sending], [domain, false])

    const list = async (query = '') => (await service.call('GET', `/v1/keys${query}`)).body
    assert.equal((await list()).total_count, 4)
    const idsOf = async (query: string) => (await list(query)).items.map(({ id }: { id: string }) => id)
    assert.deepEqual(await idsOf('?kind=web'), [web.id])
    assert.deepEqual(await idsOf(`?domain_name=${domain.toUpperCase()}`), [sending.id])
    assert.equal((await service.call('GET', '/v1/keys?kind=other')).body.message, KINDS)
    assert.ok(!JSON.stringify(await list()).includes(secret))

    const status = async () => (await service.call('GET', '/v4/domains', { key: secret })).status
    assert.equal(await status(), 200)
    clock.leap(59_999 - (clock.now() % 1000))
    assert.equal(await status(), 200)
    clock.leap(1)
    assert.equal(await status(), 401)
    const expired = (await list()).items.find(({ id }: { id: string }) => id === key.id)
    assert.deepEqual([expired.is_disabled, expired.disabled_reason], [true, 'expired'])

    assert.deepEqual((await create(service, { role: 'basic' }, sending.secret)).status, 401)
    const none = await service.call('DELETE', '/v1/keys/none')
    assert.deepEqual([none.status, none.body], [404, { message: 'no key matching id' }])
  })

  test('the last working admin key stays, also under parallel deletions', async (t) => {
    const clock = createTestClock()
    const service = await startTestService(t, {}, { database, clock })
    const first = (await service.call('GET', '/v1/keys')).body.items[0].id as string
    const remove = (id: string, key?: string) =>
      service.call('DELETE', `/v1/keys/${id}`, key === undefined ? {} : { key })
    const last = { message: 'cannot delete the last admin key' }
    await create(service, { role: 'developer' })
    assert.deepEqual((await remove(first)).body, last)
    const expiring = (await create(service, { role: 'admin', expiration: '1' })).body.key
    clock.leap(2_000)
    assert.deepEqual((await remove(first)).body, last, 'an expired one does not count')
    assert.equal((await remove(expiring.id)).status, 200)
    const { id, secret } = (await create(service, { role: 'admin' })).body.key
    const answers = await Promise.all([remove(first), remove(id, secret)])
    assert.deepEqual(answers.map((answer) => answer.status).toSorted(), [200, 400])
  })

  test('the public key validates addresses only, and is replaced at once', async (t) => {
    const service = await startTestService(t, {}, { database })
    const regenerate = async () => (await service.call('POST', '/v1/keys/public')).body
    const { key: former } = await regenerate()
    const status = async (path: string, key: string) => (await service.call('GET', path, { key })).status
    const VALIDATE = '/v4/address/validate?address=nobody'
    assert.equal(await status(VALIDATE, former), 200)
    for (const path of [
      '/v4/domains',
      '/v1/keys',
      '/v5/accounts/http_signing_key',
      '/v4/address/validate/bulk',
    ])
      assert.equal(await status(path, former), 401, path)
    const signIn = await service.call('POST', '/sendwright/v1/session', { key: null, form: { key: former } })
    assert.equal(signIn.status, 401)
    const { key, message } = await regenerate()
    assert.match(key, /^pubkey-[0-9a-f]{32}$/)
    assert.equal(message, 'The public API key has been successfully regenerated.')
    assert.equal(await status(VALIDATE, former), 401)
    assert.equal(await status(VALIDATE, key), 200)
    assert.equal((await service.call('GET', '/v1/keys')).body.total_count, 1)
  })
})

test('web keys stop with their user', async (t) => {
  const service = await startTestService(t as TestContext)
  const admin = await activeUser(service, 'admin@example.org', 'admin')
  const user = await activeUser(service, 'user@example.org')
  const webKey = async (userId: string) =>
    (await create(service, { role: 'basic', kind: 'web', user_id: userId, email: 'u@example.org' })).body.key
  const [first, second] = [await webKey(user.id), await webKey(user.id)]
  const own = await service.call('GET', '/v5/users/me', { key: first.secret })
  assert.deepEqual([own.status, own.body.id], [200, user.id])
  await as(service, admin.cookie, 'DELETE', `/v5/users/${user.id}`)
  const items = (await service.call('GET', '/v1/keys?kind=web')).body.items as Record<string, unknown>[]
  assert.deepEqual(
    items.map((key) => [key['is_disabled'], key['disabled_reason']]),
    [
      [true, 'user removed'],
      [true, 'user removed'],
    ],
  )
  await eventually('the key is refused', async () => {
    const { status } = await service.call('GET', '/v4/domains', { key: second.secret })
    return status === 401
  })
})

const NEW_KEY = {
  ...({ accountId: 'one', kind: 'user', role: 'admin', description: '', domainName: null } as const),
  ...{ requestor: null, userName: null, expiresAt: null },
}

eachStore(
  'a hundred working keys; expired ones do not count and are removed after 30 days',
  async (store) => {
    const clock = createTestClock()
    const keys = createKeys(store, createSealer('s'.repeat(32)), clock)
    const account = {
      id: 'one',
      parent_id: null,
      name: '',
      signing_key_sealed: Buffer.from('x'),
      created_at: 0,
    }
    await store.db.insertInto('accounts').values(account).execute()
    for (let n = 0; n < 100; n++)
      await keys.create({ ...NEW_KEY, expiresAt: n < 99 ? null : clock.now() + 1_000 })
    await assert.rejects(keys.create(NEW_KEY), { message: 'could not create key, account limit reached' })
    clock.leap(1_000)
    const both = await Promise.allSettled([keys.create(NEW_KEY), keys.create(NEW_KEY)])
    assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    assert.equal((await keys.list('one', {})).length, 101)

    const job = keyRetention(store, clock)
    const log = { error: (fault: unknown) => assert.fail(String(fault)) } as never
    job.start({ store, clock, log, random: () => 0, owner: 'test' })
    const left = async () => (await keys.list('one', {})).length
    await eventually('the first run', async () => (await job.report()).lastEndedAt !== null)
    assert.equal(await left(), 101)
    clock.leap(30 * DAY_MS + 1)
    job.wake()
    await eventually('the expired key is removed', async () => (await left()) === 100)
    await job.stop()
  },
)

eachStore('the list of keys is bounded: the first that expired leave it early', async (store) => {
  const clock = createTestClock()
  const keys = createKeys(store, createSealer('s'.repeat(32)), clock)
  const account = {
    id: 'one',
    parent_id: null,
    name: '',
    signing_key_sealed: Buffer.from('x'),
    created_at: 0,
  }
  await store.db.insertInto('accounts').values(account).execute()
  const { row } = await keys.create(NEW_KEY)
  const old = Array.from({ length: 1_000 }, (_, n) => ({
    ...row,
    ...{ id: `old-${n}`, secret_hmac: `hmac-${n}`, expires_at: clock.now() - 1_000 + (n % 500) },
  }))
  for (let at = 0; at < old.length; at += 100)
    await store.db
      .insertInto('api_keys')
      .values(old.slice(at, at + 100))
      .execute()
  await keys.create(NEW_KEY)
  const rows = await keys.list('one', {})
  assert.equal(rows.length, 1_000)
  assert.equal(
    rows.some(({ id }) => id === 'old-0' || id === 'old-500'),
    false,
  )
})

/** A user of the account, who need not be active. */
async function invited(service: TestService): Promise<{ id: string }> {
  const form = { email: 'someone@example.org', name: 'Some One', role: 'developer' }
  return (await service.call('POST', '/v5/users', { form })).body
}
