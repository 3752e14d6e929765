/**
 * Page tokens of logs: the whole query and a position in its list, compressed and authenticated, for 24 hours. A token
 * belongs to the account that it was made for.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { DAY_MS } from '../../base/time/durations.ts'
import { readToken, type Sealer, signToken } from '../../platform/store/secrets/sealing.ts'
import type { Gap, PageRequest } from '../events/search/page-request.ts'
import type { LogQuery } from './log-query.ts'
import type { LogTotals } from './log-totals.ts'

const PURPOSE = 'log-page-1'
/** Characters; 2 KiB by the contract. */
export const TOKEN_MAX = 2048
const VALID_MS = DAY_MS

export interface LogPosition {
  gap: Gap | null
  up: boolean
  /** Where the area *since* begins; null: at the settled position of the request. */
  start: PageRequest['start']
}

/** A page of a list of logs. */
export interface LogPageRequest extends LogPosition {
  accountId: string
  query: LogQuery
  /** Counted for the first page. */
  totals: LogTotals | null
}

export function sealLogPage(sealer: Pick<Sealer, 'mac'>, page: LogPageRequest, now: number): string {
  const text = JSON.stringify({ ...page, until: Math.floor(now + VALID_MS) })
  return signToken(sealer, PURPOSE, deflateRawSync(text))
}

/** Null for anything that `sealLogPage` did not write for this account within 24 hours. */
export function openLogPage(
  sealer: Pick<Sealer, 'mac'>,
  token: string,
  accountId: string,
  now: number,
): LogPageRequest | null {
  const body = readToken(sealer, PURPOSE, token, TOKEN_MAX)
  if (!body) return null
  const { until, ...page } = JSON.parse(inflateRawSync(body).toString()) as LogPageRequest & { until: number }
  return page.accountId === accountId && now <= until ? page : null
}
