/** What the queries of `event-keys.ts` are asked for, and what they return. */
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'
import type { Plan } from './plan.ts'

export interface KeySearch {
  /** Of the list; `domainNames` null: all of these accounts. */
  scope: { accountIds: readonly string[]; domainNames: readonly string[] | null }
  request: Pick<PageRequest, 'ascending' | 'up'>
  plan: Plan
  /** Microseconds, both inclusive. */
  lowUs: number
  highUs: number
  /** Where the area *since* begins. */
  start: CommitPosition
}

/** One read of an area: `size` keys after `gap`. */
export type Scan = KeySearch & { gap: Gap | null; size: number }

export interface Key {
  seq: number
  tx: number
  timestamp_us: number
}
