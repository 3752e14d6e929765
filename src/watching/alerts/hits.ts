/** The rows of hits, and the one transaction in which a check changes them and writes their notices. */
import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { removeRows } from '../../platform/store/commits.ts'
import type { AlertHitRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { familyOf } from './alert.ts'

/** What the hits of a source have in common. */
interface HitSource {
  /** The id of an alert, or the name of a check. */
  id: string
  accountId: string
  name: string
  metric: string
  comparator: string
  /** Decimal text. */
  limit: string
  /** Empty: the check has only one value. */
  dimension: string
}

export type NoticeKind = 'triggered' | 'resolved'

/** Statements of the notices about a hit, for the transaction that changes it. */
export type NoticesOf = (hit: AlertHitRow, kind: NoticeKind) => Promise<Statement[]>

export type Hits = ReturnType<typeof createHits>

interface ApplyParts {
  /** Unix milliseconds, as all times here. */
  now: number
  also: readonly Statement[]
  notices: NoticesOf
}

/** Rule 14. */
const LIST_MAX = 1_000
/** Rule 6. */
const ENDED_KEEP_MS = 7 * DAY_MS

export function createHits(store: Store) {
  const { db } = store
  return {
    /** Newest first, of the account and its subaccounts; at most LIST_MAX. */
    async list(accountId: string): Promise<{ hits: AlertHitRow[]; total: number }> {
      const hits = await db
        .selectFrom('alert_hits')
        .selectAll()
        .where('account_id', 'in', familyOf(db, accountId))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(LIST_MAX)
        .execute()
      return { hits, total: hits.length }
    },

    /** Triggered ones whose source begins with the prefix, oldest first. */
    triggered: (accountId: string, sourcePrefix: string): Promise<AlertHitRow[]> =>
      db
        .selectFrom('alert_hits')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('source', '>=', sourcePrefix)
        .where('source', '<', `${sourcePrefix}\uffff`)
        .where('triggered', '=', 1)
        .orderBy('created_at')
        .orderBy('id')
        .limit(LIST_MAX)
        .execute(),

    /**
     * Commits what the findings change, with `also`; resolves to the changes.
     * @throws StaleWrite when another process changed the hits meanwhile, or a statement of `also` is stale
     */
    async apply(
      source: HitSource,
      findings: readonly Finding[],
      { now, also, notices }: ApplyParts,
    ): Promise<HitChanges> {
      const open = await db
        .selectFrom('alert_hits')
        .selectAll()
        .where('source', '=', source.id)
        .where('triggered', '=', 1)
        .execute()
      const changes = judge(open, findings)
      const opened = changes.opened.map((finding) => newHit(source, finding, now))
      const ended = changes.ended.map((hit) => endedHit(hit, now))
      const unit: Statement[] = [...also]
      for (const hit of opened) unit.push(openStatement(hit), ...(await notices(hit, 'triggered')))
      for (const { hit, finding } of changes.continued)
        unit.push(continueStatement(source, hit, finding, now))
      for (const hit of changes.missed) unit.push(missStatement(hit, now))
      for (const hit of ended) unit.push(endStatement(hit), ...(await notices(hit, 'resolved')))
      if (unit.length > 0) await store.commit(unit)
      return changes
    },

    /** Removes ended hits whose time is over. */
    removeExpired(now: number, signal: AbortSignal): Promise<void> {
      const over = { where: 'expires_at IS NOT NULL AND expires_at <= ?', values: [now] }
      return removeRows(store, { from: 'alert_hits', key: 'id', ...over }, signal)
    },
  }
}

function newHit(source: HitSource, { value, figure, since, advice }: Finding, now: number): AlertHitRow {
  return {
    id: newId(now),
    account_id: source.accountId,
    source: source.id,
    name: source.name,
    metric: source.metric,
    comparator: source.comparator,
    limit_text: source.limit,
    dimension: source.dimension,
    dimension_value: value,
    latest_value: figure,
    advice: advice ?? '',
    triggered: 1,
    misses: 0,
    since_at: Math.floor(since ?? now),
    created_at: now,
    updated_at: now,
    expires_at: null,
  }
}

const endedHit = (hit: AlertHitRow, now: number): AlertHitRow => ({
  ...hit,
  triggered: 0,
  updated_at: now,
  expires_at: now + ENDED_KEEP_MS,
})

/** If two processes open a hit at the same time, one gets StaleWrite. */
function openStatement(hit: AlertHitRow): Statement {
  const { sql, values } = insert('alert_hits', hit)
  return { sql: `${sql} ON CONFLICT DO NOTHING`, values, expectRows: 1 }
}

/** The definition too: the owner may have changed it. */
const continueStatement = (
  source: HitSource,
  hit: AlertHitRow,
  { figure, advice }: Finding,
  now: number,
): Statement => ({
  sql: `UPDATE alert_hits SET name = ?, metric = ?, comparator = ?, limit_text = ?, latest_value = ?, advice = ?,
    misses = 0, updated_at = ? WHERE id = ? AND triggered = 1`,
  values: [
    ...[source.name, source.metric, source.comparator, source.limit, figure],
    ...[advice ?? hit.advice, now, hit.id],
  ],
  expectRows: 1,
})

const missStatement = (hit: AlertHitRow, now: number): Statement => ({
  sql: 'UPDATE alert_hits SET misses = ?, updated_at = ? WHERE id = ? AND triggered = 1',
  values: [hit.misses + 1, now, hit.id],
  expectRows: 1,
})

const endStatement = (hit: AlertHitRow): Statement => ({
  sql: 'UPDATE alert_hits SET triggered = 0, updated_at = ?, expires_at = ? WHERE id = ? AND triggered = 1',
  values: [hit.updated_at, hit.expires_at, hit.id],
  expectRows: 1,
})

/** A dimension value for which the condition is true. */
export interface Finding {
  /** Value of the dimension; empty: the check has only one. */
  value: string
  /** Decimal text. */
  figure: string
  /** Unix milliseconds since when it has been true; undefined: this check was the first to see it. */
  since?: number
  /** What is wrong and what to do. */
  advice?: string
}

export interface HitChanges {
  opened: Finding[]
  continued: { hit: AlertHitRow; finding: Finding }[]
  /** False for the first time: the hit stays. */
  missed: AlertHitRow[]
  ended: AlertHitRow[]
  /** True values without a hit, as there are too many. */
  skipped: number
}

const MISSES_TO_END = 2
/** Open hits of one source: each is a notice on every channel. */
const OPEN_HITS_MAX = 100

/**
 * What a check changes about the hits of one source: an alert, or a check of the service itself. A condition that becomes
 * true makes a hit. While it lasts the hit is updated. After two checks in a row for which it was false the hit ends
 * (alerts.md rules 5 and 6). `open`: the hits of the source that are triggered. The largest figures come first in `found`.
 */
export function judge(open: readonly AlertHitRow[], found: readonly Finding[]): HitChanges {
  const byValue = new Map(found.map((finding) => [finding.value, finding]))
  const changes: HitChanges = { opened: [], continued: [], missed: [], ended: [], skipped: 0 }
  for (const hit of open) {
    const finding = byValue.get(hit.dimension_value)
    if (finding) changes.continued.push({ hit, finding })
    else if (hit.misses + 1 < MISSES_TO_END) changes.missed.push(hit)
    else changes.ended.push(hit)
  }
  const known = new Set(open.map((hit) => hit.dimension_value))
  const fresh = [...byValue.values()].filter(({ value }) => !known.has(value))
  changes.opened = fresh.slice(0, Math.max(0, OPEN_HITS_MAX - open.length))
  changes.skipped = fresh.length - changes.opened.length
  return changes
}
