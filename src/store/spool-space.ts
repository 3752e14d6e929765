/**
 * Uploads leave the floor of free space alone: their bytes are counted while they are spooled, those of all uploads
 * together, and the first that would go below the floor is refused. The commit behind an upload comes too late for
 * that: by then the bytes are written.
 */
import { statfs } from 'node:fs/promises'
import { InsufficientStorage } from '../base/errors.ts'
import type { BlobStore, SpooledBlob } from './blobs.ts'

export interface SpoolSpace {
  /** Bytes that are free in the folder now. */
  freeBytes(): Promise<number>
  floorBytes: number
}

/** Between two looks, which take 20 us each; others write to the disk meanwhile. */
const LOOK_EVERY_BYTES = 4 * 1024 * 1024

export const spaceOf = (folder: string, floorBytes: number): SpoolSpace => ({
  floorBytes,
  async freeBytes() {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
})

/** Spools as `blobs` does. The returned `spool` @throws InsufficientStorage as well; then nothing is left. */
export function boundedSpool(
  blobs: Pick<BlobStore, 'spool'>,
  { freeBytes, floorBytes }: SpoolSpace,
): Pick<BlobStore, 'spool'> {
  /** That may be written before the next look. */
  let roomBytes = 0
  /** Handed on, and perhaps not on disk yet: no look can have seen it. */
  let unwrittenBytes = 0
  let looking: Promise<void> | null = null

  async function look(wanted: number): Promise<void> {
    const free = (await freeBytes()) - floorBytes - unwrittenBytes
    roomBytes = Math.min(free, Math.max(LOOK_EVERY_BYTES, wanted))
  }

  async function take(bytes: number): Promise<void> {
    if (bytes > roomBytes) {
      looking ??= look(bytes).finally(() => {
        looking = null
      })
      await looking
      if (bytes > roomBytes) throw new InsufficientStorage()
    }
    roomBytes -= bytes
  }

  async function* counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let handedOn = 0
    try {
      for await (const bytes of content) {
        await take(bytes.byteLength)
        handedOn = bytes.byteLength
        unwrittenBytes += handedOn
        yield bytes
        unwrittenBytes -= handedOn
        handedOn = 0
      }
    } finally {
      unwrittenBytes -= handedOn
    }
  }

  return { spool: (content): Promise<SpooledBlob> => blobs.spool(counted(content)) }
}
