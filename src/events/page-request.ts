/** What a page of events is asked for with; the same goes into page tokens. */
import type { FieldName } from './filter.ts'

/** A place in the order of commits: everything below it is final. */
export interface CommitPlace {
  tx: number
  seq: number
}

export type Gap = { in: 'settled'; us: number; seq: number } | ({ in: 'since' } & CommitPlace)

/** What a page token holds. */
export interface PageRequest {
  accountId: string
  domainName: string
  /** Microseconds, both included; null: open. */
  lowUs: number | null
  highUs: number | null
  ascending: boolean
  limit: number
  filters: [FieldName, string][]
  /** Where to go from; null: the end of the range. */
  gap: Gap | null
  up: boolean
  /** Where *since* begins; null: at what is final now. */
  start: CommitPlace | null
}
