/**
 * Keeps uploads above the floor of free space. The bytes of all uploads are counted while they are spooled, and an upload
 * that would go below the floor is refused. The check at the commit comes too late for that: by then the bytes are
 * written.
 */
import { statfs } from 'node:fs/promises'
import { InsufficientStorage } from '../../../base/process/errors.ts'
import type { BlobStore, SpooledBlob } from './blobs.ts'

interface SpoolSpace {
  /** Free bytes of the disk now. */
  freeBytes(): Promise<number>
  floorBytes: number
}

/** Bytes between two measurements, which take 20 us each; other code writes to the disk meanwhile. */
const MEASURE_EVERY_BYTES = 4 * 1024 * 1024

export const spaceOf = (folder: string, floorBytes: number): SpoolSpace => ({
  floorBytes,
  async freeBytes() {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
})

/** Spools to `blobs`. The returned `spool` also @throws InsufficientStorage; the spooled bytes are then removed. */
export function boundedSpool(
  blobs: Pick<BlobStore, 'spool'>,
  { freeBytes, floorBytes }: SpoolSpace,
): Pick<BlobStore, 'spool'> {
  /** May be written before the next measurement. */
  let allowanceBytes = 0
  /** Passed on but perhaps not on disk yet, so not included in the last measurement. */
  let unwrittenBytes = 0
  let measuring: Promise<void> | null = null

  async function measure(wanted: number): Promise<void> {
    const free = (await freeBytes()) - floorBytes - unwrittenBytes
    allowanceBytes = Math.min(free, Math.max(MEASURE_EVERY_BYTES, wanted))
  }

  async function take(bytes: number): Promise<void> {
    if (bytes > allowanceBytes) {
      measuring ??= measure(bytes).finally(() => {
        measuring = null
      })
      await measuring
      if (bytes > allowanceBytes) throw new InsufficientStorage()
    }
    allowanceBytes -= bytes
  }

  async function* counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let pendingBytes = 0
    try {
      for await (const bytes of content) {
        await take(bytes.byteLength)
        pendingBytes = bytes.byteLength
        unwrittenBytes += pendingBytes
        yield bytes
        unwrittenBytes -= pendingBytes
        pendingBytes = 0
      }
    } finally {
      unwrittenBytes -= pendingBytes
    }
  }

  return { spool: (content): Promise<SpooledBlob> => blobs.spool(counted(content)) }
}
