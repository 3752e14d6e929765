/**
 * Returns memory after work (decisions 47 and 271). V8 collects when a heap grows; in an idle service nothing grows, and
 * garbage of the last burst stays: more than a third of the memory. So each thread checks now and then whether it is idle
 * after work, and after an idle minute runs full collections that return all free pages. V8 also drops shapes of objects that
 * are unused at that time, and their code, so the next work of that kind starts a little slower. Hence the minute. After the
 * start there is no such code yet, and the first rest suffices.
 */
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
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
 * Processor time of the thread as a share of the time; between them is neither work nor rest. That of an idle main thread
 * is 0.003 to 0.018, the latter on a slow or busy machine, so a few messages a second still count as rest.
 */
const WORK_FROM = 0.05
const REST_BELOW = 0.03
/** V8 drops compiled code that several of them find unused. */
const COLLECTIONS = 6
/** They stop the thread for a tenth of a second each: apart, so that a request waits for one. While it works there is none. */
const COLLECTION_EVERY_MS = 2_000
/** Less than this, in bytes, is not worth it. */
const GROWTH_MIN = 3 * 2 ** 20
/** What a trickle of mail may leave, in bytes, until it is collected without work. */
const GROWTH_MAX = 16 * 2 ** 20

interface RestProbes {
  /** Processor time of the thread since the last call, as a share of that time; that of collections does not count. */
  busy(): number
  /** Size of its heap and of the external memory that the heap refers to, in bytes. */
  held(): number
  /** Once now, and a few times more as long as the thread rests. */
  collect(): void
}

interface RestOptions {
  /** Drops what the thread can make again outside its heap, before a collection. */
  letGo?: (() => void) | undefined
  probes?: RestProbes | null
  lookEveryMs?: number
  startLooks?: number
}

/**
 * Starts the checks, for the life of the thread; they do not keep it alive. Without Node's `--expose-gc` it does nothing: a
 * program that uses the service as a library decides that itself.
 */
export function collectAtRest({
  letGo,
  probes = threadProbes(),
  lookEveryMs = LOOK_EVERY_MS,
  startLooks = START_LOOKS,
}: RestOptions = {}): { stop(): void } {
  if (probes === null) return { stop() {} }
  let worked = true // starting is work
  let quiet = 0
  let heldThen = 0
  let startLooksLeft = startLooks
  const look = () => {
    const busy = probes.busy()
    if (busy >= WORK_FROM) worked = true
    quiet = busy < REST_BELOW ? quiet + 1 : 0
    const grown = probes.held() - heldThen
    if (quiet < (startLooksLeft > 0 ? 1 : QUIET_LOOKS) || (!worked && grown < GROWTH_MAX)) {
      startLooksLeft--
      return
    }
    startLooksLeft = 0
    worked = false
    if (grown < GROWTH_MIN && !letGo) return
    letGo?.()
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
  const sinceLook = processorMeter()
  const sinceCollection = processorMeter()
  let left = 0
  const collectOnce = () => {
    sinceLook.without(() => {
      gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
      trimMalloc()
    })
    sinceCollection.share()
  }
  const collectAgain = () => {
    if (sinceCollection.share() < WORK_FROM) {
      collectOnce()
      left--
    }
    if (left > 0) setTimeout(collectAgain, COLLECTION_EVERY_MS).unref()
  }
  return {
    busy: sinceLook.share,
    held() {
      const { total_heap_size, external_memory } = getHeapStatistics()
      return total_heap_size + external_memory
    },
    collect() {
      collectOnce()
      if (left === 0) setTimeout(collectAgain, COLLECTION_EVERY_MS).unref()
      left = COLLECTIONS - 1
    },
  }
}

/** Processor time of this thread as a share of the time. */
function processorMeter() {
  const usedUs = () => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  let used = usedUs()
  let at = performance.now()
  return {
    /** Since the last call. */
    share() {
      const [usedBefore, before] = [used, at]
      used = usedUs()
      at = performance.now()
      return (used - usedBefore) / 1_000 / (at - before)
    },
    /** What this work takes does not count. */
    without(work: () => void) {
      const before = usedUs()
      work()
      used += usedUs() - before
    },
  }
}

/**
 * Returns the free pages of malloc to the system: glibc keeps those below a piece that is in use, 50 MB after a burst
 * (decision 271). Node has no call for it, but SQLite's loader of extensions calls a function of a library by name, with one
 * pointer first. malloc_trim(3) takes it as the bytes to keep at the very end of its heap, and keeps all there.
 */
function trimMalloc(): void {
  const database = new DatabaseSync(':memory:', { allowExtension: true })
  try {
    database.loadExtension('libc.so.6', 'malloc_trim')
  } catch {
    // It returns 1 if it returned pages, which SQLite takes for an error. Systems without glibc have no such library.
  } finally {
    database.close()
  }
}
