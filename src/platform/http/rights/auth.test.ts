import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { basic, ManualClock, startServer, type TestServer } from '../../../../test/support/http-server.ts'
import { anyJson } from '../../../base/shape.ts'
import { createFailedAttempts } from '../limits/failed-attempts.ts'
import { createRateLimiter, DEFAULT_LIMITS } from '../limits/rate-limit.ts'
import { operation } from '../operation.ts'
import { mayAccess } from './auth.ts'
import type { Access, RightsArea, Role } from './rights.ts'

const common = { tag: 'Test', summary: 'x', answers: { 200: anyJson('ok') } } as const
const answerCaller = async ({ caller }: { caller: { accountId: string; parentAccountId?: string } }) => ({
  account: caller.accountId,
  parent: caller.parentAccountId ?? null,
})

const AREAS: RightsArea[] = [
  ...(['domains', 'messages:stored', 'events', 'suppressions', 'allowlist', 'routes', 'templates'] as const),
  ...(['lists', 'ips', 'subaccounts', 'validation', 'alerts', 'sandbox', 'account', 'keys'] as const),
  'message-limits',
  'own-user',
]
const areaOperations = AREAS.flatMap((area) =>
  (['read', 'write'] as const).map((access) =>
    operation({
      ...common,
      method: access === 'read' ? 'GET' : 'PUT',
      path: `/v1/${area.replace(':', '-')}`,
      id: `${access}-${area}`,
      auth: { area, access, ...(area === 'validation' && access === 'read' && { publicKey: true as const }) },
      handler: answerCaller,
    }),
  ),
)
const send = operation({
  ...common,
  method: 'POST',
  path: '/v3/{domain_name}/messages',
  id: 'send',
  auth: { area: 'messages:send', access: 'write', domain: 'domain_name' },
  plainText401: true,
  rateLimit: 'sending',
  handler: answerCaller,
})
const closeAccount = operation({
  ...common,
  method: 'DELETE',
  path: '/v5/accounts/subaccounts',
  id: 'closeSubaccount',
  auth: { area: 'subaccounts', access: 'write' },
  onBehalfOf: 'argument',
  handler: async ({ caller, onBehalfOf }) => ({ account: caller.accountId, onBehalfOf: onBehalfOf ?? null }),
})
const unsubscribe = operation({
  ...common,
  method: 'POST',
  path: '/u/{token}',
  id: 'unsubscribe',
  auth: 'public',
  audit: { exempt: 'a test' },
  crossSite: true,
  handler: async ({ caller }) => ({ caller }),
})
const login = operation({
  ...common,
  method: 'POST',
  path: '/login',
  id: 'login',
  auth: 'public',
  audit: { exempt: 'a test' },
  handler: async () => ({ ok: true }),
})

let server: TestServer
before(async () => {
  const operations = [...areaOperations, send, closeAccount, unsubscribe, login]
  server = await startServer(operations, { corsOrigins: ['https://app.example.org'], authRealm: 'MG API' })
})
after(() => server[Symbol.asyncDispose]())

test('wrong, missing and unusable credentials are refused with challenge and body of the operation', async () => {
  const headers: ReadonlyArray<[string, Record<string, string>]> = [
    ['none', {}],
    ['wrong key', { authorization: basic('nobody') }],
    ['wrong user with a valid key', { authorization: basic('admin', 'postmaster') }],
    ['no user', { authorization: basic('admin', '') }],
    ['user in capitals', { authorization: basic('admin', 'API') }],
    ['empty password', { authorization: basic('') }],
    ['no colon', { authorization: `Basic ${Buffer.from('api').toString('base64')}` }],
    ['not base64', { authorization: 'Basic !!!!' }],
    ['bearer', { authorization: 'Bearer admin' }],
    ['huge', { authorization: basic('x'.repeat(3000)) }],
    ['wrong session', { cookie: 'sendwright_session=bad' }],
    [
      'wrong key beside a good session',
      { cookie: 'sendwright_session=good', authorization: basic('nobody') },
    ],
  ]
  for (const [name, given] of headers) {
    const read = await server.fetch('/v1/domains', { key: '', headers: given })
    assert.equal(read.status, 401, name)
    assert.equal(read.headers.get('www-authenticate'), 'Basic realm="MG API"')
    assert.deepEqual(await read.json(), { message: 'Invalid private key' })
    assert.equal(read.headers.get('x-service-key-id'), null)
    const sent = await server.fetch('/v3/example.com/messages', { method: 'POST', key: '', headers: given })
    assert.deepEqual([sent.status, await sent.text()], [401, 'Forbidden'], name)
    assert.match(sent.headers.get('content-type') ?? '', /^text\/plain/)
    assert.equal(sent.headers.get('www-authenticate'), 'Basic realm="MG API"')
  }
})

test('a refusal says why in a header, and not which keys exist', async () => {
  const cases: ReadonlyArray<
    [path: string, request: Parameters<typeof server.fetch>[1], why: RegExp | null]
  > = [
    ['/v1/domains', { key: '' }, /^no credentials: /],
    ['/v1/domains', { key: 'nobody' }, /^no such key/],
    ['/v1/domains', { key: '', headers: { cookie: 'sendwright_session=bad' } }, /^the session has ended$/],
    ['/v1/domains', { key: '', headers: { authorization: 'Bearer admin' } }, /not HTTP Basic$/],
    [
      '/v1/domains',
      { key: '', headers: { authorization: basic('admin', 'postmaster') } },
      /user name is not api/,
    ],
    [
      '/v3/example.net/messages',
      { key: 'sending', method: 'POST' },
      /^this key may only send for example\.com$/,
    ],
    ['/v3/example.com/messages', { key: 'pubkey', method: 'POST' }, /only validate addresses$/],
    ['/v1/domains', { key: 'support', method: 'PUT' }, /^the role support has no right to write here$/],
    ['/v1/domains', { key: 'admin' }, null],
  ]
  for (const [path, request, why] of cases) {
    const response = await server.fetch(path, request)
    const said = response.headers.get('x-service-refused')
    if (why === null) assert.equal(said, null)
    else assert.match(said ?? '', why)
    await response.arrayBuffer()
  }
})

test('the scheme is read without letter case, and every answer names key and request', async () => {
  const authorization = basic('admin').replace('Basic', 'bAsIc')
  const response = await server.fetch('/v1/domains', { headers: { authorization } })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('x-service-key-id'), 'id-admin')
  assert.match(response.headers.get('x-service-request-id') ?? '', /^[-\w]{22}$/)
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(response.headers.get('cache-control'), 'no-store')
})

/** The contract's table as it is printed there. */
const TABLE: Record<string, string> = {
  'domains events routes templates ips subaccounts validation alerts': 'RW RW R R -',
  'messages:stored': 'R R R R -',
  suppressions: 'RW RW RW - -',
  'allowlist lists sandbox': 'RW RW RW R -',
  'account message-limits': 'RW R - - -',
  keys: 'RW R - - -',
  'own-user': 'RW RW RW RW -',
}

test('every role has the documented rights in every area', async () => {
  const roles: Role[] = ['admin', 'developer', 'support', 'basic', 'sending']
  const seen = new Set<string>()
  for (const [areas, rights] of Object.entries(TABLE)) {
    for (const area of areas.split(' ') as RightsArea[]) {
      seen.add(area)
      for (const [index, role] of roles.entries()) {
        for (const access of ['read', 'write'] as Access[]) {
          const right = rights.split(' ')[index] as string
          const may = right.includes(access === 'read' ? 'R' : 'W')
          const method = access === 'read' ? 'GET' : 'PUT'
          const response = await server.fetch(`/v1/${area.replace(':', '-')}`, { key: role, method })
          const refusal = role === 'sending' ? 401 : 403
          assert.equal(response.status, may ? 200 : refusal, `${role} ${access} ${area}`)
          if (response.status === 403) assert.deepEqual(await response.json(), { message: 'Forbidden' })
          else await response.arrayBuffer()
        }
      }
    }
  }
  assert.deepEqual([...seen].sort(), [...AREAS].sort())
})

test('a billing user reads like basic and sets message limits', () => {
  assert.ok(mayAccess('billing', 'domains', 'read') && !mayAccess('billing', 'domains', 'write'))
  assert.ok(mayAccess('billing', 'message-limits', 'write'))
  assert.ok(!mayAccess('billing', 'messages:send', 'write') && !mayAccess('billing', 'keys', 'read'))
})

test('sending: admin, developer and the own domain of a sending key', async () => {
  const cases: ReadonlyArray<[string, string, number]> = [
    ['admin', 'example.com', 200],
    ['developer', 'any.example', 200],
    ['support', 'example.com', 403],
    ['basic', 'example.com', 403],
    ['sending', 'example.com', 200],
    ['sending', 'EXAMPLE.com', 200],
    ['sending', 'example.net', 401],
    ['sending', 'sub.example.com', 401],
    ['pubkey', 'example.com', 401],
  ]
  for (const [key, domain, status] of cases) {
    const response = await server.fetch(`/v3/${domain}/messages`, { key, method: 'POST' })
    assert.equal(response.status, status, `${key} ${domain}`)
    await response.arrayBuffer()
  }
})

test('the public key calls what accepts it and nothing else', async () => {
  assert.equal((await server.fetch('/v1/validation', { key: 'pubkey' })).status, 200)
  assert.equal((await server.fetch('/v1/domains', { key: 'pubkey' })).status, 401)
  assert.equal((await server.fetch('/v1/validation', { key: 'pubkey', method: 'PUT' })).status, 401)
})

test('an address outside the allowlist: 403, and on sending plain 401', async () => {
  server.authenticator.blocked.add('id-developer')
  const read = await server.fetch('/v1/domains', { key: 'developer' })
  assert.deepEqual([read.status, await read.json()], [403, { message: 'Forbidden' }])
  const sent = await server.fetch('/v3/example.com/messages', { key: 'developer', method: 'POST' })
  assert.deepEqual([sent.status, await sent.text()], [401, 'Forbidden'])
  server.authenticator.blocked.clear()
})

test('acting as a subaccount: a child works, another id is forbidden, under prefix and alias', async () => {
  for (const name of ['X-Service-On-Behalf-Of', 'x-mailgun-on-behalf-of']) {
    const as = async (id: string, key = 'admin') => {
      const response = await server.fetch('/v1/domains', { key, headers: { [name]: id } })
      return [response.status, await response.json()]
    }
    assert.deepEqual(await as('child'), [200, { account: 'child', parent: 'acc-1' }])
    assert.deepEqual(await as('acc-1'), [200, { account: 'acc-1', parent: null }])
    assert.deepEqual(await as('other'), [403, { message: 'Forbidden' }])
  }
  const headers = { 'x-service-on-behalf-of': 'child' }
  const sent = await server.fetch('/v3/example.com/messages', { key: 'sending', method: 'POST', headers })
  assert.equal(sent.status, 403)
  const closed = await server.fetch('/v5/accounts/subaccounts', { method: 'DELETE', headers })
  assert.deepEqual(await closed.json(), { account: 'acc-1', onBehalfOf: 'child' })
})

const cookie = 'sendwright_session=good'

test('a session cookie counts under our own names only', async () => {
  const withHost = async (host: string, more = '') =>
    (
      await server.raw(
        `GET /v1/domains HTTP/1.1\r\nHost: ${host}\r\n${more || `Cookie: a=b; ${cookie}`}\r\nConnection: close\r\n\r\n`,
      )
    ).slice(9, 12)
  const good = [
    'localhost',
    'localhost:8080',
    '127.0.0.1:1',
    '127.8.9.1',
    '[::1]:80',
    'mail.example.net',
    'MAIL.example.net:443',
  ]
  for (const host of good) assert.equal(await withHost(host), '200', host)
  const bad = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'mail.example.net@evil.example',
    '10.0.0.1',
  ]
  for (const host of bad) assert.equal(await withHost(host), '403', host)
  const byKey = await withHost('evil.example', `Authorization: ${basic('admin')}`)
  assert.equal(byKey, '200', 'a key is not bound to a host')
})

test('a page of another site changes nothing, whatever credentials it carries', async () => {
  const own = new URL(server.url)
  const cases: ReadonlyArray<[Record<string, string>, number]> = [
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin', origin: own.origin }, 200],
    [{ origin: 'https://mail.example.net' }, 200],
    [{ origin: 'https://app.example.org', 'sec-fetch-site': 'cross-site' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: `http://127.0.0.1:${Number(own.port) - 1}` }, 403],
    [{ origin: 'https://mail.example.net.evil.example' }, 403],
    [{ origin: 'http://mail.example.net', 'sec-fetch-site': 'same-site' }, 403],
  ]
  for (const [headers, status] of cases) {
    for (const credentials of [{ cookie }, { authorization: basic('admin') }]) {
      const init = { key: '', headers: { ...headers, ...credentials } }
      const written = await server.fetch('/v1/domains', { ...init, method: 'PUT' })
      assert.equal(written.status, status, JSON.stringify(init.headers))
      assert.equal((await server.fetch('/v1/domains', init)).status, 200, 'reading is not refused')
    }
  }
  const evil = { key: '', method: 'POST', headers: { origin: 'https://evil.example' } }
  assert.equal((await server.fetch('/login', evil)).status, 403)
  assert.equal((await server.fetch('/u/token', evil)).status, 200, 'a public page of ours under any name')
})

test('only configured origins get cross-origin headers and a preflight answer', async () => {
  const preflight = (origin: string) =>
    server.fetch('/v1/domains', { key: '', method: 'OPTIONS', headers: { origin } })
  const good = await preflight('https://app.example.org')
  assert.equal(good.status, 204)
  assert.equal(good.headers.get('access-control-allow-origin'), 'https://app.example.org')
  assert.equal(good.headers.get('access-control-allow-methods'), 'GET, POST, PUT, PATCH, DELETE, OPTIONS')
  assert.equal(
    good.headers.get('access-control-allow-headers'),
    'Content-Type, x-requested-with, Authorization',
  )
  assert.equal(good.headers.get('access-control-max-age'), '600')
  const bad = await preflight('https://evil.example')
  assert.equal(bad.status, 405)
  assert.equal(bad.headers.get('access-control-allow-origin'), null)
  const read = await server.fetch('/v1/domains', { headers: { origin: 'https://app.example.org' } })
  assert.equal(read.headers.get('access-control-allow-origin'), 'https://app.example.org')
})

test('a script of our own pages gets a 401 without the challenge that opens a password window', async () => {
  const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }
  const response = await server.fetch('/v1/domains', { key: '', headers })
  assert.equal(response.status, 401)
  assert.equal(response.headers.get('www-authenticate'), null)
})

test('ten failures within a minute delay further refusals for five minutes, never a loopback address', async () => {
  const clock = new ManualClock()
  const attempts = createFailedAttempts(clock)
  const delayed = async (address: string) => {
    const waiting = clock.waiting
    const refusal = attempts.delay(address)
    const isDelayed = clock.waiting > waiting
    if (isDelayed) clock.advance(1_000)
    await refusal
    return isDelayed
  }
  const [v4, v6] = ['192.0.2.7', '2001:db8:1:2::1']
  for (let n = 0; n < 9; n += 1) {
    for (const address of [v4, '127.0.0.1', '::1']) attempts.failed(address)
    attempts.failed(`2001:db8:1:2::${n}`)
  }
  assert.equal(await delayed(v4), false)
  for (const address of [v4, v6, '127.0.0.1', '::1']) attempts.failed(address)
  assert.equal(await delayed(v4), true)
  assert.equal(await delayed('2001:db8:1:2:ffff::9'), true, 'the same /64')
  assert.equal(await delayed('2001:db8:1:3::1'), false)
  assert.equal(await delayed('127.0.0.1'), false)
  assert.equal(await delayed('::1'), false)
  clock.advance(5 * 60_000)
  assert.equal(await delayed(v4), false)
  for (let n = 0; n < 20; n += 1) {
    attempts.failed('198.51.100.1')
    clock.advance(7_000)
  }
  assert.equal(await delayed('198.51.100.1'), false, 'fewer than ten in any minute')
})

test('a refusal waits out its delay, a valid key from the same address does not', async () => {
  const clock = new ManualClock()
  const options = { clock, trustedProxies: ['127.0.0.0/8'] }
  await using delaying = await startServer(areaOperations, options)
  const from = { 'x-forwarded-for': '192.0.2.7' }
  const guess = () => delaying.fetch('/v1/domains', { key: 'guess', headers: from })
  for (let n = 0; n < 9; n += 1) assert.equal((await guess()).status, 401)
  let answered = false
  const slow = guess().then((response) => {
    answered = true
    return response
  })
  assert.equal((await delaying.fetch('/v1/domains', { headers: from })).status, 200)
  while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(answered, false)
  clock.advance(1_000)
  assert.equal((await slow).status, 401)
})

test('limited operations tell their limit; a refusal has form, headers and no effect', async () => {
  const clock = new ManualClock()
  const limits = {
    ...DEFAULT_LIMITS,
    sending: { count: 1, windowMs: 1_000 },
    default: { count: 2, windowMs: 60_000 },
  }
  const limiter = createRateLimiter({ clock, limits })
  let calls = 0
  const counted = { ...send, handler: async () => ({ calls: ++calls }) }
  await using limited = await startServer([...areaOperations, counted], { clock, limiter })
  const post = (key = 'admin') => limited.fetch('/v3/mail.example.com/messages', { key, method: 'POST' })
  const first = await post()
  assert.equal(first.headers.get('x-ratelimit-limit'), '1')
  assert.equal(first.headers.get('x-ratelimit-remaining'), '0')
  const refused = await post('developer')
  assert.equal(refused.status, 429)
  assert.deepEqual(await refused.json(), {
    message:
      'Domain mail.example.com is not allowed to send: account-requests-per-sec limit exceeded, try again after 1 seconds',
  })
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.equal(refused.headers.get('x-ratelimit-reset'), String(clock.now() / 1000 + 1))
  assert.equal(calls, 1)
  for (let n = 0; n < 2; n += 1) assert.equal((await limited.fetch('/v1/domains')).status, 200)
  const other = await limited.fetch('/v1/domains')
  assert.deepEqual([other.status, await other.json()], [429, { message: 'Too Many Requests' }])
  assert.equal((await limited.fetch('/v1/domains', { key: 'developer' })).status, 200, 'per key')
  assert.equal(
    (await limited.fetch('/v1/domains', { key: 'nobody' })).status,
    401,
    'authentication comes first',
  )
})

test("what is the operator's alone is refused to others before its handler, and the refusal is recorded", async (t) => {
  const ran: string[] = []
  const recorded: number[] = []
  const forOperator = operation({
    ...common,
    method: 'PUT',
    path: '/v1/installation',
    id: 'changeInstallation',
    auth: { area: 'account', access: 'write', only: 'first' },
    async handler({ caller }) {
      ran.push(caller.accountId)
      return {}
    },
  })
  const audit = {
    open:
      async () =>
      async ({ status }: { status: number }) =>
        void recorded.push(status),
  }
  for (const firstAccountId of ['acc-1', 'acc-2', 'child']) {
    const own = await startServer([forOperator], { firstAccountId, audit })
    t.after(() => own[Symbol.asyncDispose]())
    const call = (headers = {}) =>
      own.fetch('/v1/installation', { method: 'PUT', headers: { authorization: basic('admin'), ...headers } })
    await call()
    await call({ 'x-service-on-behalf-of': 'child' })
  }
  assert.deepEqual(ran, ['acc-1'])
  assert.deepEqual(recorded, [200, 403, 403, 403, 403, 403])
})
