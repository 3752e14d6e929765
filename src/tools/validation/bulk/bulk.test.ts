/** Validation of files and mailing lists over HTTP (validation.md section 3). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createDnsServer } from '../../../../test/support/dns-server.ts'
import { createReceiver } from '../../../../test/support/http-receiver.ts'
import {
  type Answer,
  eventually,
  startTestService,
  type TestService,
} from '../../../../test/support/service.ts'

const BULK = '/v4/address/validate/bulk'
const PREVIEW = '/v4/address/validate/preview'

async function start(
  t: TestContext,
  overrides: Parameters<typeof startTestService>[2] = {},
  env: Record<string, string> = {},
) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('example.org', 'MX', [[10, 'mx.example.org']])
  const service = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, ...env }, overrides)
  return { service, dns }
}

const csv = (text: string | Uint8Array<ArrayBuffer>) => new File([text], 'list.csv', { type: 'text/csv' })
const upload = (service: TestService, path: string, text: string | Uint8Array<ArrayBuffer>) =>
  service.call('POST', path, { form: { file: csv(text) } })

function whenDone(service: TestService, path: string) {
  return eventually(`the end of ${path}`, async () => {
    const { body } = await service.call('GET', path)
    return ['uploaded', 'failed'].includes(body.status) && body
  })
}

const message = ({ status, body }: Answer) => [status, body]

const FILE = `name,email,note
Ann,ann@example.org,"a, note"
Bob,bob@absent.example,
Ann again,Ann@Example.ORG,
Role,info@example.org,
None,,
Broken,not an address,
`

eachDatabase((database) => {
  test('a file from its upload to its results', async (t) => {
    const { service } = await start(t, { database })
    assert.deepEqual(message(await upload(service, `${BULK}/june`, FILE)), [
      202,
      { id: 'june', message: 'The validation job was submitted.' },
    ])
    const job = await whenDone(service, `${BULK}/june`)
    const { download_url: urls, created_at: createdAt, ...rest } = job
    assert.ok(Number.isInteger(createdAt) && Math.abs(createdAt - Date.now() / 1000) < 600)
    assert.deepEqual(rest, {
      id: 'june',
      quantity: 6,
      records_processed: 4,
      status: 'uploaded',
      summary: {
        result: { catch_all: 0, deliverable: 0, do_not_send: 0, undeliverable: 2, unknown: 2 },
        risk: { high: 2, low: 0, medium: 1, unknown: 1 },
      },
    })
    assert.ok(urls.csv.startsWith(`${service.url}${BULK}/june/download?format=csv&sig=`))
    const file = await fetch(urls.csv)
    assert.match(file.headers.get('content-type') ?? '', /^text\/csv/)
    assert.deepEqual((await file.text()).split('\r\n'), [
      'address,result,risk,reason,is_disposable_address,is_role_address,did_you_mean,root_address',
      'ann@example.org,unknown,unknown,unknown_provider,false,false,,',
      'bob@absent.example,undeliverable,high,no_mx,false,false,,',
      'info@example.org,unknown,medium,unknown_provider;mailbox_is_role_address,false,true,,',
      'not an address,undeliverable,high,malformed address; missing @ sign,false,false,,',
      '',
    ])
    const results = (await (await fetch(urls.json)).json()) as { address: string }[]
    assert.deepEqual(
      results.map(({ address }) => address),
      ['ann@example.org', 'bob@absent.example', 'info@example.org', 'not an address'],
    )
    const usage = await service.call('POST', '/v1/analytics/usage/metrics', {
      json: {
        metrics: ['email_validation_count', 'email_validation_bulk_count', 'email_validation_single_count'],
      },
    })
    assert.deepEqual(Object.values(usage.body.items[0].metrics), [4, 4, 0])

    const deleted = await service.call('DELETE', `${BULK}/june`)
    assert.deepEqual(message(deleted), [200, { message: 'Validation job canceled.' }])
    const gone = [404, { message: 'validation job not found' }]
    assert.deepEqual(message(await service.call('GET', `${BULK}/june`)), gone)
    assert.equal((await fetch(urls.csv)).status, 404)
    assert.equal((await upload(service, `${BULK}/june`, FILE)).status, 202, 'the name is free again')
    await whenDone(service, `${BULK}/june`)
  })

  test('a mailing list, its members and its end', async (t) => {
    const { service } = await start(t, { database })
    const list = `News@${service.domain}`
    await service.call('POST', '/v3/lists', { form: { address: list } })
    const members = ['ann@example.org', 'bob@absent.example', 'eve@example.org'].map((address) => ({
      address,
      subscribed: address[0] !== 'e',
    }))
    await service.call('POST', `/v3/lists/${list}/members.json`, {
      form: { members: JSON.stringify(members) },
    })
    const path = `/v3/lists/${list}/validate`
    assert.deepEqual(message(await service.call('GET', path)), [404, { message: 'validation job not found' }])
    const made = await service.call('POST', path)
    assert.deepEqual(message(made), [202, { id: list, message: 'The validation job was submitted.' }])
    const job = await whenDone(service, path)
    assert.deepEqual([job.id, job.quantity, job.records_processed], [list, 3, 3])
    assert.equal(job.summary.result.undeliverable, 1)
    assert.equal((await service.call('POST', path)).status, 202, 'once more')
    await whenDone(service, path)
    const { body } = await service.call('GET', BULK)
    assert.deepEqual([body.total, body.jobs[0].id], [1, list], 'it has replaced the former')
    assert.equal((await service.call('DELETE', path)).status, 200)
    assert.equal((await service.call('GET', path)).status, 404)
    const unknown = await service.call('POST', '/v3/lists/none@example.org/validate')
    assert.deepEqual(message(unknown), [404, { message: 'Mailing list none@example.org not found' }])
    const usage = await service.call('POST', '/v1/analytics/usage/metrics', {
      json: { metrics: ['email_validation_list_count'] },
    })
    assert.equal(usage.body.items[0].metrics.email_validation_list_count, 6)
  })
})

test('forms of files: one column, gzip, quoted, with a byte order mark', async (t) => {
  const { service } = await start(t)
  const cases: [name: string, file: string | Uint8Array<ArrayBuffer>, addresses: string[]][] = [
    ['plain', 'ann@example.org\r\nbob@example.org', ['ann@example.org', 'bob@example.org']],
    ['header', 'email_address\nann@example.org\n', ['ann@example.org']],
    ['mark', '\uFEFFemail\nann@example.org\n', ['ann@example.org']],
    ['packed', gzipSync('email,x\nann@example.org,1\n'), ['ann@example.org']],
    ['quoted', 'email\n"""ann lee""@example.org"\n', ['"ann lee"@example.org']],
    ['nul', 'email\na\0b@example.org\n', ['a\ufffdb@example.org']],
    ['empty', 'email\n', []],
  ]
  for (const [name, file, addresses] of cases) {
    assert.equal((await upload(service, `${BULK}/${name}`, file)).status, 202, name)
    const job = await whenDone(service, `${BULK}/${name}`)
    const results = (await (await fetch(job.download_url.json)).json()) as { address: string }[]
    assert.deepEqual(
      results.map(({ address }) => address),
      addresses,
      name,
    )
  }
  const broken = gzipSync(`email\n${'ann@example.org\n'.repeat(100_000)}`).subarray(0, 200)
  assert.equal((await upload(service, `${BULK}/broken`, broken)).status, 202)
  assert.deepEqual((await whenDone(service, `${BULK}/broken`)).status, 'failed')
})

test('errors of the contract', async (t) => {
  const { service } = await start(t)
  const path = `${BULK}/one`
  const column = { message: 'missing email or email_address column' }
  assert.deepEqual(message(await service.call('POST', path, { form: { other: 'x' } })), [
    400,
    { message: "'file' parameter is required" },
  ])
  for (const file of ['name,Email\nx,y\n', '', '"never ends'])
    assert.deepEqual(message(await upload(service, path, file)), [400, column], JSON.stringify(file))
  const large = new Uint8Array(25 * 1024 * 1024 + 1).fill(0x61)
  assert.deepEqual(message(await upload(service, path, large)), [
    413,
    { message: 'file size exceeds 25MB limit' },
  ])
  for (const name of ['a%40b', 'x'.repeat(256)])
    assert.equal((await upload(service, `${BULK}/${name}`, FILE)).status, 400)
  assert.equal((await upload(service, path, FILE)).status, 202)
  assert.deepEqual(message(await upload(service, path, FILE)), [400, { message: 'list_id already exists' }])
  assert.deepEqual(message(await service.call('DELETE', `${BULK}/none`)), [
    404,
    { message: 'validation job not found' },
  ])
  assert.deepEqual(message(await service.call('GET', `${PREVIEW}/none`)), [
    404,
    { message: 'validation preview not found' },
  ])
  for (const sig of ['', 'x', 'A'.repeat(60)]) {
    const answer = await service.call('GET', `${path}/download?sig=${sig}`, { key: null })
    assert.deepEqual(message(answer), [404, { message: 'validation job not found' }])
  }
  const { subaccount } = (await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'child' } }))
    .body
  await service.call('PUT', `/v5/accounts/subaccounts/${subaccount.id}/features`, {
    form: { validations_bulk: '{"enabled": false}' },
  })
  const headers = { 'x-service-on-behalf-of': subaccount.id }
  assert.equal((await service.call('GET', BULK, { headers })).status, 403)
  assert.equal((await service.call('GET', '/v4/address/validate?address=a', { headers })).status, 200)
})

test('ten jobs run at once; a canceled one has no results and keeps its name until it is deleted', async (t) => {
  const { service, dns } = await start(t)
  const release = dns.hold()
  for (let n = 0; n < 10; n++)
    assert.equal((await upload(service, `${BULK}/job${n}`, `a@d${n}.example`)).status, 202)
  const full = await upload(service, `${PREVIEW}/more`, FILE)
  assert.deepEqual(message(full), [400, { message: 'Too many validation jobs in progress' }])
  assert.equal((await service.call('DELETE', `${BULK}/job0`)).status, 200)
  release()
  const canceled = (await service.call('GET', `${BULK}/job0`)).body
  assert.deepEqual(
    [canceled.status, 'summary' in canceled, 'download_url' in canceled],
    ['canceled', false, false],
  )
  assert.deepEqual(message(await upload(service, `${BULK}/job0`, FILE)), [
    400,
    { message: 'list_id already exists' },
  ])
  for (let n = 1; n < 10; n++) await whenDone(service, `${BULK}/job${n}`)
  assert.equal(
    (await service.call('GET', `${BULK}/job0`)).body.status,
    'canceled',
    'its last step has no effect',
  )
  assert.equal((await service.call('DELETE', `${BULK}/job0`)).status, 200)
  assert.equal((await service.call('GET', `${BULK}/job0`)).status, 404)
})

test('jobs are listed newest first, in pages whose links all work', async (t) => {
  const { service } = await start(t)
  for (let n = 0; n < 5; n++) {
    await upload(service, `${BULK}/job${n}`, 'x')
    await whenDone(service, `${BULK}/job${n}`)
  }
  const page = async (url: string) => {
    const { body } = await service.call('GET', url.replace(service.url, ''))
    for (const name of ['first', 'last', 'next', 'previous', 'prev'])
      assert.ok(new URL(body.paging[name]), name)
    assert.equal(body.total, 5)
    return { ids: body.jobs.map(({ id }: { id: string }) => id), paging: body.paging }
  }
  const first = await page(`${BULK}?limit=2`)
  assert.deepEqual(first.ids, ['job4', 'job3'])
  const second = await page(first.paging.next)
  assert.deepEqual(second.ids, ['job2', 'job1'])
  assert.deepEqual((await page(second.paging.prev)).ids, first.ids)
  assert.deepEqual((await page(first.paging.last)).ids, ['job1', 'job0'])
  const last = await page(second.paging.next)
  assert.deepEqual([last.ids, (await page(last.paging.next)).ids], [['job0'], []])
  assert.equal((await service.call('GET', `${BULK}?limit=1001`)).status, 400)
})

test('a preview is a sample in percent, and becomes a job of the whole file', async (t) => {
  const { service } = await start(t)
  const rows = Array.from({ length: 1_200 }, (_, n) => (n % 3 === 0 ? `broken${n}` : `a${n}@example.org`))
  const made = await upload(service, `${PREVIEW}/sample`, `email\n${rows.join('\n')}`)
  assert.deepEqual(message(made), [202, { id: 'sample', message: 'The bulk preview was submitted.' }])
  const preview = await eventually('the preview', async () => {
    const { body } = await service.call('GET', `${PREVIEW}/sample`)
    return body.preview.status === 'preview_complete' && body.preview
  })
  assert.deepEqual([preview.id, preview.valid, preview.quantity], ['sample', true, 1_200])
  const { result } = preview.summary
  assert.ok(result.undeliverable > 20 && result.undeliverable < 47, `a third: ${result.undeliverable}`)
  assert.equal(Math.round(10 * (result.undeliverable + result.unknown)), 1_000)
  assert.ok(Number.isInteger(Math.round(result.unknown * 1e6) / 1e5), 'one decimal')
  assert.equal((await service.call('GET', PREVIEW)).body.previews.length, 1)
  const promoted = await service.call('PUT', `${PREVIEW}/sample`)
  assert.deepEqual(message(promoted), [200, { message: 'Validation preview promoted.' }])
  assert.equal((await service.call('GET', `${PREVIEW}/sample`)).status, 404)
  const job = await whenDone(service, `${BULK}/sample`)
  assert.deepEqual(
    [job.quantity, job.records_processed, job.summary.result.undeliverable],
    [1_200, 1_200, 400],
  )
  await upload(service, `${PREVIEW}/sample`, 'x')
  assert.deepEqual(message(await service.call('PUT', `${PREVIEW}/sample`)), [
    400,
    { message: 'list_id already exists' },
  ])
  const deleted = await service.call('DELETE', `${PREVIEW}/sample`)
  assert.deepEqual([deleted.status, deleted.text], [204, ''])
})

test('a complete job is told to the targets of its event type, once', async (t) => {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const { service } = await start(t, {}, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' })
  const set = async (event_type: string, channel: string, settings: object) => {
    const answer = await service.call('POST', '/v1/alerts/settings/events', {
      json: { event_type, channel, settings },
    })
    assert.equal(answer.status, 200, answer.text)
  }
  await set('validation_job', 'webhook', { url: `${receiver.url}/job` })
  await set('validation_preview', 'webhook', { url: `${receiver.url}/preview` })
  await set('validation_job', 'email', { emails: [`ops@${service.domain}`] })
  await upload(service, `${BULK}/told`, FILE)
  await whenDone(service, `${BULK}/told`)
  const post = await eventually('the post', async () => receiver.posts.find(({ body }) => body !== null))
  assert.equal(post.path, '/job')
  const document = post.body['event-data']
  const summary = { result: { catch_all: 0, deliverable: 0, do_not_send: 0, undeliverable: 2, unknown: 2 } }
  assert.deepEqual(document, {
    event: 'validation_job',
    job: { id: 'told', quantity: 6, records_processed: 4, summary },
  })
  const mail = await eventually('the mail', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/inbox')
    return body.items.find(({ subject }: { subject: string }) => subject.includes('"told"'))
  })
  assert.equal(mail.subject, 'Validation job "told" is complete')
  // The URLs were tried when they were set.
  assert.equal(receiver.posts.filter(({ body }) => body !== null).length, 1)
})
