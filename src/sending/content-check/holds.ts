/**
 * The messages that the content check keeps for a person, and what was decided on their contents (content-check.md).
 *
 * A decision is one row, whatever waits. Messages with it are carried out and removed afterwards, a portion at a time
 * (mail/queue/content-decisions.ts), as well as those that an attempt holds just then.
 */
import { pause } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { inPortions, PORTION } from '../../platform/store/account-rows.ts'
import type { Statement, Store } from '../../platform/store/store.ts'

/** On all messages of an account with the same content. */
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
/** A sender decides what waits for a review, and a person has to look at each: messages of an account that wait at a time. */
export const REVIEWED_AT_ONCE_MAX = 200
/** A decision is for messages of the same content that come later too. */
const DECISION_KEPT_MS = 7 * DAY_MS

const UNDECIDED = 'NOT EXISTS (SELECT 1 FROM content_decisions c WHERE c.digest = content_holds.digest)'
/** Accounts take turns, so that much held mail of one leaves others in view. */
const list = (isOfAccount: boolean) => `SELECT * FROM (
    SELECT digest, account_id, min(domain_name) AS domain_name, min(message_pk) AS message_pk,
      count(*) AS messages, min(reason) AS reason, min(held_at) AS held_at,
      row_number() OVER (PARTITION BY account_id ORDER BY min(held_at), digest) AS turn
    FROM content_holds WHERE ${UNDECIDED} ${isOfAccount ? 'AND account_id = ?' : ''} GROUP BY digest, account_id) AS held
  ORDER BY turn, held_at, digest LIMIT ? OFFSET ?`

/** In order; `waits` is 0 for messages whose last delivery was dropped, has ended, or is tried again. */
const HELD_AFTER = `SELECT message_pk, holds, CASE WHEN EXISTS (
    SELECT 1 FROM deliveries d WHERE d.message_pk = content_holds.message_pk
      AND d.reason = 'content-held' AND d.state IN ('scheduled', 'queued')) THEN 1 ELSE 0 END AS waits
  FROM content_holds WHERE message_pk > ? ORDER BY message_pk LIMIT ${PORTION}`
const REMOVE_DECISIONS = `DELETE FROM content_decisions WHERE digest IN
  (SELECT digest FROM content_decisions WHERE decided_at < ? LIMIT ${PORTION})`
const PAUSE_MS = 10

/** A message that is held, as it was when it was read. */
export interface HeldMessage {
  messagePk: string
  holds: number
}

/** Removes them, unless a delivery of theirs was held meanwhile. */
export const removeStatements = (held: readonly HeldMessage[]): Statement[] =>
  held.map(({ messagePk, holds }) => ({
    sql: 'DELETE FROM content_holds WHERE message_pk = ? AND holds = ?',
    values: [messagePk, holds],
  }))

export function createHolds(store: Store, clock: Clock) {
  return {
    /** Null: nobody has decided. */
    async decisionOn(digest: string): Promise<Decision | null> {
      const [row] = await store.read({
        sql: 'SELECT decision FROM content_decisions WHERE digest = ?',
        values: [digest],
      })
      return (row?.['decision'] ?? null) as Decision | null
    },
    /** Whether so many other messages of the account are held that this one has to wait for its review. */
    async isFull({ id, accountId }: { id: string; accountId: string }): Promise<boolean> {
      const [row] = await store.read({
        sql: `SELECT count(*) AS others FROM (SELECT 1 FROM content_holds WHERE account_id = ? AND message_pk <> ?
          LIMIT ${REVIEWED_AT_ONCE_MAX}) AS held`,
        values: [accountId, id],
      })
      return Number(row?.['others']) >= REVIEWED_AT_ONCE_MAX
    },
    /** For the transaction that holds a delivery. */
    holdStatement: (
      message: { id: string; accountId: string; domainName: string },
      { digest, reason }: { digest: string; reason: string },
      now: number,
    ): Statement => ({
      sql: `INSERT INTO content_holds (message_pk, digest, account_id, domain_name, reason, held_at)
        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (message_pk) DO UPDATE SET holds = content_holds.holds + 1`,
      values: [message.id, digest, message.accountId, message.domainName, reason, Math.floor(now)],
    }),
    /** Contents that wait for a decision: the oldest of each account, then the second of each ... `accountId` null: of all. */
    async list(accountId: string | null, limit: number, skip = 0): Promise<HeldContent[]> {
      const of = accountId === null ? [] : [accountId]
      const rows = await store.read({ sql: list(accountId !== null), values: [...of, limit, skip] })
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
        sql: `SELECT count(*) AS messages, min(held_at) AS since FROM content_holds WHERE ${UNDECIDED}`,
        values: [],
      })
      const messages = Number(row?.['messages'] ?? 0)
      return messages === 0 ? null : { messages, since: Number(row?.['since']) }
    },
    /** Decides on all messages of a content, now and for a week. Returns how many wait; 0: none that is not decided on. */
    async decide(digest: string, decision: Decision, now: number): Promise<number> {
      const [found] = await store.read({
        sql: 'SELECT count(*) AS messages FROM content_holds WHERE digest = ?',
        values: [digest],
      })
      const [result] = await store.commit([
        {
          sql: `INSERT INTO content_decisions (digest, account_id, decision, decided_at)
            SELECT digest, account_id, ?, ? FROM content_holds WHERE digest = ? LIMIT 1 ON CONFLICT (digest) DO NOTHING`,
          values: [decision, Math.floor(now), digest],
        },
      ])
      return result?.affected === 1 ? Number(found?.['messages']) : 0
    },
    /** Removes what nobody needs any more. */
    async removeOld(signal: AbortSignal): Promise<void> {
      const before = Math.floor(clock.now() - DECISION_KEPT_MS)
      await inPortions({ store, clock }, REMOVE_DECISIONS, [before], signal)
      for (let after = ''; ; ) {
        const rows = await store.read({ sql: HELD_AFTER, values: [after] })
        const unused = rows.filter((row) => Number(row['waits']) === 0)
        await store.commit(
          removeStatements(
            unused.map((row) => ({ messagePk: String(row['message_pk']), holds: Number(row['holds']) })),
          ),
        )
        if (rows.length < PORTION) return
        after = String(rows.at(-1)?.['message_pk'])
        await pause(clock, PAUSE_MS, signal)
        signal.throwIfAborted()
      }
    },
  }
}
