/**
 * Signs messages off the main thread (README.md): a few at a time by `signMessage`, on Node's thread pool; once more are
 * pending, in worker threads.
 */
import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { PassingMap } from '../../../base/flow/cache.ts'
import { sizesFor } from '../../../base/process/memory-sizes.ts'
import { type Chunk, chunkSize, type MimeMessage } from '../../message/mime-message.ts'
import { type SigningKey, type SigningOptions, signMessage } from '../sign.ts'
import type { SigningReply, SigningRequest } from './signing-thread.ts'

export type Signers = ReturnType<typeof createSigners>

interface SignersOptions {
  /** Threads and the young generation of each; default: those of a machine with enough memory. */
  threads?: number
  youngMb?: number
  /** Number of messages signed at a time from which threads are worth their memory. */
  startAt?: number
  /** Called when a thread has failed; its messages are signed without it. */
  onError?: (error: Error) => void
}

/** A machine that sends now and then never reaches it. */
const START_AT = 8
/** A larger body is not copied: its bytes take the time, not the number of messages. */
const BODY_BYTES_MAX = 256 * 1024
/** Keys that a thread holds; beyond it all are dropped, and sent again. */
const KEYS_MAX = 10_000

export function createSigners(options: SignersOptions = {}) {
  const { signing } = sizesFor('normal')
  const { threads = signing.threads, youngMb = signing.youngMb } = options
  const { startAt = START_AT, onError = () => {} } = options
  const all: SigningThread[] = []
  let running: SigningThread[] = []
  let closed = false
  let pending = 0

  function start(): void {
    for (let left = threads; left > 0; left--) {
      const thread = new SigningThread(
        youngMb,
        () => {
          if (!closed) running.push(thread)
        },
        (error) => {
          running = running.filter((other) => other !== thread)
          if (!closed) onError(error)
        },
      )
      all.push(thread)
    }
  }

  async function sign(
    message: MimeMessage,
    keys: readonly SigningKey[],
    signing: SigningOptions,
  ): Promise<string[]> {
    const inThread = keys.length > 0 && running.length > 0
    const body = inThread ? bodyBytes(message.body) : null
    if (!body) return signMessage(message, keys, signing)
    const thread = running.reduce((least, other) => (other.pending < least.pending ? other : least))
    return (await thread.sign(message.headers, body, keys, signing)) ?? signMessage(message, keys, signing)
  }

  return {
    /** As `signMessage`. */
    async sign(...given: Parameters<typeof sign>): Promise<string[]> {
      if (bodySize(given[0].body) > BODY_BYTES_MAX) return signMessage(...given)
      pending++
      if (all.length === 0 && pending >= startAt && !closed) start()
      try {
        return await sign(...given)
      } finally {
        pending--
      }
    },
    async close(): Promise<void> {
      closed = true
      running = []
      await Promise.all(all.map((thread) => thread.close()))
    },
  }
}

const bodySize = (body: readonly Chunk[]) => body.reduce((sum, chunk) => sum + chunkSize(chunk), 0)

/** A copy of the body, to be transferred; null: it is not in memory. */
function bodyBytes(body: readonly Chunk[]): Uint8Array<ArrayBuffer> | null {
  const bytes = new Uint8Array(bodySize(body))
  let at = 0
  for (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) return null
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}

class SigningThread {
  readonly #worker: Worker
  readonly #jobs = new PassingMap<
    number,
    { resolve(fields: string[] | null): void; reject(error: Error): void }
  >()
  /** By private key: the number, domain and selector that the thread was sent last. */
  #sentKeys = new WeakMap<KeyObject, { number: number; domain: string; selector: string }>()
  #keyCount = 0
  #lastId = 0
  #failed = false

  constructor(youngMb: number, onReady: () => void, onFailure: (error: Error) => void) {
    this.#worker = new Worker(join(import.meta.dirname, 'signing-thread.ts'), {
      resourceLimits: { maxYoungGenerationSizeMb: youngMb },
    })
    this.#worker.unref()
    const end = (error: Error) => {
      if (this.#failed) return
      this.#failed = true
      onFailure(error)
      for (const { resolve } of this.#jobs.values()) resolve(null)
      this.#jobs.clear()
    }
    this.#worker.once('online', onReady)
    this.#worker.on('message', (replies: readonly SigningReply[]) => this.#settle(replies))
    this.#worker.on('error', end)
    this.#worker.on('exit', () => end(new Error('the signing thread ended')))
  }

  get pending(): number {
    return this.#jobs.size
  }

  /** Null: the thread is gone. */
  sign(
    headers: readonly string[],
    body: Uint8Array<ArrayBuffer>,
    keys: readonly SigningKey[],
    { signedAt }: SigningOptions,
  ): Promise<string[] | null> {
    if (this.#failed) return Promise.resolve(null)
    if (this.#keyCount >= KEYS_MAX) this.#forgetKeys()
    const numbers = keys.map((key) => this.#numberOf(key))
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#jobs.set(id, { resolve, reject })
      this.#post({ kind: 'job', id, signedAt: signedAt.getTime(), body, keys: numbers, headers }, [
        body.buffer,
      ])
    })
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  #post(request: SigningRequest, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(request, transfer)
  }

  #forgetKeys(): void {
    this.#sentKeys = new WeakMap()
    this.#keyCount = 0
    this.#post({ kind: 'forget-keys' })
  }

  #numberOf({ privateKey, domain, selector, algorithm }: SigningKey): number {
    const sent = this.#sentKeys.get(privateKey)
    if (sent && sent.domain === domain && sent.selector === selector) return sent.number
    const number = this.#keyCount++
    this.#sentKeys.set(privateKey, { number, domain, selector })
    this.#post({ kind: 'key', number, key: { privateKey, domain, selector, algorithm } })
    return number
  }

  #settle(replies: readonly SigningReply[]): void {
    for (const reply of replies) {
      const job = this.#jobs.get(reply.id)
      this.#jobs.delete(reply.id)
      if ('failure' in reply) job?.reject(new Error(`Cannot sign: ${reply.failure}`))
      else job?.resolve(reply.fields)
    }
  }
}
