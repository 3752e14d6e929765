import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../../../../test/support/http-server.ts'
import { anyJson } from '../../../base/shape.ts'
import { operation } from '../operation.ts'

const HEAD = 'POST /anywhere HTTP/1.1\r\nHost: localhost\r\n'
const CHUNKS = 'Transfer-Encoding: chunked\r\n\r\n'

/** Bytes that two servers may read as different requests. */
const REFUSED: readonly (readonly [status: number, bytes: string])[] = [
  [400, `${HEAD}Host: localhost\r\n\r\n`],
  [400, `${HEAD}host: other.example\r\nContent-Length: 0\r\n\r\n`],
  [400, 'GET /anywhere HTTP/1.1\r\nHost: a, b\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.1\r\nHost: a b\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.1\r\nHost: a\r\n b\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n'],
  [400, `POST /anywhere HTTP/1.0\r\nHost: localhost\r\n${CHUNKS}0\r\n\r\n`],
  [400, `POST /anywhere HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n${CHUNKS}0\r\n\r\n`],
  [400, `POST /anywhere HTTP/1.0\r\nContent-Length: 3\r\n${CHUNKS}0\r\n\r\n`],
  [400, `${HEAD}Content-Length: 3\r\n${CHUNKS}0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Content-Length: 3, 3\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: +3\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: 0x3\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: 1 0\r\n\r\n`],
  [400, `${HEAD}Content-Length:\r\n\r\n`],
  [400, `${HEAD}Content-Length:\r\n 3\r\n\r\nabc`],
  [400, `${HEAD}Content-Length: 99999999999999999999\r\n\r\n`],
  [400, `${HEAD}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: identity\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc`],
  [400, `${HEAD}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: chunked\r\n${CHUNKS}0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  [400, `${HEAD}Transfer-Encoding:\r\n\r\n`],
  [501, `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  [501, `${HEAD}Transfer-Encoding: identity\r\n${CHUNKS}0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}0x3\r\nabc\r\n0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}3 \r\nabc\r\n0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}-3\r\nabc\r\n0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}3\nabc\r\n0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}3;a\nb\r\nabc\r\n0\r\n\r\n`],
  [400, `${HEAD}${CHUNKS}10000000000000003\r\nabc\r\n0\r\n\r\n`],
  [400, 'GET /anywhere HTTP/1.1\nHost: localhost\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.1\r\nHost: localhost\nX: b\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.1\r\n Host: localhost\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.1 \r\nHost: localhost\r\n\r\n'],
  [400, 'GET /anywhere HTTP/1.2\r\nHost: localhost\r\n\r\n'],
  [505, 'GET /anywhere HTTP/2.0\r\nHost: localhost\r\n\r\n'],
  [505, 'GET /anywhere HTTP/0.9\r\nHost: localhost\r\n\r\n'],
  [505, 'GET /anywhere\r\n\r\n'],
]

for (const thread of [true, false]) {
  const where = thread ? 'on a thread of its own' : 'on the main thread'
  test(`${where}: framing that servers may read differently is refused, and nothing after it is taken`, async () => {
    const seen: string[] = []
    const canary = operation({
      method: 'GET',
      path: '/{name}',
      id: 'canary',
      tag: 'Test',
      summary: 'x',
      auth: 'public',
      answers: { 200: anyJson('ok') },
      handler: async ({ path }) => {
        seen.push(path['name'])
        return {}
      },
    })
    await using server = await startServer([canary], { thread })
    for (const [status, bytes] of REFUSED) {
      const answer = await server.raw(`${bytes}GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code))
      // A broken body shows after its request has been taken, which may have its own answer (405) by then.
      const isAnswered = bytes.startsWith(`${HEAD}${CHUNKS}`) && statuses[0] === 405
      assert.deepEqual(
        statuses.slice(isAnswered ? 1 : 0, 1),
        isAnswered ? [] : [status],
        JSON.stringify(bytes),
      )
      assert.ok(statuses.length <= (isAnswered ? 2 : 1), JSON.stringify(bytes))
    }
    assert.deepEqual(seen, [])
    const plain = 'GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const last = 'GET /second HTTP/1.0\r\n\r\n'
    assert.equal((await server.raw(plain + last)).match(/HTTP\/1\.1 200/g)?.length, 2)
    assert.deepEqual(seen, ['first', 'second'])
  })
}
