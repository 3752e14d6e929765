/**
 * The time that splitting forms may take between two turns of the event loop, shared by all requests: the chunks of
 * many connections arrive in the same turn, and a chunk of small parts takes up to 10 ms.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

const TURN_MS = 10

let spentMs = 0
let isResetDue = false

/** Runs `work` in the first turn that has time left; the time it takes counts for that turn. */
export async function inTurn<T>(work: () => T): Promise<T> {
  while (spentMs >= TURN_MS) await nextTurn()
  if (!isResetDue) {
    isResetDue = true
    setImmediate(reset)
  }
  const startedAt = performance.now()
  try {
    return work()
  } finally {
    spentMs += performance.now() - startedAt
  }
}

function reset(): void {
  spentMs = 0
  isResetDue = false
}
