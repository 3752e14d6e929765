/** The account's calls of the public JavaScript client: keys, settings, addresses of callers, users. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { startTestService, type TestService } from '../support/service.ts'

type Management = ReturnType<Mailgun['client']>['accountManagement']

/** What the types of the client leave out. */
interface Untyped {
  accountManagement: Omit<Management, 'getWebhookSigningKey' | 'createWebhookSigningKey'> &
    Record<'getWebhookSigningKey' | 'createWebhookSigningKey', () => Promise<{ http_signing_key: string }>>
  apiKeys: {
    list(query: object): Promise<{ totalCount: number; items: { id: string; expires_at?: Date }[] }>
    create(data: object): Promise<{ key: { id: string; secret: string }; message: string }>
    destroy(id: string): Promise<{ status: number; message: string }>
    regeneratePublicKey(): Promise<{ status: number; message: string; key: string }>
  }
  subaccounts: ReturnType<Mailgun['client']>['subaccounts'] & {
    updateSubaccountFeature(id: string, features: Record<string, boolean>): Promise<{ features: object }>
  }
}

function clientOf(service: TestService, key = service.key) {
  const client = new Mailgun(FormData).client({ username: 'api', key, url: service.url })
  return client as unknown as Omit<typeof client, keyof Untyped> & Untyped
}

const refused = (status: number, message: string) => (error: { status: number; details: string }) => {
  assert.deepEqual([error.status, error.details], [status, message])
  return true
}

test('keys are created, listed, used and deleted; the public key is replaced', async (t) => {
  const service = await startTestService(t)
  const { apiKeys } = clientOf(service)
  const made = await apiKeys.create({ role: 'developer', description: 'client', expiration: '3600' })
  assert.equal(made.message, 'great success')
  const { items, totalCount } = await apiKeys.list({ kind: 'user' })
  const listed = items.find(({ id }) => id === made.key.id)
  assert.equal(totalCount, 2)
  assert.ok((listed?.expires_at?.getTime() ?? 0) > 0)
  const domains = await clientOf(service, made.key.secret).domains.list()
  assert.equal(domains[0]?.name, service.domain)
  const bad = apiKeys.create({ role: 'owner' })
  await assert.rejects(
    bad,
    refused(400, 'expected `role` param to be one of [admin basic sending developer support]'),
  )
  assert.deepEqual(await apiKeys.destroy(made.key.id), { status: 200, message: 'key deleted' })
  await assert.rejects(apiKeys.destroy(made.key.id), refused(404, 'no key matching id'))
  const { key, message } = await apiKeys.regeneratePublicKey()
  assert.match(key, /^pubkey-[0-9a-f]{32}$/)
  assert.equal(message, 'The public API key has been successfully regenerated.')
})

test('account management: settings, signing key, features, activation mail', async (t) => {
  const service = await startTestService(t)
  const { accountManagement } = clientOf(service)
  const changed = await accountManagement.updateAccountSettings({
    name: 'Shop',
    inactive_session_timeout: 600,
  })
  assert.deepEqual(changed, { status: 200, message: 'Account info has been updated' })
  const { http_signing_key: former } = await accountManagement.getWebhookSigningKey()
  const renewed = await accountManagement.createWebhookSigningKey()
  assert.match(renewed.http_signing_key, /^key-[0-9a-f]{32}$/)
  assert.notEqual(renewed.http_signing_key, former)
  const read = await accountManagement.getWebhookSigningKey()
  assert.equal(read.http_signing_key, renewed.http_signing_key)
  const feature = { webhooks_redact_pii: { enabled: true }, ai_insights: { enabled: false } }
  assert.deepEqual(await accountManagement.updateAccountFeature(feature), { success: true })
  assert.deepEqual(await accountManagement.resendActivationEmail(), { success: true })
})

test('addresses of callers and users, by the plain requests of the client', async (t) => {
  const service = await startTestService(t)
  const { request } = clientOf(service)
  const path = '/v2/ip_whitelist'
  const own = '127.0.0.1'
  const added = await request.postWithFD(path, { address: own, description: 'own' })
  assert.deepEqual(added.body.addresses, [{ ip_address: own, description: 'own' }])
  const changed = await request.putWithFD(path, { address: own, description: 'changed' })
  assert.equal(changed.body.addresses[0].description, 'changed')
  assert.equal((await request.get(path)).body.addresses.length, 1)
  await assert.rejects(
    request.postWithFD(path, { address: 'none' }),
    refused(400, 'Invalid IP Address or CIDR'),
  )
  const removed = await request.delete(path, { address: own } as never)
  assert.deepEqual(removed.body.addresses, [])

  const invited = await request.postWithFD('/v5/users', {
    email: 'ann@example.org',
    name: 'Ann',
    role: 'basic',
  })
  assert.equal(invited.body.activated, false)
  const { users, total } = (await request.get('/v5/users', { limit: 10 })).body
  assert.deepEqual([total, users[0].email], [1, 'ann@example.org'])
  await assert.rejects(request.get('/v5/users/me'), refused(403, 'Incompatible key for this endpoint'))
})

test('subaccounts: created, listed, acted for, limited, disabled and closed', async (t) => {
  const service = await startTestService(t)
  const client = clientOf(service)
  const { subaccounts } = client
  const { subaccount } = await subaccounts.create('Team')
  assert.deepEqual([subaccount.name, subaccount.status], ['Team', 'open'])
  const { id } = subaccount
  assert.equal((await subaccounts.get(id)).subaccount.id, id)
  const listed = await subaccounts.list({ limit: 10, sort: 'desc' })
  assert.deepEqual([listed.total, listed.subaccounts[0]?.id], [1, id])

  client.setSubaccount(id)
  await client.domains.create({ name: 'team.example.com' })
  assert.deepEqual(
    (await client.domains.list()).map(({ name }) => name),
    ['team.example.com'],
  )
  client.resetSubaccount()
  assert.ok((await client.domains.list()).every(({ name }) => name !== 'team.example.com'))

  assert.deepEqual(await subaccounts.setMonthlySendingLimit(id, 7), { success: true })
  assert.equal((await subaccounts.getMonthlySendingLimit(id)).limit, 7)
  const { features } = await subaccounts.updateSubaccountFeature(id, { email_preview: true })
  assert.deepEqual(features, { email_preview: { enabled: true } })
  assert.equal((await subaccounts.disable(id)).subaccount.status, 'disabled')
  await assert.rejects(subaccounts.disable(id), refused(400, 'subaccount is already disabled'))
  assert.equal((await subaccounts.enable(id)).subaccount.status, 'open')
  assert.equal((await subaccounts.destroy(id)).message, 'Subaccount successfully deleted')
  assert.equal((await subaccounts.get(id)).subaccount.status, 'closed')
})
