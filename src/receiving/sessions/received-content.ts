/** Reads the content of one message: small content stays in memory, larger content goes to the spool as it arrives. */

import type { ByteBudget, Release } from '../../base/flow/byte-budget.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { BlobStore, SpooledBlob } from '../../platform/store/blobs/blobs.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { DataReader } from '../../protocols/smtp/data-reader.ts'
import type { ServerChannel } from '../../protocols/smtp/server-channel.ts'
import { Refusal } from './replies.ts'

interface Content {
  chunk: Chunk
  /** Removes spooled bytes, even if they have been kept meanwhile. */
  discard(): Promise<void>
  /** To be called once the content is stored or discarded: releases its memory. */
  done(): void
}

export interface ContentLimits {
  sizeBytesMax: number
  /** For all of a content. */
  contentMs: number
  /** Between two pieces of it, or two commands. */
  idleMs: number
  /** Content with this many Received fields is in a loop. */
  hopsMax: number
}

interface ContentOptions extends ContentLimits {
  /** Content after this many bytes is read and dropped; null: none is. */
  keepBytesMax: number | null
  /** Memory for large content; null: without a limit. */
  largeBodies: ByteBudget | null
}

/** Most mail is smaller. A thousand connections hold 64 MB at the most. */
const MEMORY_BYTES_MAX = 64 * 1024
/** Larger content waits for memory. */
const SMALL_BYTES_MAX = 1_048_576
/** Memory for writing it to disk and finding its parts, however large it is. */
const STREAMED_BYTES = 12 * 1_048_576
/** How long it waits for memory; a client that is refused sends all of it again. */
const MEMORY_WAIT_MS = MINUTE_MS
/** Where the header block is looked for. */
const HEAD_BYTES_MAX = 1_048_576

/**
 * Reads up to the end of the content. `spool`: null keeps all of it in memory.
 * @throws Refusal for content that is refused (all of it has been read, unless the refusal closes the connection),
 * StoreFull, ChannelClosed
 */
export async function readContent(
  channel: ServerChannel,
  spool: Pick<BlobStore, 'spool'> | null,
  now: () => number,
  limits: ContentOptions,
): Promise<Content> {
  const incoming = new IncomingContent(channel, now, limits)
  try {
    const content = await collect(incoming, spool)
    if (incoming.hops >= limits.hopsMax) {
      await content.discard()
      throw new Refusal(`${STATUS.loop} Routing loop`)
    }
    return { ...content, done: () => incoming.releaseMemory() }
  } catch (error) {
    incoming.releaseMemory()
    await incoming.skipRest(error)
    throw error
  }
}

async function collect(
  incoming: IncomingContent,
  spool: Pick<BlobStore, 'spool'> | null,
): Promise<Omit<Content, 'done'>> {
  const head: Uint8Array[] = []
  let sizeBytes = 0
  for (let piece = await incoming.next(); piece; piece = await incoming.next()) {
    head.push(piece)
    sizeBytes += piece.byteLength
    if (spool === null || sizeBytes <= MEMORY_BYTES_MAX) continue
    const spooled: SpooledBlob = await spool.spool(incoming.from(head.splice(0)))
    return { chunk: spooled.chunk, discard: () => spooled.discard() }
  }
  return { chunk: Buffer.concat(head), discard: async () => {} }
}

class IncomingContent {
  readonly #channel: ServerChannel
  readonly #now: () => number
  readonly #limits: ContentOptions
  readonly #reader = new DataReader()
  readonly #until: number
  readonly #ready: Uint8Array[] = []
  #ended = false
  #sizeBytes = 0
  #head = ''
  #headDone = false
  #memory: Release | null = null

  constructor(channel: ServerChannel, now: () => number, limits: ContentOptions) {
    this.#channel = channel
    this.#now = now
    this.#limits = limits
    this.#until = now() + limits.contentMs
  }

  /** Received fields in the header block. */
  get hops(): number {
    return this.#head.match(/^received[ \t]*:/gim)?.length ?? 0
  }

  /** The next piece of the content; null at its end. */
  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const piece = this.#ready.shift()
      if (piece) {
        this.#sizeBytes += piece.byteLength
        if (this.#sizeBytes > this.#limits.sizeBytesMax) throw tooLarge(false)
        this.#noteHead(piece)
        if (this.#memory === null && this.#sizeBytes > SMALL_BYTES_MAX) await this.#takeMemory()
        const kept = this.#kept(piece)
        if (kept.byteLength > 0) return kept
        continue
      }
      if (this.#ended) return null
      await this.#read()
    }
  }

  /** Nothing more is read meanwhile. @throws Refusal */
  async #takeMemory(): Promise<void> {
    const { largeBodies } = this.#limits
    if (largeBodies === null) return
    this.#memory = await largeBodies.take(STREAMED_BYTES, MEMORY_WAIT_MS)
    if (this.#memory === null)
      throw new Refusal(`${STATUS.busy} Too many large messages at once, try again later`)
  }

  releaseMemory(): void {
    this.#memory?.()
  }

  /** The part of the piece counted last that is within `keepBytesMax`. */
  #kept(piece: Uint8Array): Uint8Array {
    const over = Math.max(0, this.#sizeBytes - (this.#limits.keepBytesMax ?? Infinity))
    return over === 0 ? piece : piece.subarray(0, Math.max(0, piece.byteLength - over))
  }

  async *from(first: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
    yield* first
    for (let piece = await this.next(); piece; piece = await this.next()) yield piece
  }

  /** After a refusal the dialogue continues after the content, so the rest of it has to be read. */
  async skipRest(error: unknown): Promise<void> {
    if (error instanceof Refusal && error.closes) return
    let leftBytes = this.#limits.sizeBytesMax
    while (!this.#ended) {
      this.#ready.length = 0
      if (leftBytes < 0) throw tooLarge(true)
      leftBytes -= await this.#read()
    }
  }

  async #read(): Promise<number> {
    const bytes = await this.#channel.bytes(Math.min(this.#until, this.#now() + this.#limits.idleMs))
    const progress = this.#reader.push(bytes, (piece) => this.#ready.push(piece))
    if (progress.kind === 'bare-line-end') {
      throw new Refusal(`${STATUS.badContent} Line ends must be CRLF`, { closes: true })
    }
    if (progress.kind === 'end') {
      this.#ended = true
      this.#channel.unread(bytes.subarray(progress.next))
    }
    return bytes.byteLength
  }

  #noteHead(piece: Uint8Array): void {
    if (this.#headDone) return
    const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('latin1')
    const from = Math.max(0, this.#head.length - 3)
    this.#head += text
    const end = this.#head.startsWith('\r\n') ? 0 : this.#head.indexOf('\r\n\r\n', from)
    if (end >= 0) this.#head = this.#head.slice(0, end)
    this.#headDone = end >= 0 || this.#head.length > HEAD_BYTES_MAX
  }
}

const tooLarge = (closes: boolean) =>
  new Refusal(`${STATUS.tooLarge} Message is too large, max size is 25MB`, { closes })
