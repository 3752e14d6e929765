import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'

/** Work that is done again and again, one run at a time. */
export interface Ticker {
  start(): void
  /** Runs now, or once more after the run under way. Does nothing before `start` and after `stop`. */
  wake(): void
  /** Waits for the run under way. */
  stop(): Promise<void>
}

/** Runs `work` at the start and then `everyMs` after the end of each run. A run that throws is logged. */
export function createTicker(options: {
  name: string
  everyMs: number
  clock: Clock
  log: Logger
  work: (signal: AbortSignal) => Promise<void>
}): Ticker {
  const { name, everyMs, clock, log, work } = options
  const stopping = new AbortController()
  let timer: Timer | null = null
  let running: Promise<void> | null = null
  let again = false
  let started = false

  async function run(): Promise<void> {
    do {
      again = false
      await work(stopping.signal).catch((error: unknown) => {
        if (!stopping.signal.aborted) log.error({ err: error, job: name }, 'background work failed')
      })
    } while (again && !stopping.signal.aborted)
    running = null
    if (!stopping.signal.aborted) timer = clock.setTimer(everyMs, wake)
  }
  function wake(): void {
    if (!started || stopping.signal.aborted) return
    if (running) {
      again = true
      return
    }
    timer?.cancel()
    running = run()
  }
  return {
    start() {
      started = true
      wake()
    },
    wake,
    async stop() {
      stopping.abort(new Error(`${name} is stopping`))
      timer?.cancel()
      await running
    },
  }
}

/** Of failures in a row only the first one is thrown, and so logged: not each of them until it works again. */
export function failingOnce(work: (signal: AbortSignal) => Promise<void>): typeof work {
  let failing = false
  return async (signal) => {
    try {
      await work(signal)
      failing = false
    } catch (error) {
      const known = failing
      failing = true
      if (!known) throw error
    }
  }
}
