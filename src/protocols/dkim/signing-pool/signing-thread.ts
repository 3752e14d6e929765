/** A signing thread: hash, canonical forms and signature of one message after the other (signers.ts). */
import { parentPort } from 'node:worker_threads'
import { collectAtRest } from '../../../base/process/rest-collection.ts'
import { type SigningKey, signMessageSync } from '../sign.ts'

/** A key crosses once; jobs refer to it by its number. */
export type SigningRequest =
  | { kind: 'key'; number: number; key: SigningKey }
  | { kind: 'forget-keys' }
  | SigningJob

interface SigningJob {
  kind: 'job'
  id: number
  /** Unix milliseconds. */
  signedAt: number
  body: Uint8Array
  keys: readonly number[]
  headers: readonly string[]
}

/** The DKIM-Signature fields of a job, or why there are none. */
export type SigningReply = { id: number; fields: string[] } | { id: number; failure: string }

const keys = new Map<number, SigningKey>()

function sign({ id, signedAt, body, keys: numbers, headers }: SigningJob): void {
  try {
    const messageKeys = numbers.map((number) => keys.get(number) as SigningKey)
    replies.push({
      id,
      fields: signMessageSync(headers, body, messageKeys, { signedAt: new Date(signedAt) }),
    })
  } catch (error) {
    replies.push({ id, failure: String((error as Error).stack) })
  }
}

/**
 * Jobs that are replied to together while more are pending: messages that are signed in one turn of the main thread's
 * event loop are sent and settled in one turn, in fewer commits (decision 37).
 */
const GROUP_MAX = 8
let replies: SigningReply[] = []

function flush(): void {
  if (replies.length > 0) parentPort?.postMessage(replies)
  replies = []
}

collectAtRest()
parentPort?.on('message', (request: SigningRequest) => {
  if (request.kind === 'key') keys.set(request.number, request.key)
  else if (request.kind === 'forget-keys') keys.clear()
  else {
    sign(request)
    if (replies.length >= GROUP_MAX) flush()
    // After all requests that have arrived already.
    else if (replies.length === 1) setImmediate(flush)
  }
})
