import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { startServer } from '../../../../test/support/http-server.ts'
import { readPages } from './pages.ts'

/** Unlike `fetch`, says nothing by itself and decompresses nothing. */
async function ask(port: number, path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>()
  request({ host: '127.0.0.1', port, path, method, headers, agent: false }, resolve).on('error', reject).end()
  const response = await promise
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) }
}

const PLAIN = (bytes: Buffer) => bytes
const CODINGS: readonly (readonly [accept: string | null, coding: string | undefined, undo: typeof PLAIN])[] =
  [
    [null, undefined, PLAIN],
    ['', undefined, PLAIN],
    ['identity', undefined, PLAIN],
    ['gzip', 'gzip', gunzipSync],
    ['GZIP, deflate', 'gzip', gunzipSync],
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['br;q=0.1, gzip', 'br', brotliDecompressSync],
    ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ['gzip;q=0, br; q=0.000', undefined, PLAIN],
    ['*', 'br', brotliDecompressSync],
    ['*;q=0', undefined, PLAIN],
    ['br;q=0, *', 'gzip', gunzipSync],
    ['xgzip, brx', undefined, PLAIN],
  ]

for (const thread of [true, false]) {
  test(`the machine description comes in the form that the client takes, ${thread ? 'by' : 'without'} a thread`, async () => {
    await using server = await startServer([], { thread })
    const document = JSON.parse(JSON.stringify(server.server.describe())) as unknown
    const etags = new Map<string | undefined, string>()
    for (const [accept, coding, undo] of CODINGS) {
      const headers: Record<string, string> = accept === null ? {} : { 'accept-encoding': accept }
      const answer = await ask(server.port, '/openapi.json', headers)
      assert.deepEqual([answer.status, answer.headers['content-encoding']], [200, coding], String(accept))
      assert.deepEqual(JSON.parse(undo(answer.bytes).toString()), document)
      assert.equal(answer.headers['content-length'], String(answer.bytes.byteLength))
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(answer.headers['vary'], 'Accept-Encoding')
      assert.equal(answer.headers['cache-control'], 'no-cache')
      const { etag = '' } = answer.headers
      assert.match(etag, /^"[\w-]+"$/)
      assert.equal(etags.get(coding) ?? etag, etag)
      etags.set(coding, etag)
      const head = await ask(server.port, '/openapi.json', headers, 'HEAD')
      assert.deepEqual([head.status, head.headers['etag'], head.bytes.byteLength], [200, etag, 0])
      assert.equal(head.headers['content-length'], String(answer.bytes.byteLength))
    }
    assert.equal(new Set(etags.values()).size, 3, 'each form has its own')
    const plain = etags.get(undefined) as string
    for (const known of [plain, `W/${plain}`, `"other", ${plain}`, '*', etags.get('br') as string]) {
      const answer = await ask(server.port, '/openapi.json', { 'if-none-match': known })
      assert.deepEqual([answer.status, answer.headers['etag'], answer.bytes.byteLength], [304, plain, 0])
    }
    for (const known of ['"other"', plain.slice(1, -1), '']) {
      assert.equal((await ask(server.port, '/openapi.json', { 'if-none-match': known })).status, 200)
    }
  })
}

test("the dashboard's files have an etag for each form", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'pages-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'index.html'), 'text '.repeat(1_000))
  await using server = await startServer([], { pages: readPages(folder) })
  const plain = await ask(server.port, '/')
  const zipped = await ask(server.port, '/', { 'accept-encoding': 'br, gzip' })
  assert.equal(zipped.headers['content-encoding'], 'br')
  assert.ok(brotliDecompressSync(zipped.bytes).equals(plain.bytes))
  assert.notEqual(zipped.headers['etag'], plain.headers['etag'])
  const etag = zipped.headers['etag'] as string
  const again = await ask(server.port, '/', { 'accept-encoding': 'br', 'if-none-match': etag })
  assert.deepEqual([again.status, again.headers['etag']], [304, etag])
})
