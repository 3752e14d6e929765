/**
 * Which opens and clicks are unique: one per message, recipient and bot class within seven days, each such stretch
 * beginning with the one that counts (tags-stats.md section 5). The table holds those that an event yet to be counted
 * may belong to (`removal.ts`) under their digest, so that this hangs neither on how long events are kept nor on how often a mail is opened.
 */
import { createHash } from 'node:crypto'
import { DAY_MS } from '../events/retention.ts'
import { insertMany, type Statement, type Store } from '../store/store.ts'

export const UNIQUE_FOR_MS = 7 * DAY_MS

export interface Visit {
  accountId: string
  domainName: string
  event: 'opened' | 'clicked'
  messageId: string | null
  recipient: string | null
  /** As in `client-info.bot`; empty: a person. */
  bot: string
}

/** 128 bits: no two visits of one installation ever share them. */
export function visitKey({ accountId, domainName, event, messageId, recipient, bot }: Visit): string {
  const text = JSON.stringify([accountId, domainName, event, messageId, recipient, bot])
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')
}

export interface UniqueVisits {
  /** Whether this one counts; if so it is remembered. */
  isFirst(key: string, at: number): boolean
  /** The rows of those that counted, in the order of their keys. */
  statements(): Statement[]
}

/** What is known of these visits. Nothing is written but by `statements`. */
export async function uniqueVisits(store: Store, keys: readonly string[]): Promise<UniqueVisits> {
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
    isFirst(key, at) {
      const before = last.get(key)
      // One that comes behind a later one, as commits overtake each other, belongs to its seven days too.
      if (before !== undefined && at < before + UNIQUE_FOR_MS) return false
      last.set(key, at)
      counted.set(key, at)
      return true
    },
    statements() {
      const rows = [...counted].map(([visit, at]) => ({ visit, counted_at: at }))
      rows.sort((a, b) => (a.visit < b.visit ? -1 : 1))
      return insertMany('counted_visits', rows).map(({ sql, values }) => ({
        sql: `${sql} ON CONFLICT (visit) DO UPDATE SET counted_at = excluded.counted_at`,
        values,
      }))
    },
  }
}
