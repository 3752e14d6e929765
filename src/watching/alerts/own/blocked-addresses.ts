/** Sending addresses that a provider blocks, and that others stand in for. */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Blocks } from '../../../sending/ips/blocks/blocks.ts'
import type { OwnCheck } from './own-check.ts'

export function blockedAddressesCheck(blocks: Pick<Blocks, 'list'>): OwnCheck {
  return {
    name: 'blocked-addresses',
    description: 'A provider blocks an address that mail leaves from.',
    metric: 'blocked_minutes',
    comparator: '>=',
    limit: '0',
    dimension: 'lane',
    everyMs: MINUTE_MS,
    async read(now) {
      return blocks.list().map(({ ip, site, provider, reply, since_at, until_at }) => ({
        value: `${ip}/${site}`,
        figure: String(Math.max(0, Math.floor((now - since_at) / MINUTE_MS))),
        since: since_at,
        advice: `${provider} (${site}) takes no mail from ${ip}: "${reply}". Its mail leaves from the other addresses of the set; without one it waits. Single messages try the address again from ${new Date(until_at).toISOString()} on. Mend the cause, ask the provider to look again, then DELETE /sendwright/v1/ips/${ip}/blocks/${site} uses it at once.`,
      }))
    },
  }
}
