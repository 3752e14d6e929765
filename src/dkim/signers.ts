/**
 * Signing beside the main thread. A signature takes longer than everything else that is done for a message, its
 * hashing on the calling thread a tenth of that thread's time. Up to a few messages at a time are signed by
 * `signMessage`, on the thread pool; when more wait, threads are started that do all of it.
 */

import type { KeyObject } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Chunk, chunkSize, type MimeMessage } from '../base/mime-message.ts'
import { PassingMap } from '../base/passing.ts'
import { type SigningKey, type SigningOptions, signMessage } from './sign.ts'
import { FAILED, type SigningReplies, type SigningRequest } from './signing-format.ts'

export interface Signers {
  /** As `signMessage`. */
  sign(message: MimeMessage, keys: readonly SigningKey[], options: SigningOptions): Promise<string[]>
  close(): Promise<void>
}

export interface SignersOptions {
  /** Threads; default: half the cores, at least two where there are two, at most four. */
  threads?: number
  /** Messages being signed at a time from which on threads are worth their memory. */
  startAt?: number
  /** A thread has failed; what it had is signed without it. */
  onError?: (error: Error) => void
}

/**
 * A thread signs 1,200 to 2,500 messages a second, by processor. On two cores, where a signature takes 0.67 ms, one
 * thread was never without work and delivered 970 to 1,040 messages of batches a second; two deliver 1,335 to 1,365.
 */
const THREADS = Math.min(4, availableParallelism(), Math.max(2, Math.ceil(availableParallelism() / 2)))
/** A machine that sends now and then never gets there. */
const START_AT = 8
/** A larger body is not copied: signing it is slow for its bytes, not for its messages. */
const BODY_BYTES_MAX = 256 * 1024
/** Young generation of a thread, which keeps nothing; the process's own would let each grow by some tens of MB. */
const YOUNG_MB = 9
/** Keys that a thread knows; beyond them all are told anew. */
const KEYS_MAX = 10_000

export function createSigners(options: SignersOptions = {}): Signers {
  const { threads = THREADS, startAt = START_AT, onError = () => {} } = options
  const all: SigningThread[] = []
  let running: SigningThread[] = []
  let closed = false
  let pending = 0

  function start(): void {
    for (let left = threads; left > 0; left--) {
      const thread = new SigningThread(
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

  async function sign(...[message, keys, how]: Parameters<Signers['sign']>): Promise<string[]> {
    const elsewhere = keys.length > 0 && running.length > 0 && how.headerNames === undefined
    const body = elsewhere ? bodyBytes(message.body) : null
    if (!body) return signMessage(message, keys, how)
    const thread = running.reduce((least, other) => (other.waiting < least.waiting ? other : least))
    return (await thread.sign(message.headers, body, keys, how)) ?? signMessage(message, keys, how)
  }

  return {
    async sign(message, keys, how) {
      // A thread takes no large body.
      if (bodySize(message.body) > BODY_BYTES_MAX) return signMessage(message, keys, how)
      pending++
      if (all.length === 0 && pending >= startAt && !closed) start()
      try {
        return await sign(message, keys, how)
      } finally {
        pending--
      }
    },
    async close() {
      closed = true
      running = []
      await Promise.all(all.map((thread) => thread.close()))
    },
  }
}

const bodySize = (body: readonly Chunk[]) => body.reduce((sum, chunk) => sum + chunkSize(chunk), 0)

/** The body in memory of its own, to be handed over; null: not at hand. */
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
  /** Under which number, and for whom, it was last told of a private key. */
  #told = new WeakMap<KeyObject, { number: number; domain: string; selector: string }>()
  #numbered = 0
  #lastId = 0
  #failed = false

  constructor(ready: () => void, failed: (error: Error) => void) {
    this.#worker = new Worker(join(import.meta.dirname, 'signing-thread.ts'), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    this.#worker.unref()
    const end = (error: Error) => {
      if (this.#failed) return
      this.#failed = true
      failed(error)
      for (const { resolve } of this.#jobs.values()) resolve(null)
      this.#jobs.clear()
    }
    this.#worker.once('online', ready)
    this.#worker.on('message', (replies: SigningReplies) => this.#settle(replies))
    this.#worker.on('error', end)
    this.#worker.on('exit', () => end(new Error('the signing thread ended')))
  }

  get waiting(): number {
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
    if (this.#numbered >= KEYS_MAX) this.#forgetKeys()
    const numbers = keys.map((key) => this.#numberOf(key))
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#jobs.set(id, { resolve, reject })
      this.#post([id, signedAt.getTime(), body, numbers.length, ...numbers, ...headers], [body.buffer])
    })
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  #post(request: SigningRequest, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(request, transfer)
  }

  #forgetKeys(): void {
    this.#told = new WeakMap()
    this.#numbered = 0
    this.#post(['forget-keys'])
  }

  #numberOf({ privateKey, domain, selector, algorithm }: SigningKey): number {
    const told = this.#told.get(privateKey)
    if (told && told.domain === domain && told.selector === selector) return told.number
    const number = this.#numbered++
    this.#told.set(privateKey, { number, domain, selector })
    this.#post(['key', number, { privateKey, domain, selector, algorithm }])
    return number
  }

  #settle(replies: SigningReplies): void {
    for (let at = 0; at < replies.length; ) {
      const id = replies[at++] as number
      const count = replies[at++] as number
      const job = this.#jobs.get(id)
      this.#jobs.delete(id)
      if (count === FAILED) job?.reject(new Error(`Cannot sign: ${replies[at++]}`))
      else {
        job?.resolve(replies.slice(at, at + count) as string[])
        at += count
      }
    }
  }
}
