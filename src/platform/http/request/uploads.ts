/**
 * Uploaded files of one request: small ones in memory, larger ones written chunk by chunk to a spool, so that memory stays
 * flat however large the upload is. Spooled files are discarded unless the operation succeeded and kept them.
 */
import { createHash } from 'node:crypto'
import { PayloadTooLarge } from '../../../base/process/errors.ts'
import type { Chunk, LazyChunk } from '../../../protocols/message/mime-message.ts'
import type { UploadedFile } from './params.ts'

/** Where large files are stored while a request is processed. */
export interface FileSpool {
  /**
   * Stores `bytes`. If reading or writing fails, it removes what was written and rejects.
   */
  spool(bytes: AsyncIterable<Uint8Array>): Promise<SpooledFile>
}

interface SpooledFile {
  chunk: LazyChunk
  /** Removes the bytes; harmless if they are removed already. */
  discard(): Promise<void>
}

/** A file up to this size stays in memory: most attachments of transactional mail are smaller. */
const FILE_IN_MEMORY_MAX_BYTES = 64 * 1024
/** All in-memory files of one request together; beyond it small ones are spooled too. */
const FILES_IN_MEMORY_MAX_BYTES = 1024 * 1024

interface FileHead {
  fieldName: string
  filename: string
  /** Content type of the part, as `formatContentType` writes it; null if none was sent that can be read. */
  contentType: string | null
}

interface UploadLimits {
  /** Limit of one file; undefined: only the request's own limit. */
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

  /** Reads one file to its end. Files are in the order of the calls. */
  async receive(head: FileHead, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const index = this.slots.push(undefined) - 1
    const hash = this.digesting ? createHash('sha256') : undefined
    const iterator = this.checked(bytes, hash)[Symbol.asyncIterator]()
    const held: Uint8Array[] = []
    let heldBytes = 0
    for (;;) {
      const next = await iterator.next()
      if (next.done) break
      held.push(next.value)
      heldBytes += next.value.byteLength
      // Counted while it arrives: several files of one request may be read at once.
      this.inMemoryBytes += next.value.byteLength
      if (heldBytes > FILE_IN_MEMORY_MAX_BYTES || this.inMemoryBytes > FILES_IN_MEMORY_MAX_BYTES) {
        this.inMemoryBytes -= heldBytes
        const file = { ...(await this.spool.spool(rejoin(held, iterator))), kept: false }
        this.spooled.push(file)
        const markKept = () => {
          file.kept = true
        }
        this.slots[index] = slotOf(head, file.chunk, hash?.digest('hex') ?? '', markKept)
        return
      }
    }
    if (heldBytes === 0 && head.filename === '') return // an empty file input of a browser form
    // Buffer.concat copies, so no network buffer stays referenced.
    this.slots[index] = slotOf(head, Buffer.concat(held), hash?.digest('hex') ?? '', () => {})
  }

  /** After a failure. */
  async discardAll(): Promise<void> {
    await Promise.allSettled(this.spooled.splice(0).map((file) => file.discard()))
  }

  /** After success: files that the operation did not keep. */
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
