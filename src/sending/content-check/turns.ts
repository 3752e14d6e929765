/**
 * Turns of checks: how many run at a time, and whose. An account may begin one while it has fewer than there are free, so
 * the more others check the fewer it has, and there is always one for the next: mail that keeps a scanner busy delays its
 * own account.
 */
import { PassingMap } from '../../base/flow/cache.ts'

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

  constructor(max: number) {
    this.#max = max
  }

  /** True: it has a turn, which must be given back. False: there was none until `patience` resolved. */
  take(accountId: string, patience: Promise<void>): Promise<boolean> | true {
    if (this.#mayBegin(accountId)) {
      this.#begin(accountId)
      return true
    }
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

  #mayBegin(accountId: string): boolean {
    return (this.#byAccount.get(accountId) ?? 0) < this.#max - this.#running
  }

  #begin(accountId: string): void {
    this.#running++
    this.#byAccount.set(accountId, (this.#byAccount.get(accountId) ?? 0) + 1)
  }
}
