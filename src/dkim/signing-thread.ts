/** A thread that signs: hash, canonical forms and signature of one message after the other (signers.ts). */
import type { KeyObject } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { type SigningKey, signMessageSync } from './sign.ts'

/** A private key crosses once and goes by its number from then on. */
export type NumberedKey = Omit<SigningKey, 'privateKey'> & { number: number }

export interface SigningJob {
  id: number
  headers: string[]
  body: Uint8Array
  keys: NumberedKey[]
  /** Unix milliseconds. */
  signedAt: number
}

export type SigningRequest =
  | { kind: 'key'; number: number; key: KeyObject }
  | { kind: 'forget-keys' }
  | { kind: 'sign'; job: SigningJob }

export type SigningReply = { id: number; fields: string[] } | { id: number; error: string }

const keys = new Map<number, KeyObject>()

function answer(job: SigningJob): SigningReply {
  try {
    const given = job.keys.map(({ number, ...key }) => ({
      ...key,
      privateKey: keys.get(number) as KeyObject,
    }))
    const signedAt = new Date(job.signedAt)
    return { id: job.id, fields: signMessageSync(job.headers, job.body, given, { signedAt }) }
  } catch (error) {
    return { id: job.id, error: String((error as Error).stack) }
  }
}

/**
 * Messages that are told of together, when so many wait: what becomes ready in one turn of the main thread's event
 * loop is sent and settled in one turn, in fewer commits (decision 37).
 */
const TOGETHER_MAX = 8
let replies: SigningReply[] = []

function tell(): void {
  if (replies.length > 0) parentPort?.postMessage(replies)
  replies = []
}

parentPort?.on('message', (request: SigningRequest) => {
  if (request.kind === 'key') keys.set(request.number, request.key)
  else if (request.kind === 'forget-keys') keys.clear()
  else {
    replies.push(answer(request.job))
    if (replies.length >= TOGETHER_MAX) tell()
    // Behind all requests that are here already.
    else if (replies.length === 1) setImmediate(tell)
  }
})
