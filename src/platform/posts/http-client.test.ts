import assert from 'node:assert/strict'
import { createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createAuthority, selfSigned } from '../../../test/support/certificates.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { createReceiver, type ReceiverAnswer } from '../../../test/support/http-receiver.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import {
  CONNECT_MAX_MS,
  createHttpClient,
  type HttpClientOptions,
  RESPONSE_MAX_BYTES,
  readUrl,
  TOTAL_MAX_MS,
} from './http-client.ts'

const LOOPBACK = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])

function client(t: TestContext, options: Partial<HttpClientOptions> = {}) {
  const made = createHttpClient({
    resolve: async () => [],
    allow: LOOPBACK,
    clock: systemClock,
    ...options,
  })
  t.after(() => made.close())
  return made
}

/** A raw TCP server; every connection is counted and passed to `talk`. */
async function rawServer(t: TestContext, host: string, talk: (socket: Socket) => void = () => {}) {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    talk(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { port, sockets }
}

/** Hosts as an attacker would write them. The stub resolves `name.test` to the address after the arrow. */
const FORBIDDEN_HOSTS = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1'],
  ...['0177.1', '017700000001', '127.0.0.1.', '127.0.0.0x1', '0', '0.0.0.0', '0.0.0.1', '0x0'],
  ...[
    'localhost',
    'localhost.',
    'LOCALHOST',
    'a.localhost',
    '%6c%6f%63alhost',
    '１２７.0.0.1',
    '127。0。0。1',
  ],
  ...['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  ...['169.254.169.254', '169.254.0.1', '2852039166', '0xa9fea9fe', '100.64.0.1', '100.127.255.255'],
  ...['192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1'],
  ...['255.255.255.255', '192.88.99.1', '[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:10.0.0.1]', '[::ffff:169.254.169.254]'],
  ...['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::a9fe:a9fe]', '[64:ff9b:1::7f00:1]'],
  ...['[2002:7f00:1::]', '[2002:a00:1::1]', '[2001::1]', '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]'],
  ...['[fec0::1]', '[ff02::1]', '[2001:db8::1]', '[100::1]'],
  ...['loopback.test', 'private.test', 'metadata.test', 'mapped.test', 'nat64.test', 'many.test'],
]
const STUB: Record<string, string[]> = {
  localhost: ['127.0.0.1', '::1'],
  'a.localhost': ['127.0.0.1', '::1'],
  'loopback.test': ['127.0.0.1'],
  'private.test': ['10.1.2.3'],
  'metadata.test': ['169.254.169.254'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'nat64.test': ['64:ff9b::7f00:1'],
  'many.test': ['127.0.0.1', '::1', '10.0.0.1', 'fe80::1'],
}

test('a network without a route is an outcome, and breaks nothing', async (t) => {
  // TCP has no broadcast: the system refuses to connect there at once, whatever networks the machine has.
  const unreachable = '255.255.255.255'
  const allow = [parseCidr(`${unreachable}/32`)].flatMap((cidr) => cidr ?? [])
  const http = client(t, { resolve: async () => [unreachable], allow })
  for (const scheme of ['http', 'https']) {
    const outcome = await http.send({ url: `${scheme}://hook.example/`, body: Buffer.from('{}') })
    assert.partialDeepStrictEqual(outcome, { kind: 'failed', why: 'network not reachable' })
  }
})

test(`${FORBIDDEN_HOSTS.length} ways to write an address that is not public make no connection (R37)`, async (t) => {
  assert.ok(FORBIDDEN_HOSTS.length >= 60)
  const four = await rawServer(t, '0.0.0.0')
  const six = await rawServer(t, '::1').catch(() => null)
  const closed = client(t, { allow: [], resolve: async (host) => STUB[host] ?? [] })
  for (const host of FORBIDDEN_HOSTS) {
    for (const port of [four.port, six?.port ?? four.port]) {
      const outcome = await closed.send({ url: `http://${host}:${port}/`, body: Buffer.from('{}') })
      assert.deepEqual(
        [host, outcome.kind, 'why' in outcome && outcome.why],
        [host, 'refused', 'address not allowed'],
      )
      assert.equal(await closed.fault(`https://${host}:${port}/`), 'address not allowed', host)
    }
  }
  assert.equal(four.sockets.size + (six?.sockets.size ?? 0), 0)
})

test('a lazy body is sent in pieces, and given up when the response comes first', async (t) => {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  let opened = 0
  const pieces = (count: number) => ({
    sizeBytes: count * 65_536,
    async *open() {
      opened += 1
      for (let at = 0; at < count; at++) yield Buffer.alloc(65_536, at % 256)
    },
  })
  const sender = client(t)
  const sent = await sender.send({ url: receiver.url, body: pieces(40) })
  assert.deepEqual([sent.kind, opened, receiver.posts[0]?.raw.length], ['answered', 1, 40 * 65_536])
  assert.equal(receiver.posts[0]?.headers['content-length'], String(40 * 65_536))

  const ended = Promise.withResolvers<void>()
  const endless = {
    sizeBytes: Number.MAX_SAFE_INTEGER,
    async *open() {
      try {
        for (;;) yield Buffer.alloc(65_536)
      } finally {
        ended.resolve()
      }
    },
  }
  const { port } = await rawServer(t, '127.0.0.1', (socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'))
  })
  const refused = await sender.send({ url: `http://127.0.0.1:${port}/`, body: endless })
  assert.deepEqual([refused.kind, refused.kind === 'answered' && refused.status], ['answered', 413])
  await ended.promise

  const unreadable = {
    sizeBytes: 10,
    async *open(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(1)
      throw new Error('gone')
    },
  }
  const broken = await sender.send({ url: receiver.url, body: unreadable })
  assert.deepEqual(
    [broken.kind, broken.kind === 'failed' && broken.why],
    ['failed', 'the body cannot be read'],
  )
})

test('invalid URLs, and URLs with credentials, are refused with a reason', () => {
  const cases: [url: string, why: string][] = [
    ['ftp://example.com', 'invalid URL scheme'],
    ['file:///etc/passwd', 'invalid URL scheme'],
    ['gopher://127.0.0.1:25/_x', 'invalid URL scheme'],
    ['javascript:alert(1)', 'invalid URL scheme'],
    ['//example.com/', 'invalid URL'],
    ['example.com', 'invalid URL'],
    ['http://', 'invalid URL'],
    ['http://exa mple.com', 'invalid URL'],
    ['http://example.com/\r\nX: y', 'invalid URL'],
    ['http://[::1', 'invalid URL'],
    ['http://127.0.0.1.256/', 'invalid URL'],
    ['http://user@example.com/', 'credentials are not allowed'],
    ['http://user:secret@example.com/', 'credentials are not allowed'],
    ['http://example.com@127.0.0.1/', 'credentials are not allowed'],
    [`http://example.com/${'x'.repeat(2100)}`, 'URL too long'],
  ]
  for (const [url, why] of cases) assert.equal(readUrl(url), why, url)
})

test('a name that is public when it is registered and private when it is called makes no connection', async (t) => {
  const target = await rawServer(t, '127.0.0.1')
  const answers = [['93.184.215.14'], ['127.0.0.1']]
  const closed = client(t, { allow: [], resolve: async () => answers.shift() ?? ['127.0.0.1'] })
  const url = `http://rebind.test:${target.port}/`
  assert.equal(await closed.fault(url), null)
  assert.equal((await closed.send({ url })).kind, 'refused')
  assert.equal(target.sockets.size, 0)
})

test('a name is resolved once per request, and the socket connects only to that address', async (t) => {
  const wanted = await createReceiver({ host: '127.0.0.2' })
  t.after(wanted.close)
  let asked = 0
  // A second resolution would return another address: it never happens.
  const once = client(t, { resolve: async () => (asked++ === 0 ? ['10.9.9.9', '127.0.0.2'] : ['127.0.0.3']) })
  const outcome = await once.send({
    url: `http://name.test:${wanted.port}/hook`,
    body: Buffer.from('{"a":1}'),
  })
  assert.equal(outcome.kind === 'answered' && outcome.status, 200)
  assert.equal(asked, 1)
  assert.deepEqual(wanted.posts[0]?.body, { a: 1 })
  assert.equal(wanted.posts[0]?.headers.host, `name.test:${wanted.port}`)
})

test('redirects are answers and are not followed', async (t) => {
  const inner = await rawServer(t, '127.0.0.3')
  for (const status of [301, 302, 303, 307, 308]) {
    const answer: ReceiverAnswer = (response) =>
      response.writeHead(status, { location: `http://127.0.0.3:${inner.port}/` }).end()
    const receiver = await createReceiver({ answer })
    const outcome = await client(t).send({ url: receiver.url })
    assert.equal(outcome.kind === 'answered' && outcome.status, status)
    await receiver.close()
  }
  assert.equal(inner.sockets.size, 0)
})

test('a proxy in the environment is not used', async (t) => {
  const proxy = await rawServer(t, '127.0.0.1')
  const receiver = await createReceiver()
  t.after(receiver.close)
  const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
  for (const name of names)
    process.env[name] = name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxy.port}`
  t.after(() => {
    for (const name of names) delete process.env[name]
  })
  assert.equal((await client(t).send({ url: receiver.url })).kind, 'answered')
  assert.equal(proxy.sockets.size, 0)
})

test('an endless response is cut off at its limit and its status counts', async (t) => {
  const receiver = await createReceiver({
    answer(response) {
      response.writeHead(200)
      const flood = () => {
        while (response.writable && response.write(Buffer.alloc(16_384, 'x')));
      }
      response.on('drain', flood)
      flood()
    },
  })
  t.after(receiver.close)
  const outcome = await client(t).send({ url: receiver.url })
  assert.equal(outcome.kind === 'answered' && outcome.status, 200)
  assert.equal(outcome.kind === 'answered' && outcome.body.byteLength, RESPONSE_MAX_BYTES)
  const more = await client(t).send({ url: receiver.url, responseBytes: 3 * RESPONSE_MAX_BYTES })
  assert.equal(more.kind === 'answered' && more.body.byteLength, 3 * RESPONSE_MAX_BYTES)
})

/** A hostile server's response, and the resulting failure. The clock is advanced by hand, so nothing waits. */
const HOSTILE: [name: string, talk: (socket: Socket) => void, why: RegExp][] = [
  ['never answers', () => {}, /no answer within 10 s/],
  [
    'answers one byte at a time',
    (socket) => void trickle(socket, 'HTTP/1.1 200 OK\r\n'),
    /no answer within 10 s/,
  ],
  [
    'sends its body one byte at a time',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
      trickle(socket, 'x'.repeat(100))
    },
    /no answer within 10 s/,
  ],
  ['speaks something else', (socket) => socket.end('220 mail.test ESMTP\r\n'), /not an HTTP answer/],
  ['hangs up', (socket) => socket.destroy(), /connection broken/],
  ['resets', (socket) => socket.resetAndDestroy(), /connection broken/],
  [
    'breaks off in the body',
    (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'),
    /connection broken/,
  ],
  [
    'sends endless headers',
    (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`),
    /too long headers/,
  ],
]

function trickle(socket: Socket, text: string): void {
  socket.write(text[0] ?? '')
  const timer = setInterval(() => socket.write(text[0] ?? ''), 5)
  socket.on('close', () => clearInterval(timer))
}

for (const [name, talk, why] of HOSTILE) {
  test(`a server that ${name} is a failure in bounded time`, async (t) => {
    const clock = createTestClock()
    const reached = Promise.withResolvers<void>()
    const server = await rawServer(t, '127.0.0.1', (socket) => {
      socket.once('data', () => {
        talk(socket)
        reached.resolve()
      })
    })
    const sent = client(t, { clock }).send({
      url: `http://127.0.0.1:${server.port}/`,
      body: Buffer.from('{}'),
    })
    await reached.promise
    if (why.source.includes('within')) await clock.advance(TOTAL_MAX_MS)
    const outcome = await sent
    assert.match(outcome.kind === 'failed' ? outcome.why : outcome.kind, why)
  })
}

test('a signal ends a request that waits for its answer', async (t) => {
  const reached = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const server = await rawServer(t, '127.0.0.1', (socket) => {
    socket.once('data', reached.resolve)
    socket.once('close', ended.resolve)
  })
  const caller = new AbortController()
  const request = { url: `http://127.0.0.1:${server.port}/`, signal: caller.signal }
  const http = client(t, {})
  const sent = http.send(request)
  await reached.promise
  caller.abort()
  const outcome = await sent
  assert.equal(outcome.kind === 'failed' && outcome.why, 'the request was given up')
  await ended.promise
  assert.equal((await http.send(request)).kind, 'failed')
})

test('a connection, or a name, that takes too long is a timeout', async (t) => {
  const clock = createTestClock()
  const silent = client(t, { clock, resolve: () => new Promise(() => {}) })
  const sent = silent.send({ url: 'http://slow.test/' })
  await clock.advance(CONNECT_MAX_MS)
  const outcome = await sent
  assert.equal(outcome.kind === 'failed' && outcome.why, 'no connection within 5 s')
})

test('a TLS handshake that never completes is ended by the connect timeout', async (t) => {
  const clock = createTestClock()
  const reached = Promise.withResolvers<void>()
  const server = await rawServer(t, '127.0.0.1', () => reached.resolve())
  const sent = client(t, { clock }).send({ url: `https://127.0.0.1:${server.port}/` })
  await reached.promise
  await clock.advance(CONNECT_MAX_MS)
  const outcome = await sent
  assert.equal(outcome.kind === 'failed' && outcome.why, 'no connection within 5 s')
})

test('certificates must verify, whatever the environment says', async (t) => {
  const authority = createAuthority()
  const good = await createReceiver({ tls: authority.issue(['127.0.0.1']) })
  const other = await createReceiver({ tls: authority.issue(['other.test']) })
  const alone = await createReceiver({ tls: selfSigned(['127.0.0.1']) })
  const expired = await createReceiver({
    tls: authority.issue(['127.0.0.1'], { from: new Date(0), to: new Date(86_400_000) }),
  })
  const garbage = await rawServer(t, '127.0.0.1', (socket) => socket.end('garbage garbage garbage'))
  t.after(() => Promise.all([good, other, alone, expired].map((receiver) => receiver.close())))
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.after(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
  const trusting = client(t, { ca: [authority.cert] })
  const result = async (url: string) => {
    const outcome = await trusting.send({ url })
    return outcome.kind === 'answered' ? outcome.status : outcome.why
  }
  assert.equal(await result(good.url), 200)
  assert.match(String(await result(other.url)), /^TLS failed: err tls cert altname invalid/)
  assert.match(String(await result(alone.url)), /^TLS failed/)
  assert.match(String(await result(expired.url)), /^TLS failed: cert has expired/)
  assert.match(String(await result(`https://127.0.0.1:${garbage.port}/`)), /^TLS failed/)
})

test('connections are reused, and one that was closed meanwhile is replaced', async (t) => {
  const receiver = await createReceiver()
  t.after(receiver.close)
  const keeping = client(t)
  for (let n = 0; n < 3; n++) assert.equal((await keeping.send({ url: receiver.url })).kind, 'answered')
  assert.equal(receiver.connections.total, 1)
  receiver.answer = (response) => response.socket?.destroy()
  assert.equal((await keeping.send({ url: receiver.url })).kind, 'failed')
  receiver.answer = 204
  assert.equal((await keeping.send({ url: receiver.url })).kind, 'answered')
})

test('requests beyond the maximum wait for a slot', async (t) => {
  const held: (() => void)[] = []
  const receiver = await createReceiver({
    answer: (response) => {
      held.push(() => response.end())
      if (held.length === 3) for (const release of held) release()
      else if (held.length > 3) response.end()
    },
  })
  t.after(receiver.close)
  const narrow = client(t, { requestsMax: 3 })
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => narrow.send({ url: receiver.url })))
  assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(['answered']))
  assert.equal(receiver.connections.peakPosts, 3)
})

test('after closing, requests fail at once', async (t) => {
  const closed = client(t)
  closed.close()
  assert.equal((await closed.send({ url: 'http://127.0.0.1:1/' })).kind, 'failed')
})
