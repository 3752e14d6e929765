/**
 * Collects the garbage of all threads of a service's process on a signal, as they do after a minute of rest
 * (src/base/process/rest-collection.ts); the rest is what the process holds. The process imports it before anything else.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BroadcastChannel, isMainThread } from 'node:worker_threads'
import { HANG_MS } from './hang.ts'
import { residentBytes } from './process-memory.ts'

/** For `env` of `startProcess`. */
export const COLLECTING = { NODE_OPTIONS: `--import=${import.meta.filename}` }
const SIGNAL = 'SIGWINCH'

/** The process starts collecting. */
const collectIn = (pid: number): void => void process.kill(pid, SIGNAL)

/** Interval of readings: the threads collect one after the other, and return memory later. */
const LOOK_EVERY_MS = 250
/** Readings of which the lowest counts. */
const LOOKS_HELD = 8

/** Resident set of a process in bytes, once it is below `maxBytes`, else after HANG_MS. */
export async function collectedBytes(pid: number, maxBytes: number): Promise<number> {
  const until = performance.now() + HANG_MS
  for (;;) {
    collectIn(pid)
    await sleep(LOOK_EVERY_MS)
    const bytes = await residentBytes(pid)
    if (bytes < maxBytes || performance.now() > until) return bytes
  }
}

/** The lowest resident set of a process, in bytes, while its threads collect for two seconds. */
export async function heldBytes(pid: number): Promise<number> {
  const seen: number[] = []
  for (let look = 1; look <= LOOKS_HELD; look++) {
    collectIn(pid)
    await sleep(LOOK_EVERY_MS)
    seen.push(await residentBytes(pid))
  }
  return Math.min(...seen)
}

/** Set by COLLECTING, so not if a test imports this file. */
if (process.env['NODE_OPTIONS'] === COLLECTING.NODE_OPTIONS) {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as (options: object) => void
  const collect = () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  const threads = new BroadcastChannel(SIGNAL)
  threads.unref()
  threads.onmessage = collect
  if (isMainThread) {
    process.on(SIGNAL, () => {
      threads.postMessage(null)
      collect()
    })
  }
}
