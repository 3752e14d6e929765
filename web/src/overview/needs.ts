/** What needs a hand now, from what the API says. Pure. */
import type { Override, Pause } from '../shared/orders-api.ts'
import type { Hit, Lane, SystemAlert, WebhookAttempt } from './overview-api.ts'

/** An endpoint whose newest attempt failed. */
export interface FailingWebhook {
  domain: string
  url: string
  /** The newest failed attempt of each event among those read. */
  attemptIds: string[]
  lastAnswer: string
  /** RFC 3339; of the oldest failed attempt that was read. */
  since: string
}

/** `attempts`: newest first. An endpoint that has taken something since its last failure is well. */
export function failingWebhooks(attempts: readonly WebhookAttempt[]): FailingWebhook[] {
  const seen = new Map<string, FailingWebhook | null>()
  const events = new Set<string>()
  for (const { id, event_id, domain, url, status, status_code, error, created_at } of attempts) {
    const key = `${domain} ${url}`
    const known = seen.get(key)
    const isNewest = !events.has(`${key} ${event_id}`)
    events.add(`${key} ${event_id}`)
    if (known === undefined) {
      const answer = status_code === undefined ? (error ?? '') : String(status_code)
      const failing = { domain, url, attemptIds: [id], lastAnswer: answer, since: created_at }
      seen.set(key, status === 'ok' ? null : failing)
    } else if (known !== null && status !== 'ok') {
      if (isNewest) known.attemptIds.push(id)
      known.since = created_at
    }
  }
  return [...seen.values()].filter((one) => one !== null)
}

const LATE_MS = 10 * 60_000 // a large mailing may be due for minutes without a fault

/**
 * Lanes that hold mail back, or whose mail is due for long; the one with the most mail first. Those of the sites in
 * `stopped` are left out: a retry sends nothing there.
 */
export function stuckLanes(
  lanes: readonly Lane[],
  nowMs: number,
  stopped: readonly StoppedSite[] = [],
): Lane[] {
  const isStopped = new Set(stopped.map(({ site }) => site))
  return lanes
    .filter(({ site, queued, backed_off_until, oldest_due }) => {
      if (isStopped.has(site)) return false
      const isBackedOff = backed_off_until !== null && Date.parse(backed_off_until) > nowMs
      const isLate = oldest_due !== null && nowMs - Date.parse(oldest_due) > LATE_MS
      return queued > 0 && (isBackedOff || isLate)
    })
    .sort((a, b) => b.queued - a.queued)
}

/** A site to which somebody has stopped the mail. */
export interface StoppedSite {
  site: string
  pause: Pause
  /** Messages of its lanes. */
  waiting: number
}

/** The newest order first; without those whose time is over. */
export function stoppedSites(
  overrides: readonly Override[],
  lanes: readonly Lane[],
  nowMs: number,
): StoppedSite[] {
  return overrides
    .flatMap(({ site, pause }) => {
      if (pause === null || (pause.until !== null && Date.parse(pause.until) <= nowMs)) return []
      const waiting = lanes.reduce((sum, lane) => sum + (lane.site === site ? lane.queued : 0), 0)
      return [{ site, pause, waiting }]
    })
    .sort((a, b) => Date.parse(b.pause.since) - Date.parse(a.pause.since))
}

export interface Alarm {
  key: string
  title: string
  advice: string
  since: string | undefined
}

/** The service's own alerts say what to do; those of the account say what was measured. */
export function alarmsOf(system: readonly SystemAlert[], hits: readonly Hit[]): Alarm[] {
  const own = system.map(({ name, dimension_value, advice, since }) => ({
    key: `${name} ${dimension_value}`,
    title: wordsOf(name.replace(/^sendwright:/, ''), dimension_value ?? undefined),
    advice,
    since,
  }))
  const others = hits
    .filter(({ triggered, name }) => triggered && !name.startsWith('sendwright:'))
    .map(({ name, metric, dimension_value, latest_value, created_at }) => ({
      key: `${name} ${dimension_value}`,
      title: wordsOf(name, dimension_value),
      advice: `${(metric ?? '').replaceAll('_', ' ')} is ${latest_value ?? 'unknown'}`,
      since: created_at,
    }))
  return [...own, ...others]
}

function wordsOf(name: string, value: string | undefined): string {
  const words = name.replaceAll('-', ' ')
  const title = words.charAt(0).toUpperCase() + words.slice(1)
  return value ? `${title}: ${value}` : title
}
