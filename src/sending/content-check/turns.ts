/**
 * Turns of checks: how many run at a time, and whose. An account may begin one while it has fewer than there are free, so
 * the more others check the fewer it has, and there is always one for the next: mail that keeps a scanner busy delays its
 * own account.
 *
 * What finds no turn comes back at a time of its own, at even intervals for each account: so what an account has waiting costs
 * the same, however much it is.
 */
import { PassingMap } from '../../base/flow/cache.ts'
import { SECOND_MS } from '../../base/time/durations.ts'

/** More than a scanner answers of one account; every look prepares a delivery. */
const LOOKS_PER_SECOND = 250
const LOOK_AGAIN_MIN_MS = SECOND_MS
/** Accounts whose next look is remembered; those whose line is over are forgotten first. */
const LINES_MAX = 10_000

interface Waiter {
  accountId: string
  /** `true`: the turn was taken. */
  end(isTaken: boolean): void
}

export class Turns {
  readonly #max: number
  #running = 0
  readonly #byAccount = new PassingMap<string, number>()
  readonly #waiters = new Set<Waiter>()
  /** When the next delivery of an account that has no turn is to look again, on the monotonic clock. */
  #lines = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** True: it has a turn, which must be given back. */
  take(accountId: string): boolean {
    if (!this.#mayBegin(accountId)) return false
    this.#begin(accountId)
    return true
  }

  /** As `take`, once there is a turn. False: there was none until `patience` resolved. */
  wait(accountId: string, patience: Promise<void>): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        accountId,
        end: (isTaken) => {
          this.#waiters.delete(waiter)
          resolve(isTaken)
        },
      }
      this.#waiters.add(waiter)
      void patience.then(() => waiter.end(false))
    })
  }

  giveBack(accountId: string): void {
    this.#running--
    const own = (this.#byAccount.get(accountId) ?? 1) - 1
    if (own > 0) this.#byAccount.set(accountId, own)
    else this.#byAccount.delete(accountId)
    for (const waiter of this.#waiters) {
      if (this.#running >= this.#max) return
      if (!this.#mayBegin(waiter.accountId)) continue
      this.#begin(waiter.accountId)
      waiter.end(true)
    }
  }

  /** Milliseconds until a delivery without a turn should look again. `now`: on the monotonic clock. */
  lookAgainIn(accountId: string, now: number): number {
    if (this.#lines.size >= LINES_MAX) this.#lines = new Map([...this.#lines].filter(([, at]) => at > now))
    const at = Math.max(this.#lines.get(accountId) ?? 0, now + LOOK_AGAIN_MIN_MS)
    this.#lines.set(accountId, at + SECOND_MS / LOOKS_PER_SECOND)
    return at - now
  }

  #mayBegin(accountId: string): boolean {
    return (this.#byAccount.get(accountId) ?? 0) < this.#max - this.#running
  }

  #begin(accountId: string): void {
    this.#running++
    this.#byAccount.set(accountId, (this.#byAccount.get(accountId) ?? 0) + 1)
  }
}
