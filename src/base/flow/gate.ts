/** Lets at most `openMax` tasks run at once; others wait in order, at most `waitingMax` of them. */
export interface Gate {
  /**
   * Resolves when the caller may run; false at once when too many wait already, and when `signal` aborts while the caller
   * waits, who then leaves the queue.
   */
  enter(signal?: AbortSignal): Promise<boolean>
  /** Must follow every `enter` that resolved to true. */
  leave(): void
}

export function createGate(openMax: number, waitingMax: number): Gate {
  let open = 0
  const waiting: ((entered: boolean) => void)[] = []
  return {
    enter(signal) {
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
    leave() {
      const next = waiting.shift()
      if (next === undefined) open -= 1
      else next(true)
    },
  }
}
