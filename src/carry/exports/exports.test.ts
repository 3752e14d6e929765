/** Exports over HTTP (exports.md): what they hold, who may have them, how long, and how many. */
import assert from 'node:assert/strict'
import { once as event } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import pino from 'pino'
import { addAccount } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore, temporaryFolder } from '../../../test/support/stores.ts'
import { activeUser, as } from '../../../test/support/users.ts'
import { readCsv } from '../../base/csv.ts'
import { once } from '../../base/flow/unpacked.ts'
import { Unavailable } from '../../base/process/errors.ts'
import { createKeys } from '../../people/keys/api-keys.ts'
import type { Reply } from '../../platform/http/answer/reply.ts'
import { operation } from '../../platform/http/operation.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import type { ExportRow } from '../../platform/store/schema.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createSources } from './lists.ts'
import { exportRoutes } from './routes.ts'
import { EXPORTS } from './shapes.ts'
import { findExport, insertExport } from './store.ts'
import { createExportSteps } from './work.ts'

const PATH = '/v3/exports'
const DAY_MS = 86_400_000

const create = (service: TestService, form: Record<string, string>, key?: string) =>
  service.call('POST', PATH, { form, ...(key !== undefined && { key }) })

/** Asks for an export and waits for its end. */
async function exported(service: TestService, form: Record<string, string>, key?: string) {
  const made = await create(service, form, key)
  assert.equal(made.status, 200, made.text)
  assert.deepEqual([made.body.status, made.body.url], ['requested', form['url']])
  const options = key === undefined ? {} : { key }
  return eventually(`the export of ${form['url']}`, async () => {
    const { body } = await service.call('GET', `${PATH}/${made.body.id}`, options)
    return ['complete', 'failed'].includes(body.status) && body
  })
}

async function linkOf(service: TestService, id: string): Promise<string> {
  const headers = { authorization: `Basic ${btoa(`api:${service.key}`)}` }
  const answer = await fetch(`${service.url}${PATH}/${id}/download_url`, { headers, redirect: 'manual' })
  assert.equal(answer.status, 302)
  return answer.headers.get('location') as string
}

async function recordsOf(link: string): Promise<string[][]> {
  const answer = await fetch(link)
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
  const records: string[][] = []
  for await (const record of readCsv(once(Buffer.from(await answer.arrayBuffer())))) records.push(record)
  return records
}

/** Files below the blob folder of the service. */
const blobsOf = ({ config }: TestService) =>
  readdirSync(config.dataFolder, { recursive: true, withFileTypes: true }).filter(
    (entry) =>
      entry.isFile() &&
      /blob/.test(entry.parentPath) &&
      statSync(join(entry.parentPath, entry.name)).size > 0,
  ).length

eachDatabase((database) => {
  test('a list of many pages becomes one file, which is removed after a day', async (t) => {
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(200), 5)
    t.after(() => clearInterval(ticking))
    const service = await startTestService(t, {}, { database, clock })
    const bounces = Array.from({ length: 6_500 }, (_, at) => ({
      address: `a${String(at).padStart(4, '0')}@example.org`,
      error: at === 0 ? '=1+1' : 'a "quoted", reason',
    }))
    for (let at = 0; at < bounces.length; at += 1000)
      await service.call('POST', `/v3/${service.domain}/bounces`, { json: bounces.slice(at, at + 1000) })
    const url = `/v3/${service.domain}/bounces`
    const done = await exported(service, { url })
    assert.equal(done.status, 'complete', done.message)
    assert.ok(done.size > 0)
    assert.equal(Date.parse(done.expires_at) - Date.parse(done.created_at), DAY_MS)
    assert.equal(blobsOf(service), 2, 'two steps')

    const link = await linkOf(service, done.id)
    const [header, ...records] = await recordsOf(link)
    assert.deepEqual(header, ['address', 'code', 'error', 'created_at'])
    assert.deepEqual(
      records.map(([address]) => address),
      bounces.map(({ address }) => address),
    )
    assert.deepEqual([records[0]?.[2], records[1]?.[2]], ["'=1+1", 'a "quoted", reason'])
    const packed = await service.call('GET', `${PATH}?url=${encodeURIComponent(url)}`)
    assert.deepEqual(packed.body.items, [done])
    assert.deepEqual((await service.call('GET', `${PATH}?url=/v3/other`)).body.items, [])

    clock.leap(16 * 60_000)
    await clock.advance(1)
    assert.equal((await fetch(link)).status, 404, 'the link is over')
    assert.equal((await fetch(await linkOf(service, done.id))).status, 200)
    clock.leap(DAY_MS)
    await eventually('the removal of its files', async () => blobsOf(service) === 0)
    await eventually(
      'the removal of its row',
      async () => (await service.call('GET', `${PATH}/${done.id}`)).status === 404,
    )
  })
})

test('logs, metrics, domains and events', async (t) => {
  const service = await startTestService(t)
  await service.send({ subject: 'One' })
  await eventually('an event', async () => (await service.events()).length > 0)
  const domains = await exported(service, { url: '/domains' })
  const [header, one] = await recordsOf(await linkOf(service, domains.id))
  assert.equal(one?.[header?.indexOf('name') ?? -1], service.domain)
  const events = await exported(service, { url: `/v3/${service.domain}/events?event=accepted` })
  const [columns, event] = await recordsOf(await linkOf(service, events.id))
  assert.equal(event?.[columns?.indexOf('recipient') ?? -1], 'alice@example.org')
  assert.equal(event?.[columns?.indexOf('message.headers.subject') ?? -1], 'One')
  const logs = await exported(service, {
    url: '/v1/analytics/logs',
    body: JSON.stringify({ events: ['accepted'] }),
  })
  assert.equal((await recordsOf(await linkOf(service, logs.id))).length, 2)
  const query = { dimensions: ['domain'], metrics: ['accepted_count'], duration: '1d' }
  const metrics = await exported(service, { url: '/v1/analytics/metrics', body: JSON.stringify(query) })
  assert.equal(metrics.status, 'complete', metrics.message)
})

test('what cannot be exported', async (t) => {
  const service = await startTestService(t)
  const { domain } = service
  for (const [form, message] of [
    [{}, /^Missing mandatory parameter: url$/],
    [{ url: '/v5/users' }, /^this list cannot be exported: \/v5\/users$/],
    [{ url: '/v1/keys' }, /cannot be exported/],
    [{ url: '/sendwright/v1/audit' }, /cannot be exported/],
    [{ url: 'https://example.com/v3/domains' }, /cannot be exported/],
    [{ url: `/v3/${domain}/messages` }, /cannot be exported/],
    [{ url: '/v3/domains\r\nX: y' }, /^url is not a path$/],
    [{ url: `/v3/domains?${'x'.repeat(2_048)}` }, /^url is not a path$/],
    [{ url: '/v3/domains?skip=x' }, /skip/],
    [{ url: '/v1/analytics/logs', body: '[]' }, /^body is no JSON object$/],
    [{ url: '/v1/analytics/logs', body: `{"x":"${'x'.repeat(65_536)}"}` }, /^body is too long$/],
  ] as const) {
    const answer = await create(service, form as Record<string, string>)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.body.message, message)
  }
  const gone = await exported(service, { url: '/v3/none.example/bounces' })
  assert.deepEqual([gone.status, gone.message], ['failed', 'Domain not found'])
  assert.equal((await service.call('GET', `${PATH}/${gone.id}/download_url`)).status, 404)
  assert.equal(blobsOf(service), 0)
})

test('an export is for its account, and for who may read the list', async (t) => {
  const service = await startTestService(t)
  const url = `/v3/${service.domain}/bounces`
  const done = await exported(service, { url })
  const link = await linkOf(service, done.id)

  const stranger = await addAccount(service)
  for (const path of [done.id, `${done.id}/download_url`])
    assert.equal((await service.call('GET', `${PATH}/${path}`, { key: stranger.key })).status, 404)
  assert.deepEqual((await service.call('GET', PATH, { key: stranger.key })).body.items, [])

  const reader = await activeUser(service, 'reader@example.org', 'basic')
  assert.equal((await as(service, reader.cookie, 'GET', `${PATH}/${done.id}/download_url`)).status, 404)
  assert.deepEqual((await as(service, reader.cookie, 'GET', PATH)).body.items, [])
  assert.equal((await as(service, reader.cookie, 'POST', PATH, { url })).status, 403)

  const plain = new URL(link)
  for (const sig of ['', 'x', `${plain.searchParams.get('sig')}x`]) {
    plain.searchParams.set('sig', sig)
    assert.equal((await fetch(plain)).status, 404, sig)
  }
  assert.equal((await fetch(link.replace(done.id, `${done.id}x`))).status, 404)
  const raw = await service.call('GET', link.slice(service.url.length), {
    key: null,
    headers: { 'accept-encoding': 'identity' },
  })
  assert.match(raw.text, /^\ufeff?address,code/)
  assert.equal(raw.headers.get('content-encoding'), null)
})

const exportRow = (change: Partial<ExportRow>): ExportRow => ({
  ...{ id: 'export', account_id: 'account', url: '/v3/domains', body: '', area: 'domains', role: 'admin' },
  ...{ key_id: '', user_id: '' },
  ...{ status: 'requested', next_page: '', records: 0, size_bytes: 0, blobs_json: '[]', fault: '', tries: 0 },
  ...{ lease_token: null, lease_owner: null, lease_until: 0, stepped_at: 0, created_at: 0, ...change },
})

eachStore('an account has two exports in progress and ten in all', async (store) => {
  let made = 0
  const insert = (change: Partial<ExportRow> = {}) =>
    insertExport(store, exportRow({ id: `export-${++made}`, url: `/v3/${made}`, ...change }))
  await insert({ url: '/v3/same' })
  await assert.rejects(insert({ url: '/v3/same' }), /an export of this url is in progress/)
  await insert({ url: '/v3/same', body: '{}' })
  await assert.rejects(insert(), /at most 2 exports in progress/)
  await insert({ account_id: 'other' })
  await store.db.updateTable('exports').set({ status: 'complete' }).execute()
  for (let at = 0; at < 8; at++) await insert({ status: 'complete' })
  await assert.rejects(insert(), /at most 10 exports in 24 hours/)
})

eachStore(
  'a shortage of the service is waited for, and a step that never ends is given up',
  async (store, t) => {
    const clock = createTestClock()
    const folder = await temporaryFolder(t)
    const blobs = await openBlobs(folder)
    let failures = 1
    const list = operation({
      method: 'GET',
      path: '/v3/domains',
      id: 'listDomains',
      tag: 'Domains',
      summary: 'A list',
      auth: { area: 'domains', access: 'read' },
      answers: { 200: EXPORTS },
      async handler() {
        if (failures-- > 0) throw new Unavailable()
        return { items: [] }
      },
    })
    const steps = createExportSteps({
      ...{ store, clock, owner: 'one', blobs, spool: blobs, log: pino({ level: 'silent' }) },
      sourceOf: createSources(() => [list]),
    })
    const stateOf = async (id: string) => (await findExport(store, id))?.status
    const add = (change: Partial<ExportRow>) =>
      insertExport(store, exportRow({ next_page: '/v3/domains', ...change }))

    await add({ id: 'busy' })
    await assert.rejects(steps.runOne(), Unavailable)
    assert.equal(await stateOf('busy'), 'requested')
    assert.equal(await steps.runOne(), false, 'a minute must pass')
    await clock.advance(61_000)
    assert.equal(await steps.runOne(), true)
    assert.equal(await stateOf('busy'), 'complete')

    await add({ id: 'deadly', tries: 3 })
    assert.equal(await steps.runOne(), true)
    assert.equal(await stateOf('deadly'), 'failed')
  },
)

eachStore('an export reads with the rights that its key has by then, and to the end', async (store, t) => {
  const clock = createTestClock()
  const blobs = await openBlobs(await temporaryFolder(t))
  const keys = createKeys(store, createSealer('a secret for tests only, 32 long'), clock)
  const account = { id: 'account', name: 'A', signing_key_sealed: new Uint8Array(0), created_at: 1 }
  await store.db.insertInto('accounts').values(account).execute()
  const key = async () => {
    const made = { accountId: 'account', kind: 'user', role: 'developer', description: '' } as const
    const none = { domainName: null, requestor: null, userName: null, expiresAt: null }
    return (await keys.create({ ...made, ...none })).row.id
  }
  let [size, next] = [5_000, '']
  const list = operation({
    method: 'GET',
    path: '/v3/domains/bounces',
    id: 'listBounces',
    tag: 'Suppressions',
    summary: 'A list',
    auth: { area: 'suppressions', access: 'read' },
    answers: { 200: EXPORTS },
    handler: async () => ({ items: Array(size).fill({}), paging: { next } }) as never,
  })
  const steps = createExportSteps({
    ...{ store, clock, owner: 'one', blobs, spool: blobs, log: pino({ level: 'silent' }) },
    sourceOf: createSources(() => [list]),
  })
  const started = async (id: string, then: string) => {
    const key_id = await key()
    next = then
    await insertExport(store, exportRow({ id, url: id, key_id, next_page: '/v3/domains/bounces' }))
    assert.equal(await steps.runOne(), true)
    assert.equal((await findExport(store, id))?.status, 'processing')
    return key_id
  }
  const ended = async (id: string) => {
    assert.equal(await steps.runOne(), true)
    const { status, fault } = (await findExport(store, id)) ?? {}
    return [status, fault]
  }

  const lowered = await started('lowered', '/v3/domains/bounces?page=2')
  await store.db.updateTable('api_keys').set({ role: 'basic' }).where('id', '=', lowered).execute()
  assert.deepEqual(await ended('lowered'), ['failed', 'Forbidden'])

  const revoked = await started('revoked', '/v3/domains/bounces?page=2')
  await keys.remove('account', revoked)
  assert.deepEqual(await ended('revoked'), ['failed', 'the key that asked for the export is no longer valid'])

  // A fault of ours: tried again, and no list that ends early.
  ;[size, next] = [10, '/v3/nowhere']
  await insertExport(store, exportRow({ id: 'astray', next_page: '/v3/domains/bounces' }))
  await assert.rejects(steps.runOne(), /listBounces leads to what is no list: \/v3\/nowhere/)
  assert.equal((await findExport(store, 'astray'))?.status, 'requested')
})

eachStore('a client that leaves before its file is sent is no fault', async (store, t) => {
  const blobs = await openBlobs(await temporaryFolder(t))
  const sealer = createSealer('a secret for tests only, 32 long')
  const { chunk } = await blobs.spool(once(gzipSync('a,b\r\n'.repeat(100_000))))
  const blobs_json = JSON.stringify([await blobs.keep(chunk)])
  await insertExport(store, exportRow({ status: 'complete', blobs_json }))
  const routes = exportRoutes({
    ...{ store, blobs, sealer, clock: createTestClock(), log: pino({ level: 'silent' }) },
    ...{ baseUrl: 'http://localhost', sourceOf: createSources(() => []), wake: () => undefined },
  })
  const call = async (id: string, context: object) =>
    (await routes.find((one) => one.id === id)?.handler(context as never)) as Reply
  const path = { id: 'export' }
  const link = await call('readExportUrl', { path, caller: { accountId: 'account', role: 'admin' } })
  const sig = new URL(String(link.headers['location'])).searchParams.get('sig')
  const { content } = await call('downloadExport', { path, headers: {}, input: () => ({ sig }) })
  assert.ok(content.kind === 'stream' && content.source instanceof Readable)
  const closed = event(content.source, 'close')
  content.source.destroy()
  await closed
})
