/** Sending addresses that a provider blocks, and relays that fail; others stand in for them. */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Block, Blocks } from '../../../sending/ips/blocks/blocks.ts'
import { ANY_ADDRESS } from '../../../sending/relays/engine-relays.ts'
import type { OwnCheck } from './own-check.ts'

export function blockedAddressesCheck(blocks: Pick<Blocks, 'list'>): OwnCheck {
  return {
    name: 'blocked-addresses',
    description: 'A provider blocks an address that mail leaves from, or a relay fails.',
    metric: 'blocked_minutes',
    comparator: '>=',
    limit: '0',
    dimension: 'lane',
    everyMs: MINUTE_MS,
    async read(now) {
      // What is listed is an alert of its own.
      const closed = blocks.list().filter(({ state }) => state !== 'listed')
      return closed.map((block) => ({
        value: `${block.ip}/${block.site}`,
        figure: String(Math.max(0, Math.floor((now - block.since_at) / MINUTE_MS))),
        since: block.since_at,
        advice: block.ip === ANY_ADDRESS ? relayAdvice(block) : addressAdvice(block),
      }))
    },
  }
}

const addressAdvice = ({ ip, site, provider, reply, until_at }: Block) =>
  `${provider} (${site}) takes no mail from ${ip}: "${reply}". Its mail leaves from the other addresses of the set; without one it waits. Single messages try the address again from ${new Date(until_at).toISOString()} on. Mend the cause, ask the provider to look again, then DELETE /sendwright/v1/ips/${ip}/blocks/${site} uses it at once.`

const relayAdvice = ({ provider: name, reply, until_at }: Block) =>
  `The relay ${name} fails: "${reply}". Its mail goes to the next choice of its rule; without one it waits. Single messages try it again from ${new Date(until_at).toISOString()} on. Mend the cause, then POST /sendwright/v1/relays/${name}/test uses it at once.`
