import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type Answer, startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { domainOfRow, newDomainRow } from '../../sending/domains/domain.ts'
import { hashPassword, verifyPassword } from '../sign-in/passwords.ts'
import { createCredentials } from './credentials.ts'

let service: TestService
let path: string

before(async (t) => {
  service = await startTestService(t as TestContext)
  path = `/v3/domains/${service.domain}/credentials`
})

const is = (answer: Answer, status: number, body: unknown) => {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.body, body)
}

test('a login is created with its password and listed by its address, never with the password', async () => {
  is(await service.call('POST', path, { form: { login: 'bob', password: 'secret-12' } }), 200, {
    message: 'Created 1 credentials pair(s)',
  })
  const { body, text } = await service.call('GET', path)
  const bob = body.items.find((item: { login: string }) => item.login === `bob@${service.domain}`)
  assert.deepEqual(
    { ...bob, created_at: '' },
    {
      mailbox: `bob@${service.domain}`,
      login: `bob@${service.domain}`,
      created_at: '',
      size_bytes: null,
    },
  )
  assert.match(bob.created_at, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$/)
  assert.equal(body.total_count, body.items.length)
  assert.ok(!text.includes('secret-12'))
})

test('without a password one of 24 characters is generated and shown once', async () => {
  const { body } = await service.call('POST', path, { form: { login: ['carol', `dave@${service.domain}`] } })
  assert.equal(body.message, 'Created 2 credentials pair(s)')
  assert.equal(body.note, 'Store these credentials, they will not be shown again')
  assert.deepEqual(Object.keys(body.credentials), [`carol@${service.domain}`, `dave@${service.domain}`])
  for (const password of Object.values(body.credentials)) assert.match(String(password), /^[\w-]{24}$/)
})

test('creating an existing login sets its password', async () => {
  await service.call('POST', path, { form: { login: 'erin', password: 'first-one' } })
  is(await service.call('POST', path, { form: { login: 'erin', password: 'second-one' } }), 200, {
    message: 'Created 1 credentials pair(s)',
  })
})

test('a password is changed, to a given or a generated one', async () => {
  await service.call('POST', path, { form: { login: 'frank', password: 'first-one' } })
  is(await service.call('PUT', `${path}/frank`, { form: { password: 'second-one' } }), 200, {
    message: 'Password changed',
  })
  const { body } = await service.call('PUT', `${path}/frank%40${service.domain}`)
  assert.equal(body.message, 'Password changed')
  assert.match(body.credentials[`frank@${service.domain}`], /^[\w-]{24}$/)
})

test('a login is deleted, and deleting all leaves only the system one', async () => {
  await service.call('POST', path, { form: { login: ['gina', 'hugo'] } })
  is(await service.call('DELETE', `${path}/gina`), 200, {
    message: 'Credentials have been deleted',
    spec: `gina@${service.domain}`,
  })
  const { body } = await service.call('DELETE', path)
  assert.equal(body.message, 'All domain credentials have been deleted')
  assert.ok(body.count >= 1)
  const left = await service.call('GET', path)
  assert.deepEqual(
    left.body.items.filter((item: { login: string }) => !item.login.startsWith('postmaster@')),
    [],
  )
})

test('the older mailboxes paths do the same', async () => {
  const older = `/v3/${service.domain}/mailboxes`
  is(await service.call('POST', older, { form: { mailbox: 'ivan', password: 'secret-12' } }), 200, {
    message: 'Created 1 credentials pair(s)',
  })
  is(await service.call('DELETE', `${older}/ivan`), 200, {
    message: 'Credentials have been deleted',
    spec: `ivan@${service.domain}`,
  })
})

const ERRORS: [string, string, string, Record<string, string | string[]>, number, string][] = [
  ['no login', 'POST', '', { password: 'secret-12' }, 400, "Parameter 'login' is missing"],
  [
    'short password',
    'POST',
    '',
    { login: 'x', password: '1234' },
    400,
    'password should be in range 5-32 characters',
  ],
  [
    'long password',
    'POST',
    '',
    { login: 'x', password: 'y'.repeat(33) },
    400,
    'password should be in range 5-32 characters',
  ],
  [
    'one password for two',
    'POST',
    '',
    { login: ['x', 'y'], password: 'secret-12' },
    400,
    'as many passwords as logins are needed, or none',
  ],
  [
    'login of another domain',
    'POST',
    '',
    { login: 'x@other.example' },
    400,
    'Invalid format for parameter login: x@other.example',
  ],
  ['unknown login, change', 'PUT', '/nobody', { password: 'secret-12' }, 404, 'Credentials not found'],
  ['unknown login, delete', 'DELETE', '/nobody', {}, 404, 'Credentials not found'],
]
for (const [name, method, more, form, status, message] of ERRORS) {
  test(`refused: ${name}`, async () => {
    is(await service.call(method, path + more, { form }), status, { message })
  })
}

test('refused: a limit over the maximum, an unknown domain', async () => {
  is(await service.call('GET', `${path}?limit=1001`), 400, {
    message: "Limit parameter can't be larger than 1000",
  })
  is(await service.call('GET', '/v3/domains/unknown.example/credentials'), 404, {
    message: 'Domain not found',
  })
})

eachStore(
  'only the right password of an existing login authenticates; a change ends what it began',
  async (store) => {
    const now = 1_780_315_200_000
    const account = { id: 'a', parent_id: null, name: 'a', signing_key_sealed: Buffer.of(1), created_at: now }
    await store.db.insertInto('accounts').values(account).execute()
    const row = newDomainRow({
      id: 'd',
      account_id: 'a',
      name: 'mg.example.com',
      type: 'custom',
      state: 'active',
      created_at: now,
    })
    await store.db.insertInto('domains').values(row).execute()
    const credentials = createCredentials(store, createSealer('x'.repeat(32)), systemClock)
    const domain = domainOfRow(row, now)
    await credentials.set(domain, [{ login: 'bob', password: 'secret-12' }])
    assert.equal(await credentials.authenticate('bob@mg.example.com', 'wrong'), null)
    assert.equal(await credentials.authenticate('nobody@mg.example.com', 'secret-12'), null)
    assert.equal(await credentials.authenticate('bob', 'secret-12'), null)
    const login = await credentials.authenticate('BOB@mg.example.com', 'secret-12')
    assert.equal(login?.domainId, 'd')
    assert.equal(await credentials.stillValid(login as NonNullable<typeof login>), true)
    await credentials.remove(domain, 'bob')
    assert.equal(await credentials.authenticate('bob@mg.example.com', 'secret-12'), null)
    assert.equal(await credentials.stillValid(login as NonNullable<typeof login>), false)
  },
)

test('a hash names its parameters and verifies only its password', async () => {
  const hash = await hashPassword('correct horse')
  assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  assert.equal(await verifyPassword('correct horse', hash), true)
  assert.equal(await verifyPassword('correct horsf', hash), false)
  assert.equal(await verifyPassword('x', 'plain'), false)
})
