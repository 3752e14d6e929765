/**
 * Logs failed requests. A shortage of the service (space, database, time) is one short line without a stack: the cause is
 * the same for thousands of callers and has its own log line. Our own faults are logged with their stack. Both are limited
 * per second, or the log would fill a disk that is nearly full.
 */
import type { Logger } from 'pino'
import type { Clock } from '../time/clock.ts'
import { ServiceError } from './errors.ts'

/** Lines per second, with and without a stack of about 4 KB. */
const STACKS_PER_SECOND = 5
const LINES_PER_SECOND = 20
/** Characters of an error's message in such a line. */
export const REASON_LENGTH_MAX = 200
/** Depth up to which causes are followed. */
const CAUSES_MAX = 8

export type FaultLog = ReturnType<typeof createFaultLog>

export function createFaultLog(clock: Clock) {
  const limits = { stacks: STACKS_PER_SECOND, lines: LINES_PER_SECOND }
  let second = Number.NEGATIVE_INFINITY
  let left = { ...limits }
  let leftOut = 0
  return {
    /** `facts` are members of the line: operation, status, client. */
    log(log: Logger, error: unknown, facts: Readonly<Record<string, unknown>>, message: string): void {
      const now = Math.floor(clock.monotonic() / 1000)
      if (now !== second) {
        if (leftOut > 0) log.error({ leftOut }, 'more faults than the log takes in a second')
        second = now
        left = { ...limits }
        leftOut = 0
      }
      const kind = error instanceof ServiceError ? 'lines' : 'stacks'
      if (left[kind] === 0) {
        leftOut++
        return
      }
      left[kind]--
      log.error(kind === 'stacks' ? { err: error, ...facts } : { ...facts, ...shortly(error) }, message)
    },
  }
}

/** Kind of the error, and message of its first cause. */
function shortly(error: unknown): { fault: string; code?: string; reason: string } {
  const { name } = error as Error
  let cause = error as Error & { code?: unknown }
  for (let depth = 0; depth < CAUSES_MAX && cause.cause instanceof Error; depth++) cause = cause.cause
  const code = typeof cause.code === 'string' ? { code: cause.code } : {}
  return { fault: name, ...code, reason: cause.message.slice(0, REASON_LENGTH_MAX) }
}
