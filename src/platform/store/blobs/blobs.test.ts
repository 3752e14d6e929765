import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import { readChunks, scanChunks } from '../../../protocols/message/mime-message.ts'
import { openBlobs } from './blobs.ts'

test('a blob is read whole, in fresh buffers and in a reused one, before and after it is kept', async (t) => {
  const blobs = await openBlobs(await temporaryFolder(t))
  const bytes = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, at) => (at * 7 + (at >> 8)) % 256))
  const spooled = await blobs.spool(
    (async function* () {
      yield bytes
    })(),
  )
  const name = await blobs.keep(spooled.chunk)
  for (const chunk of [spooled.chunk, await blobs.read(name)]) {
    for (const read of [readChunks, scanChunks]) {
      const pieces: Buffer[] = []
      for await (const piece of read([chunk])) pieces.push(Buffer.from(piece))
      assert.ok(Buffer.concat(pieces).equals(bytes))
    }
  }
})
