/** What an answer of a blocklist changes (monitoring.md section 1). Pure. */
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { BlocklistCheckRow } from '../../platform/store/schema.ts'
import type { BlocklistAnswer } from '../../protocols/dns/blocklist.ts'

/** Four times a day. */
const EVERY_MS = 6 * HOUR_MS
/** After an answer that has to be confirmed, and one that says nothing. */
const AGAIN_MS = HOUR_MS
/** Not all in step. */
const JITTER = 0.2
/** Answers in a row after which something that was listed is not any more. */
const MISSES_TO_DELIST = 2
/** A listing that no answer has confirmed for this long has ended: the list may be gone. */
const UNCONFIRMED_MS = 7 * DAY_MS

export interface Judged {
  row: BlocklistCheckRow
  change: 'listed' | 'delisted' | null
}

/** `random`: 0 to 1. */
export function judgeAnswer(
  row: BlocklistCheckRow,
  answer: Pick<BlocklistAnswer, 'kind' | 'code'>,
  now: number,
  random: number,
): Judged {
  const next = (ms: number) => Math.floor(now + ms * (1 + JITTER * (random - 0.5)))
  const wasListed = row.listed_since !== null
  if (answer.kind === 'silent') {
    const isLost = wasListed && Number(row.listed_at) < now - UNCONFIRMED_MS
    return isLost
      ? { row: delisted(row, next(EVERY_MS)), change: 'delisted' }
      : { row: { ...row, next_at: next(AGAIN_MS) }, change: null }
  }
  const seen = { ...row, checked_at: now }
  if (answer.kind === 'listed')
    return {
      row: {
        ...seen,
        ...{ listed_since: wasListed ? row.listed_since : now, listed_at: now, code: answer.code },
        ...{ misses: 0, next_at: next(EVERY_MS) },
      },
      change: wasListed ? null : 'listed',
    }
  if (!wasListed) return { row: { ...seen, next_at: next(EVERY_MS) }, change: null }
  const misses = Number(row.misses) + 1
  return misses < MISSES_TO_DELIST
    ? { row: { ...seen, misses, next_at: next(AGAIN_MS) }, change: null }
    : { row: delisted(seen, next(EVERY_MS)), change: 'delisted' }
}

const delisted = (row: BlocklistCheckRow, next_at: number): BlocklistCheckRow => ({
  ...row,
  ...{ listed_since: null, listed_at: null, code: '', misses: 0, next_at },
})
