/**
 * Decides which opens and clicks are unique: one per message, recipient and bot class within seven days, starting with the
 * one that counts (tags-stats.md section 5). The table holds the digests of counted visits for as long as an uncounted
 * event may fall into their seven days (`removal.ts`). So the result depends neither on the retention of events nor on how
 * often a mail is opened.
 */
import { createHash } from 'node:crypto'
import { DAY_MS } from '../../base/time/durations.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'

export const UNIQUE_FOR_MS = 7 * DAY_MS

export interface Visit {
  accountId: string
  domainName: string
  event: 'opened' | 'clicked'
  messageId: string | null
  recipient: string | null
  /** The event's `client-info.bot`; empty: a person. */
  bot: string
}

/** A digest of 128 bits, which makes collisions within an installation impossible in practice. */
export function visitKey({ accountId, domainName, event, messageId, recipient, bot }: Visit): string {
  const text = JSON.stringify([accountId, domainName, event, messageId, recipient, bot])
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')
}

/** Reads the stored visits with these keys; writes nothing itself. */
export async function uniqueVisits(store: Store, keys: readonly string[]) {
  const last = new Map<string, number>()
  const counted = new Map<string, number>()
  if (keys.length > 0) {
    const rows = await store.db
      .selectFrom('counted_visits')
      .selectAll()
      .where('visit', 'in', [...new Set(keys)])
      .execute()
    for (const row of rows) last.set(row.visit, Number(row.counted_at))
  }
  return {
    /** Whether this visit counts; if so it is recorded. */
    isFirst(key: string, at: number): boolean {
      const before = last.get(key)
      // Events are not in order of time: one slightly earlier than the recorded visit belongs to its seven days too.
      if (before !== undefined && at < before + UNIQUE_FOR_MS) return false
      last.set(key, at)
      counted.set(key, at)
      return true
    },
    /** The rows of the visits that counted, in the order of their keys. */
    statements(): Statement[] {
      const rows = [...counted].map(([visit, at]) => ({ visit, counted_at: at }))
      rows.sort((a, b) => (a.visit < b.visit ? -1 : 1))
      return insertMany('counted_visits', rows).map(({ sql, values }) => ({
        sql: `${sql} ON CONFLICT (visit) DO UPDATE SET counted_at = excluded.counted_at`,
        values,
      }))
    },
  }
}
