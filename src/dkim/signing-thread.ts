/** A thread that signs: hash, canonical forms and signature of one message after the other (signers.ts). */
import { parentPort } from 'node:worker_threads'
import { collectAtRest } from '../base/rest-collection.ts'
import { type SigningKey, signMessageSync } from './sign.ts'
import { FAILED, type SigningJob, type SigningReplies, type SigningRequest } from './signing-format.ts'

const keys = new Map<number, SigningKey>()

function sign([id, signedAt, body, keyCount, ...rest]: SigningJob): void {
  try {
    const given = rest.slice(0, keyCount).map((number) => keys.get(number as number) as SigningKey)
    const headers = rest.slice(keyCount) as string[]
    const fields = signMessageSync(headers, body, given, { signedAt: new Date(signedAt) })
    replies.push(id, fields.length, ...fields)
  } catch (error) {
    replies.push(id, FAILED, String((error as Error).stack))
  }
}

/**
 * Messages that are told of together, when so many wait: what becomes ready in one turn of the main thread's event
 * loop is sent and settled in one turn, in fewer commits (decision 37).
 */
const TOGETHER_MAX = 8
let replies: SigningReplies = []
/** Jobs among the replies. */
let told = 0

function tell(): void {
  if (told > 0) parentPort?.postMessage(replies)
  replies = []
  told = 0
}

collectAtRest()
parentPort?.on('message', (request: SigningRequest) => {
  if (request[0] === 'key') keys.set(request[1], request[2])
  else if (request[0] === 'forget-keys') keys.clear()
  else {
    sign(request)
    told++
    if (told >= TOGETHER_MAX) tell()
    // Behind all requests that are here already.
    else if (told === 1) setImmediate(tell)
  }
})
