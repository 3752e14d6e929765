import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { ownAddress } from '../../../test/support/service.ts'
import { createSocksServer } from '../../../test/support/socks-server.ts'
import { ProxyDown } from '../../base/process/shortage.ts'
import { dialThrough, type OutgoingProxy, proxyName, TargetUnreached, tryProxy } from './dialling.ts'
import { readProxyHeader } from './header.ts'

const SOURCE = '192.0.2.9'
const LOGIN = { user: 'sender', password: 'pässword' }
const LIMITS = { timeoutMs: 5_000 }

async function listening(t: TestContext, take: (socket: Socket) => void) {
  const server = createServer((socket) => {
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    take(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

const socks = (host: string, port: number, login: OutgoingProxy['login'] = null): OutgoingProxy => ({
  ...{ kind: 'socks5', host, port, login },
})

/** A server that greets at once, so that its first bytes may arrive with the last ones of the proxy. */
const greeting = (t: TestContext) => listening(t, (socket) => void socket.write('220 mx.example.net\r\n'))

for (const login of [null, LOGIN])
  test(`SOCKS5 ${login ? 'with user and password' : 'without a login'}: the target is at the other end`, async (t) => {
    const target = await greeting(t)
    const from = ownAddress()
    const server = await createSocksServer(t, { host: ownAddress(), from, ...(login && { login }) })
    const socket = await dialThrough(socks(server.host, 1080, login), SOURCE, target, LIMITS)
    t.after(() => socket.destroy())
    assert.equal(socket.remoteAddress, target.host)
    assert.equal(String((await once(socket, 'data'))[0]), '220 mx.example.net\r\n')
    assert.deepEqual(server.targets, [`127.0.0.1:${target.port}`])
    await tryProxy(socks(server.host, 1080, login))
  })

test('HAProxy gets a header with the source and the target, and a name is resolved here', async (t) => {
  const received: Buffer[] = []
  const proxy = await listening(t, (socket) => socket.on('data', (bytes: Buffer) => received.push(bytes)))
  const socket = await dialThrough(
    { kind: 'haproxy', ...proxy, login: null },
    SOURCE,
    { host: 'localhost', port: 25 },
    LIMITS,
  )
  t.after(() => socket.destroy())
  socket.write('EHLO a\r\n')
  while (Buffer.concat(received).length < 36) await new Promise((resolve) => setImmediate(resolve))
  const bytes = Buffer.concat(received)
  assert.deepEqual(readProxyHeader(bytes), {
    ...{ kind: 'header', length: 28, isSecure: false },
    client: { address: SOURCE, port: 0 },
  })
  assert.equal(bytes.toString('hex', 20, 28), '7f00000100000019')
  assert.equal(String(bytes.subarray(28)), 'EHLO a\r\n')
})

test('what the proxy says of the target is the target fault, all else its own', async (t) => {
  const server = await createSocksServer(t, { host: ownAddress(), from: '127.0.0.1', login: LOGIN })
  const dial = (proxy: OutgoingProxy) => dialThrough(proxy, SOURCE, { host: '127.0.0.1', port: 1 }, LIMITS)
  const right = socks(server.host, 1080, LOGIN)
  for (const [status, says] of [
    [1, /general failure \(reply 1 of socks5:/],
    [3, /network unreachable/],
    [4, /host unreachable/],
    [5, /connection refused/],
    [6, /time to live/],
  ] as const) {
    server.refuseWith = status
    await assert.rejects(dial(right), (error) => error instanceof TargetUnreached && says.test(error.message))
  }
  const name = proxyName(right)
  for (const [status, says] of [
    [2, 'not allowed by its rules'],
    [7, 'it does not know CONNECT'],
    [8, 'it does not know this kind of address'],
    [99, 'it replies 99'],
  ] as const) {
    server.refuseWith = status
    await assert.rejects(dial(right), new ProxyDown(`the proxy ${name} cannot be used: ${says}`))
  }
  await assert.rejects(dial(socks(server.host, 1080, { ...LOGIN, password: 'x' })), /refuses the login$/)
  await assert.rejects(dial(socks(server.host, 1080)), /asks for another login$/)
  await assert.rejects(tryProxy(socks(server.host, 1080)), ProxyDown)
  await server.close()
  await assert.rejects(
    dial(right),
    (error) => error instanceof ProxyDown && /ECONNREFUSED/.test(error.message),
  )
})

test('a proxy that speaks something else, closes or says nothing is down; no wait is without end', async (t) => {
  const target = { host: '127.0.0.1', port: 25 }
  const web = await listening(t, (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await assert.rejects(
    dialThrough(socks(web.host, web.port), SOURCE, target, LIMITS),
    /does not speak SOCKS5$/,
  )
  const closing = await listening(t, (socket) => void socket.end())
  await assert.rejects(
    dialThrough(socks(closing.host, closing.port), SOURCE, target, LIMITS),
    /it closes the connection$/,
  )

  const clock = createTestClock()
  const asked = Promise.withResolvers<void>()
  const silent = await listening(t, (socket) => void socket.once('data', () => asked.resolve()))
  const first = dialThrough(socks(silent.host, silent.port), SOURCE, target, { ...LIMITS, clock })
  await asked.promise
  const late = assert.rejects(first, /cannot be used: no answer within 10000 ms$/)
  await clock.advance(10_000)
  await late

  const requested = Promise.withResolvers<void>()
  const slow = await listening(t, (socket) => {
    socket.once('data', () => {
      socket.write(Buffer.from([5, 0]))
      socket.once('data', () => requested.resolve())
    })
  })
  const second = dialThrough(socks(slow.host, slow.port), SOURCE, target, { ...LIMITS, clock })
  await requested.promise
  const unreached = assert.rejects(second, new TargetUnreached('no answer within 5000 ms'))
  await clock.advance(5_000)
  await unreached

  const controller = new AbortController()
  const third = dialThrough(socks(silent.host, silent.port), SOURCE, target, {
    ...LIMITS,
    signal: controller.signal,
  })
  controller.abort(new Error('enough'))
  await assert.rejects(third, /^Error: enough$/)
})
