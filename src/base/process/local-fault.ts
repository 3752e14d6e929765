import { InsufficientStorage, Unavailable } from './errors.ts'
import { shortageOf } from './shortage.ts'

/**
 * What this machine or its database lacked when an error arose, as a sentence without its full stop: it ends by itself or by
 * the operator's action. Null: the fault is of what was to be done.
 */
export function localFaultOf(error: unknown): string | null {
  if (error instanceof Unavailable) return 'the database cannot be reached'
  if (error instanceof InsufficientStorage) return 'there is no space left on this machine'
  return shortageOf(error)
}
