/** The request for a page of events, which is also the content of a page token. */
import type { FieldName } from './filter.ts'

/** A position in commit order. */
export interface CommitPosition {
  tx: number
  seq: number
}

/** A position between two events. */
export type Gap = { in: 'settled'; us: number; seq: number } | ({ in: 'since' } & CommitPosition)

export interface PageRequest {
  accountId: string
  domainName: string
  /** Microseconds, both inclusive; null: unbounded. */
  lowUs: number | null
  highUs: number | null
  ascending: boolean
  limit: number
  filters: [FieldName, string][]
  /** Where the page begins; null: at the end of the range. */
  gap: Gap | null
  up: boolean
  /** Where the area *since* begins; null: at the settled position of the request. */
  start: CommitPosition | null
}
