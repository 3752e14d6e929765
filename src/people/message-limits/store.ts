/** The rows of message limits, and how many recipients an account has been accepted. */
import { type Kysely, sql, type Transaction } from 'kysely'
import type { MessageLimitRow, Schema } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { OF_DAYS, OF_HOURS } from '../../watching/metrics/storage/places.ts'
import type { LimitState } from './month.ts'

export const stateOf = (row: MessageLimitRow): LimitState => ({
  limit: row.monthly_limit,
  monthAt: Number(row.month_at),
  used: Number(row.used),
  stopped: Number(row.is_stopped) === 1,
  reachedPercent: Number(row.reached_percent),
  notifiedPercent: Number(row.notified_percent),
  recountAt: row.recount_at,
})

const rowOf = (accountId: string, state: LimitState): MessageLimitRow => ({
  account_id: accountId,
  monthly_limit: state.limit,
  month_at: state.monthAt,
  used: state.used,
  is_stopped: state.stopped ? 1 : 0,
  reached_percent: state.reachedPercent,
  notified_percent: state.notifiedPercent,
  recount_at: state.recountAt,
})

export async function readLimit(store: Store, accountId: string): Promise<LimitState | null> {
  const row = await store.db
    .selectFrom('message_limits')
    .selectAll()
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row ? stateOf(row) : null
}

/** The limits that an account's mail counts against: its own and its parent's, in the order of their locks. */
export async function limitsOver(store: Store, accountId: string): Promise<MessageLimitRow[]> {
  const parent = store.db.selectFrom('accounts').select('parent_id').where('id', '=', accountId)
  return store.db
    .selectFrom('message_limits')
    .selectAll()
    .where((eb) => eb.or([eb('account_id', '=', accountId), eb('account_id', '=', parent)]))
    .orderBy('account_id')
    .execute()
}

/**
 * Changes the row under its lock: counting mail waits, and counts on top of the result. Null removes the row.
 * `counted`: recipients accepted so far, as of the lock.
 */
export async function changeLimit(
  store: Store,
  accountId: string,
  monthAt: number,
  change: (before: LimitState | null, counted: () => Promise<Counted>) => Promise<LimitState | null>,
): Promise<void> {
  await store.transaction(async (tx) => {
    let query = tx.selectFrom('message_limits').selectAll().where('account_id', '=', accountId)
    if (store.kind === 'postgres') query = query.forUpdate()
    const row = await query.executeTakeFirst()
    const before = row ? stateOf(row) : null
    const after = await change(before, () => countAccepted(store, tx, accountId, monthAt))
    if (after === null) await tx.deleteFrom('message_limits').where('account_id', '=', accountId).execute()
    else if (after !== before) {
      const { account_id: _, ...columns } = rowOf(accountId, after)
      await tx
        .insertInto('message_limits')
        .values({ account_id: accountId, ...columns })
        .onConflict((conflict) => conflict.column('account_id').doUpdateSet(columns))
        .execute()
    }
  })
}

const USED = 'CASE WHEN month_at < ? THEN ? ELSE used + ? END'
const PERCENT = [100, 90, 80].map(
  (percent) => `WHEN (${USED}) * 100 >= monthly_limit * ${percent} THEN ${percent}`,
)

/** Fails its unit if the limit would be passed, or sending is stopped. */
const COUNT = `UPDATE message_limits SET
    used = ${USED},
    is_stopped = CASE WHEN (${USED}) >= monthly_limit THEN 1 ELSE 0 END,
    reached_percent = CASE ${PERCENT.join(' ')} ELSE 0 END,
    notified_percent = CASE WHEN month_at < ? THEN 0 ELSE notified_percent END,
    month_at = CASE WHEN month_at < ? THEN ? ELSE month_at END
  WHERE account_id = ? AND (${USED}) <= monthly_limit AND (month_at < ? OR is_stopped = 0)
  RETURNING *`

/** Adds recipients to a limit, with the transaction that accepts them. Its result is the row. */
export function countStatement(accountId: string, monthAt: number, count: number): Statement {
  const used = [monthAt, count, count]
  return {
    sql: COUNT,
    values: [
      ...[used, used, used, used, used].flat(),
      ...[monthAt, monthAt, monthAt, accountId],
      ...[...used, monthAt],
    ],
    expectRows: 1,
    lockKey: `message-limit ${accountId}`,
  }
}

export interface Counted {
  accepted: number
  /** False: more events wait for the counters than were read; `accepted` is too low. */
  complete: boolean
}

/** Events that the counters have not reached, read at a time: usually those of the last second. */
const FRESH_EVENTS_MAX = 10_000

const COUNTED = 'COALESCE(SUM(accepted_outgoing), 0) + COALESCE(SUM(accepted_listed), 0)'

function nextMonth(monthAt: number): number {
  const start = new Date(monthAt)
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1)
}

/**
 * Recipients that the account and its subaccounts were accepted in a month: counters, the events that the counters have
 * not reached, and what deleted domains have left. One statement, so that no event is missed or counted twice.
 */
async function countAccepted(
  store: Store,
  db: Kysely<Schema> | Transaction<Schema>,
  accountId: string,
  monthAt: number,
): Promise<Counted> {
  const cursor = (column: 'tx' | 'seq') =>
    sql`(SELECT ${sql.ref(column)} FROM event_followers WHERE name = 'counters')`
  const [after, order, find] =
    store.kind === 'sqlite'
      ? [sql`seq > ${cursor('seq')}`, sql`seq`, sql`instr`]
      : [sql`(tx, seq) > (${cursor('tx')}, ${cursor('seq')})`, sql`tx, seq`, sql`strpos`]
  const monthEnd = nextMonth(monthAt)
  const { rows } = await sql<{ accepted: number; fresh: number }>`
    WITH own AS MATERIALIZED (SELECT id FROM accounts WHERE id = ${accountId} OR parent_id = ${accountId}),
    fresh AS MATERIALIZED (
      SELECT account_id, event, timestamp_us,
        CASE WHEN event = 'accepted' THEN ${find}(payload_json, '"is-routed":true') ELSE 1 END AS is_other
      FROM events WHERE ${after} ORDER BY ${order} LIMIT ${FRESH_EVENTS_MAX + 1})
    SELECT
      (SELECT ${sql.raw(COUNTED)} FROM figure_scopes CROSS JOIN figures
        WHERE account_id IN (SELECT id FROM own) AND domain_name <> '' AND ${sql.raw(OF_DAYS)}
          AND start_at >= ${monthAt} AND start_at < ${monthEnd})
      + (SELECT ${sql.raw(COUNTED)} FROM figure_scopes CROSS JOIN figures
        WHERE account_id IN (SELECT id FROM own) AND domain_name <> '' AND ${sql.raw(OF_HOURS)}
          AND start_at >= ${monthAt} AND start_at < ${monthEnd})
      + (SELECT COALESCE(SUM(accepted), 0) FROM removed_usage
        WHERE account_id IN (SELECT id FROM own) AND month_at = ${monthAt})
      + (SELECT COUNT(*) FROM fresh WHERE is_other = 0 AND account_id IN (SELECT id FROM own)
        AND timestamp_us >= ${monthAt * 1000} AND timestamp_us < ${monthEnd * 1000}) AS accepted,
      (SELECT COUNT(*) FROM fresh) AS fresh`.execute(db)
  const [row] = rows
  return { accepted: Number(row?.accepted), complete: Number(row?.fresh) <= FRESH_EVENTS_MAX }
}

/** Ids of accounts whose count is due, the longest waiting first. */
export async function dueRecounts(store: Store, now: number, limit: number): Promise<string[]> {
  const rows = await store.db
    .selectFrom('message_limits')
    .select('account_id')
    .where('recount_at', '<=', Math.floor(now))
    .orderBy('recount_at')
    .limit(limit)
    .execute()
  return rows.map((row) => row.account_id)
}

/** Limits that mail is due about. */
export const dueNotices = (store: Store, limit: number): Promise<MessageLimitRow[]> =>
  store.db
    .selectFrom('message_limits')
    .selectAll()
    .whereRef('reached_percent', '>', 'notified_percent')
    .orderBy('account_id')
    .limit(limit)
    .execute()

/** Fails its unit if another process has sent the mail. */
export const notifiedStatement = (
  { account_id, notified_percent, month_at }: MessageLimitRow,
  percent: number,
): Statement => ({
  sql: `UPDATE message_limits SET notified_percent = ? WHERE account_id = ? AND notified_percent = ? AND month_at = ?`,
  values: [percent, account_id, notified_percent, month_at],
  expectRows: 1,
})

/** Keeps what a domain has sent in a month when its counters are removed. May run again. */
export async function keepUsageOf(
  store: Store,
  domain: { id: string; accountId: string; name: string },
  monthAt: number,
): Promise<void> {
  const of = (rows: string) => `SELECT ${COUNTED} FROM figure_scopes CROSS JOIN figures
    WHERE account_id = ? AND domain_name = ? AND ${rows} AND start_at >= ? AND start_at < ?`
  const values = [domain.accountId, domain.name, monthAt, nextMonth(monthAt)]
  await store.commit([
    {
      sql: `INSERT INTO removed_usage (account_id, domain_id, month_at, accepted)
        SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), (${of(OF_DAYS)}) + (${of(OF_HOURS)})
        WHERE EXISTS (SELECT 1 FROM figure_scopes WHERE account_id = ? AND domain_name = ?)
        ON CONFLICT (account_id, month_at, domain_id) DO UPDATE SET accepted =
          CASE WHEN excluded.accepted > removed_usage.accepted THEN excluded.accepted ELSE removed_usage.accepted END`,
      values: [
        ...[domain.accountId, domain.id, monthAt],
        ...values,
        ...values,
        ...[domain.accountId, domain.name],
      ],
    },
  ])
}

/** What a closed subaccount has sent counts for its parent until the month ends. May run again. */
export async function passUsageToParent(store: Store, accountId: string): Promise<void> {
  await store.commit([
    {
      sql: `INSERT INTO removed_usage (account_id, domain_id, month_at, accepted)
        SELECT parent_id, '', month_at, SUM(accepted) FROM removed_usage JOIN accounts ON accounts.id = account_id
        WHERE account_id = ? AND parent_id IS NOT NULL GROUP BY parent_id, month_at
        ON CONFLICT (account_id, month_at, domain_id) DO UPDATE SET accepted = removed_usage.accepted + excluded.accepted`,
      values: [accountId],
    },
    { sql: 'DELETE FROM removed_usage WHERE account_id = ?', values: [accountId] },
  ])
}

/** Removes what is of older months: usage of deleted domains, and stops without a limit. */
export async function removeOld(store: Store, monthAt: number): Promise<void> {
  await store.commit([
    { sql: 'DELETE FROM removed_usage WHERE month_at < ?', values: [monthAt] },
    { sql: 'DELETE FROM message_limits WHERE monthly_limit IS NULL AND month_at < ?', values: [monthAt] },
  ])
}
