/**
 * argon2id in a thread of its own, one at a time. Anybody who can connect has passwords hashed, and each takes 19 MB and
 * 20 ms. In Node's own threads they would hold up files and DNS, and each of these keeps what it once took: 120 MB in
 * all, where this one keeps 40. It starts with the first password and ends when none came for a while.
 */
import type { Argon2Parameters } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { TooManyWaiting } from '../base/errors.ts'
import { createGate } from '../base/gate.ts'

/** Four seconds' worth. */
const WAITING_MAX = 200
const IDLE_MS = 60_000

const gate = createGate(1, WAITING_MAX)
let thread: Worker | null = null
let idle: NodeJS.Timeout | undefined

/** @throws TooManyWaiting */
export async function argon2id(parameters: Argon2Parameters): Promise<Buffer> {
  if (!(await gate.enter())) throw new TooManyWaiting(1)
  try {
    return await computed(parameters)
  } finally {
    gate.leave()
  }
}

async function computed(parameters: Argon2Parameters): Promise<Buffer> {
  clearTimeout(idle)
  thread ??= new Worker(join(import.meta.dirname, 'hashing-thread.ts'), { env: {}, execArgv: [] })
  const worker = thread
  worker.ref()
  try {
    worker.postMessage(parameters)
    const [tag] = (await once(worker, 'message')) as [Uint8Array]
    idle = setTimeout(end, IDLE_MS).unref()
    return Buffer.from(tag)
  } catch (error) {
    await end()
    throw error
  } finally {
    worker.unref()
  }
}

async function end(): Promise<void> {
  const ended = thread
  thread = null
  await ended?.terminate()
}
