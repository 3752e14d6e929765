/** Webhook endpoints that have failed for an hour. */
import { loggableUrl } from '../../../base/printable.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { WebhooksArea } from '../../webhooks/area.ts'
import type { OwnCheck } from './own-check.ts'

const LIMIT_MINUTES = 60

export function failingEndpointsCheck({
  failingEndpoints,
}: Pick<WebhooksArea, 'failingEndpoints'>): OwnCheck {
  return {
    name: 'webhook-endpoint',
    description: 'A webhook endpoint has failed for an hour.',
    metric: 'endpoint_failing_minutes',
    comparator: '>=',
    limit: String(LIMIT_MINUTES),
    dimension: 'url',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await failingEndpoints(now - LIMIT_MINUTES * MINUTE_MS)
      return found.map(({ accountId, url, failingSince }) => {
        const minutes = Math.floor((now - failingSince) / MINUTE_MS)
        const shown = loggableUrl(url)
        return {
          value: shown,
          figure: String(minutes),
          since: failingSince,
          advice: `${shown} of account ${accountId} has taken no webhook for ${minutes} minutes. GET /sendwright/v1/webhooks/attempts?status=failing shows its answers. Events wait for it until the retry schedule ends; POST /sendwright/v1/webhooks/replay sends lost ones again.`,
        }
      })
    },
  }
}
