/**
 * Gives memory back after work. V8 collects when a heap grows; where nothing goes on, nothing grows, and what the
 * last burst left behind stays for as long as the service is idle: more than a third of its memory (docs/decisions:
 * memory at rest). So each thread looks now and then whether it has come to rest after work, and after a minute of
 * it has its heap collected once, whole, with all free pages given back. V8 also forgets shapes of objects that
 * nothing has just then, and with them code: the next work of that kind begins a little slower. Hence the minute.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { threadId } from 'node:worker_threads'

const LOOK_EVERY_MS = 10_000
const QUIET_LOOKS = 6
/** Threads take turns: two collections at the same time take each other's processors. */
const TURN_MS = 1_000
/**
 * Shares of the time in which the event loop was busy; between them is neither work nor rest. With nothing to do
 * that of the main thread is 0.002 to 0.003, so some messages a second still are rest.
 */
const WORK_FROM = 0.02
const REST_BELOW = 0.01
/** Less than this, in bytes, is not worth it. */
const GROWTH_MIN = 8 * 2 ** 20

export interface RestProbes {
  /** The share of the time since the last call in which the thread was busy, 0 to 1. */
  busy(): number
  /** What its heap and the memory outside that hangs on it take, in bytes. */
  held(): number
  collect(): void
}

/**
 * Begins to look, for as long as the thread lives; it keeps no thread alive. Without Node's `--expose-gc` it does
 * nothing, as a program that uses the service as a library decides that for itself.
 */
export function collectAtRest(
  probes: RestProbes | null = threadProbes(),
  lookEveryMs = LOOK_EVERY_MS,
): { stop(): void } {
  if (probes === null) return { stop() {} }
  let worked = true // starting is work
  let quiet = 0
  let heldThen = 0
  const look = () => {
    const busy = probes.busy()
    if (busy >= WORK_FROM) worked = true
    quiet = busy < REST_BELOW ? quiet + 1 : 0
    if (!worked || quiet < QUIET_LOOKS) return
    worked = false
    if (probes.held() - heldThen < GROWTH_MIN) return
    probes.collect()
    heldThen = probes.held()
  }
  let timer = setTimeout(
    () => {
      look()
      timer = setInterval(look, lookEveryMs).unref()
    },
    lookEveryMs + threadId * TURN_MS,
  ).unref()
  return { stop: () => clearTimeout(timer) }
}

function threadProbes(): RestProbes | null {
  const { gc } = globalThis
  if (gc === undefined) return null
  let last = performance.eventLoopUtilization()
  return {
    busy() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
    held() {
      const { total_heap_size, external_memory } = getHeapStatistics()
      return total_heap_size + external_memory
    },
    collect: () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
  }
}
