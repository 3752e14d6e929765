/**
 * The service's own checks: what the operator has to know of (alerts.md section 5). Each reads one figure, and becomes a
 * job. Its hits are in the list of the first account, with the same notices as other alerts.
 */

import type { Of } from '../../../base/shape.ts'
import type { Core } from '../../../core.ts'
import { type Operation, operation } from '../../../platform/http/operation.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { AlertHitRow } from '../../../platform/store/schema.ts'
import { StaleWrite } from '../../../platform/store/store.ts'
import { type Comparator, hitView, OWN_PREFIX } from '../alert.ts'
import type { Finding, Hits, NoticeKind } from '../hits.ts'
import { type NoticeParts, noticesAbout } from '../notices.ts'
import { READ, TAG } from '../routes.ts'
import type { EventType } from '../settings.ts'
import { CHANNELS, type OWN_CHECK_VIEW, OWN_CHECKS } from '../shapes.ts'

export interface OwnCheck {
  /** In kebab-case; the name of its alert is `sendwright:<name>`. */
  name: string
  description: string
  metric: string
  /** Default '>='. */
  comparator?: Comparator
  /** Decimal text. */
  limit: string
  /** What the values of its findings are; empty: it has one finding at most. */
  dimension: string
  everyMs: number
  /** Set where each process checks for itself: tells their hits apart. */
  node?: string
  /** Event types of its notices, besides `send_alert`. */
  eventTypes?: Readonly<Record<NoticeKind, EventType>>
  /** What is wrong now, with `since` and `advice`. `now`: Unix milliseconds. */
  read(now: number): Promise<Required<Finding>[]>
}

interface OwnCheckParts extends NoticeParts, Pick<Core, 'clock' | 'firstAccountId'> {
  hits: Hits
  /** Notices were written. */
  changed(): void
}

export const alertName = ({ name }: OwnCheck) => `${OWN_PREFIX}${name}`

/** As the API shows it. */
export const ownCheckView = (check: OwnCheck): Of<typeof OWN_CHECK_VIEW> => ({
  name: alertName(check),
  description: check.description,
  metric: check.metric,
  comparator: check.comparator ?? '>=',
  limit: check.limit,
  ...(check.dimension !== '' && { dimension: check.dimension }),
})

export function ownCheckJob(parts: OwnCheckParts, check: OwnCheck): Job {
  const { clock, hits, firstAccountId } = parts
  const name = alertName(check)
  const source = {
    ...ownCheckView(check),
    id: check.node === undefined ? name : `${name}/${check.node}`,
    accountId: firstAccountId,
    dimension: check.dimension,
  }
  return createJob({
    name: `alert-${check.name}`,
    everyMs: check.everyMs,
    scope: check.node === undefined ? 'database' : 'process',
    async work() {
      const findings = await check.read(clock.now())
      const now = Math.floor(clock.now())
      const about = {
        accountId: firstAccountId,
        parentId: null,
        channels: CHANNELS,
        alert: ownCheckView(check),
        advice: ({ advice }: { advice: string }) => advice,
        ...(check.eventTypes && { eventTypes: check.eventTypes }),
      }
      try {
        const changes = await hits.apply(source, findings, {
          now,
          also: [],
          notices: noticesAbout(parts, about),
        })
        if (changes.opened.length + changes.ended.length > 0) parts.changed()
      } catch (error) {
        // Another process has judged the same: the next check sees its hits.
        if (!(error instanceof StaleWrite)) throw error
      }
    },
  })
}

interface OwnRouteParts {
  checks: readonly OwnCheck[]
  /** Hits of the checks that last, oldest first. */
  triggered(): Promise<AlertHitRow[]>
}

export function ownCheckRoutes({ checks, triggered }: OwnRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/alerts',
      id: 'listOwnChecks',
      tag: TAG,
      summary: 'What the service checks of itself, and what is wrong now',
      description: 'For the first account only.',
      auth: { ...READ, only: 'first' },
      answers: { 200: OWN_CHECKS },
      async handler() {
        const hits = Map.groupBy(await triggered(), ({ name }) => name)
        return {
          items: checks.map((check) => ({
            ...ownCheckView(check),
            interval_seconds: check.everyMs / 1000,
            hits: (hits.get(alertName(check)) ?? []).map((hit) => hitView(hit, null)),
          })),
        }
      },
    }),
  ]
}
