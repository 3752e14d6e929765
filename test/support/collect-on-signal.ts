/**
 * Collects the garbage of all threads of a service's process when asked, as they do by themselves after a minute of rest
 * (src/base/rest-collection.ts): what is left is what the process holds. Imported by it before anything else.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BroadcastChannel, isMainThread } from 'node:worker_threads'

/** For `env` of `startProcess`. */
export const COLLECTING = { NODE_OPTIONS: `--import=${import.meta.filename}` }
const SIGNAL = 'SIGWINCH'

/** The process begins to collect. */
export const collectIn = (pid: number): void => void process.kill(pid, SIGNAL)

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
