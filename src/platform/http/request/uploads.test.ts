// Own process: it measures the memory of its process.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { echo, startServer, TestSpool } from '../../../../test/support/http-server.ts'
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import { chunkSize } from '../../../protocols/message/mime-message.ts'
import { operation } from '../operation.ts'
import { SENDING_BODY_LIMIT } from './body.ts'
import type { FileSpool } from './uploads.ts'

const MIB = 1024 * 1024
const HEAD = '--b\r\nContent-Disposition: form-data; name="attachment"; filename="big.bin"\r\n\r\n'

/** An operation that takes files and does with them what the test says. */
function taking(handle: (chunks: { chunk: Chunk; keep(): Chunk }[]) => void) {
  return operation({
    ...echo,
    params: echo.inputs,
    auth: { area: 'domains', access: 'write' },
    bodyLimit: { bytes: 400 * MIB, fileBytes: 300 * MIB, message: 'file size exceeds 300MiB limit' },
    handler: async ({ params }) => {
      const files = params.files('attachment')
      handle(files)
      return { sizes: files.map((file) => chunkSize(file.chunk)) }
    },
  })
}

async function* bigForm(bytes: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(HEAD)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  for (let sent = 0; sent < bytes; sent += chunk.byteLength) yield chunk
  yield Buffer.from('\r\n--b--\r\n')
}

const upload = (bytes: number) => ({
  method: 'POST',
  body: Readable.toWeb(Readable.from(bigForm(bytes))) as ReadableStream,
  headers: { 'content-type': 'multipart/form-data; boundary=b' },
  duplex: 'half' as const,
})

test('a large upload passes through to the spool in flat memory', async () => {
  await using server = await startServer([taking((files) => files.forEach((file) => void file.keep()))])
  const before = process.memoryUsage.rss()
  const response = await server.fetch('/v3/example.com/echo', upload(256 * MIB))
  assert.deepEqual(await response.json(), { sizes: [256 * MIB] })
  const growth = (server.spool.rssPeakBytes - before) / MIB
  assert.ok(growth < 128, `grew by ${Math.round(growth)} MiB for 256 MiB`)
  assert.equal((await server.spool.files()).length, 1)
})

test('a spooled file that is not kept goes after success, a kept one goes after failure', async () => {
  await using idle = await startServer([taking(() => {})])
  assert.equal((await idle.fetch('/v3/example.com/echo', upload(MIB))).status, 200)
  assert.deepEqual(await idle.spool.files(), [])

  const failing = taking((files) => {
    for (const file of files) file.keep()
    throw new Error('the transaction failed')
  })
  await using server = await startServer([failing])
  assert.equal((await server.fetch('/v3/example.com/echo', upload(MIB))).status, 500)
  assert.deepEqual(await server.spool.files(), [])
})

test('a file over its own limit is refused and not left behind', async () => {
  const small = {
    ...taking(() => {}),
    bodyLimit: { bytes: 4 * MIB, fileBytes: MIB, message: 'file size exceeds 1MB limit' },
  }
  await using server = await startServer([small])
  const response = await server.fetch('/v3/example.com/echo', upload(2 * MIB))
  assert.deepEqual(
    [response.status, await response.json()],
    [413, { message: 'file size exceeds 1MB limit' }],
  )
  assert.deepEqual(await server.spool.files(), [])
})

test('an operation without file parameters skips files', async () => {
  await using server = await startServer([{ ...echo, params: [] }])
  const response = await server.fetch('/v3/example.com/echo', upload(512 * 1024))
  assert.equal(response.status, 200)
  assert.deepEqual(((await response.json()) as { files: unknown }).files, [])
})

test('many small files stay in memory only up to a total', async () => {
  await using server = await startServer([taking((files) => files.forEach((file) => void file.keep()))])
  const form = new FormData()
  for (let n = 0; n < 40; n += 1) form.append('attachment', new Blob([Buffer.alloc(50_000)]), `${n}.bin`)
  const response = await server.fetch('/v3/example.com/echo', { method: 'POST', body: form })
  assert.deepEqual(await response.json(), { sizes: Array(40).fill(50_000) })
  const spooled = (await server.spool.files()).length
  assert.equal(spooled, 20)
})

test('files keep the order of the form though a large one takes longer', async () => {
  const inner = new TestSpool()
  const spool: FileSpool = {
    async spool(bytes) {
      const spooled = await inner.spool(bytes)
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      return spooled
    },
  }
  await using server = await startServer([taking(() => {})], { spool })
  const form = new FormData()
  for (const size of [100_000, 1, 200_000, 2]) form.append('attachment', new Blob([Buffer.alloc(size)]), 'f')
  const response = await server.fetch('/v3/example.com/echo', { method: 'POST', body: form })
  assert.deepEqual(await response.json(), { sizes: [100_000, 1, 200_000, 2] })
  await inner.remove()
})

test('a failing spool is our fault and ends the request', async () => {
  const spool = { spool: async () => Promise.reject(new Error('disk on fire')) }
  await using server = await startServer([taking(() => {})], { spool })
  const response = await server.fetch('/v3/example.com/echo', upload(MIB))
  assert.deepEqual([response.status, await response.json()], [500, { message: 'Internal Server Error' }])
})

test('the limit of a send request is the one its text names', () => {
  assert.equal(SENDING_BODY_LIMIT.bytes, 54_945_382)
  assert.equal(SENDING_BODY_LIMIT.message, 'request size exceeds 52.4MiB limit')
})
