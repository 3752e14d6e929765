import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { chunkOf } from '../../platform/store/blobs/blobs.ts'
import { createSpentBuffers } from './spent-buffers.ts'

const MB = 1_048_576

test('garbage is collected for every 8 MB of buffers', () => {
  let collections = 0
  const spend = createSpentBuffers(() => collections++)
  for (let read = 0; read < 24 * MB; read += 65_536) spend(65_536)
  assert.equal(collections, 3)
})

test('a large file that is read in fresh pieces never has many of them in memory', async (t) => {
  const path = join(await temporaryFolder(t), 'large')
  const sizeBytes = 256 * MB
  const file = await open(path, 'w')
  await file.truncate(sizeBytes)
  await file.close()
  setFlagsFromString('--expose-gc')
  globalThis.gc = runInNewContext('gc') as NonNullable<typeof globalThis.gc>
  globalThis.gc()
  const before = process.memoryUsage().arrayBuffers
  let peakBytes = 0
  let read = 0
  for await (const piece of chunkOf(() => path, 0, sizeBytes).open()) {
    read += piece.byteLength
    peakBytes = Math.max(peakBytes, process.memoryUsage().arrayBuffers - before)
  }
  assert.equal(read, sizeBytes)
  assert.ok(peakBytes < 32 * MB, `${Math.round(peakBytes / MB)} MB`)
})
