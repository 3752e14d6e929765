/**
 * Sending addresses whose DNS was right and is not any more: reverse name, EHLO and SPF. What never was right is a matter
 * for `sendwright doctor`. Looks only where mail goes to the recipients' own servers.
 */
import { hostAddresses, seenAddresses } from '../../../base/net/host-addresses.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Config } from '../../../platform/config/config.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { nameFaults } from '../../../sending/ips/address-names.ts'
import type { OwnCheck } from './own-check.ts'

/** Looked up in one check, and at a time. */
const ADDRESSES_MAX = 200
const CONCURRENT = 4

const NOTE_GOOD = `INSERT INTO ip_names (ip, good_at) VALUES (?, ?)
  ON CONFLICT (ip) DO UPDATE SET good_at = excluded.good_at`

/** Null: no receiver sees these addresses. */
export function addressNamesCheck(config: Config, store: Store, resolver: Resolver): OwnCheck | null {
  if (config.delivery.kind !== 'direct') return null
  const parts = { resolver, hostname: config.hostname, spfHost: config.dnsTargets.spfIncludeHost }
  const heloOf = new Map(config.sourceAddresses.map(({ ip, helo }) => [ip, helo]))
  /** Faults found by the last check that got an answer: DNS that does not answer says nothing new. */
  let known = new Map<string, readonly string[]>()

  async function look(ips: readonly string[]): Promise<Map<string, readonly string[]>> {
    const queue = [...ips]
    const found = new Map<string, readonly string[]>()
    const worker = async () => {
      for (let ip = queue.shift(); ip !== undefined; ip = queue.shift()) {
        const faults = (await nameFaults(parts, { ip, helo: heloOf.get(ip) ?? null })) ?? known.get(ip)
        if (faults !== undefined) found.set(ip, faults)
      }
    }
    await Promise.all(Array.from({ length: CONCURRENT }, worker))
    return found
  }

  return {
    name: 'address-names',
    description: 'DNS was right about a sending address, and is not any more.',
    metric: 'address_name_faults',
    limit: '1',
    dimension: 'ip',
    everyMs: HOUR_MS,
    async read(now) {
      const ips = seenAddresses(config.sourceAddresses, hostAddresses()).slice(0, ADDRESSES_MAX)
      known = await look(ips)
      const good = ips.filter((ip) => known.get(ip)?.length === 0)
      if (good.length > 0)
        await store.commit(good.map((ip) => ({ sql: NOTE_GOOD, values: [ip, Math.floor(now)] })))
      const rows = await store.db.selectFrom('ip_names').selectAll().execute()
      const goodAt = new Map(rows.map((row) => [row.ip, Number(row.good_at)]))
      return [...known].flatMap(([ip, faults]) => {
        const since = goodAt.get(ip)
        if (faults.length === 0 || since === undefined) return []
        const advice = `${faults.join(' ')} It was right at ${new Date(since).toISOString()}. Large receivers refuse addresses whose names do not agree. \`sendwright doctor\` shows the present state.`
        return [{ value: ip, figure: String(faults.length), since: now, advice }]
      })
    },
  }
}
