/** What an application accepted, and what it read: `recorded/<application>.json`. */
import type { RecordedFields } from './posting.ts'

export interface Recorded {
  versions: Record<string, string>
  /** Receiving domain. */
  domain: string
  /** Of the account that is posted for. */
  signingKey: string
  posts: RecordedPost[]
}

export interface RecordedPost {
  sample: string
  path: string
  fields: RecordedFields
  /** The application's response. */
  status: number
  /** What the application printed about the mail. */
  read: Record<string, unknown>
}
