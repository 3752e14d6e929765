import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InsufficientStorage } from '../../../base/process/errors.ts'
import { boundedSpool } from './spool-space.ts'

const MB = 1024 * 1024
const PIECE = Buffer.alloc(64 * 1024)

/** A disk with this much free space above the floor. */
function createDisk(availableBytes: number, floorBytes = 10 * MB) {
  let written = 0
  let most = 0
  const blobs = {
    async spool(content: AsyncIterable<Uint8Array>): Promise<never> {
      let own = 0
      try {
        for await (const bytes of content) {
          // Let other uploads run before the bytes are on disk.
          await new Promise((resolve) => setImmediate(resolve))
          written += bytes.byteLength
          own += bytes.byteLength
          most = Math.max(most, written)
        }
        return { sizeBytes: own } as never
      } catch (error) {
        written -= own
        throw error
      }
    },
  }
  const space = { floorBytes, freeBytes: async () => availableBytes + floorBytes - written }
  return { spool: boundedSpool(blobs, space).spool, most: () => most, written: () => written }
}

async function* upload(bytes: number) {
  for (let left = bytes; left > 0; left -= PIECE.length) yield PIECE
}

test('an upload that would go below the floor is refused while it arrives', async () => {
  const disk = createDisk(5 * MB)
  let read = 0
  async function* endless() {
    for (;;) {
      read += PIECE.length
      yield PIECE
    }
  }
  await assert.rejects(disk.spool(endless()), InsufficientStorage)
  assert.ok(read <= 5 * MB + PIECE.length, `${read} bytes were read`)
  assert.ok(disk.most() <= 5 * MB)
  assert.equal(disk.written(), 0)
})

test('concurrent uploads together stay above the floor', async () => {
  const disk = createDisk(20 * MB)
  const results = await Promise.allSettled(Array.from({ length: 30 }, () => disk.spool(upload(2 * MB))))
  const refused = results.filter((result) => result.status === 'rejected')
  assert.ok(refused.length >= 20, `${refused.length} refused`)
  for (const { reason } of refused) assert.ok(reason instanceof InsufficientStorage)
  assert.ok(disk.most() <= 20 * MB, `${disk.most()} bytes on disk`)
})

test('a refused upload frees its space', async () => {
  const disk = createDisk(8 * MB)
  await assert.rejects(disk.spool(upload(9 * MB)), InsufficientStorage)
  await disk.spool(upload(7 * MB))
  assert.equal(disk.written(), 7 * MB)
})
