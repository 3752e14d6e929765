/** What both listeners give: the one on this thread and the one on a thread of its own. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { createConnection } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import type { Worker } from 'node:worker_threads'
import { createAuthority } from '../../../../test/support/certificates.ts'
import { readBody } from '../request/body.ts'
import type { Arrival } from './arrival.ts'
import { createListener, type Listener } from './listener.ts'
import { createThreadedListener } from './threaded-listener.ts'

const MIB = 1024 * 1024
const READING = {
  limit: { bytes: MIB, message: '' },
  spool: null,
  multipartOnly: false,
  packed: true,
  digest: false,
}
const NOT_BROKEN = (error: Error) => assert.fail(error)

type Kind = (take: (arrival: Arrival) => void, failed?: (error: Error) => void) => Listener

const KINDS: readonly [name: string, create: Kind][] = [
  ['on this thread', (take) => createListener({}, take)],
  [
    'on its own',
    (take, failed = (error) => assert.fail(error)) => createThreadedListener({ onFailure: failed }, take),
  ],
]

/** Arrivals in turn, and requests to them. */
async function listen(t: TestContext, create: Kind, failed?: (error: Error) => void) {
  const waiting: ((arrival: Arrival) => void)[] = []
  const arrived: Arrival[] = []
  const listener = create((arrival) => {
    const next = waiting.shift()
    if (next) next(arrival)
    else arrived.push(arrival)
  }, failed)
  const port = await listener.listen(0, '127.0.0.1')
  t.after(async () => {
    listener.cut()
    await listener.close()
  })
  return {
    listener,
    port,
    next: () =>
      new Promise<Arrival>((resolve) => {
        const arrival = arrived.shift()
        if (arrival) resolve(arrival)
        else waiting.push(resolve)
      }),
    post(headers: Record<string, string>): ClientRequest {
      const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers, agent: false })
      request.on('error', () => {})
      return request
    },
  }
}

async function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

for (const [name, create] of KINDS) {
  test(`${name}: a request arrives with what came with it`, async (t) => {
    const { port, next, post } = await listen(t, create)
    post({ 'x-a': 'b', cookie: 'c=d' }).end()
    const bare = await next()
    assert.deepEqual([bare.method, bare.url, bare.remoteAddress], ['POST', '/', '127.0.0.1'])
    assert.deepEqual([bare.isEncrypted, bare.isGone, bare.isCut], [false, false, false])
    assert.equal(bare.headers['x-a'], 'b')
    assert.equal(bare.headers['host'], `127.0.0.1:${port}`)
    const text = 'Content-Disposition: form-data; name="n"\r\n\r\nv\r\n'
    const bodies: [string, string, Arrival['body']][] = [
      ['text/plain', 'ab', { kind: 'whole', bytes: Buffer.from('ab') }],
      ['multipart/form-data; boundary=b', `--b\r\n${text}--b--`, { kind: 'form', fields: [['n', 'v']] }],
    ]
    for (const [type, body, expected] of bodies) {
      post({ 'content-type': type, 'content-length': String(body.length) }).end(body)
      assert.deepEqual((await next()).body, expected)
    }
  })

  test(`${name}: a small body may come in pieces; many that do not come are not waited for`, async (t) => {
    const { next, post } = await listen(t, create)
    const slow = post({ 'content-length': '3' })
    for (const byte of 'abc') {
      slow.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual((await next()).body, { kind: 'whole', bytes: Buffer.from('abc') })
    // 32 MiB of bodies announced: the next is a stream, to be read by whoever has looked at the login.
    const waiting = Array.from({ length: 257 }, () => post({ 'content-length': String(128 * 1024) }))
    for (const request of waiting) request.flushHeaders()
    const beyond = await next()
    assert.equal(beyond.body.kind, 'stream')
    beyond.abandon()
    for (const request of waiting) request.destroy()
    // When those have gone, there is room again.
    for (;;) {
      post({ 'content-length': String(128 * 1024) }).end(Buffer.alloc(128 * 1024))
      const { body } = await next()
      if (body.kind === 'whole') break
    }
  })

  test(`${name}: answers of every kind, and what a field cannot hold throws`, async (t) => {
    const { next, post } = await listen(t, create)
    const bodies = ['täxt', Buffer.from('bytes'), undefined, Readable.from(['a', 'b'], { objectMode: false })]
    for (const [index, body] of bodies.entries()) {
      const request = post({})
      request.end()
      const arrival = await next()
      const wrong = { location: 'a\nb' }
      assert.throws(() => arrival.answer(200, wrong, '', NOT_BROKEN), { code: 'ERR_INVALID_CHAR' })
      const answered = new Promise<void>((resolve) => arrival.onAnswered(resolve))
      const ended = new Promise<void>((resolve) => arrival.onEnd(resolve))
      arrival.answer(201, { 'x-list': ['1', '2'], 'x-number': 7 }, body, NOT_BROKEN)
      const response = await responseTo(request)
      assert.deepEqual([response.statusCode, response.headers['x-number']], [201, '7'])
      assert.equal(response.headers['x-list'], '1, 2')
      assert.equal((await buffer(response)).toString(), ['täxt', 'bytes', '', 'ab'][index])
      await answered
      await ended
    }
  })

  test(`${name}: a long body and a long answer pass through piece by piece`, async (t) => {
    const { next, post } = await listen(t, create)
    const size = 20 * MIB
    const sent = Buffer.alloc(size, 'abcdefghijk')
    const request = post({ 'content-length': String(size) })
    request.end(sent)
    const arrival = await next()
    assert.ok(arrival.body.kind === 'stream')
    const received = await arrival.body.stream.toArray()
    assert.ok(Buffer.concat(received).equals(sent))
    arrival.answer(200, {}, Readable.from(received, { objectMode: false }), NOT_BROKEN)
    assert.ok((await buffer(await responseTo(request))).equals(sent))
  })

  test(`${name}: an early answer reaches a client that is still sending, and the connection stays`, async (t) => {
    const { port, next } = await listen(t, create)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const post = (size: number) => {
      const headers = { 'content-length': String(size) }
      const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers, agent })
      request.end(Buffer.alloc(size))
      return request
    }
    // More than the buffers of both ends take.
    const request = post(30 * MIB)
    const sent = once(request, 'finish')
    ;(await next()).answer(404, {}, 'no', NOT_BROKEN)
    const response = await responseTo(request)
    assert.deepEqual([response.statusCode, (await buffer(response)).toString()], [404, 'no'])
    await sent
    const second = post(10)
    ;(await next()).answer(200, {}, 'yes', NOT_BROKEN)
    assert.equal((await buffer(await responseTo(second))).toString(), 'yes')
    assert.equal(second.reusedSocket, true)
  })

  test(`${name}: a client that goes in the middle of a small body asked nothing`, async (t) => {
    const { port, next, post } = await listen(t, create)
    const socket = createConnection(port, '127.0.0.1')
    // In one piece, so that the second has come as far as it does when the first arrives.
    const [head, half] = ['POST / HTTP/1.1\r\nHost: a\r\n', 'Content-Length: 100\r\n\r\na=']
    socket.write(`${head}\r\n${head}${half}`)
    const first = await next()
    const ended = new Promise<void>((resolve) => first.onEnd(resolve))
    socket.destroy()
    await ended
    post({ 'x-who': 'second' }).end()
    assert.equal((await next()).headers['x-who'], 'second')
  })

  test(`${name}: pipelined requests are answered in their order; one that is cut off is heard of`, async (t) => {
    const { port, next } = await listen(t, create)
    const socket = createConnection(port, '127.0.0.1')
    const request = (path: string, rest: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\n${rest}`
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n2\r\na=\r\n'
    socket.write(`${request('/1', '\r\n')}${request('/2', '\r\n')}${request('/3', chunked)}`)
    const [first, second, third] = [await next(), await next(), await next()]
    assert.deepEqual([first.url, second.url, third.url], ['/1', '/2', '/3'])
    second.answer(200, { 'content-length': '1' }, '2', NOT_BROKEN)
    first.answer(200, { 'content-length': '1' }, '1', NOT_BROKEN)
    let text = ''
    while (!text.endsWith('2')) text += (await once(socket, 'data'))[0]
    assert.match(text, /\r\n1HTTP.*\r\n2$/s)
    const reading = assert.rejects(readBody(third, READING))
    socket.destroy()
    await reading
  })

  test(`${name}: of two requests on their way the second hears that the client has gone`, async (t) => {
    const { port, next } = await listen(t, create)
    const socket = createConnection(port, '127.0.0.1')
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n2\r\na=\r\n'
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n${chunked}`)
    await next()
    const reading = assert.rejects(readBody(await next(), READING))
    socket.destroy()
    await reading
  })

  test(`${name}: the source of an answer behind another one ends when the client goes`, async (t) => {
    const { port, next } = await listen(t, create)
    const socket = createConnection(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
    await next()
    const second = await next()
    const source = new Readable({ read() {} })
    source.on('error', () => {})
    const closed = new Promise<void>((resolve) => source.once('close', resolve))
    const ended = new Promise<void>((resolve) => second.onEnd(resolve))
    second.answer(200, {}, source, NOT_BROKEN)
    source.push('never sent')
    socket.destroy()
    await closed
    await ended
  })

  test(`${name}: of more than 100 requests under way on a connection the rest is refused`, async (t) => {
    const { port, next } = await listen(t, create)
    const socket = createConnection(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(110))
    const text = buffer(socket)
    // Some of them are served at a time.
    for (let count = 0; count < 100; count++) (await next()).answer(200, {}, '', NOT_BROKEN)
    const answers = (await text).toString()
    assert.deepEqual(
      [answers.match(/HTTP\/1\.1 200/g)?.length, answers.match(/HTTP\/1\.1 503/g)?.length],
      [100, 1],
    )
  })

  test(`${name}: a streamed answer before the body was read arrives as a whole`, async (t) => {
    const { port, next } = await listen(t, create)
    // A connection that ended with the answer would be reset under a client that is still sending.
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    const headers = { 'content-length': String(MIB) }
    const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers, agent })
    request.end(Buffer.alloc(MIB))
    const source = new Readable({ read() {} })
    source.push('first')
    ;(await next()).answer(200, {}, source, NOT_BROKEN)
    const response = await responseTo(request)
    await once(response, 'readable')
    source.push(Buffer.alloc(MIB))
    source.push(null)
    assert.equal((await buffer(response)).byteLength, MIB + 5)
  })

  test(`${name}: a body that is whole but not read yet ends with an error when the client goes`, async (t) => {
    const { next, post } = await listen(t, create)
    const request = post({ 'transfer-encoding': 'chunked' })
    request.end('a=b')
    const arrival = await next()
    const ended = new Promise<void>((resolve) => arrival.onEnd(resolve))
    request.destroy()
    await ended
    await assert.rejects(readBody(arrival, READING))
  })

  test(`${name}: a body whose client goes away ends with an error, whether it is read already or not`, async (t) => {
    const { next, post } = await listen(t, create)
    for (const readBefore of [true, false]) {
      const request = post({ 'content-length': String(MIB) })
      request.write('a=')
      const arrival = await next()
      const ended = new Promise<void>((resolve) => arrival.onEnd(resolve))
      const early = readBefore ? readBody(arrival, READING) : null
      early?.catch(() => {})
      request.destroy()
      await ended
      await assert.rejects(early ?? readBody(arrival, READING))
      assert.deepEqual([arrival.isGone, arrival.isCut], [true, true])
    }
  })

  test(`${name}: who waits for an answer hears that the client has gone`, async (t) => {
    const { next, post } = await listen(t, create)
    const request = post({})
    request.end()
    const arrival = await next()
    request.destroy()
    await new Promise<void>((resolve) => arrival.onEnd(resolve))
    assert.deepEqual([arrival.isGone, arrival.isCut], [true, false])
    await new Promise<void>((resolve) => arrival.onEnd(resolve))
  })

  test(`${name}: an answer whose source breaks or that is abandoned is cut off`, async (t) => {
    const { next, post } = await listen(t, create)
    const breaking = new Readable({ read() {} })
    breaking.push('half')
    const request = post({})
    request.end()
    const broken = Promise.withResolvers<Error>()
    ;(await next()).answer(200, { 'content-length': '8' }, breaking, broken.resolve)
    const response = await responseTo(request)
    await once(response, 'readable')
    breaking.destroy(new Error('disk'))
    await assert.rejects(buffer(response), { code: 'ECONNRESET' })
    assert.equal((await broken.promise).message, 'disk')
    const closing = new Readable({ read() {} })
    closing.push('half')
    const other = post({})
    other.end()
    ;(await next()).answer(200, { 'content-length': '8' }, closing, NOT_BROKEN)
    const cut = await responseTo(other)
    await once(cut, 'readable')
    closing.destroy()
    await assert.rejects(buffer(cut), { code: 'ECONNRESET' })
    const abandoned = post({})
    const failed = once(abandoned, 'error')
    abandoned.end()
    ;(await next()).abandon()
    assert.equal((await failed)[0].code, 'ECONNRESET')
  })

  test(`${name}: a client that goes ends the source of its answer`, async (t) => {
    const { next, post } = await listen(t, create)
    const source = new Readable({ read() {} })
    source.on('error', () => {})
    source.push('first')
    const request = post({})
    request.end()
    ;(await next()).answer(200, {}, source, NOT_BROKEN)
    const response = await responseTo(request)
    response.on('error', () => {})
    const closed = new Promise<void>((resolve) => source.once('close', resolve))
    response.destroy()
    await closed
  })

  test(`${name}: a port that is taken is the system's error`, async (t) => {
    const { port } = await listen(t, create)
    const second = create(() => {})
    await assert.rejects(second.listen(port, '127.0.0.1'), { code: 'EADDRINUSE' })
  })

  test(`${name}: closing waits for what is under way and refuses the rest`, async (t) => {
    const { listener, next, post } = await listen(t, create)
    const request = post({})
    request.end()
    const arrival = await next()
    const closing = listener.close()
    // It takes a moment until the port is closed; who comes before that arrives.
    let others = next()
    for (;;) {
      const late = post({})
      const refused = once(late, 'error')
      late.end()
      const outcome = await Promise.race([refused, others])
      if (Array.isArray(outcome)) {
        // One that the system had taken and the listener had not is reset.
        if (outcome[0].code === 'ECONNRESET') continue
        assert.equal(outcome[0].code, 'ECONNREFUSED')
        break
      }
      outcome.abandon()
      await refused
      others = next()
    }
    arrival.answer(200, {}, 'done', NOT_BROKEN)
    assert.equal((await buffer(await responseTo(request))).toString(), 'done')
    await closing
  })

  test(`${name}: closing waits for no connection that has sent nothing`, { timeout: 30_000 }, async (t) => {
    const { listener, port, next, post } = await listen(t, create)
    const silent = createConnection(port, '127.0.0.1')
    await once(silent, 'connect')
    // It is taken after the silent one.
    const request = post({})
    request.end()
    ;(await next()).answer(200, {}, 'done', NOT_BROKEN)
    await buffer(await responseTo(request))
    silent.resume()
    const ended = once(silent, 'close')
    await listener.close()
    await ended
  })
}

test('over TLS: closing waits for no connection that has sent nothing, before its handshake or after', {
  timeout: 30_000,
}, async (t) => {
  const authority = createAuthority()
  const options = { ...authority.issue(['localhost']), handshakeTimeout: 3_600_000 }
  const { listener, port } = await listen(t, (take) => createListener({ tls: { options } }, take) as Listener)
  const greeted = connect({ port, host: '127.0.0.1', ca: authority.cert, servername: 'localhost' })
  await once(greeted, 'secureConnect')
  const mute = createConnection(port, '127.0.0.1')
  await once(mute, 'connect')
  // Its handshake follows that of the others: both have been taken.
  const last = connect({ port, host: '127.0.0.1', ca: authority.cert, servername: 'localhost' })
  await once(last, 'secureConnect')
  const ended = [greeted, mute, last].map((socket) => once(socket.resume(), 'close'))
  await listener.close()
  await Promise.all(ended)
})

test('a thread that ends is followed by another on the same port; what it had is gone', async (t) => {
  const workers: Worker[] = []
  const seen = (worker: Worker) => workers.push(worker)
  process.on('worker', seen)
  t.after(() => process.off('worker', seen))
  const failure = Promise.withResolvers<Error>()
  const create = KINDS[1]?.[1] as Kind
  const { next, post } = await listen(t, create, failure.resolve)
  const request = post({})
  const lost = once(request, 'error')
  request.end()
  const arrival = await next()
  await workers[0]?.terminate()
  assert.match((await failure.promise).message, /thread ended/)
  await lost
  assert.equal(arrival.isGone, true)
  arrival.answer(200, {}, 'to nobody', NOT_BROKEN)
  // The next thread needs a moment to listen; clients try again.
  const anew = next()
  for (;;) {
    const again = post({})
    const refused = once(again, 'error')
    again.end()
    const found = await Promise.race([refused, anew])
    if (Array.isArray(found)) continue
    found.answer(200, {}, 'here', NOT_BROKEN)
    assert.equal((await buffer(await responseTo(again))).toString(), 'here')
    break
  }
})
