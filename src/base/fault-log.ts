/**
 * The log of what could not be done for a caller. What the service is short of (no space, no database, no time) is told
 * in one short line without a stack: the cause is the same for each of thousands of callers, and its own log line tells
 * it. A fault of our own comes with its stack. Both are bounded per second, or the log of a full disk would fill it.
 */
import type { Logger } from 'pino'
import type { Clock } from './clock.ts'
import { ServiceError } from './errors.ts'

/** Lines in a second, with and without a stack of some 4 KB. */
const STACKS_PER_SECOND = 5
const LINES_PER_SECOND = 20
/** Of what an error says, in such a line. */
export const REASON_LENGTH_MAX = 200
/** Errors within errors that are looked at for the first cause. */
const CAUSES_MAX = 8

export interface FaultLog {
  /** `facts` go into the line: which operation, which status, which client. */
  log(log: Logger, error: unknown, facts: Readonly<Record<string, unknown>>, message: string): void
}

export function createFaultLog(clock: Clock): FaultLog {
  const limits = { stacks: STACKS_PER_SECOND, lines: LINES_PER_SECOND }
  let second = Number.NEGATIVE_INFINITY
  let left = { ...limits }
  let leftOut = 0
  return {
    log(log, error, facts, message) {
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

/** What kind of error, and what the first cause of it said. */
function shortly(error: unknown): { fault: string; code?: string; reason: string } {
  const { name } = error as Error
  let cause = error as Error & { code?: unknown }
  for (let depth = 0; depth < CAUSES_MAX && cause.cause instanceof Error; depth++) cause = cause.cause
  const code = typeof cause.code === 'string' ? { code: cause.code } : {}
  return { fault: name, ...code, reason: cause.message.slice(0, REASON_LENGTH_MAX) }
}
