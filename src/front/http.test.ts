/** What a front passes on, byte by byte: nodes that record what they get, and clients that mean harm. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { basic, digestOf, directoryRows, FRONT_SECRET, testFront } from '../../test/support/front.ts'
import { eventually } from '../../test/support/service.ts'
import { newId } from '../base/ids.ts'
import { createSealer } from '../platform/store/secrets/sealing.ts'
import { readProxyHeader } from '../protocols/proxy/header.ts'
import { createTokens } from '../sending/tracking/links/tokens.ts'

const KEY = 'key-of-the-only-pod-0123456789'
const AUTHORIZATION = `Authorization: ${basic(KEY)}`
const MIB = 1024 * 1024

interface FakeNode {
  port: number
  connections: {
    socket: Socket
    received: string
    client: { address?: string; isSecure?: boolean } | null
    bytes: number
  }[]
  /** Called at each piece with the text after the PROXY header, 64 KB of it, and with the number of its bytes. */
  answer(socket: Socket, received: string, bytes: number): void
  close(): void
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'

async function fakeNode(t: TestContext, answer: FakeNode['answer']): Promise<FakeNode> {
  const node: FakeNode = { port: 0, connections: [], answer, close: () => server.close() }
  const server = createServer((socket) => {
    const connection: FakeNode['connections'][number] = { socket, received: '', client: null, bytes: 0 }
    node.connections.push(connection)
    let raw = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      if (connection.client === null) {
        raw = Buffer.concat([raw, bytes])
        const read = readProxyHeader(raw)
        assert.notEqual(read.kind, 'malformed')
        if (read.kind !== 'header') return
        connection.client = { ...read.client, isSecure: read.isSecure }
        bytes = raw.subarray(read.length)
      }
      connection.bytes += bytes.length
      if (connection.received.length < 65_536) connection.received += bytes.toString('latin1')
      if (connection.bytes > 0) node.answer(socket, connection.received, connection.bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  node.port = (server.address() as AddressInfo).port
  t.after(() => {
    server.close()
    for (const { socket } of node.connections) socket.destroy()
  })
  return node
}

const whenHead = (answer: string) => (socket: Socket, received: string) => {
  if (received.includes('\r\n\r\n')) socket.write(answer)
}

async function start(t: TestContext, answers: FakeNode['answer'][], env: Record<string, string> = {}) {
  const rows = directoryRows()
  const nodes: FakeNode[] = []
  for (const answer of answers) nodes.push(await fakeNode(t, answer))
  const http = JSON.stringify(nodes.map(({ port }) => `127.0.0.1:${port}`))
  rows.pods.push({ name: 'only', http, smtp: '[]' })
  rows.entries.set(`key ${digestOf(KEY)}`, 'only')
  const front = await testFront(t, rows.query, env)
  const open = () => {
    const socket = connect({ port: front.front.port, host: front.host })
    t.after(() => socket.destroy())
    return socket.on('error', () => {})
  }
  /** All that is received until the front closes. */
  const say = (lines: readonly string[], body = '') => {
    const socket = open()
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
    return text(socket)
  }
  return { ...front, rows, nodes, node: nodes[0] as FakeNode, open, say }
}

const HEAD = ['POST /v3/a.example/messages HTTP/1.1', 'Host: a.example', AUTHORIZATION, 'Connection: close']

test('a request is made anew: fields of one hop and claims of the client stay behind', async (t) => {
  const { node, say } = await start(t, [
    whenHead(
      'HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\nKeep-Alive: timeout=9\r\nConnection: close\r\n\r\nok',
    ),
  ])
  const answer = await say(
    [
      ...HEAD.slice(0, 3),
      ...[
        'Connection: close, X-Secret-Hop',
        'X-Secret-Hop: 1',
        'Keep-Alive: 5',
        'TE: trailers',
        'Upgrade: websocket',
      ],
      ...['Proxy-Authorization: Basic eA==', 'X-Forwarded-For: 203.0.113.9', 'Forwarded: for=203.0.113.9'],
      ...['X-Forwarded-Proto: https', 'X-Kept: 1', 'x-kept: 2', 'Content-Length: 5', 'Expect: 100-continue'],
    ],
    'hello',
  )
  assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created\r\n/)
  assert.match(answer, /x-a: 1\r\nx-a: 2\r\n/)
  assert.ok(!/timeout=9/.test(answer) && answer.endsWith('\r\n\r\nok'), answer)
  const [connection] = node.connections
  assert.deepEqual(connection?.received.split('\r\n'), [
    ...['POST /v3/a.example/messages HTTP/1.1', 'Host: a.example', AUTHORIZATION, 'X-Kept: 1', 'x-kept: 2'],
    ...['Content-Length: 5', 'Via: 1.1 sendwright', 'Connection: close', '', 'hello'],
  ])
  const { address, isSecure } = connection?.client ?? {}
  assert.deepEqual([address, isSecure], ['127.0.0.1', false])
})

test('what two servers could read differently is refused and reaches no node', async (t) => {
  const { node, say } = await start(t, [whenHead(OK)])
  const hostile: readonly (readonly [fields: string[], body: string])[] = [
    [['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n'],
    [['Content-Length: 5', 'Content-Length: 6'], 'hello'],
    [['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'],
    [['Transfer-Encoding : chunked'], '0\r\n\r\n'],
    [['Host: b.example'], ''],
    [['X: a\nX-Injected: b'], ''],
    [['X: a\0b'], ''],
    [['Content-Length: 0x5'], 'hello'],
    [[' folded: 1'], ''],
  ]
  for (const [fields, body] of hostile)
    assert.match(await say([...HEAD, ...fields], body), /^HTTP\/1\.1 (?:400|501) /, JSON.stringify(fields))
  assert.match(
    await say(['CONNECT a.example:443 HTTP/1.1', 'Host: a.example', AUTHORIZATION]),
    /^(?:HTTP\/1\.1 400 |$)/,
  )
  assert.equal(node.connections.length, 0)
  // A chunked body is framed anew; what follows it is another request with a connection of its own.
  const socket = await say(
    [...HEAD.slice(0, 3), 'Transfer-Encoding: chunked'],
    `5;ext="a"\r\nhello\r\n0\r\nTrailer-Field: x\r\n\r\n${[...HEAD, '', ''].join('\r\n').replace('POST', 'GET')}`,
  )
  assert.equal(socket.match(/HTTP\/1\.1 200 OK/g)?.length, 2)
  assert.equal(node.connections.length, 2)
  assert.ok(node.connections[0]?.received.endsWith('\r\n\r\n5\r\nhello\r\n0\r\n\r\n'))
})

test('a node that cannot be connected to is passed over; one that breaks off is not, and nothing is sent twice', async (t) => {
  const cut = (socket: Socket, received: string) => {
    if (received.includes('hello')) socket.destroy()
  }
  const { nodes, rows, say } = await start(t, [cut, whenHead(OK)])
  const [breaking, working] = nodes as [FakeNode, FakeNode]
  const post = () => say([...HEAD, 'Content-Length: 5'], 'hello')
  const answers = [await post(), await post()].sort()
  assert.match(answers[0] ?? '', /^HTTP\/1\.1 200 /)
  assert.match(answers[1] ?? '', /^HTTP\/1\.1 502 Bad Gateway\r\n.*\{"message":"Bad Gateway"\}$/s)
  assert.deepEqual([breaking.connections.length, working.connections.length], [1, 1])
  breaking.close()
  for (let count = 0; count < 3; count++) assert.match(await post(), /^HTTP\/1\.1 200 /)
  assert.deepEqual([breaking.connections.length, working.connections.length], [1, 4])
  working.close()
  const none = await post()
  assert.match(none, /^HTTP\/1\.1 503 .*retry-after: 5\r\n.*\{"message":"Service Unavailable"\}$/is)
  rows.pods.length = 0
  await eventually('no pod is left', async () =>
    (await say(['GET /health/ready HTTP/1.1', 'Host: a', 'Connection: close'])).startsWith('HTTP/1.1 503 '),
  )
})

const TOKEN = 'x'.repeat(43)

test('a link leads to the pod that its token names, else to the only pod with the host in a public URL', async (t) => {
  const rows = directoryRows()
  for (const [name, host] of [
    ['a', 'a.example'],
    ['b', 'b.example'],
  ] as const) {
    const { port } = await fakeNode(t, whenHead(OK.replace('2\r\n', '1\r\n').replace(/ok$/, name)))
    const hosts = JSON.stringify([host, 'both.example'])
    rows.pods.push({ name, http: JSON.stringify([`127.0.0.1:${port}`]), smtp: '[]', hosts })
    rows.entries.set(`pod ${name}`, name)
  }
  rows.entries.set('pod former', 'b').set('host email.shop.example', 'b')
  const { url } = await testFront(t, rows.query)
  const ask = async (path: string, host: string, fields: Record<string, string> = {}, form?: string) => {
    const asked = request(url + path, { method: form ? 'POST' : 'GET', headers: { host, ...fields } })
    asked.end(form)
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    return text(answer)
  }
  const led: readonly (readonly [path: string, host: string, pod: string])[] = [
    ...['/login/', '/shared/', '/u/', '/c/', '/o/', '/confirm/', '/sandbox-recipients/', '/subscribe/'].map(
      (path) => [`${path}b.${TOKEN}`, 'both.example', 'b'] as const,
    ),
    [`/u/b.${TOKEN}?tags=1`, 'both.example', 'b'],
    [`/v3/exports/1/file?sig=b.${TOKEN}`, 'both.example', 'b'],
    [`/v4/address/validate/bulk/l/download?format=csv&sig=b.${TOKEN}`, 'both.example', 'b'],
    [`/sendwright/v1/oidc/callback?code=1&state=b.${TOKEN}`, 'both.example', 'b'],
    [`/u/former.${TOKEN}`, 'both.example', 'b'],
    ['/', 'b.example', 'b'],
    ['/', 'B.example:8080', 'b'],
    ['/invitation', 'a.example', 'a'],
    [`/u/b.${TOKEN}`, 'a.example', 'b'],
    [`/u/${TOKEN}`, 'email.shop.example', 'b'],
    // What nobody is named by goes to the first pod.
    [`/u/${TOKEN}`, 'both.example', 'a'],
    [`/u/nobody.${TOKEN}`, 'both.example', 'a'],
    ['/assets/b.js', 'both.example', 'a'],
    ['/?sig=b.short', 'both.example', 'a'],
  ]
  for (const [path, host, pod] of led) assert.equal(await ask(path, host), pod, `${host} ${path}`)
  for (const path of ['/sendwright/v1/invitations/accept', '/sendwright/v1/password-resets/redeem']) {
    const form = `token=b.${TOKEN}&password=12345678`
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal(await ask(path, 'both.example', type, form), 'b', path)
  }
  // An account has moved to b, with a delivery and a list; links of before name a.
  const delivery = newId()
  const tokens = createTokens(createSealer(FRONT_SECRET), 'a')
  const from = {
    scope: 'domain',
    domainId: newId(),
    recipient: 'x@example.org',
    tags: [],
    listSid: null,
  } as const
  const unsubscribe = tokens.unsubscribe({ ...from, accountId: 'moved', deliveryId: delivery })
  const list = newId()
  rows.entries.set(`link ${delivery}`, 'b').set(`link ${list}`, 'b').set('account moved', 'b')
  for (const path of [
    ...[`/o/${tokens.open(delivery)}`, `/c/${tokens.click(delivery, { url: 'https://example.org/' })}`],
    ...[`/u/${unsubscribe}`, `/subscribe/a.${list}`],
  ])
    assert.equal(await ask(path, 'a.example'), 'b', path)
  assert.equal(await ask(`/o/${tokens.open(newId())}`, 'a.example'), 'a')
  // A key says more than a link.
  rows.entries.set(`key ${digestOf(KEY)}`, 'a')
  assert.equal(await ask(`/u/b.${TOKEN}`, 'b.example', { authorization: basic(KEY) }), 'a')
})

test('an answer that breaks off ends the connection of the client', async (t) => {
  const { say } = await start(t, [
    (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', () => socket.destroy()),
  ])
  const answer = await say(HEAD).catch((error: Error) => error.message)
  assert.ok(!answer.includes('half') || answer.endsWith('half'), answer)
})

test('bodies pass as streams: 20 MB to a node that reads slowly, and events one by one', async (t) => {
  let taken = 0
  const { node, open } = await start(t, [
    (socket, received, bytes) => {
      taken = bytes
      if (received.startsWith('GET'))
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n')
      else socket.pause()
    },
  ])
  const events = open()
  events.write([HEAD[0]?.replace('POST', 'GET'), ...HEAD.slice(1), '', ''].join('\r\n'))
  let seen = ''
  events.setEncoding('latin1').on('data', (piece: string) => {
    seen += piece
  })
  await eventually('the first event', async () => seen.includes('data: 1\n\n'))
  node.connections[0]?.socket.write('data: 2\n\n')
  await eventually('the second event', async () => seen.includes('data: 2\n\n'))
  const gone = once(node.connections[0]?.socket as Socket, 'close')
  events.destroy()
  await gone

  const client = open()
  client.write([...HEAD, `Content-Length: ${20 * MIB}`, '', ''].join('\r\n'))
  const body = Buffer.alloc(MIB, 'a')
  let sent = 0
  const write = () => {
    sent++
    return client.write(body)
  }
  const more = () => {
    while (sent < 20 && write());
  }
  client.on('drain', more)
  more()
  await eventually('the node has some of it', async () => taken > 1000)
  // What is under way fills the buffers of the system and of streams, and no more.
  let before = -1
  await eventually('the client has to wait', async () => {
    const isStill = client.bytesWritten === before && client.writableNeedDrain
    before = client.bytesWritten
    return isStill
  })
  assert.ok(process.memoryUsage().arrayBuffers < 200 * MIB)
  node.answer = (socket, received, bytes) => {
    taken = bytes - received.indexOf('\r\n\r\n') - 4
    if (taken === 20 * MIB) socket.write(OK)
  }
  node.connections[1]?.socket.resume()
  assert.ok((await text(client)).endsWith('ok'))
  assert.equal(taken, 20 * MIB)
})

test('a client may open so many connections and no more', async (t) => {
  const { say, open } = await start(t, [whenHead(OK)], { SENDWRIGHT_HTTP_MAX_CONNECTIONS_PER_IP: '1' })
  const holding = open()
  await once(holding, 'connect')
  assert.match(await say(HEAD), /^HTTP\/1\.1 503 .*Too many connections from this address/s)
  holding.destroy()
})
