/** Messages between the main thread and a signing thread (signers.ts). */
import type { SigningKey } from '../sign.ts'

/** A key crosses once; jobs refer to it by its number. */
export type SigningRequest =
  | { kind: 'key'; number: number; key: SigningKey }
  | { kind: 'forget-keys' }
  | SigningJob

export interface SigningJob {
  kind: 'job'
  id: number
  /** Unix milliseconds. */
  signedAt: number
  body: Uint8Array
  keys: readonly number[]
  headers: readonly string[]
}

/** The DKIM-Signature fields of a job, or why there are none. */
export type SigningReply = { id: number; fields: string[] } | { id: number; failure: string }
