import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startS3 } from '../../../test/support/s3-server.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { newId } from '../../base/ids.ts'
import { readConfig } from '../../platform/config/config.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import { createS3Client } from '../../platform/store/blobs/s3-client.ts'
import { type BlobPlace, compareBlobs, copyBlobs, folderPlace, s3Place } from './blobs.ts'

const BYTES = Buffer.alloc(300_000, 'abc')

async function folderWith(t: TestContext): Promise<{ place: BlobPlace; name: string }> {
  const folder = await temporaryFolder(t)
  const blobs = await openBlobs(folder)
  const { chunk } = await blobs.spool(
    (async function* () {
      yield BYTES
    })(),
  )
  return { place: folderPlace(folder), name: await blobs.keep(chunk) }
}

/** A database in which one row of one account names the blob. */
const rowsNaming = (account: string, name: string) => ({
  query: async (sql: string, values: readonly unknown[] = []) =>
    sql.includes('FROM inbox ') && values[0] === '' && values[1] === account ? [[newId(), name]] : [],
})

test('files of an account go from a folder to a bucket, within the bucket, and leave', async (t) => {
  const { env } = await startS3(t)
  const { blobs } = readConfig({ ...env, SENDWRIGHT_DATABASE_URL: 'postgres://none/none' })
  assert.ok(blobs)
  const client = createS3Client(blobs)
  const [one, two] = [s3Place(client, blobs.bucket, 'pod_a/'), s3Place(client, blobs.bucket, 'pod_b/')]
  const { place, name } = await folderWith(t)
  const rows = rowsNaming('account', name)
  await copyBlobs(rows, place, one, () => {}, 'other')
  assert.equal(await one.size(name), null, 'not of this account')
  for (const [from, to] of [
    [place, one],
    [one, two],
  ] as const) {
    await copyBlobs(rows, from, to, () => {}, 'account')
    const { result, differences } = await compareBlobs(rows, from, to, () => {}, 'account')
    assert.deepEqual([result.files, result.bytes, differences], [1, BYTES.length, []])
    for (const _ of ['gone', 'gone already']) await from.remove(name)
    assert.deepEqual([await from.size(name), await to.size(name)], [null, BYTES.length])
  }
})
