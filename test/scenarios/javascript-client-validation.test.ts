/** The public JavaScript client's calls of validation and inbox placement. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { createDnsServer } from '../support/dns-server.ts'
import { eventually, startTestService } from '../support/service.ts'

async function clientOf(t: TestContext) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('example.org', 'MX', [[10, 'mx.example.org']])
  const service = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` })
  const mailgun = new Mailgun(FormData)
  const client = mailgun.client({ username: 'api', key: service.key, url: service.url })
  return { service, mailgun, client }
}

test('validate: one address, also with the public key', async (t) => {
  const { service, mailgun, client } = await clientOf(t)
  const result = await client.validate.get('Info@example.org')
  assert.deepEqual(result, {
    address: 'Info@example.org',
    is_disposable_address: false,
    is_role_address: true,
    reason: ['unknown_provider', 'mailbox_is_role_address'],
    result: 'unknown',
    risk: 'medium',
  })
  const { key } = (await service.call('POST', '/v1/keys/public')).body
  const { validate } = mailgun.client({
    username: 'api',
    key: service.key,
    public_key: key,
    url: service.url,
  })
  assert.equal((await validate.get('nobody')).result, 'undeliverable')
})

test('multipleValidation: create, read, list, destroy', async (t) => {
  const { client } = await clientOf(t)
  const { multipleValidation } = client.validate
  const made = await multipleValidation.create('june', { file: 'email\nann@example.org\nnobody\n' })
  assert.deepEqual(made, { status: 202, id: 'june', message: 'The validation job was submitted.' })
  const job = await eventually('the job', async () => {
    const read = await multipleValidation.get('june')
    return read.status === 'uploaded' && read
  })
  // The client reads the seconds of the contract as milliseconds.
  assert.ok(Math.abs(job.createdAt.getTime() - Date.now() / 1000) < 600)
  assert.deepEqual([job.quantity, job.recordsProcessed, job.responseStatusCode], [2, 2, 200])
  assert.deepEqual(job.summary?.result, {
    ...{ catchAll: 0, deliverable: 0, doNotSend: 0, undeliverable: 1, unknown: 1 },
  })
  assert.match(await (await fetch(job.downloadUrl?.csv ?? '')).text(), /nobody,undeliverable,high/)
  await multipleValidation.create('july', { file: Buffer.from('ann@example.org\n') })
  const list = await multipleValidation.list({ limit: 1 })
  assert.deepEqual([list.total, list.jobs.map(({ id }) => id)], [2, ['july']])
  const next = await multipleValidation.list({ limit: 1, page: list.pages.next?.page ?? '' })
  assert.deepEqual(
    next.jobs.map(({ id }) => id),
    ['june'],
  )
  const gone = await multipleValidation.destroy('june')
  assert.deepEqual(gone, { status: 200, message: 'Validation job canceled.' })
  await assert.rejects(multipleValidation.get('june'), { status: 404, details: 'validation job not found' })
})

test('a mailing list is validated', async (t) => {
  const { service, client } = await clientOf(t)
  const address = `news@${service.domain}`
  await client.lists.create({ address })
  await client.lists.members.createMember(address, { address: 'ann@example.org' })
  const started = await client.lists.validate(address)
  assert.deepEqual(started, { status: 202, id: address, message: 'The validation job was submitted.' })
  const { validationResult } = await eventually('the result', async () => {
    const read = await client.lists.validationResult(address)
    return read.validationResult.status === 'uploaded' && read
  })
  assert.ok(validationResult.created_at instanceof Date)
  assert.deepEqual([validationResult.id, validationResult.quantity], [address, 1])
  assert.equal((await client.lists.cancelValidation(address)).message, 'Validation job canceled.')
})

test('inboxPlacements: providers, seed lists, a test, its result and sharing', async (t) => {
  const { service, client } = await clientOf(t)
  const { inboxPlacements } = client
  assert.deepEqual((await inboxPlacements.providers.list()).items, [])
  const list = await inboxPlacements.seedsLists.create({ name: 'Mine', sending_domains: service.domain })
  assert.ok(list.created_at instanceof Date && !Number.isNaN(list.last_result_at.getTime()))
  const read = await inboxPlacements.seedsLists.get(list.target_email)
  assert.deepEqual([read.name, read.Seeds, read.sending_domains], ['Mine', null, [service.domain]])
  assert.equal((await inboxPlacements.seedsLists.update(list.kid, { name: 'Ours' })).name, 'Ours')
  assert.deepEqual(
    (await inboxPlacements.seedsLists.list({ limit: 10 })).items.map(({ name }) => name),
    ['Ours'],
  )
  assert.ok((await inboxPlacements.seedsLists.attributes.list()).items.values.includes('name'))
  assert.equal((await inboxPlacements.seedsLists.filters.list()).status, 200)

  const run = await inboxPlacements.runTest({
    ...{ from: `a@${service.domain}`, subject: 'Hello', html: '<p>x</p>', seed_list: list.kid },
  })
  assert.equal(run.status, 200)
  const { inboxPlacementResult: result } = await inboxPlacements.results.get(run.result_id)
  assert.deepEqual([result.status, result.seed_results, result.Box.name], ['completed', [], 'Ours'])
  assert.ok(!Number.isNaN(result.sharing_expires_at.getTime()))
  const results = await inboxPlacements.results.list({
    time_after: new Date(Date.now() - 60_000).toISOString(),
  })
  assert.equal(results.items.length, 1)
  const values = await inboxPlacements.results.attributes.get('subject')
  assert.deepEqual('items' in values && values.items, { attribute: 'subject', values: ['Hello'] })
  const shared = await inboxPlacements.results.sharing.update(run.result_id, { enabled: true })
  assert.ok(shared.enabled && shared.expires_at instanceof Date)
  const byLink = await inboxPlacements.results.getResultByShareId(shared.url_id)
  assert.equal(byLink.inboxPlacementResult.rid, run.result_id)
  assert.equal((await inboxPlacements.results.destroy(run.result_id)).Message, 'result deleted')
  assert.equal((await inboxPlacements.seedsLists.destroy(list.kid)).status, 200)
})
