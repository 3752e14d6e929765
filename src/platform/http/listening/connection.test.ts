/** What clients that do not read, and too many of them, can make either listener hold. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { Arrival } from './arrival.ts'
import { createListener, type Listener, type ListenerOptions } from './listener.ts'
import { createThreadedListener } from './threaded-listener.ts'

const MIB = 1024 * 1024
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const NOT_BROKEN = (error: Error) => assert.fail(error)

type Kind = (options: ListenerOptions, take: (arrival: Arrival) => void) => Listener

const KINDS: readonly [name: string, create: Kind][] = [
  ['on this thread', createListener],
  [
    'on its own',
    (options, take) => createThreadedListener({ ...options, onFailure: (error) => assert.fail(error) }, take),
  ],
]

async function listen(
  t: TestContext,
  create: Kind,
  options: ListenerOptions,
  take: (arrival: Arrival) => void,
) {
  const listener = create(options, take)
  const port = await listener.listen(0, '0.0.0.0')
  const sockets: Socket[] = []
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    listener.cut()
    await listener.close()
  })
  return {
    port,
    /** A client that reads nothing until it is told to. */
    connect(from = '127.0.0.1'): Socket {
      const socket = createConnection({ port, host: '127.0.0.1', localAddress: from })
      socket.on('error', () => {})
      sockets.push(socket)
      return socket
    },
  }
}

/** Reads `bytes` of the connection, or to its end. */
async function read(socket: Socket, bytes: number): Promise<number> {
  let count = 0
  let more = () => {}
  const wake = () => more()
  socket.on('readable', wake).on('close', wake)
  while (count < bytes) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) count += chunk.byteLength
    else if (socket.readableEnded || socket.destroyed) break
    else
      await new Promise<void>((resolve) => {
        more = resolve
      })
  }
  socket.off('readable', wake).off('close', wake)
  return count
}

for (const [name, create] of KINDS) {
  test(`${name}: pipelined requests wait while large answers are not read, and go on when they are`, async (t) => {
    let served = 0
    const answer = Buffer.alloc(8 * MIB, 'a')
    const { connect } = await listen(t, create, {}, (arrival) => {
      served += 1
      arrival.answer(200, { 'content-length': answer.byteLength }, answer, NOT_BROKEN)
    })
    const socket = connect()
    socket.write(GET.repeat(99))
    const other = connect()
    // By the time that the other one has its answers, the first could have had all of its own.
    for (let count = 0; count < 3; count++) {
      other.write(GET)
      await read(other, answer.byteLength)
    }
    const servedUnread = served - 3
    assert.ok(servedUnread <= 6, `${servedUnread} served`)
    let bytes = 0
    for (; bytes < 20 * answer.byteLength; ) bytes += await read(socket, MIB)
    assert.ok(served > servedUnread + 3, 'read answers make room for more requests')
  })

  test(`${name}: small answers that are not read let others be served until there is a megabyte of them`, async (t) => {
    const arrived: Arrival[] = []
    const { connect } = await listen(t, create, {}, (arrival) => arrived.push(arrival))
    const socket = connect()
    socket.write(GET.repeat(50))
    let count = 0
    while (count < 50) {
      for (; count < arrived.length; count++) {
        assert.ok(arrived.length - count <= 4, 'four at a time')
        arrived[count]?.answer(200, { 'content-length': 5 }, 'small', NOT_BROKEN)
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.end()
    assert.equal((await text(socket)).match(/small/g)?.length, 50)
  })

  test(`${name}: clients that leave make room for the waiting requests of others`, async (t) => {
    let arrived = 0
    let left = 0
    const { connect } = await listen(t, create, {}, (arrival) => {
      arrived += 1
      arrival.onEnd(() => (left += 1))
    })
    // 6,000 requests wait in each round, of 10,000 that may.
    for (let round = 1; round <= 3; round++) {
      const before = arrived
      const sockets = Array.from({ length: 60 }, () => connect())
      for (const socket of sockets) socket.write(GET.repeat(99))
      while (arrived - before < sockets.length) await new Promise((resolve) => setImmediate(resolve))
      assert.ok(!sockets.some((socket) => socket.destroyed || socket.readableEnded), `round ${round}`)
      for (const socket of sockets) socket.destroy()
      while (left < arrived) await new Promise((resolve) => setImmediate(resolve))
    }
  })

  test(`${name}: what is no request does not get into an answer that is on its way`, async (t) => {
    const answer = 'a'.repeat(16 * MIB)
    const { connect } = await listen(t, create, {}, (arrival) =>
      arrival.answer(200, { 'content-length': answer.length }, answer, NOT_BROKEN),
    )
    const socket = connect()
    socket.write(GET)
    await once(socket, 'readable')
    socket.write('nonsense\r\n\r\n')
    socket.on('error', () => {})
    const received = (await socket.toArray().catch(() => [])).join('')
    // The whole answer may have been on its way already; a refusal after it is right.
    const body = received.slice(received.indexOf('\r\n\r\n') + 4)
    assert.match(body.slice(0, answer.length), /^a*$/)
    const last = connect()
    last.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nnonsense')
    const whole = await text(last)
    assert.ok(whole.endsWith(answer), 'what follows the last request is nothing')
  })

  test(`${name}: a client that takes nothing is cut off, one that is slow is not, nor is a quiet stream`, async (t) => {
    const stalledMs = 2_000
    const size = 48 * MIB
    const gone: Promise<void>[] = []
    const source = new Readable({ read() {} })
    const { connect } = await listen(t, create, { deadlines: { stalledMs } }, (arrival) => {
      if (arrival.headers['x-kind'] === 'quiet') {
        arrival.answer(200, {}, source, NOT_BROKEN)
        source.push('open')
        return
      }
      if (arrival.headers['x-kind'] === 'silent') gone.push(new Promise((resolve) => arrival.onEnd(resolve)))
      const streamed = arrival.headers['x-streamed'] !== undefined
      const body = Buffer.alloc(size)
      const headers = { 'content-length': size }
      arrival.answer(200, headers, streamed ? Readable.from([body], { objectMode: false }) : body, NOT_BROKEN)
    })
    const ask = (headers: string) => {
      const socket = connect()
      socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`)
      return socket
    }
    const quiet = ask('X-Kind: quiet\r\n')
    const silent = [ask('X-Kind: silent\r\n'), ask('X-Kind: silent\r\nX-Streamed: 1\r\n')]
    const slow = ask('')
    // In steps, for longer than a client may take nothing.
    const begunAt = performance.now()
    let taken = 0
    while (performance.now() - begunAt < 3 * stalledMs) {
      taken += await read(slow, MIB)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    taken += await read(slow, size)
    assert.ok(taken > size, 'the slow one gets everything')
    assert.equal(gone.length, silent.length)
    await Promise.all(gone)
    for (const socket of silent) {
      const all = await read(socket, 2 * size)
      assert.ok(all < size, 'the silent one was cut off')
    }
    assert.equal(quiet.destroyed || quiet.readableEnded, false)
    source.push('more')
    source.push(null)
    assert.match(await text(quiet), /open.*more/s)
  })

  test(`${name}: of too many unread bytes in all the slowest connections are ended first`, async (t) => {
    const answer = Buffer.alloc(50 * MIB)
    const ended: string[] = []
    const arrived: string[] = []
    const third = Promise.withResolvers<void>()
    const first = Promise.withResolvers<void>()
    const { connect } = await listen(t, create, {}, (arrival) => {
      const who = String(arrival.headers['x-who'])
      arrived.push(who)
      arrival.onEnd(() => ended.push(who))
      arrival.answer(200, { 'content-length': answer.byteLength }, answer, NOT_BROKEN)
      if (who === '3') third.resolve()
    })
    const ask = async (who: string) => {
      const socket = connect()
      socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Who: ${who}\r\n\r\n`)
      await once(socket, 'readable')
      return socket
    }
    const slowest = await ask('1')
    slowest.once('close', first.resolve)
    const second = await ask('2')
    const last = await ask('3')
    await third.promise
    assert.ok((await read(slowest, answer.byteLength)) < answer.byteLength)
    assert.ok((await read(second, answer.byteLength + 100)) > answer.byteLength)
    assert.ok((await read(last, answer.byteLength + 100)) > answer.byteLength)
  })

  test(`${name}: connections of one client are counted; more get an answer, others do not notice`, async (t) => {
    const limits = { perClientMax: 20, max: 45, proxies: ['127.0.0.9', '127.9.0.0/16'] }
    const { connect } = await listen(t, create, { connections: limits }, (arrival) =>
      arrival.answer(200, { 'content-length': 2 }, 'ok', NOT_BROKEN),
    )
    const ask = async (socket: Socket) => {
      socket.write(GET)
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      return bytes.toString()
    }
    const openMany = async (count: number, from: string) => {
      const sockets = Array.from({ length: count }, () => connect(from))
      for (const socket of sockets) assert.match(await ask(socket), /^HTTP\/1.1 200 .*ok$/s)
      return sockets
    }
    const mine = await openMany(20, '127.0.0.2')
    for (let count = 0; count < 3; count++) {
      const answer = await text(connect('127.0.0.2'))
      assert.match(answer, /^HTTP\/1\.1 503 Service Unavailable\r\n/)
      assert.match(answer, /\r\nRetry-After: 5\r\nConnection: close\r\n/)
      assert.match(answer, /\{"message":"Too many connections from this address"\}$/)
    }
    const others = await openMany(22, '127.9.0.1')
    // Those that have gone make room, each for one.
    for (const socket of mine.slice(0, 2)) {
      socket.destroy()
      for (;;) {
        const next = connect('127.0.0.2')
        if ((await ask(next)).includes('200 OK')) break
      }
    }
    assert.match(await text(connect('127.0.0.2')), /503 .*from this address/s)
    await openMany(3, '127.0.0.3')
    for (const from of ['127.0.0.3', '127.0.0.9']) {
      assert.match(await text(connect(from)), /\{"message":"Too many connections"\}$/)
    }
    for (const socket of [...mine.slice(2), ...others])
      assert.match(await ask(socket), /^HTTP\/1.1 200 .*ok$/s)
  })
}
