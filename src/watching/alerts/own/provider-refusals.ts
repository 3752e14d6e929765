/** A provider that refuses mail because of this host or its domains. */
import { HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { BouncesArea } from '../../../receiving/bounces/area.ts'
import type { OwnCheck } from './own-check.ts'

/** A single one may be a mistake of the receiver. */
const LIMIT = 5
const WINDOW_MS = HOUR_MS

export function providerRefusalsCheck({
  refusalsByProvider,
}: Pick<BouncesArea, 'refusalsByProvider'>): OwnCheck {
  return {
    name: 'provider-refusals',
    description: 'A provider refuses mail because of the addresses or domains that it comes from.',
    metric: 'refusals_last_hour',
    comparator: '>=',
    limit: String(LIMIT),
    dimension: 'recipient_provider',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await refusalsByProvider(now - WINDOW_MS)
      return found
        .filter(({ count }) => count >= LIMIT)
        .map(({ provider, count, firstAt, explanation }) => ({
          value: provider === '' ? 'unknown' : provider,
          figure: String(count),
          since: firstAt,
          advice: `${count} messages to ${provider || 'an unknown provider'} were refused in the last hour because of this host or its domains. ${explanation} Mend the cause first, then ask the receiver or list to look again. GET /sendwright/v1/system/checks shows the newest replies.`,
        }))
    },
  }
}
