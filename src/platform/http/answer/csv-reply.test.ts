import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../../../../test/support/http-server.ts'
import { anyJson } from '../../../base/shape.ts'
import { operation } from '../operation.ts'
import { csvReply, prefersCsv } from './reply.ts'

const get = (path: string, handler: () => Promise<object>) =>
  operation({
    method: 'GET',
    path,
    id: path,
    tag: 'Test',
    summary: 'Test',
    auth: 'public',
    answers: { 200: anyJson('ok') },
    handler,
  })

const ACCEPTS: [accept: string | undefined, isCsv: boolean][] = [
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['application/json', false],
  ['text/csv', true],
  ['Text/CSV; header=present', true],
  ['application/json, text/csv', true],
  ['application/json, text/csv;q=0.5', false],
  ['application/json;q=0.5, text/csv;q=0.9', true],
  ['text/csv;q=0', false],
  ['text/csv;q=many', false],
  ['text/csvx', false],
]

test('CSV is sent to clients that name it', () => {
  for (const [accept, isCsv] of ACCEPTS) assert.equal(prefersCsv(accept), isCsv, accept)
})

test('records are made while the client takes them, and no longer', async () => {
  const ended = Promise.withResolvers<number>()
  async function* endless() {
    let made = 0
    try {
      for (;;) yield [made++, 'x'.repeat(1_000)]
    } finally {
      ended.resolve(made)
    }
  }
  await using server = await startServer([
    get('/short', async () => csvReply('numbers.csv', ['n'], [[1], [2]])),
    get('/endless', async () => csvReply('numbers.csv', ['n', 'text'], endless())),
  ])
  const short = await server.fetch('/short')
  assert.equal(short.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
  assert.equal(short.headers.get('content-disposition'), 'attachment; filename="numbers.csv"')
  assert.equal(await short.text(), 'n\r\n1\r\n2\r\n')
  assert.equal(await (await server.fetch('/short', { method: 'HEAD' })).text(), '')
  const client = new AbortController()
  const long = await server.fetch('/endless', { signal: client.signal })
  const reader = long.body?.getReader()
  await reader?.read()
  client.abort()
  assert.ok((await ended.promise) < 100_000)
})
