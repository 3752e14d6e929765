/**
 * Forms of received mail while they are posted. Those of large mail are made once, in a file, and streamed from it to every
 * destination and in every attempt; those of small mail are made for each attempt, in memory (decision 162).
 *
 * The files are of the spool, which a start empties: after one a form is made again. They are removed when the last POST of
 * their message has ended, and the least recently used ones beyond a limit.
 */
import type { ByteBudget } from '../../../base/flow/byte-budget.ts'
import type { Timer } from '../../../base/time/clock.ts'
import type { Core } from '../../../core.ts'
import type { MessageRecord } from '../../../mail/record/record.ts'
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts'
import type { Store } from '../../../platform/store/store.ts'
import { type Chunk, chunkSize, type LazyChunk, sliceChunk } from '../../../protocols/message/mime-message.ts'
import { type FormKind, type FormParts, type FormPieces, formPieces, type MadeForm } from './form.ts'

export interface PostedFormParts extends FormParts, Pick<Core, 'clock' | 'log'> {
  store: Pick<Store, 'read'>
  /** Refuses below the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  /** Memory for forms while they are made and sent. */
  bodiesOut: ByteBudget
  /** A form that was not used for so long is removed: longer than any pause between two attempts. */
  idleMs: number
  /** Bytes of all files. */
  bytesMax?: number
}

interface FormUse {
  form: MadeForm
  /** To be called when the attempt has ended and is recorded. */
  done(): void
}

export type PostedForms = ReturnType<typeof createPostedForms>

/** Larger messages have their form in a file. */
const SMALL_BYTES_MAX = 64 * 1024
/** Some dozens of the largest messages that wait for receivers which are down. */
const BYTES_MAX = 1_000_000_000
/** Bytes in memory of a file that is being sent. */
const STREAMED_BYTES = 512 * 1024
/** For a message while its form is made: a part may be decoded as a whole. */
const MAKING_FACTOR = 2
/** Written at a time: a form may have thousands of small parts. */
const PIECE_BYTES = 64 * 1024
const LEFT = 'SELECT id FROM route_posts WHERE message_pk = ? LIMIT 1'

interface Made {
  form: MadeForm
  sizeBytes: number
  discard(): Promise<void>
}

interface Kept {
  messageId: string
  making: Promise<Made>
  users: number
  /** 0: it is being made. */
  sizeBytes: number
  idle: Timer | null
}

export function createPostedForms(parts: PostedFormParts) {
  const { store, clock, log, bodiesOut, bytesMax = BYTES_MAX } = parts
  /** By message and kind, the least recently used first. */
  const kept = new Map<string, Kept>()

  function remove(key: string, one: Kept): Promise<void> {
    if (kept.get(key) === one) kept.delete(key)
    one.idle?.cancel()
    return one.making
      .then(({ discard }) => discard())
      .catch((err: unknown) => log.warn({ err }, 'cannot remove the form of a received message'))
  }

  function trim(): void {
    let total = [...kept.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    for (const [key, one] of kept) {
      if (total <= bytesMax) return
      if (one.users > 0) continue
      void remove(key, one)
      total -= one.sizeBytes
    }
  }

  /** Forms of other kinds waited for the same end. */
  function removeAll(messageId: string): void {
    for (const [key, one] of kept) if (one.messageId === messageId && one.users === 0) void remove(key, one)
  }

  async function make(record: MessageRecord, pieces: FormPieces): Promise<Made> {
    const release = await bodiesOut.take(MAKING_FACTOR * record.summary.sizeBytes)
    try {
      let before = 0
      async function* all() {
        for await (const piece of gathered(pieces.before())) {
          before += piece.byteLength
          yield piece
        }
        yield* gathered(pieces.after())
      }
      const { chunk, discard } = await parts.spool.spool(all())
      const part = (from: number, to: number): Chunk =>
        from === to ? Buffer.alloc(0) : withinBudget(bodiesOut, sliceChunk(chunk, from, to) as LazyChunk)
      const sizeBytes = chunkSize(chunk)
      const form = { boundary: pieces.boundary, before: part(0, before), after: part(before, sizeBytes) }
      return { form, sizeBytes, discard }
    } finally {
      release?.()
    }
  }

  async function fileOf(key: string, record: MessageRecord, pieces: () => FormPieces): Promise<FormUse> {
    const one = kept.get(key) ?? {
      ...{ messageId: record.id, making: make(record, pieces()), users: 0, sizeBytes: 0, idle: null },
    }
    kept.delete(key)
    kept.set(key, one)
    one.idle?.cancel()
    one.users++
    try {
      const { form, sizeBytes } = await one.making
      one.sizeBytes = sizeBytes
      trim()
      return { form, done: () => void used(key, one) }
    } catch (error) {
      if (kept.get(key) === one) kept.delete(key)
      throw error
    }
  }

  async function used(key: string, one: Kept): Promise<void> {
    one.users--
    if (one.users > 0) return
    const left = await store.read({ sql: LEFT, values: [one.messageId] }).catch(() => null)
    if (one.users > 0 || kept.get(key) !== one) return
    // Another end may have come while the database was asked.
    one.idle?.cancel()
    if (left?.length === 0) removeAll(one.messageId)
    else one.idle = clock.setTimer(parts.idleMs, () => void remove(key, one))
  }

  return {
    /** @throws InsufficientStorage, StoreFull, and what `FormPieces` throw */
    async use(record: MessageRecord, kind: FormKind, messageUrl: string): Promise<FormUse> {
      const pieces = () => formPieces(parts, record, kind, messageUrl)
      if (record.summary.sizeBytes > SMALL_BYTES_MAX) return fileOf(`${record.id} ${kind}`, record, pieces)
      const { boundary, before, after } = pieces()
      return {
        form: { boundary, before: await inMemory(before()), after: await inMemory(after()) },
        done() {},
      }
    },
    /** Removes the files. */
    async close(): Promise<void> {
      await Promise.all([...kept].map(([key, one]) => remove(key, one)))
    },
  }
}

const withinBudget = (memory: ByteBudget, chunk: LazyChunk): LazyChunk => ({
  sizeBytes: chunk.sizeBytes,
  async *open() {
    const release = await memory.take(STREAMED_BYTES)
    try {
      yield* chunk.open()
    } finally {
      release?.()
    }
  },
})

async function inMemory(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const piece of gathered(pieces)) all.push(piece)
  return Buffer.concat(all)
}

/** In pieces that are not small, each in memory of its own. */
async function* gathered(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    waiting.push(Buffer.from(piece))
    bytes += piece.byteLength
    if (bytes < PIECE_BYTES) continue
    yield Buffer.concat(waiting)
    waiting = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}
