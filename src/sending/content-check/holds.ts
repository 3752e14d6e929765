/** The messages that the content check keeps for a person, and what was decided (content-check.md). */
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Statement, Store } from '../../platform/store/store.ts'

/** For all messages of an account with the same content. */
export type Decision = 'released' | 'dropped'

export interface HeldContent {
  digest: string
  accountId: string
  domainName: string
  /** One of its messages. */
  messagePk: string
  messages: number
  reason: string
  /** Unix milliseconds. */
  heldAt: number
}

export type Holds = ReturnType<typeof createHolds>

/** A delivery that nobody decides on ends after this time, unless the sender has set its window. */
export const HELD_MS_MAX = 7 * DAY_MS
/** A decision is for messages of the same content that come later too. */
const DECISION_KEPT_MS = 7 * DAY_MS

const LIST = `SELECT digest, account_id, min(domain_name) AS domain_name, min(message_pk) AS message_pk,
    count(*) AS messages, min(reason) AS reason, min(held_at) AS held_at
  FROM content_holds WHERE decision IS NULL`
const OLDEST_FIRST = 'GROUP BY digest, account_id ORDER BY min(held_at), digest LIMIT ?'

/** A message of which nothing waits any more: it was dropped, its window has ended, or it is tried again. */
const REMOVE_UNUSED = `DELETE FROM content_holds WHERE decision IS NULL AND held_at < ? AND NOT EXISTS (
  SELECT 1 FROM deliveries d WHERE d.message_pk = content_holds.message_pk
    AND d.reason = 'content-held' AND d.state IN ('scheduled', 'queued'))`

export function createHolds(store: Store) {
  return {
    /** The newest decision on a content; null: nobody has decided. */
    async decisionOn(digest: string): Promise<Decision | null> {
      const [row] = await store.read({
        sql: `SELECT decision FROM content_holds WHERE digest = ? AND decision IS NOT NULL
          ORDER BY decided_at DESC LIMIT 1`,
        values: [digest],
      })
      return (row?.['decision'] ?? null) as Decision | null
    },
    /** For the transaction that holds a delivery. */
    holdStatement: (
      message: { id: string; accountId: string; domainName: string },
      { digest, reason }: { digest: string; reason: string },
      now: number,
    ): Statement => ({
      sql: `INSERT INTO content_holds (message_pk, digest, account_id, domain_name, reason, held_at)
        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (message_pk) DO NOTHING`,
      values: [message.id, digest, message.accountId, message.domainName, reason, Math.floor(now)],
    }),
    /** Contents that wait for a decision, the oldest first. `accountId` null: of all accounts. */
    async list(accountId: string | null, limit: number): Promise<HeldContent[]> {
      const rows = await store.read(
        accountId === null
          ? { sql: `${LIST} ${OLDEST_FIRST}`, values: [limit] }
          : { sql: `${LIST} AND account_id = ? ${OLDEST_FIRST}`, values: [accountId, limit] },
      )
      return rows.map((row) => ({
        digest: String(row['digest']),
        accountId: String(row['account_id']),
        domainName: String(row['domain_name']),
        messagePk: String(row['message_pk']),
        messages: Number(row['messages']),
        reason: String(row['reason']),
        heldAt: Number(row['held_at']),
      }))
    },
    /** How many messages wait, and since when the oldest; null: none does. */
    async waiting(): Promise<{ messages: number; since: number } | null> {
      const [row] = await store.read({
        sql: 'SELECT count(*) AS messages, min(held_at) AS since FROM content_holds WHERE decision IS NULL',
        values: [],
      })
      const messages = Number(row?.['messages'] ?? 0)
      return messages === 0 ? null : { messages, since: Number(row?.['since']) }
    },
    /** Decides on all messages of a content. Returns how many waited. */
    async decide(digest: string, decision: Decision, now: number): Promise<number> {
      const [result] = await store.commit([
        {
          sql: 'UPDATE content_holds SET decision = ?, decided_at = ? WHERE digest = ? AND decision IS NULL',
          values: [decision, Math.floor(now), digest],
        },
      ])
      return result?.affected ?? 0
    },
    /** Removes what nobody needs any more. */
    async removeOld(now: number): Promise<void> {
      await store.commit([
        {
          sql: 'DELETE FROM content_holds WHERE decided_at < ?',
          values: [Math.floor(now - DECISION_KEPT_MS)],
        },
        { sql: REMOVE_UNUSED, values: [Math.floor(now - 10 * MINUTE_MS)] },
      ])
    },
  }
}
