/** The request for a page of events, which is also the content of a page token. */
import { readToken, type Sealer, signToken } from '../../../platform/store/secrets/sealing.ts'
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

/** Authenticated, so that a token of another list or an older format is refused. */
const PURPOSE = 'event-page-1'
/** Characters; the server accepts path parts up to 4 KB. */
const TOKEN_MAX = 4000

/**
 * A page request in one path part of `A-Z a-z 0-9 - _`. It is authenticated, so that only tokens of this installation are
 * accepted. It does not expire: once retention has deleted the events, the page is empty.
 */
export const sealPage = (sealer: Pick<Sealer, 'mac'>, page: PageRequest): string =>
  signToken(sealer, PURPOSE, Buffer.from(JSON.stringify(page)))

/** Null for anything that `sealPage` did not write with this secret. */
export function openPage(sealer: Pick<Sealer, 'mac'>, token: string): PageRequest | null {
  const body = readToken(sealer, PURPOSE, token, TOKEN_MAX)
  return body && (JSON.parse(body.toString()) as PageRequest)
}
