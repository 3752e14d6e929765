/**
 * What the main thread and a signing thread (signers.ts) tell each other. Jobs and answers are flat: a clone of an object
 * carries the names of its members and looks them up again (decision 44).
 */
import type { SigningKey } from './sign.ts'

/**
 * A key crosses once and goes by its number from then on. A job: its id, `signedAt` in Unix milliseconds, the body, how
 * many keys, their numbers, and the header fields.
 */
export type SigningRequest = readonly ['key', number, SigningKey] | readonly ['forget-keys'] | SigningJob

export type SigningJob = readonly [
  id: number,
  signedAt: number,
  body: Uint8Array,
  keys: number,
  ...numbersAndHeaders: (number | string)[],
]

/** One behind the other: a job's id, how many DKIM-Signature fields it has, and these; or its id, FAILED, and why. */
export type SigningReplies = (number | string)[]

export const FAILED = -1
