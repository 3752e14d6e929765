/**
 * The work of matching patterns: instructions times characters, of which a millisecond of a processor does 5,000 in the
 * worst case. It is bounded for each mail, and other work runs in between.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * For the recipients of a mail, and once more for its headers: two seconds each. An account may have patterns of 100,000
 * instructions (service.ts), so that addresses of a hundred characters are within it.
 */
const WORK_MAX = 10_000_000
/** Without a break: 40 ms. A single match may take 100. */
const WORK_PER_TURN = 200_000
/** Work of any match, however short. */
const MATCH_COST = 100
/** Compiling a pattern, which is needed before some matches, takes as long as this many characters. */
const COMPILED_LENGTH = 60

/** The patterns of routes need more for this mail than it may take (routes-inbound.md section 2 rule 10). */
export class TooMuchWork extends Error {
  override name = 'TooMuchWork'
}

/** @param size of the pattern, or of so many @param length of the text */
export const matchCost = (size: number, length: number, patterns = 1): number =>
  size * length + patterns * MATCH_COST

/** Breaks in the work of a process: of all that wait, one goes on in each turn of the event loop. */
export class WorkTurns {
  /** Since the last turn. */
  #done = 0
  #last: Promise<unknown> = Promise.resolve()

  /** To be awaited before a match. */
  async before(size: number, length: number): Promise<void> {
    const cost = matchCost(size, length + COMPILED_LENGTH)
    if (this.#done > 0 && this.#done + cost > WORK_PER_TURN) {
      this.#last = this.#last.then(() => nextTurn())
      await this.#last
      this.#done = 0
    }
    this.#done += cost
  }
}

/** What may be done for the recipients, or for the headers, of one mail. */
export class PatternWork {
  readonly #turns: WorkTurns
  #left = WORK_MAX

  constructor(turns: WorkTurns) {
    this.#turns = turns
  }

  /** Takes work that will be done later. @throws TooMuchWork if less is left; nothing is taken then */
  reserve(cost: number): void {
    if (cost > this.#left) throw new TooMuchWork()
    this.#left -= cost
  }

  /** To be awaited before a match that has been reserved. */
  before(size: number, length: number): Promise<void> {
    return this.#turns.before(size, length)
  }
}
