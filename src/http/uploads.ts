/**
 * Uploaded files of one request: small ones in memory, larger ones handed on chunk by chunk to a spool, so
 * that memory stays flat however large the upload is. Whatever was spooled is discarded unless the
 * operation succeeded and kept it.
 */
import { createHash } from 'node:crypto'
import { PayloadTooLarge } from '../base/errors.ts'
import type { Chunk, LazyChunk } from '../base/mime-message.ts'
import type { UploadedFile } from './params.ts'

/** Where large files go while a request is worked off. */
export interface FileSpool {
  /**
   * Reads `bytes` to the end and keeps them. If `bytes` or the writing throws, what was written is removed
   * and the promise rejects.
   */
  spool(bytes: AsyncIterable<Uint8Array>): Promise<SpooledFile>
}

export interface SpooledFile {
  chunk: LazyChunk
  /** Removes the bytes; harmless if they are gone already. */
  discard(): Promise<void>
}

/** A file up to this size stays in memory: most attachments of transactional mail are smaller. */
export const FILE_IN_MEMORY_MAX_BYTES = 64 * 1024
/** All in-memory files of one request together; beyond it even small ones are spooled. */
const FILES_IN_MEMORY_MAX_BYTES = 1024 * 1024

export interface FileHead {
  fieldName: string
  filename: string
  /** Media type of the part in lower case, without parameters; null if none was sent. */
  contentType: string | null
}

export interface UploadLimits {
  /** Of one file; undefined: only the request's own limit. */
  fileBytes?: number | undefined
  /** Text of the 413 for a file over it. */
  message: string
}

export class Uploads {
  /** In the order of the form: a small file may be done before a large one that came earlier. */
  private readonly slots: Array<{ file: UploadedFile; digest: string } | undefined> = []
  private readonly spool: FileSpool
  private readonly limits: UploadLimits
  private readonly digesting: boolean
  private readonly spooled: Array<SpooledFile & { kept: boolean }> = []
  private inMemoryBytes = 0

  constructor(spool: FileSpool, limits: UploadLimits, digesting: boolean) {
    this.spool = spool
    this.limits = limits
    this.digesting = digesting
  }

  get files(): UploadedFile[] {
    return this.slots.flatMap((slot) => slot?.file ?? [])
  }

  /** SHA-256 of each of `files` in hex; empty texts unless digesting. */
  get digests(): string[] {
    return this.slots.flatMap((slot) => slot?.digest ?? [])
  }

  /** Reads one file to its end. Its place in the order is that of the call. */
  async receive(head: FileHead, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const place = this.slots.push(undefined) - 1
    const hash = this.digesting ? createHash('sha256') : undefined
    const iterator = this.checked(bytes, hash)[Symbol.asyncIterator]()
    const held: Uint8Array[] = []
    let heldBytes = 0
    for (;;) {
      const next = await iterator.next()
      if (next.done) break
      held.push(next.value)
      heldBytes += next.value.byteLength
      // Counted while it comes in: several files of one request may be on their way at once.
      this.inMemoryBytes += next.value.byteLength
      if (heldBytes > FILE_IN_MEMORY_MAX_BYTES || this.inMemoryBytes > FILES_IN_MEMORY_MAX_BYTES) {
        this.inMemoryBytes -= heldBytes
        const file = { ...(await this.spool.spool(rejoin(held, iterator))), kept: false }
        this.spooled.push(file)
        const markKept = () => {
          file.kept = true
        }
        this.slots[place] = slotOf(head, file.chunk, hash?.digest('hex') ?? '', markKept)
        return
      }
    }
    if (heldBytes === 0 && head.filename === '') return // an empty file input of a browser form
    // Buffer.concat copies, so no network buffer stays referenced.
    this.slots[place] = slotOf(head, Buffer.concat(held), hash?.digest('hex') ?? '', () => {})
  }

  /** After a failure: nothing of the request may stay. */
  async discardAll(): Promise<void> {
    await Promise.allSettled(this.spooled.splice(0).map((file) => file.discard()))
  }

  /** After success: what the operation did not take over goes. */
  async discardUnkept(): Promise<void> {
    await Promise.allSettled(this.spooled.filter((file) => !file.kept).map((file) => file.discard()))
  }

  private async *checked(
    bytes: AsyncIterable<Uint8Array>,
    hash: { update(bytes: Uint8Array): unknown } | undefined,
  ): AsyncGenerator<Uint8Array> {
    const maxBytes = this.limits.fileBytes ?? Infinity
    let size = 0
    for await (const chunk of bytes) {
      size += chunk.byteLength
      if (size > maxBytes) throw new PayloadTooLarge(this.limits.message)
      hash?.update(chunk)
      yield chunk
    }
  }
}

function slotOf(head: FileHead, chunk: Chunk, digest: string, markKept: () => void) {
  const keep = () => {
    markKept()
    return chunk
  }
  return { file: { ...head, chunk, keep }, digest }
}

async function* rejoin(held: Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* held.splice(0)
  yield* { [Symbol.asyncIterator]: () => rest }
}
