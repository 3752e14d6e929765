import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ApiUnavailable, createApiClient, errorText, pathPart } from './api-client.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A server that gives these answers one after the other, and a client of it whose waits are noted and not waited. */
async function setUp(t: TestContext, ...answers: Answer[]) {
  const requests: IncomingMessage[] = []
  const waits: number[] = []
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)] as Answer
    requests.push(request)
    answer(response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createApiClient({ url, key: 'k', wait: async (ms) => waits.push(ms) })
  return { client, requests, waits, url }
}

const ok: Answer = (response) => response.end('{"a":1}')
const answer =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end('{"message":"no"}')

test('a call is repeated after the wait that the server asks for', async (t) => {
  const date = () => new Date(Date.now() + 120_000).toUTCString()
  const { client, waits } = await setUp(
    t,
    answer(429, { 'retry-after': '7' }),
    (response) => response.writeHead(503, { 'retry-after': date() }).end(),
    answer(429, { 'x-ratelimit-reset': String(Math.ceil(Date.now() / 1_000) + 60) }),
    answer(429, { 'retry-after': '99999999' }),
    ok,
  )
  assert.deepEqual((await client.call('GET', '/x')).body, { a: 1 })
  const [first = 0, second = 0, third = 0, fourth = 0] = waits
  assert.equal(first, 7_000)
  assert.ok(second > 100_000 && second <= 120_000)
  assert.ok(third > 0 && third <= 61_000)
  assert.equal(fourth, 900_000, 'no wait is longer than a quarter of an hour')
})

test('lost connections are repeated with longer and longer waits, and then given up', async (t) => {
  const { client, waits, requests } = await setUp(t, (_, request) => request.socket.destroy())
  await assert.rejects(client.call('POST', '/x', { json: [1] }), ApiUnavailable)
  assert.equal(requests.length, 14)
  assert.deepEqual(waits.slice(0, 3), [500, 1_000, 2_000])
  assert.equal(Math.max(...waits), 60_000)
  const keys = new Set(requests.map(({ headers }) => headers['idempotency-key']))
  assert.equal(keys.size, 1, 'a repetition of a POST is recognizable')
})

test('a redirect is refused, and other refusals are answers', async (t) => {
  const { client, requests } = await setUp(t, answer(307, { location: 'http://127.0.0.2/' }), answer(400))
  await assert.rejects(client.call('GET', '/x'), /redirects to http:\/\/127\.0\.0\.2\//)
  const refused = await client.call('GET', '/x')
  assert.deepEqual([refused.status, errorText(refused)], [400, 'no'])
  assert.equal(requests[1]?.headers.authorization, `Basic ${Buffer.from('api:k').toString('base64')}`)
})

test('an answer without end is given up, and one that is no JSON object has no body', async (t) => {
  const endless: Answer = (response) => {
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1_000_000, ' ')));
    }
    response.on('drain', write)
    write()
  }
  const { client } = await setUp(
    t,
    endless,
    (response) => response.end('[1]'),
    (response) => response.end('{"a":'),
  )
  await assert.rejects(client.call('GET', '/x'), /answers with over/)
  assert.equal((await client.call('GET', '/x')).body, null)
  assert.equal((await client.call('GET', '/x')).body, null)
})

test('names never lead to another path', async (t) => {
  const { client, requests } = await setUp(t, ok)
  for (const name of ['..', '.', '../../v4/domains', 'a/../..', '\ud800', 'x?y#z', '%2e%2e']) {
    const found = await client.call('POST', `/v3/${pathPart(name)}/bounces`)
    if (['..', '.'].includes(name)) assert.equal(found.status, 400)
  }
  assert.deepEqual(
    requests.map(({ url }) => url?.split('/').length),
    Array.from({ length: 5 }, () => 4),
  )
})

test('a base URL is http or https, without a login', () => {
  for (const url of ['ftp://a', 'file:///etc/passwd', 'http://u:p@a', 'nothing', 'http://a/?x'])
    assert.throws(() => createApiClient({ url, key: 'k' }), ApiUnavailable)
  assert.equal(createApiClient({ url: 'https://a.example/base/', key: 'k' }).origin, 'https://a.example/base')
})
