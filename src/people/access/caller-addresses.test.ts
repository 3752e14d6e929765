/** The addresses that an account may be called from, over HTTP and SMTP. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { addAccount } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type CallOptions, startTestService, type TestService } from '../../../test/support/service.ts'
import { openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { activeUser, as } from '../../../test/support/users.ts'
import { createAccountDirectory } from '../accounts/account-directory.ts'
import { createAllowedCallers } from './authenticator.ts'
import { createCallerAddressStore } from './caller-address-store.ts'

const PATH = '/v2/ip_whitelist'
const OWN_ADDRESS = { message: 'the change would block your own address' }
/** Believed as a proxy: a test calls from any address by its header. */
const PROXIED = { SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8' }

const from = (address: string) => ({ 'x-forwarded-for': address })

async function change(
  service: TestService,
  method: 'POST' | 'PUT' | 'DELETE',
  form: Record<string, string>,
  options: CallOptions = {},
) {
  const { status, body } = await service.call(method, PATH, { form, ...options })
  return [status, status === 200 ? body.addresses : body]
}

eachDatabase((database) => {
  test('a list of addresses: canonical form, errors, and who may call', async (t) => {
    const service = await startTestService(t, PROXIED, { database })
    const here = { headers: from('203.0.113.9') }
    const add = (address: string, more: Record<string, string> = {}) =>
      change(service, 'POST', { address, ...more }, here)
    assert.deepEqual((await service.call('GET', PATH)).body, { addresses: [] })
    for (const form of [{}, { address: '' }])
      assert.deepEqual(await change(service, 'POST', form, here), [
        400,
        { message: 'IP address can not be blank' },
      ])
    for (const text of ['none', '192.0.2.1/33', '192.0.2', '2001:db8::/129', '10.0.0.0/8/8', 'fe80::1%eth0'])
      assert.deepEqual(await add(text), [400, { message: 'Invalid IP Address or CIDR' }], text)
    assert.deepEqual(await add('192.0.2.0/24'), [400, OWN_ADDRESS])

    const office = { ip_address: '203.0.113.0/24', description: 'office' }
    assert.deepEqual(await add('203.0.113.77/24', { description: 'office' }), [200, [office]])
    assert.deepEqual(await add('::ffff:203.0.113.0/120'), [400, { message: 'IP address already exists' }])
    assert.deepEqual((await add('2001:0DB8:0:0:0:0:0:1'))[0], 200)
    assert.deepEqual((await add('2001:db8:5::ffff/48'))[0], 200)
    const listed = (await service.call('GET', PATH, here)).body.addresses
    assert.deepEqual(
      listed.map(({ ip_address }: { ip_address: string }) => ip_address),
      ['203.0.113.0/24', '2001:db8::1', '2001:db8:5::/48'],
    )

    const status = async (address: string) =>
      (await service.call('GET', '/v4/domains', { headers: from(address) })).status
    const may = ['203.0.113.255', '::ffff:203.0.113.4', '::ffff:cb00:7104', '2001:db8::1', '2001:db8:5:9::2']
    const mayNot = ['203.0.114.1', '::ffff:203.0.114.1', '2001:db8::2', '2001:db8:6::1', '192.0.2.1']
    for (const address of may) assert.equal(await status(address), 200, address)
    for (const address of mayNot) assert.equal(await status(address), 403, address)
    const read = await service.call('GET', '/v4/domains', { headers: from('192.0.2.1') })
    assert.deepEqual(read.body, { message: 'Forbidden' })
    const sent = await service.call('POST', `/v3/${service.domain}/messages`, { headers: from('192.0.2.1') })
    assert.deepEqual([sent.status, sent.text], [401, 'Forbidden'])

    assert.deepEqual(await change(service, 'PUT', { address: '203.0.113.1/24', description: 'HQ' }, here), [
      200,
      [{ ...office, description: 'HQ' }, ...listed.slice(1)],
    ])
    for (const method of ['PUT', 'DELETE'] as const)
      assert.deepEqual(await change(service, method, { address: '198.51.100.1' }, here), [
        400,
        { message: 'IP not found' },
      ])
    const remove = { address: '203.0.113.0/24' }
    assert.deepEqual(await change(service, 'DELETE', remove, here), [400, OWN_ADDRESS])
    assert.equal((await change(service, 'DELETE', { ...remove, force: 'true' }, here))[0], 200)
    assert.equal(await status('203.0.113.9'), 403)
    assert.equal(await status('2001:db8::1'), 200)
  })
})

test('web keys, sessions and the public are not bound to the list; signing in with a key is', async (t) => {
  const service = await startTestService(t as TestContext, PROXIED)
  const { id, cookie } = await activeUser(service, 'admin@example.org', 'admin')
  const form = { role: 'admin', kind: 'web', user_id: id, email: 'admin@example.org' }
  const web = (await service.call('POST', '/v1/keys', { form })).body.key.secret
  const elsewhere = { headers: from('192.0.2.1') }
  const signIn = () =>
    service.call('POST', '/sendwright/v1/session', { key: null, form: { key: service.key }, ...elsewhere })
  const session = (await signIn()).headers.get('set-cookie')?.split(';', 1)[0] as string
  // Nobody is shut out by a list that does not hold for the caller.
  assert.equal((await as(service, cookie, 'POST', `${PATH}?address=203.0.113.9`)).status, 200)

  const status = async (options: CallOptions) => (await service.call('GET', '/v4/domains', options)).status
  assert.equal(await status(elsewhere), 403)
  assert.equal(await status({ ...elsewhere, key: web }), 200)
  for (const open of [cookie, session])
    assert.equal(await status({ key: null, headers: { ...from('192.0.2.1'), cookie: open } }), 200)
  assert.equal((await service.call('GET', '/health/live', { key: null, ...elsewhere })).status, 200)
  assert.equal((await signIn()).status, 401)
})

test('SMTP logins work from listed addresses only, and running sessions end', async (t) => {
  const service = await startTestService(t as TestContext)
  const { domain } = service
  const credential = { login: 'app', password: 'password-123' }
  await service.call('POST', `/v3/domains/${domain}/credentials`, { form: credential })
  const dialogue = async (localAddress: string) => {
    const smtp = await openDialogue(t as TestContext, {
      host: service.config.smtpHost,
      port: service.service.smtp.port,
      localAddress,
    })
    await smtp.reply()
    await smtp.say('EHLO test')
    return smtp
  }
  const login = `AUTH PLAIN ${plainLogin(`app@${domain}`, credential.password)}`
  const [listed, other] = ['127.0.0.21', '127.0.0.22']
  const running = await dialogue(other)
  assert.match((await running.say(login)) ?? '', /^235 /)
  assert.match((await running.say(`MAIL FROM:<a@${domain}>`)) ?? '', /^250 /)
  assert.match((await running.say('RSET')) ?? '', /^250 /)

  const form = { address: listed, force: 'yes' }
  assert.equal((await change(service, 'POST', form))[0], 200)
  assert.match((await running.say(`MAIL FROM:<a@${domain}>`)) ?? '', /^421 4\.7\.0 /)
  assert.match((await (await dialogue(listed)).say(login)) ?? '', /^235 /)
  const refused = await dialogue(other)
  const wrong = `AUTH PLAIN ${plainLogin(`app@${domain}`, 'password-124')}`
  const replies = [await refused.say(login), await refused.say(wrong)]
  assert.match(replies[0] ?? '', /^535 /)
  assert.equal(replies[0], replies[1], 'a right password cannot be told from a wrong one')
})

test('a subaccount uses the list of its parent until it has one; a parent is bound to its own', async (t) => {
  const service = await startTestService(t as TestContext, PROXIED)
  const child = addAccount(service, service.service.first.accountId)
  const stranger = addAccount(service)
  const here = { headers: from('203.0.113.9') }
  const status = async (key: string, address: string) =>
    (await service.call('GET', '/v4/domains', { key, headers: from(address) })).status
  await change(service, 'POST', { address: '203.0.113.0/24' }, here)
  assert.deepEqual([await status(child.key, '203.0.113.9'), await status(child.key, '192.0.2.1')], [200, 403])
  assert.equal(await status(stranger.key, '192.0.2.1'), 200)
  const own = { key: child.key, headers: from('203.0.113.9') }
  const entry = { address: '192.0.2.1', force: 'true' }
  assert.deepEqual(await change(service, 'POST', { address: '192.0.2.1' }, own), [400, OWN_ADDRESS])
  assert.equal((await change(service, 'POST', entry, own))[0], 200)
  assert.deepEqual([await status(child.key, '203.0.113.9'), await status(child.key, '192.0.2.1')], [403, 200])
  // Without its last entry it falls back to the parent's list, where this address is not.
  const last = { key: child.key, headers: from('192.0.2.1') }
  assert.deepEqual(await change(service, 'DELETE', { address: '192.0.2.1' }, last), [400, OWN_ADDRESS])
})

eachStore('200 entries at most; another process follows within five seconds', async (store) => {
  const clock = createTestClock()
  for (const id of ['one', 'two']) {
    const account = { id, parent_id: null, name: '', signing_key_sealed: Buffer.from('x'), created_at: 0 }
    await store.db.insertInto('accounts').values(account).execute()
  }
  const stored = createCallerAddressStore(store)
  const process = () =>
    createAllowedCallers(stored, createAccountDirectory(store, clock), clock, store.changes)
  const [first, second] = [process(), process()]
  assert.equal(await second.allows('one', '192.0.2.1'), true)
  assert.equal(second.allows('one', '192.0.2.1'), true, 'known without waiting')
  await stored.add('one', { address: '10.0.0.0', description: '' }, 1)
  first.changed()
  assert.equal(await first.allows('one', '192.0.2.1'), false)
  assert.equal(second.allows('one', '192.0.2.1'), true)
  clock.leap(5_000)
  assert.equal(await second.allows('one', '192.0.2.1'), false)
  assert.equal(await second.allows('two', '192.0.2.1'), true)

  for (let n = 1; n < 199; n++) await stored.add('one', { address: `10.0.0.${n}`, description: '' }, n)
  const last = (address: string) => stored.add('one', { address, description: '' }, 200)
  const both = await Promise.allSettled([last('10.0.1.1'), last('10.0.1.2')])
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  assert.equal((await stored.list('one')).length, 200)
})
