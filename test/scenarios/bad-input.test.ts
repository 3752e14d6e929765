/** The contract's error tables, row by row: exact status, content type and body; and nothing queued by any of them. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type CallOptions, startTestService, type TestService } from '../support/service.ts'

let service: TestService

before(async (t) => {
  service = await startTestService(t as TestContext)
})

const JSON_TYPE = 'application/json; charset=utf-8'
const GOOD = { from: 'a@example.com', to: 'b@example.org', subject: 'S', text: 'T' }
const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(GOOD).filter(([name]) => !names.includes(name)))
const address = (field: string) => `${field} parameter is not a valid address. please check documentation`
const NOT_JSON_400 = 'Invalid json:'

interface Case {
  name: string
  method?: string
  /** `{d}` is the sandbox domain. */
  path?: string
  options: CallOptions
  status: number
  /** Whole JSON body, or its message. */
  message?: string | RegExp
  text?: string
  contentType?: string
  headers?: Record<string, string | RegExp>
}

const send = (name: string, form: NonNullable<CallOptions['form']>, message: string): Case => ({
  name,
  options: { form },
  status: 400,
  message,
})

const CASES: Case[] = [
  send('no from', without('from'), 'from parameter is missing'),
  send('empty from', { ...GOOD, from: '' }, 'from parameter is missing'),
  send('bad from', { ...GOOD, from: 'no address' }, address('from')),
  send('from with a line break', { ...GOOD, from: 'a@example.com\r\nBcc: x@example.org' }, address('from')),
  send('no to', without('to'), 'to parameter is missing'),
  send('bad to', { ...GOOD, to: 'nobody' }, address('to')),
  send('to with two at signs', { ...GOOD, to: 'a@b@example.org' }, address('to')),
  send('to with an unclosed angle', { ...GOOD, to: 'A <a@example.org' }, address('to')),
  {
    ...send('one bad among good ones', { ...GOOD, to: 'a@example.org, nobody' }, address('to')),
    headers: {
      'x-service-refused': /^to: Missing "@" and domain at character 22 of address "a@example.org, nobody"$/,
    },
  },
  send('a domain literal', { ...GOOD, to: 'a@[127.0.0.1]' }, address('to')),
  send('bad cc', { ...GOOD, cc: 'nobody' }, address('cc')),
  send('bad bcc', { ...GOOD, bcc: 'nobody' }, address('bcc')),
  send('from is checked before to', without('from', 'to'), 'from parameter is missing'),
  send('to is checked before cc', { ...GOOD, to: 'nobody', cc: 'nobody' }, address('to')),
  send('no subject', without('subject'), 'subject parameter is missing'),
  send('cc is checked before subject', { ...without('subject'), cc: 'nobody' }, address('cc')),
  send(
    'no content',
    without('text'),
    "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified",
  ),
  send(
    'html and template',
    { ...GOOD, html: '<p>', template: 't' },
    "Only one parameters 'html' or 'template' is allowed",
  ),
  send(
    'options over 16 KB',
    { ...GOOD, 'v:big': 'x'.repeat(16_384) },
    'Send options (parameters starting with o:, h:, or v:) are limited to 16KB total',
  ),
  send(
    'bad o:testmode',
    { ...GOOD, 'o:testmode': 'maybe' },
    'Invalid format for parameter o:testmode: maybe',
  ),
  send('bad o:dkim', { ...GOOD, 'o:dkim': '2' }, 'Invalid format for parameter o:dkim: 2'),
  send(
    'a header name that is not ASCII',
    { ...GOOD, 'h:X-Größe': '1' },
    'Header name must be pure ASCII: X-Größe',
  ),
  send(
    'more than 1,000 recipients',
    { ...GOOD, to: manyRecipients(1001) },
    'Too many recipients, max is 1000',
  ),
  send(
    'variables that are no JSON object',
    { ...GOOD, 'h:X-Service-Variables': '[1]' },
    "'h:X-Service-Variables' parameter is not a valid JSON",
  ),
  {
    name: 'unknown domain',
    path: '/v3/unknown.example/messages',
    options: { form: GOOD },
    status: 404,
    message: 'Domain not found: unknown.example',
  },
  {
    name: 'unknown domain is reported before a bad body',
    path: '/v3/unknown.example/messages',
    options: { body: 'x', headers: { 'content-type': 'multipart/form-data' } },
    status: 404,
    message: 'Domain not found: unknown.example',
  },
  {
    name: 'sending without a key',
    options: { form: GOOD, key: null },
    status: 401,
    text: 'Forbidden',
    contentType: 'text/plain; charset=utf-8',
    headers: { 'www-authenticate': 'Basic realm="API"' },
  },
  {
    name: 'sending with a wrong key',
    options: { form: GOOD, key: 'wrong' },
    status: 401,
    text: 'Forbidden',
    contentType: 'text/plain; charset=utf-8',
  },
  {
    name: 'sending with another user name',
    options: {
      form: GOOD,
      key: null,
      headers: { authorization: basic('user', 'test-key-0123456789abcdef') },
    },
    status: 401,
    text: 'Forbidden',
    contentType: 'text/plain; charset=utf-8',
  },
  {
    name: 'multipart without a boundary',
    options: { body: 'x', headers: { 'content-type': 'multipart/form-data' } },
    status: 400,
    message: 'malformed multipart/form-data request',
  },
  {
    name: 'multipart that ends early',
    options: {
      body: '--b\r\nContent-Disposition: form-data; name="to"\r\n\r\na@exam',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    },
    status: 400,
    message: 'malformed multipart/form-data request',
  },
  {
    name: 'JSON that does not parse',
    options: { body: '{"to":', headers: { 'content-type': 'application/json' } },
    status: 400,
    message: new RegExp(`^${NOT_JSON_400}`),
  },
  {
    name: 'JSON is recognised whatever the content type says',
    options: { body: '[', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    status: 400,
    message: new RegExp(`^${NOT_JSON_400}`),
  },
  {
    name: 'unknown path',
    method: 'GET',
    path: '/v9/nothing',
    options: {},
    status: 404,
    message: 'Not Found',
  },
  {
    name: 'known path, other method',
    method: 'GET',
    path: '/v3/{d}/messages',
    options: {},
    status: 405,
    message: 'Method Not Allowed',
    headers: { allow: /POST/ },
  },
  {
    name: 'stored message, malformed key',
    method: 'GET',
    path: '/v3/domains/{d}/messages/short',
    options: {},
    status: 400,
    message: 'Invalid storage key',
  },
  {
    name: 'stored message, unknown key',
    method: 'GET',
    path: '/v3/domains/{d}/messages/zzzzzzzzzzzzzzzzzzzzzz',
    options: {},
    status: 404,
    message: 'Message not found',
  },
  {
    name: 'stored message without a key',
    method: 'GET',
    path: '/v3/domains/{d}/messages/zzzzzzzzzzzzzzzzzzzzzz',
    options: { key: null },
    status: 401,
    message: 'Invalid private key',
  },
  {
    name: 'domain list without a key',
    method: 'GET',
    path: '/v4/domains',
    options: { key: null },
    status: 401,
    message: 'Invalid private key',
  },
  {
    name: 'unknown domain, read',
    method: 'GET',
    path: '/v4/domains/unknown.example',
    options: {},
    status: 404,
    message: 'Domain not found',
  },
  {
    name: 'domain list, limit over the maximum',
    method: 'GET',
    path: '/v4/domains?limit=1001',
    options: {},
    status: 400,
    message: "Limit parameter can't be larger than 1000",
  },
  {
    name: 'domain list, bad limit',
    method: 'GET',
    path: '/v4/domains?limit=x',
    options: {},
    status: 400,
    message: 'Invalid format for parameter limit: x',
  },
  {
    name: 'domain list, bad state',
    method: 'GET',
    path: '/v4/domains?state=odd',
    options: {},
    status: 400,
    message: "'odd' is not a valid value for state",
  },
  {
    name: 'events, unknown domain',
    method: 'GET',
    path: '/v3/unknown.example/events',
    options: {},
    status: 404,
    message: 'Domain not found',
  },
  {
    name: 'inbox without a key',
    method: 'GET',
    path: '/sendwright/v1/inbox',
    options: { key: null },
    status: 401,
    message: 'Invalid private key',
  },
  {
    name: 'inbox, unknown message',
    method: 'GET',
    path: '/sendwright/v1/inbox/zzzzzzzzzzzzzzzzzzzzzz',
    options: {},
    status: 404,
    message: 'Message not found',
  },
]

for (const { name, method = 'POST', path = '/v3/{d}/messages', options, status, ...expected } of CASES) {
  test(name, async () => {
    const answer = await service.call(method, path.replace('{d}', service.domain), options)
    assert.equal(answer.status, status, answer.text)
    assert.equal(answer.headers.get('content-type'), expected.contentType ?? JSON_TYPE)
    if (expected.text !== undefined) assert.equal(answer.text, expected.text)
    else if (expected.message instanceof RegExp) assert.match(answer.body.message, expected.message)
    else assert.deepEqual(answer.body, { message: expected.message })
    for (const [header, value] of Object.entries(expected.headers ?? {})) {
      if (value instanceof RegExp) assert.match(answer.headers.get(header) ?? '', value)
      else assert.equal(answer.headers.get(header), value)
    }
  })
}

test('none of these queued or stored anything', async () => {
  assert.deepEqual(await service.events(), [])
  const { body } = await service.call('GET', '/sendwright/v1/system')
  assert.deepEqual(body.queue, { scheduled: 0, queued: 0, sending: 0 })
})

test('a sending key of one domain works only for sending from it', async () => {
  const made = await service.call('POST', '/v1/keys', {
    form: { role: 'sending', kind: 'domain', domain_name: service.domain },
  })
  assert.equal(made.status, 200, made.text)
  const key = made.body.key.secret as string
  assert.equal(
    (await service.call('POST', `/v3/${service.domain}/messages`, { form: GOOD, key })).status,
    200,
  )
  assert.equal((await service.call('GET', '/v4/domains', { key })).status, 401)
  assert.equal(
    (await service.call('POST', '/v3/other.example/messages', { form: GOOD, key })).text,
    'Forbidden',
  )
})

test('a request over the size limit is refused', async () => {
  const text = 'x'.repeat(54 * 1024 * 1024)
  const answer = await service.call('POST', `/v3/${service.domain}/messages`, { form: { ...GOOD, text } })
  assert.equal(answer.status, 413)
  assert.deepEqual(answer.body, { message: 'request size exceeds 52.4MiB limit' })
})

test('a built message over 25 MB is refused', async () => {
  const attachment = new File([Buffer.alloc(20 * 1024 * 1024)], 'big.bin')
  const answer = await service.call('POST', `/v3/${service.domain}/messages`, {
    form: { ...GOOD, attachment },
  })
  assert.equal(answer.status, 400)
  assert.deepEqual(answer.body, { message: 'Message is too large, max size is 25MB' })
})

function manyRecipients(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `user${index}@example.org`)
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}
