/** Large files of mail in S3: any node sends and shows what another one accepted. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import pino from 'pino'
import { readConfig } from '../../src/platform/config/config.ts'
import { openBlobs } from '../../src/platform/store/blobs/blobs.ts'
import { createS3Client } from '../../src/platform/store/blobs/s3-client.ts'
import { createSharedBlobs } from '../../src/platform/store/blobs/shared-blobs.ts'
import type { StoreUnavailable } from '../../src/platform/store/store.ts'
import { inPieces } from '../../src/protocols/message/mime-message.ts'
import { queueTotals } from '../support/crash-rig.ts'
import { call, type TestNode, testNodes } from '../support/nodes.ts'
import { startS3 } from '../support/s3-server.ts'
import { eventually } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

async function postFile(node: TestNode, to: string, file: Buffer): Promise<number> {
  const form = new FormData()
  form.append('from', `sender@${node.domain}`)
  form.append('to', to)
  form.append('subject', 'with a file')
  form.append('text', 'See the file.')
  form.append('attachment', new Blob([new Uint8Array(file)]), 'data.bin')
  const answer = await fetch(`${node.url}/v3/${node.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  await answer.text()
  return answer.status
}

test('a node sends and shows mail with files that another one accepted', async (t) => {
  const s3 = await startS3(t)
  const sink = await createSink()
  t.after(() => sink.close())
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...s3.env })
  const one = await nodes.start({ SENDWRIGHT_ROLES: 'api' })
  const two = await nodes.start({ SENDWRIGHT_ROLES: 'api,delivery,jobs' })
  const file = randomBytes(300_000)
  assert.equal(await postFile(one, 'a@example.org', file), 200)
  const [message] = await sink.waitFor(1)
  const encoded = message?.raw.toString('latin1').replaceAll('\r\n', '') ?? ''
  assert.ok(encoded.includes(file.toString('base64')))
  await eventually('an empty queue', async () => (await queueTotals(two)) === 0)

  await t.test('the stored message is the same on both', async () => {
    const [row] = await nodes.query('SELECT id FROM messages')
    const path = `/v3/domains/${one.domain}/messages/${row?.['id']}`
    const [first, second] = [await call(one, 'GET', path), await call(two, 'GET', path)]
    assert.deepEqual(
      (first['attachments'] as { size: number }[]).map(({ size }) => size),
      [300_000],
    )
    assert.equal(first['body-plain'], second['body-plain'])
  })

  await t.test('without the storage mail with files is refused for now, other mail is accepted', async () => {
    await s3.close()
    assert.equal(await postFile(one, 'b@example.org', file), 503)
    await call(one, 'POST', `/v3/${one.domain}/messages`, {
      from: `sender@${one.domain}`,
      to: 'c@example.org',
      subject: 'small',
      text: 'Hi.',
    })
    await sink.waitFor(2)
  })
})

test('blobs are fetched again when their copy is gone, in parts too, and end with their removal', async (t) => {
  const { env } = await startS3(t)
  const config = readConfig({ ...env, SENDWRIGHT_DATABASE_URL: 'postgres://x/y' }).blobs
  assert.ok(config)
  const { prefix, ...options } = config
  const open = async (cacheMaxBytes: number) => {
    const folder = await temporaryFolder(t)
    const files = await openBlobs(folder)
    const log = pino({ level: 'silent' })
    const client = createS3Client(options)
    return { folder, blobs: createSharedBlobs({ files, folder, client, prefix, log, cacheMaxBytes }) }
  }
  const [first, second] = [await open(1e9), await open(150_000)]
  const contents = [randomBytes(100_000), randomBytes(100_000)]
  const names: string[] = []
  for (const content of contents)
    names.push(await first.blobs.keep((await first.blobs.spool(inPieces(content).open())).chunk))
  const bytesOf = async (from: AsyncIterable<Uint8Array>) => {
    const parts: Uint8Array[] = []
    for await (const bytes of from) parts.push(Buffer.from(bytes))
    return Buffer.concat(parts)
  }
  for (const [at, name] of names.entries()) {
    const chunk = await second.blobs.read(name)
    assert.equal(chunk.sizeBytes, 100_000)
    const part = chunk.slice?.(10, 60_000) ?? chunk
    const [whole, some] = await Promise.all([bytesOf(chunk.open()), bytesOf(part.open())])
    assert.deepEqual(whole, contents[at])
    assert.deepEqual(some, contents[at]?.subarray(10, 60_000))
  }
  const copies = async () =>
    (await readdir(join(second.folder, 'blobs'), { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isFile(),
    ).length
  assert.equal(await copies(), 2)
  await second.blobs.trim()
  assert.equal(await copies(), 1, 'the limit has room for one')
  const chunk = await second.blobs.read(names[0] as string)
  await rm(join(second.folder, 'blobs'), { recursive: true })
  assert.deepEqual(await bytesOf(chunk.open()), contents[0])

  await second.blobs.remove(names[0] as string)
  await rm(join(first.folder, 'blobs'), { recursive: true })
  await assert.rejects(first.blobs.read(names[0] as string), /there is no blob/)
  const wrong = createS3Client({ ...options, accessKeyId: 'nobody' })
  await assert.rejects(wrong.put('one/x', inPieces(Buffer.from('x'))), (error: StoreUnavailable) => {
    assert.match(error.detail, /403/)
    return true
  })
})
