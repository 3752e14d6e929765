/** The service's own checks over HTTP (alerts.md section 5). */
import { Forbidden } from '../../../base/process/errors.ts'
import { type Operation, operation } from '../../../platform/http/operation.ts'
import type { AlertHitRow } from '../../../platform/store/schema.ts'
import { hitView } from '../alert.ts'
import { READ, TAG } from '../routes.ts'
import { OWN_CHECKS } from '../shapes.ts'
import { alertName, type OwnCheck, ownCheckView } from './own-check.ts'

interface OwnRouteParts {
  checks: readonly OwnCheck[]
  firstAccountId: string
  /** Hits of the checks that last, oldest first. */
  triggered(): Promise<AlertHitRow[]>
}

export function ownCheckRoutes({ checks, firstAccountId, triggered }: OwnRouteParts): Operation[] {
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
      async handler({ caller }) {
        if (caller.accountId !== firstAccountId) throw new Forbidden()
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
