/** Registration over HTTP: every operation, every error of the contract. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { createReceiver, type Receiver } from '../../../test/support/http-receiver.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { signToken } from './payload.ts'

const NOT_ALLOWED =
  'address not allowed: it is not public, and the setting SENDWRIGHT_ALLOW_NETWORKS does not contain it'

const A = 'http://127.0.0.1/a'
const B = 'http://127.0.0.1/b'
const C = 'http://127.0.0.1/c'
const D = 'http://127.0.0.1/d'

let service: TestService
let dns: DnsServer
let receiver: Receiver
const closers: (() => unknown)[] = []

before(async () => {
  dns = await createDnsServer()
  receiver = await createReceiver()
  dns.set('hooks.example.com', 'A', ['127.0.0.1'])
  dns.set('inside.example.com', 'A', ['10.1.2.3'])
  // The service outlives each test of this file.
  const context = { after: (close: () => unknown) => closers.push(close) } as unknown as TestContext
  service = await startTestService(context, {
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
  })
})
after(async () => {
  for (const close of closers.reverse()) await close()
  await Promise.all([dns.close(), receiver.close()])
})

const v3 = (rest = '') => `/v3/domains/${service.domain}/webhooks${rest}`
const v4 = () => `/v4/domains/${service.domain}/webhooks`

async function call(method: string, path: string, form?: Record<string, string | readonly string[]>) {
  const { status, body, text } = await service.call(method, path, form ? { form } : {})
  return [status, body ?? text] as const
}

async function clear(): Promise<void> {
  const [, { webhooks }] = await call('GET', v3())
  for (const type of Object.keys(webhooks)) await call('DELETE', v3(`/${type}`))
  await call('DELETE', '/v1/webhooks?all=true')
}

test('v3: a type is created, read, replaced, removed', async () => {
  await clear()
  assert.deepEqual(await call('GET', v3()), [200, { webhooks: {} }])
  assert.deepEqual(await call('POST', v3(), { id: 'clicked', url: [A, B, A] }), [
    200,
    { message: 'Webhook has been created', webhook: { urls: [A, B] } },
  ])
  assert.deepEqual(await call('GET', v3('/clicked')), [200, { webhook: { urls: [A, B] } }])
  assert.deepEqual(await call('PUT', v3('/clicked'), { id: 'opened', url: [C, A] }), [
    200,
    { message: 'Webhook has been updated', webhook: { urls: [C, A] } },
  ])
  assert.deepEqual(await call('PUT', v3('/opened'), { url: B }), [
    200,
    { message: 'Webhook has been updated', webhook: { urls: [B] } },
  ])
  assert.deepEqual(await call('GET', v3()), [
    200,
    { webhooks: { clicked: { urls: [C, A] }, opened: { urls: [B] } } },
  ])
  assert.deepEqual(await call('DELETE', v3('/clicked')), [
    200,
    { message: 'Webhook has been deleted', webhook: { urls: [C, A] } },
  ])
  assert.deepEqual(await call('GET', v3()), [200, { webhooks: { opened: { urls: [B] } } }])
})

test('v4 and v3 see and change the same data', async () => {
  await clear()
  await call('POST', v3(), { id: 'clicked', url: A })
  const made = await call('POST', v4(), { url: B, event_types: ['clicked', 'delivered', 'clicked'] })
  assert.deepEqual(made, [200, { webhooks: { clicked: { urls: [A, B] }, delivered: { urls: [B] } } }])
  assert.deepEqual(await call('GET', v3('/clicked')), [200, { webhook: { urls: [A, B] } }])
  const changed = await call('PUT', v4(), { url: B, event_types: ['opened', 'delivered'] })
  const expected = { clicked: { urls: [A] }, opened: { urls: [B] }, delivered: { urls: [B] } }
  assert.deepEqual(changed, [200, { webhooks: expected }])
  const left = await call('DELETE', `${v4()}?url=${encodeURIComponent(`${A},${D}`)}`)
  assert.deepEqual(left, [200, { webhooks: { opened: { urls: [B] }, delivered: { urls: [B] } } }])
  const comma = 'http://127.0.0.1/x,y'
  await call('POST', v4(), { url: comma, event_types: 'opened' })
  assert.deepEqual(await call('DELETE', `${v4()}?url=${encodeURIComponent(comma)}`), left)
  assert.deepEqual(await call('DELETE', `${v4()}?url=${encodeURIComponent(B)}`), [200, { webhooks: {} }])
})

test('v1: webhooks of the account are created, listed, replaced, removed', async () => {
  await clear()
  const [status, { webhook_id: id }] = await call('POST', '/v1/webhooks', {
    url: A,
    event_types: ['clicked', 'opened'],
    description: 'shop',
  })
  assert.equal(status, 200)
  assert.match(id, /^[0-9a-f]{24}$/)
  const [, one] = await call('GET', `/v1/webhooks/${id}`)
  const { created_at: createdAt, ...rest } = one
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/)
  assert.deepEqual(rest, {
    webhook_id: id,
    description: 'shop',
    url: A,
    event_types: ['clicked', 'opened'],
  })
  const [, { webhook_id: second }] = await call('POST', '/v1/webhooks', { url: B, event_types: 'clicked' })
  const [, list] = await call('GET', '/v1/webhooks')
  assert.deepEqual(list.webhooks[0], one)
  assert.equal(list.webhooks[1].description, '')
  const [, some] = await call('GET', `/v1/webhooks?webhook_ids=${second},${'0'.repeat(24)}`)
  assert.deepEqual(some.webhooks, [list.webhooks[1]])
  assert.deepEqual(await call('PUT', `/v1/webhooks/${id}`, { url: C, event_types: 'delivered' }), [204, ''])
  const [, changed] = await call('GET', `/v1/webhooks/${id}`)
  assert.deepEqual([changed.url, changed.event_types, changed.description], [C, ['delivered'], ''])
  assert.deepEqual(await call('DELETE', `/v1/webhooks/${id}`), [204, ''])
  assert.deepEqual(await call('DELETE', `/v1/webhooks?webhook_ids=${second}`), [204, ''])
  assert.deepEqual(await call('GET', '/v1/webhooks'), [200, { webhooks: [] }])
})

const reason = (text: string) => [400, { Reason: text }] as const
const bad = (url: string, why: string) => `invalid parameters: ${url} is not a valid url: ${why}`
const MAX = 'a maximum of 3 urls is allowed per event type'

test('errors of domain webhooks are exactly those of the contract', async () => {
  await clear()
  await call('POST', v3(), { id: 'clicked', url: A })
  const four = [A, B, C, D]
  const nohost = 'https://nohost.example.com/'
  type Case = [string, string, Record<string, string | readonly string[]> | undefined, readonly unknown[]]
  const cases: Case[] = [
    ['POST', v3(), { id: 'opened', url: nohost }, reason(`'${nohost}' is not a valid url: host not found`)],
    ['PUT', v3('/opened'), { url: nohost }, reason(`'${nohost}' is not a valid url: host not found`)],
    [
      'POST',
      v3(),
      { id: 'opened', url: 'ftp://example.com' },
      reason("'ftp://example.com' is not a valid url: invalid URL scheme"),
    ],
    [
      'POST',
      v3(),
      { id: 'opened', url: ['http://hooks.example.com/', 'http://inside.example.com/'] },
      reason(`'http://inside.example.com/' is not a valid url: ${NOT_ALLOWED}`),
    ],
    [
      'POST',
      v4(),
      { url: 'ftp://example.com', event_types: 'opened' },
      reason(bad('ftp://example.com', 'invalid URL scheme')),
    ],
    ['PUT', v4(), { url: nohost, event_types: 'opened' }, reason(bad(nohost, 'host not found'))],
    [
      'POST',
      v3(),
      { id: 'clicked', url: B },
      [400, { Reason: 'Webhook already exists', message: 'Webhook already exists' }],
    ],
    [
      'POST',
      v4(),
      { url: A, event_types: ['opened', 'clicked'] },
      reason(`Webhook for event type 'clicked' with URL '${A}' already exists`),
    ],
    ['POST', v3(), { id: 'bounce', url: A }, reason("invalid webhook type 'bounce'")],
    ['POST', v3(), { url: A }, reason('id is required')],
    ['GET', v3('/deliver'), undefined, reason("invalid webhook type 'deliver'")],
    ['PUT', v3('/drop'), { url: A }, reason("invalid webhook type 'drop'")],
    ['DELETE', v3('/spam'), undefined, reason("invalid webhook type 'spam'")],
    ['POST', v4(), { url: A, event_types: 'click' }, reason("invalid webhook type 'click'")],
    ['POST', v4(), { url: A }, reason('event_types is required')],
    ['POST', v3(), { id: 'opened', url: four }, reason(MAX)],
    ['PUT', v3('/opened'), { url: four }, reason(MAX)],
    ['POST', v3(), { id: 'opened' }, reason('url is required')],
    ['PUT', v3('/opened'), { x: '' }, reason('url is required')],
    ['PUT', v3('/opened/test'), { x: '' }, reason('url is required')],
    ['POST', v4(), { event_types: 'opened' }, reason('url is required')],
    ['PUT', v4(), { event_types: 'opened' }, reason('url is required')],
    ['DELETE', v4(), undefined, [400, { Field: 'url' }]],
    ['GET', v3('/opened'), undefined, [404, { message: 'Webhook not found' }]],
    ['DELETE', v3('/opened'), undefined, [404, { message: 'Webhook not found' }]],
    ['PUT', v4(), { url: B, event_types: 'opened' }, [404, { Description: 'Webhook not found' }]],
  ]
  for (const [method, path, form, expected] of cases) {
    assert.deepEqual(await call(method, path, form), expected, `${method} ${path} ${JSON.stringify(form)}`)
  }
  for (const [method, path] of [
    ['GET', ''],
    ['POST', ''],
    ['GET', '/opened'],
    ['PUT', '/opened'],
    ['DELETE', '/opened'],
    ['PUT', '/opened/test'],
  ] as const) {
    const unknown = await call(method, `/v3/domains/nobody.example/webhooks${path}`)
    assert.deepEqual(unknown, [404, { message: 'Domain not found' }])
  }
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const unknown = await call(method, '/v4/domains/nobody.example/webhooks')
    assert.deepEqual(unknown, [404, { message: 'Domain not found' }])
  }
  await call('PUT', v3('/clicked'), { url: [A, B, C] })
  assert.deepEqual(await call('POST', v4(), { url: D, event_types: 'clicked' }), reason(MAX))
  assert.deepEqual(await call('GET', v3()), [200, { webhooks: { clicked: { urls: [A, B, C] } } }])
})

test('errors of account webhooks are exactly those of the contract', async () => {
  await clear()
  const none = '0'.repeat(24)
  const notValid = [400, { Field: 'webhook_id', Value: 'is not valid' }]
  const notFound = [404, { Description: `webhook_id not found: ${none}` }]
  const form = { url: A, event_types: 'clicked' }
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const body = method === 'PUT' ? form : undefined
    assert.deepEqual(await call(method, '/v1/webhooks/nonsense', body), notValid)
    assert.deepEqual(await call(method, `/v1/webhooks/${none}`, body), notFound)
  }
  const nothing = [404, { Description: 'no webhooks found for account' }]
  assert.deepEqual(await call('DELETE', '/v1/webhooks?all=true'), nothing)
  assert.deepEqual(await call('DELETE', `/v1/webhooks?webhook_ids=${none}`), nothing)
  const malformed = 'Invalid parameter: webhook_ids malformed webhook_ids parameter: empty values not allowed'
  for (const query of ['', '?webhook_ids=', `?webhook_ids=${none},`]) {
    assert.deepEqual(await call('DELETE', `/v1/webhooks${query}`), [400, { message: malformed }])
  }
  await call('POST', '/v1/webhooks', form)
  const again = [409, { Description: 'webhook already exists' }]
  assert.deepEqual(await call('POST', '/v1/webhooks', { ...form, event_types: ['opened', 'clicked'] }), again)
  await call('POST', '/v1/webhooks', { ...form, url: B })
  await call('POST', '/v1/webhooks', { ...form, url: C })
  assert.deepEqual(await call('POST', '/v1/webhooks', { ...form, url: D }), reason(MAX))
  assert.deepEqual(await call('POST', '/v1/webhooks', { event_types: 'opened' }), reason('url is required'))
  assert.deepEqual(await call('POST', '/v1/webhooks', { url: A }), reason('event_types is required'))
  assert.deepEqual(
    await call('POST', '/v1/webhooks', { url: 'http://10.0.0.1/', event_types: 'opened' }),
    reason(bad('http://10.0.0.1/', NOT_ALLOWED)),
  )
  await clear()
})

test('roles: analysts read, sending keys do not exist here', async () => {
  const key = async (form: Record<string, string>) =>
    (await service.call('POST', '/v1/keys', { form })).body.key.secret as string
  const basic = await key({ role: 'basic' })
  const sending = await key({ role: 'sending', kind: 'domain', domain_name: service.domain })
  const operations = [
    ...['GET /v1/webhooks', 'POST /v1/webhooks', 'DELETE /v1/webhooks', `GET /v1/webhooks/${'0'.repeat(24)}`],
    ...[`GET ${v3()}`, `POST ${v3()}`, `PUT ${v3('/opened')}`, `PUT ${v3('/opened/test')}`, `POST ${v4()}`],
    ...['GET /sendwright/v1/webhooks/attempts', 'POST /sendwright/v1/webhooks/replay'],
  ]
  for (const [method = '', path = ''] of operations.map((operation) => operation.split(' '))) {
    const analyst = await service.call(method, path, { key: basic })
    if (method === 'GET') assert.notEqual(analyst.status, 403)
    else assert.deepEqual([analyst.status, analyst.body], [403, { message: 'Forbidden' }])
    const foreign = await service.call(method, path, { key: sending })
    assert.deepEqual([foreign.status, foreign.body], [401, { message: 'Invalid private key' }])
  }
  const signing = await service.call('GET', '/v5/accounts/http_signing_key', { key: basic })
  assert.equal(signing.status, 403)
})

test('a signed sample is sent to the URL, and the response is returned', async () => {
  const { http_signing_key: key } = (await call('GET', '/v5/accounts/http_signing_key'))[1]
  assert.match(key, /^key-[0-9a-f]{32}$/)
  assert.deepEqual(await call('PUT', v3('/clicked/test'), { url: `${receiver.url}/test` }), [
    200,
    { code: 200, message: 'OK' },
  ])
  const [post] = receiver.posts
  const { signature, 'event-data': data } = post?.body ?? {}
  assert.deepEqual(signature, signToken(key, signature.timestamp, signature.token))
  assert.equal(data.event, 'clicked')
  assert.equal(data.domain.name, service.domain)
  receiver.answer = (response) => response.writeHead(418, 'Short and stout').end()
  assert.deepEqual(await call('PUT', v3('/opened/test'), { url: receiver.url }), [
    200,
    { code: 418, message: 'Short and stout' },
  ])
  for (const [url, why] of [
    ['http://127.0.0.1:1/', 'connection refused'],
    ['http://10.0.0.1/', 'address not allowed'],
    ['ftp://example.com', 'invalid URL scheme'],
    ['http://nohost.example.com/', 'host not found'],
  ] as const) {
    assert.deepEqual(await call('PUT', v3('/opened/test'), { url }), [200, { code: 0, message: why }])
  }
  assert.deepEqual((await call('GET', '/sendwright/v1/webhooks/attempts'))[1].items, [])
})

test('the public JavaScript client creates, tests, lists, reads, updates, destroys', async () => {
  await clear()
  receiver.answer = 200
  const { webhooks } = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const created = await webhooks.create(service.domain, 'clicked', A, false)
  assert.deepEqual({ ...created }, { id: 'clicked', url: A, urls: [A] })
  const tested = await webhooks.create(service.domain, 'clicked', receiver.url, true)
  assert.deepEqual(tested, { code: 200, message: 'OK' })
  const updated = await webhooks.update(service.domain, 'clicked', [A, B])
  assert.deepEqual(updated.urls, [A, B])
  assert.deepEqual((await webhooks.get(service.domain, 'clicked' as never)).urls, [A, B])
  assert.deepEqual(await webhooks.list(service.domain, {}), { clicked: { urls: [A, B] } })
  assert.deepEqual((await webhooks.destroy(service.domain, 'clicked')).urls, [A, B])
  assert.deepEqual(await webhooks.list(service.domain, {}), {})
})
