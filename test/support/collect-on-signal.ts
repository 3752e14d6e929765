/**
 * Collects the garbage of all threads of a service's process when asked, as they do by themselves after a minute of rest
 * (src/base/rest-collection.ts): what is left is what the process holds. Imported by it before anything else.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BroadcastChannel, isMainThread } from 'node:worker_threads'
import { residentBytes } from './process-memory.ts'

/** For `env` of `startProcess`. */
export const COLLECTING = { NODE_OPTIONS: `--import=${import.meta.filename}` }
const SIGNAL = 'SIGWINCH'

/** The process begins to collect. */
const collectIn = (pid: number): void => void process.kill(pid, SIGNAL)

/** Looks at what is left this often, so many times: the threads collect one after the other, and give back later. */
const LOOK_EVERY_MS = 250
const LOOKS_MAX = 40

/** Resident set of a process in bytes, once it is below `maxBytes`; what it is after ten seconds otherwise. */
export async function collectedBytes(pid: number, maxBytes: number): Promise<number> {
  for (let look = 1; ; look++) {
    collectIn(pid)
    await sleep(LOOK_EVERY_MS)
    const bytes = await residentBytes(pid)
    if (bytes < maxBytes || look === LOOKS_MAX) return bytes
  }
}

/** Set by COLLECTING, so not where a test imports this. */
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
