/**
 * Judges all alerts every five minutes (alerts.md rules 3 to 8, 15): rates over the period by the value of the dimension.
 * Alerts that ask for the same figures share a query.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { removeRows } from '../../platform/store/commits.ts'
import { StaleWrite, type Statement } from '../../platform/store/store.ts'
import { type FigureQuery, type FigureRow, type Figures, rateOf, volumeOf } from '../metrics/figures.ts'
import { type Alert, alertView, type Comparator, periodMs } from './alert.ts'
import type { AlertStore } from './alert-store.ts'
import type { Finding, Hits } from './hits.ts'
import { METRIC_ADVICE, type NoticeParts, noticesAbout } from './notices.ts'

interface ThresholdParts extends NoticeParts, Pick<Core, 'store' | 'clock' | 'log' | 'accounts'> {
  alerts: AlertStore
  hits: Hits
  figures: Figures
  /** Messages that a rate must be of to be judged (rule 4). */
  minVolume: number
  /** Notices were written. */
  changed(): void
}

/** Rule 3. */
const EVERY_MS = 5 * MINUTE_MS
/** Alerts read at a time: those of an account follow each other, so most share their queries. */
const PAGE = 200
/** Undelivered notices are removed after this, if their POST was dropped. */
const NOTICE_KEEP_MS = 14 * DAY_MS

export function createThresholdChecks(parts: ThresholdParts): Job {
  const { store, clock, log, alerts, hits } = parts

  async function work(signal: AbortSignal): Promise<void> {
    const failures: unknown[] = []
    for (let after: Alert | null = null; ; ) {
      const page: Alert[] = await alerts.page(after, PAGE)
      const figures = sharedFigures(parts.figures)
      for (const alert of page) {
        signal.throwIfAborted()
        await check(alert, figures).catch((error: unknown) => {
          log.error({ err: error, alert: alert.id }, 'an alert cannot be checked')
          failures.push(error)
        })
      }
      after = page.at(-1) ?? null
      if (page.length < PAGE) break
    }
    await removeOld(signal)
    if (failures.length > 0) throw failures[0]
  }

  async function check(alert: Alert, figures: Figures): Promise<void> {
    const account = await parts.accounts.byId(alert.accountId)
    if (account === null || account.status === 'closed') return
    const now = Math.floor(clock.now())
    const query = await queryOf(parts.accounts, alert, now)
    const findings = findingsOf(alert, await figures.read(query), parts.minVolume)
    const view = alertView({ ...alert, lastCheckedAt: now }, account.parentId)
    const about = {
      accountId: alert.accountId,
      parentId: account.parentId,
      channels: alert.channels,
      alert: view,
      advice: () => METRIC_ADVICE[alert.metric],
    }
    try {
      const changes = await hits.apply(alert, findings, {
        now,
        also: [checkedStatement(alert, now)],
        notices: noticesAbout(parts, about),
      })
      if (changes.skipped > 0)
        log.warn({ alert: alert.id, left: changes.skipped }, 'an alert has too many hits: some are left out')
      if (changes.opened.length + changes.ended.length > 0) parts.changed()
    } catch (error) {
      // Changed or deleted meanwhile: the next check sees its new form.
      if (!(error instanceof StaleWrite)) throw error
    }
  }

  async function removeOld(signal: AbortSignal): Promise<void> {
    const now = Math.floor(clock.now())
    await hits.removeExpired(now, signal)
    const old = { where: 'created_at <= ? ORDER BY created_at', values: [now - NOTICE_KEEP_MS] }
    await removeRows(store, { from: 'alert_notices', key: 'id', ...old }, signal)
  }

  return createJob({ name: 'alert-checks', everyMs: EVERY_MS, scope: 'database', work })
}

/** Fails when the alert was changed since it was read. */
const checkedStatement = ({ id, updatedAt }: Alert, now: number): Statement => ({
  sql: 'UPDATE alerts SET last_checked_at = ? WHERE id = ? AND updated_at = ?',
  values: [now, id, updatedAt],
  expectRows: 1,
})

/** Equal queries are made once. */
function sharedFigures(figures: Figures): Figures {
  const known = new Map<string, Promise<FigureRow[]>>()
  return {
    read(query) {
      const key = JSON.stringify(query)
      const rows = known.get(key) ?? figures.read(query)
      known.set(key, rows)
      return rows
    },
  }
}

/**
 * Counters are per hour, so the range begins with the hour that the period begins in. The whole hours make queries of
 * one check equal. Subaccounts count only where the alert speaks of them.
 */
async function queryOf(accounts: AccountDirectory, alert: Alert, now: number): Promise<FigureQuery> {
  const withChildren =
    alert.dimension === 'subaccount' || alert.filters.some(({ dimension }) => dimension === 'subaccount')
  const children = withChildren ? await accounts.childrenOf(alert.accountId) : []
  return {
    accountIds: [alert.accountId, ...children],
    startMs: Math.floor((now - periodMs(alert.period)) / HOUR_MS) * HOUR_MS,
    endMs: Math.floor(now / HOUR_MS) * HOUR_MS + HOUR_MS,
    resolution: 'hour',
    dimensions: [alert.dimension],
    filter: alert.filters.map(({ dimension, comparator, values }) => ({
      attribute: dimension,
      comparator,
      values,
    })),
  }
}

/** The values for which the alert is true, those furthest beyond its limit first. */
function findingsOf(alert: Alert, rows: readonly FigureRow[], minVolume: number): Finding[] {
  const judged = rows
    .filter(({ counts }) => volumeOf(alert.metric, counts) >= minVolume)
    .map(({ values, counts }) => ({ value: values[0] ?? '', rate: rateOf(alert.metric, counts) }))
    .filter(({ rate }) => holds(rate, alert.comparator, alert.limit))
  const distance = (rate: number) => Math.abs(rate - Number(alert.limit))
  judged.sort((one, other) => distance(other.rate) - distance(one.rate))
  return judged.map(({ value, rate }) => ({ value, figure: decimalText(rate) }))
}

const DECIMALS = 1e6
const DECIMALS_OF_EQUAL = 1e4

const rounded = (value: number, decimals: number) => Math.round(value * decimals) / decimals

/** Decimal text with up to six decimals. */
export const decimalText = (value: number): string => String(rounded(value, DECIMALS))

/** Whether `value comparator limit` holds; `limit` is decimal text. */
export function holds(value: number, comparator: Comparator, limit: string): boolean {
  const [left, right] = [rounded(value, DECIMALS), rounded(Number(limit), DECIMALS)]
  switch (comparator) {
    case '=':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    case '>=':
      return left >= right
  }
}

const isEqual = (left: number, right: number) =>
  rounded(left, DECIMALS_OF_EQUAL) === rounded(right, DECIMALS_OF_EQUAL)
