import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { basic, echo, ManualClock, startServer } from '../../../test/support/http-server.ts'
import { BadRequest, InsufficientStorage } from '../../base/process/errors.ts'
import { anyJson } from '../../base/shape.ts'
import { readPages } from './answer/pages.ts'
import {
  bytesReply,
  eventStream,
  htmlReply,
  jsonReply,
  noContent,
  redirectReply,
  type ServerEvent,
  textReply,
} from './answer/reply.ts'
import { createRateLimiter } from './limits/rate-limit.ts'
import { operation } from './operation.ts'

const open = {
  tag: 'Test',
  summary: 'x',
  auth: 'public',
  answers: { 200: anyJson('ok') },
} as const
const get = (path: string, handler: () => Promise<object>) =>
  operation({ ...open, method: 'GET', path, id: `get ${path}`, handler })

const bounce = operation({
  ...open,
  method: 'GET',
  path: '/v3/{domain}/bounces/{address}',
  aliases: ['/v2/{domain}/bounces/{address}'],
  id: 'bounce',
  handler: async ({ path }) => path,
})

test('path parts are decoded once, a plus stays, and no part may be empty', async () => {
  await using server = await startServer([bounce])
  const decoded = async (path: string) => (await (await server.fetch(path)).json()) as Record<string, string>
  assert.equal((await decoded('/v3/e.com/bounces/a%40b%2Bc+d'))['address'], 'a@b+c+d')
  assert.equal((await decoded('/v2/e.com/bounces/a%252Fb'))['address'], 'a%2Fb')
  assert.equal((await decoded('/v3/e.com/bounces/a%2Fb'))['address'], 'a/b')
  assert.equal((await decoded('/v3/e.com/bounces/%C3%BC'))['address'], 'ü')
  for (const path of [
    '/v3/e.com/bounces/',
    '/v3//bounces/a',
    '/v3/lists/bounces/a',
    '/v3/Domains/bounces/a',
  ]) {
    const response = await server.fetch(path)
    assert.deepEqual([response.status, await response.json()], [404, { message: 'Not Found' }], path)
  }
  const broken = await server.fetch('/v3/e.com/bounces/%E0%A4%A')
  assert.deepEqual([broken.status, await broken.json()], [400, { message: 'Bad Request' }])
  assert.equal((await server.fetch(`/v3/e.com/bounces/${'a'.repeat(5000)}`)).status, 414)
  assert.equal((await server.fetch(`/v3/e.com/bounces/a?${'a'.repeat(17_000)}`)).status, 414)
})

test('the handler receives what the checks before the body returned', async () => {
  const auth = { area: 'domains', access: 'write' } as const
  const parts = { ...open, auth, method: 'POST' } as const
  await using server = await startServer([
    operation({
      ...parts,
      path: '/at-once/{domain}',
      id: 'atOnce',
      beforeBody: ({ path }) => ({ length: path.domain.length }),
      handler: async ({ found }) => ({ length: found.length }),
    }),
    operation({
      ...parts,
      path: '/later/{domain}',
      id: 'later',
      beforeBody: async ({ path, caller }) => [caller.accountId, path.domain],
      handler: async ({ found: [account, domain] }) => ({ account, domain }),
    }),
  ])
  const post = async (path: string) => (await server.fetch(path, { method: 'POST' })).json()
  assert.deepEqual(await post('/at-once/e.com'), { length: 5 })
  assert.deepEqual(await post('/later/e.com'), { account: 'acc-1', domain: 'e.com' })
})

test('unknown paths answer 404, known ones with another method 405 and what is allowed', async () => {
  await using server = await startServer([bounce, echo])
  const cases: ReadonlyArray<[string, string, number, string | null]> = [
    ['GET', '/', 404, null],
    ['GET', '/v3', 404, null],
    ['POST', '/v3/e.com/nothing', 404, null],
    ['GET', '/v3/e.com/echo', 405, 'POST'],
    ['DELETE', '/v3/e.com/bounces/a', 405, 'GET, HEAD'],
    ['DELETE', '/v3/lists/bounces/a', 404, null],
    ['OPTIONS', '/v3/e.com/echo', 405, 'POST'],
    ['GET', '/../../etc/passwd', 404, null],
  ]
  for (const [method, path, status, allow] of cases) {
    const response = await server.fetch(path, { method })
    const message = status === 404 ? 'Not Found' : 'Method Not Allowed'
    assert.deepEqual([response.status, await response.json()], [status, { message }], `${method} ${path}`)
    assert.equal(response.headers.get('allow'), allow)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.ok(response.headers.get('x-service-request-id'))
  }
  for (const end of ['/', '//']) {
    const slashed = await server.fetch(`/v3/e.com/echo${end}?x=1`, { method: 'POST' })
    const body = { message: 'Not Found', did_you_mean: '/v3/e.com/echo' }
    assert.deepEqual([slashed.status, await slashed.json()], [404, body])
  }
  const unread = await server.fetch('/v3/e.com/nothing', { method: 'POST', body: 'x'.repeat(2_000_000) })
  assert.equal(unread.status, 404, 'the answer arrives though nobody reads the body')
})

test('replies: status, text, bytes, lazy bytes, redirect, nothing; HEAD like GET without body', async () => {
  const lazy = {
    sizeBytes: 6,
    open: async function* () {
      yield* [Buffer.from('abc'), Buffer.from('def')]
    },
  }
  await using server = await startServer([
    get('/json', async () => jsonReply({ a: 1 }, { status: 202, headers: { 'x-a': 'b' } })),
    get('/text', async () => textReply('zone')),
    get('/html', async () =>
      htmlReply('<p>', { headers: { 'content-security-policy': "default-src 'self'" } }),
    ),
    get('/bytes', async () => bytesReply(new Uint8Array([1, 2]), 'image/gif')),
    get('/lazy', async () => bytesReply(lazy, 'message/rfc822')),
    get('/gone', async () => noContent()),
    get('/away', async () => redirectReply('https://example.com/')),
  ])
  const cases: ReadonlyArray<[string, number, string | null, string]> = [
    ['/json', 202, 'application/json; charset=utf-8', '{"a":1}'],
    ['/text', 200, 'text/plain; charset=utf-8', 'zone'],
    ['/html', 200, 'text/html; charset=utf-8', '<p>'],
    ['/bytes', 200, 'image/gif', '\x01\x02'],
    ['/lazy', 200, 'message/rfc822', 'abcdef'],
    ['/gone', 204, null, ''],
    ['/away', 302, null, ''],
  ]
  for (const [path, status, type, text] of cases) {
    const response = await server.fetch(path)
    assert.deepEqual(
      [response.status, response.headers.get('content-type'), await response.text()],
      [status, type, text],
    )
    const head = await server.fetch(path, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers.get('content-type'), await head.text()], [status, type, ''])
    if (status === 200) assert.equal(head.headers.get('content-length'), String(text.length), path)
  }
  const html = await server.fetch('/html')
  assert.equal(html.headers.get('content-security-policy'), "default-src 'self'")
  assert.equal(html.headers.get('x-content-type-options'), 'nosniff')
  assert.match((await server.fetch('/text')).headers.get('content-security-policy') ?? '', /sandbox/)
})

test('types that no header can carry are sent as bytes without one, and a bad field is our fault', async () => {
  await using server = await startServer([
    get('/euro', async () => bytesReply(new Uint8Array([1]), 'text/€')),
    get('/control', async () => bytesReply(new Uint8Array([1]), 'text/\x01')),
    get('/no-type', async () => bytesReply(new Uint8Array([1]), 'words')),
    get('/field', async () => jsonReply({ a: 1 }, { status: 201, headers: { location: 'a\nb' } })),
  ])
  for (const path of ['/euro', '/control', '/no-type']) {
    const response = await server.fetch(path)
    assert.deepEqual(
      [response.status, response.headers.get('content-type'), (await response.arrayBuffer()).byteLength],
      [200, 'application/octet-stream', 1],
      path,
    )
  }
  const response = await server.fetch('/field')
  assert.equal(response.status, 500)
  assert.deepEqual(await response.json(), { message: 'Internal Server Error' })
  assert.equal(response.headers.get('location'), null)
  assert.ok(response.headers.get('x-service-request-id'))
})

test('a request refused for want of something is one short line in the log, without a stack', async () => {
  const full = get('/full', async () => {
    const cause = Object.assign(new Error(`no space ${'x'.repeat(5_000)}`), { code: 'ENOSPC' })
    throw new InsufficientStorage(30, { cause: new Error('cannot write', { cause }) })
  })
  await using server = await startServer([full])
  assert.equal((await server.fetch('/full')).status, 507)
  const line = server.lines.find((entry) => entry['msg'] === 'request failed')
  assert.deepEqual(
    [line?.['operation'], line?.['status'], line?.['fault'], line?.['code']],
    [full.id, 507, 'InsufficientStorage', 'ENOSPC'],
  )
  assert.match(line?.['reason'] as string, /^no space x+$/)
  assert.ok(JSON.stringify(line).length < 500, `${JSON.stringify(line).length} bytes`)
})

test('thousands of failing requests do not fill the log: lines are bounded per second', async () => {
  const clock = createTestClock()
  const operations = [
    get('/full', async () => {
      throw new InsufficientStorage()
    }),
    get('/broken', async () => {
      throw new Error('ours')
    }),
  ]
  await using server = await startServer(operations, {
    clock,
    limiter: createRateLimiter({ clock, off: true }),
  })
  const flood = async () => {
    for (let n = 0; n < 100; n++) {
      assert.equal((await server.fetch('/full')).status, 507)
      assert.equal((await server.fetch('/broken')).status, 500)
    }
  }
  await flood()
  const logged = () => server.lines.filter((entry) => entry['msg'] === 'request failed')
  assert.equal(logged().filter((entry) => entry['err'] !== undefined).length, 5)
  assert.equal(logged().filter((entry) => entry['err'] === undefined).length, 20)
  clock.leap(1_000)
  await server.fetch('/broken')
  assert.equal(logged().length, 26)
  assert.ok(server.lines.some((entry) => entry['leftOut'] === 175))
})

test('an unknown error is a 500 with the cause in the log and nothing of it in the answer', async () => {
  const failing = get('/fail', async () => {
    throw new Error('outer', { cause: new Error('inner secret') })
  })
  const bad = get('/bad', async () => {
    throw new BadRequest('said', { form: 'Reason' })
  })
  await using server = await startServer([failing, bad])
  const response = await server.fetch('/fail?secret-in-query=1', { headers: { cookie: 'secret-cookie=1' } })
  assert.deepEqual([response.status, await response.json()], [500, { message: 'Internal Server Error' }])
  const line = server.lines.find((entry) => entry['msg'] === 'request failed')
  assert.match(JSON.stringify(line), /inner secret/)
  assert.equal(line?.['requestId'], response.headers.get('x-service-request-id'))
  assert.deepEqual(await (await server.fetch('/bad')).json(), { Reason: 'said' })
  assert.equal(server.lines.filter((entry) => entry['msg'] === 'request failed').length, 1)
  assert.doesNotMatch(
    JSON.stringify(server.lines),
    /secret-in-query|secret-cookie|YXBp/,
    'no query, cookie or key',
  )
})

test('answers are counted with their operation', async () => {
  const seen: string[] = []
  await using server = await startServer([bounce], {
    observe: ({ operation: id, method, status }) => void seen.push(`${id} ${method} ${status}`),
  })
  await server.fetch('/v3/e.com/bounces/a')
  await server.fetch('/nothing')
  assert.deepEqual(seen, ['bounce GET 200', 'undefined GET 404'])
})

test('health: alive always, ready when the service says so', async () => {
  let ready = true
  const isReady = async () => (ready ? { ready } : { ready, reason: 'store unreachable' })
  await using server = await startServer([], { isReady })
  for (const path of ['/health/live', '/health/ready', '/health']) {
    const response = await server.fetch(path, { key: '' })
    assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }])
  }
  ready = false
  const response = await server.fetch('/health/ready', { key: '' })
  assert.deepEqual(
    [response.status, await response.json()],
    [503, { message: 'Service Unavailable', reason: 'store unreachable' }],
  )
  assert.equal(response.headers.get('retry-after'), '5')
  assert.equal((await server.fetch('/health/live', { key: '' })).status, 200)
})

test('framing that proxies could read differently is refused, in the form of the contract', async () => {
  await using server = await startServer([echo])
  const head = `POST /v3/e.com/echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic('admin')}\r\n`
  const attacks = [
    `${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`,
    `${head}Content-Length: -1\r\n\r\n`,
    `${head}Content-Length: 1x\r\n\r\na`,
    `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    `${head}X: a\nY: b\rZ: c\r\n\r\n`,
    'GET / HTTP/1.1\r\n\r\n',
    'nonsense\r\n\r\n',
    `GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ]
  for (const attack of attacks) {
    const answer = await server.raw(attack)
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, JSON.stringify(attack))
  }
  const large = await server.raw(`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`)
  assert.match(large, /^HTTP\/1\.1 431 .*\{"message":"Request Header Fields Too Large"\}$/s)
})

test('a client that never finishes its headers, or never says anything, is cut off', async () => {
  await using server = await startServer([echo], { deadlines: { headersMs: 100, requestMs: 200 } })
  const late = await server.raw('GET / HTTP/1.1\r\nHost: localhost\r\nX: ')
  assert.match(late, /^HTTP\/1\.1 408 Request Timeout/)
  await server.raw('')
  const slowBody = `POST /v3/e/echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic('admin')}\r\nContent-Length: 9\r\n\r\na=`
  assert.match(await server.raw(slowBody), /^HTTP\/1\.1 408 Request Timeout/)
})

/** A source that the test feeds, and that ends with the signal. */
function feed() {
  const queue: ServerEvent[] = []
  let wake = () => {}
  return {
    push(event: ServerEvent) {
      queue.push(event)
      wake()
    },
    async *events(signal: AbortSignal): AsyncGenerator<ServerEvent> {
      signal.addEventListener('abort', () => wake())
      while (!signal.aborted) {
        while (queue.length > 0) yield queue.shift() as ServerEvent
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

test('server-sent events flow one by one, with heartbeats, until the client goes', async () => {
  const clock = new ManualClock()
  const source = feed()
  const ended = Promise.withResolvers<void>()
  const stream = operation({
    ...open,
    method: 'GET',
    path: '/stream',
    id: 'stream',
    handler: async ({ signal }) => {
      signal.addEventListener('abort', () => ended.resolve())
      return eventStream(source.events(signal))
    },
  })
  await using server = await startServer([stream], { clock })
  const aborter = new AbortController()
  const response = await server.fetch('/stream', { signal: aborter.signal })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reader = (response.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader()
  assert.equal((await reader.read()).value, ': open\n\n')
  source.push({ event: 'mail\ninjected: x', id: '7', data: { text: 'two\nlines' } })
  assert.equal(
    (await reader.read()).value,
    'event: mail injected: x\nid: 7\ndata: {"text":"two\\nlines"}\n\n',
  )
  while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve))
  clock.advance(15_000)
  assert.equal((await reader.read()).value, ': still here\n\n')
  aborter.abort()
  await ended.promise
  assert.equal((await server.fetch('/stream', { method: 'HEAD' })).status, 200)
})

test('a stream ends soon after its session or key does', async () => {
  const clock = new ManualClock()
  const source = feed()
  const stream = operation({
    ...open,
    auth: { area: 'messages:stored', access: 'read' },
    method: 'GET',
    path: '/stream',
    id: 'stream',
    handler: async ({ signal }) => eventStream(source.events(signal)),
  })
  await using server = await startServer([stream], { clock })
  const openStream = async (headers: Record<string, string>, key: string) => {
    const { body } = await server.fetch('/stream', { headers, key })
    const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    assert.equal((await reader.read()).value, ': open\n\n')
    return reader
  }
  const readers = [
    await openStream({ cookie: 'sendwright_session=good' }, ''),
    await openStream({}, 'support'),
  ]
  const turn = async () => {
    while (clock.waiting < 2) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(15_000)
    return Promise.all(readers.map(async (reader) => (await reader.read()).value))
  }
  assert.deepEqual(await turn(), [': still here\n\n', ': still here\n\n'])
  server.authenticator.session = async () => null
  server.authenticator.key = async () => null
  assert.deepEqual(await turn(), [undefined, undefined])
})

test('closing ends streams, lets a running request finish and refuses new ones', async () => {
  const release = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  const source = feed()
  const stream = operation({
    ...open,
    method: 'GET',
    path: '/stream',
    id: 'stream',
    handler: async ({ signal }) => eventStream(source.events(signal)),
  })
  const slow = get('/slow', async () => {
    started.resolve()
    await release.promise
    return { done: true }
  })
  const server = await startServer([stream, slow])
  const streaming = await server.fetch('/stream')
  const running = server.fetch('/slow')
  await started.promise
  const socket = createConnection({ host: '127.0.0.1', port: server.port })
  await once(socket, 'connect')
  // The second one has begun: a connection without a request is ended at once, whatever is on its way.
  socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health/live HTTP/1.1\r\n')
  await once(socket, 'data')
  const closing = server[Symbol.asyncDispose]()
  assert.equal(await streaming.text(), ': open\n\n')
  socket.write('Host: localhost\r\n\r\n')
  let rest = ''
  socket.on('data', (chunk) => {
    rest += chunk
  })
  await once(socket, 'close')
  release.resolve()
  assert.deepEqual(await (await running).json(), { done: true })
  assert.match(rest, /HTTP\/1\.1 503 .*Service Unavailable/s)
  await closing
})

test('a request that does not end is cut when the grace is over', async () => {
  const started = Promise.withResolvers<void>()
  const stuck = get('/stuck', async () => {
    started.resolve()
    return new Promise<never>(() => {})
  })
  const server = await startServer([stuck], { deadlines: { closeGraceMs: 20 } })
  const request = assert.rejects(server.fetch('/stuck'))
  await started.promise
  await server[Symbol.asyncDispose]()
  await request
})

test('the dashboard: files from the list only, cached by hash, with a policy; its own routes get the index', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pages-'))
  await mkdir(join(folder, 'assets'))
  await writeFile(join(folder, 'index.html'), '<!doctype html>')
  await writeFile(join(folder, 'assets/index-1a2b.js'), 'x()\n'.repeat(1000))
  await using server = await startServer([echo], {
    pages: readPages(folder),
    pagesPrefixes: ['/app', '/domains'],
  })
  const index = await server.fetch('/', { key: '' })
  assert.equal(await index.text(), '<!doctype html>')
  assert.equal(index.headers.get('cache-control'), 'no-cache')
  assert.match(
    index.headers.get('content-security-policy') ?? '',
    /script-src 'self';.*frame-ancestors 'none'/,
  )
  const asset = (accept: string) =>
    server.fetch('/assets/index-1a2b.js', { key: '', headers: { 'accept-encoding': accept } })
  for (const [accept, coding] of [
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br', 'br'],
  ] as const) {
    const script = await asset(accept)
    assert.equal(script.headers.get('content-encoding'), coding)
    assert.equal((await script.text()).length, 4000)
  }
  const script = await asset('identity')
  assert.match(script.headers.get('cache-control') ?? '', /immutable/)
  const again = await server.fetch('/', {
    key: '',
    headers: { 'if-none-match': index.headers.get('etag') ?? '' },
  })
  assert.equal(again.status, 304)
  for (const path of ['/app', '/app/x/y', '/domains/mg.example.com'])
    assert.equal(await (await server.fetch(path, { key: '' })).text(), '<!doctype html>', path)
  for (const path of ['/apples', '/assets/', '/assets/..%2f..%2fetc/passwd', '/index.htm']) {
    assert.equal((await server.fetch(path, { key: '' })).status, 404, path)
  }
  const upward = await server.raw(
    'GET /assets/../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  )
  assert.match(upward, /^HTTP\/1\.1 404 /)
  assert.equal((await server.fetch('/', { method: 'POST' })).status, 405)
  await writeFile(join(folder, 'run.exe'), '')
  assert.throws(() => readPages(folder), { message: 'pages: cannot serve "/run.exe"' })
  await rm(folder, { recursive: true })
})

test('a second listener speaks TLS for the same routes and ends with the first', async () => {
  // Anonymous key exchange: TLS without a certificate, so that the test needs none.
  const anonymous = { ciphers: 'AECDH-AES128-SHA:@SECLEVEL=0', maxVersion: 'TLSv1.2' } as const
  const tls = { port: 0, options: anonymous }
  await using server = await startServer([echo], { tls })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      ...anonymous,
      method: 'POST',
      headers: { authorization: basic('admin') },
      rejectUnauthorized: false,
    }
    const url = `https://127.0.0.1:${server.tlsPort}/v3/e.com/echo`
    httpsRequest(url, { ...options, agent: false }, resolve)
      .on('error', reject)
      .end()
  })
  assert.equal(response.statusCode, 200)
  assert.equal((JSON.parse((await response.toArray()).join('')) as { isSecure: boolean }).isSecure, true)
})

test('two operations on one path and parts that do not fit are found at start', async () => {
  await assert.rejects(startServer([bounce, bounce]))
  const wrong = {
    ...echo,
    params: echo.inputs,
    auth: { area: 'domains', access: 'read', domain: 'name' },
  } as const
  assert.throws(() => operation({ ...wrong, handler: async () => ({}) }), /"name" is no part of/)
  assert.throws(
    () => operation({ ...echo, params: echo.inputs, aliases: ['/v2/{other}/echo'] }),
    /other parts/,
  )
})
