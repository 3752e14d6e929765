/** Relays whose token server gave no access token last time. */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { RelaysArea } from '../../../sending/relays/area.ts'
import type { OwnCheck } from './own-check.ts'

export function relayLoginsCheck({ failingLogins }: Pick<RelaysArea, 'failingLogins'>): OwnCheck {
  return {
    name: 'relay-logins',
    description: 'A relay gets no new access token.',
    metric: 'failing_minutes',
    comparator: '>=',
    limit: '0',
    dimension: 'relay',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await failingLogins()
      return found.map(({ relay, failure, failedAt, expiresAt }) => ({
        value: relay,
        figure: String(Math.max(0, Math.floor((now - failedAt) / MINUTE_MS))),
        since: failedAt,
        advice: `The relay ${relay} gets no new access token: "${failure}". ${
          expiresAt !== null && expiresAt > now
            ? `The present one ends at ${new Date(expiresAt).toISOString()}; then its`
            : 'Its'
        } mail goes to the next choice of its rule, or waits. Mend the cause at the provider, or PUT /sendwright/v1/relays/${relay} with another secret or refresh token, which is tried at once.`,
      }))
    },
  }
}
