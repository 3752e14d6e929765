/** Counts what is in progress, so that it can be awaited; a set of promises would cost two more for each delivery. */
export class InFlight {
  private count = 0
  private waiting: (() => void)[] = []

  begin(): void {
    this.count++
  }

  end(): void {
    this.count--
    if (this.count > 0 || this.waiting.length === 0) return
    const resolvers = this.waiting
    this.waiting = []
    for (const resolve of resolvers) resolve()
  }

  /** Resolves when nothing is in progress. */
  async ended(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => this.waiting.push(resolve))
  }
}
