import { TooManyWaiting } from '../process/errors.ts'

/** Lets at most `openMax` tasks run at once; others wait in order, at most `waitingMax` of them. */
export type Gate = ReturnType<typeof createGate>

export function createGate(openMax: number, waitingMax: number) {
  let open = 0
  const waiting: ((entered: boolean) => void)[] = []
  return {
    /**
     * Resolves when the caller may run; false at once when too many wait already, and when `signal` aborts while the caller
     * waits, who then leaves the queue.
     */
    enter(signal?: AbortSignal): Promise<boolean> {
      if (signal?.aborted) return Promise.resolve(false)
      if (open < openMax) {
        open += 1
        return Promise.resolve(true)
      }
      if (waiting.length >= waitingMax) return Promise.resolve(false)
      return new Promise((resolve) => {
        const end = (entered: boolean) => {
          signal?.removeEventListener('abort', giveUp)
          resolve(entered)
        }
        const giveUp = () => {
          waiting.splice(waiting.indexOf(end), 1)
          end(false)
        }
        waiting.push(end)
        signal?.addEventListener('abort', giveUp)
      })
    },
    /** Must follow every `enter` that resolved to true. */
    leave(): void {
      const next = waiting.shift()
      if (next === undefined) open -= 1
      else next(true)
    },
  }
}

/**
 * One gate for all, and before it one for each key that has tasks: however many tasks of a key wait, at most `ownOpenMax`
 * of them are in the common queue, ahead of those of another key. `waitingMax` holds for each gate.
 */
export function createKeyedGate(max: {
  openMax: number
  ownOpenMax: number
  waitingMax: number
  /** Before the gate of a key. Default: `waitingMax`. */
  ownWaitingMax?: number
}) {
  const common = createGate(max.openMax, max.waitingMax)
  const ofKeys = new Map<string, { gate: Gate; users: number }>()

  async function within<T>(gate: Gate, signal: AbortSignal | undefined, task: () => Promise<T>) {
    if (!(await gate.enter(signal))) return null
    try {
      return await task()
    } finally {
      gate.leave()
    }
  }

  return {
    /** Null: `signal` aborted before the task began, or too many wait. */
    async run<T>(key: string, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T | null> {
      const own = ofKeys.get(key) ?? {
        gate: createGate(max.ownOpenMax, max.ownWaitingMax ?? max.waitingMax),
        users: 0,
      }
      ofKeys.set(key, own)
      own.users += 1
      try {
        return await within(own.gate, signal, () => within(common, signal, task))
      } finally {
        own.users -= 1
        if (own.users === 0) ofKeys.delete(key)
      }
    },
  }
}

/** Runs the tasks of one key one after the other. */
export class Turns {
  readonly #lanes = new Map<string, { last: Promise<unknown>; count: number }>()
  readonly #pendingMax: number

  /** Default: no limit, for callers whose connections limit it. */
  constructor(pendingMax = Number.POSITIVE_INFINITY) {
    this.#pendingMax = pendingMax
  }

  /** @throws TooManyWaiting when more than `pendingMax` tasks of that key run or wait */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(key) ?? { last: Promise.resolve(), count: 0 }
    if (lane.count > this.#pendingMax) throw new TooManyWaiting(1)
    this.#lanes.set(key, lane)
    lane.count += 1
    const ran = lane.last.then(task)
    lane.last = ran.catch(() => {}) // the caller's to handle
    try {
      return await ran
    } finally {
      lane.count -= 1
      if (lane.count === 0) this.#lanes.delete(key)
    }
  }
}
