/**
 * Returns memory after work (decision 47). V8 collects when a heap grows; in an idle service nothing grows, and garbage of
 * the last burst stays: more than a third of the memory. So each thread checks now and then whether it is idle after work,
 * and after an idle minute runs one full collection that returns all free pages. V8 also drops shapes of objects that are
 * unused at that time, and their code, so the next work of that kind starts a little slower. Hence the minute. After the
 * start there is no such code yet, and the first rest suffices.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { threadId } from 'node:worker_threads'

const LOOK_EVERY_MS = 10_000
const QUIET_LOOKS = 6
/** More frequent looks after the start, until the first rest; whoever works all that time has warmed up. */
const START_LOOKS = 10
const START_LOOK_SHARE = 1 / 5
/** One thread at a time: two collections at once compete for processors. */
const TURN_MS = 250
/**
 * Shares of the time in which the event loop was busy; between them is neither work nor rest. That of an idle main thread
 * is 0.002 to 0.003, so a few messages a second still count as rest.
 */
const WORK_FROM = 0.02
const REST_BELOW = 0.01
/** Less than this, in bytes, is not worth it. */
const GROWTH_MIN = 8 * 2 ** 20

interface RestProbes {
  /** The share of the time since the last call in which the thread was busy, 0 to 1. */
  busy(): number
  /** Size of its heap and of the external memory that the heap refers to, in bytes. */
  held(): number
  collect(): void
}

/**
 * Starts the checks, for the life of the thread; they do not keep it alive. Without Node's `--expose-gc` it does nothing: a
 * program that uses the service as a library decides that itself.
 */
export function collectAtRest(
  probes: RestProbes | null = threadProbes(),
  lookEveryMs = LOOK_EVERY_MS,
  startLooks = START_LOOKS,
): { stop(): void } {
  if (probes === null) return { stop() {} }
  let worked = true // starting is work
  let quiet = 0
  let heldThen = 0
  let startLooksLeft = startLooks
  const look = () => {
    const busy = probes.busy()
    if (busy >= WORK_FROM) worked = true
    quiet = busy < REST_BELOW ? quiet + 1 : 0
    if (!worked || quiet < (startLooksLeft > 0 ? 1 : QUIET_LOOKS)) {
      startLooksLeft--
      return
    }
    startLooksLeft = 0
    worked = false
    if (probes.held() - heldThen < GROWTH_MIN) return
    probes.collect()
    heldThen = probes.held()
  }
  const untilLook = () => (startLooksLeft > 0 ? lookEveryMs * START_LOOK_SHARE : lookEveryMs)
  const lookAgain = () => {
    look()
    timer = setTimeout(lookAgain, untilLook()).unref()
  }
  let timer = setTimeout(lookAgain, untilLook() + threadId * TURN_MS).unref()
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
