/**
 * argon2id in a worker thread, one hash at a time. Anyone who can connect can cause passwords to be hashed, each
 * taking 19 MB and 20 ms. In Node's thread pool they would block file access and DNS, and each of its threads keeps
 * the memory it once took: 120 MB in all, against 40 here. The thread starts with the first password and ends when
 * idle.
 */
import type { Argon2Parameters } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { createGate } from '../../base/flow/gate.ts'
import { TooManyWaiting } from '../../base/process/errors.ts'

/** About four seconds of work. */
const WAITING_MAX = 200
const IDLE_MS = 60_000

const gate = createGate(1, WAITING_MAX)
let thread: Worker | null = null
let idle: NodeJS.Timeout | undefined

/** @throws TooManyWaiting */
export async function argon2id(parameters: Argon2Parameters): Promise<Buffer> {
  if (!(await gate.enter())) throw new TooManyWaiting(1)
  try {
    return await compute(parameters)
  } finally {
    gate.leave()
  }
}

async function compute(parameters: Argon2Parameters): Promise<Buffer> {
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
