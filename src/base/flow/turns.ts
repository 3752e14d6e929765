import { TooManyWaiting } from '../process/errors.ts'

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
