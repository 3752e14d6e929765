/**
 * Looks once an hour whether the configured addresses are bound on this machine, or their proxies work, and whether forward and reverse DNS
 * agree (ips-pools.md section 1 rule 2). DNS matters only where mail goes to the recipients' own servers.
 */

import { canonicalIp } from '../../base/net/ip.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Config } from '../../platform/config/config.ts'
import type { SourceAddress } from '../../platform/config/sending.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { Flag } from '../../platform/store/schema.ts'
import { confirmName } from '../../protocols/dns/confirmed-name.ts'
import { tryProxy } from '../../protocols/proxy/dialling.ts'
import type { KnownAddresses } from './known-addresses.ts'

const EVERY_MS = HOUR_MS
/** Addresses looked up at a time. */
const CONCURRENT = 4

export interface CheckParts extends Pick<Core, 'store' | 'clock' | 'log' | 'resolver'> {
  known: KnownAddresses
  config: Pick<Config, 'sourceAddresses' | 'delivery'>
  hostAddresses(): string[]
}

interface Finding {
  /** Null: it is behind a proxy. */
  isBound: boolean | null
  /** Null: DNS was not asked, or did not answer. */
  isConfirmed: boolean | null
  rdns: string
  /** For a person; '' without one. */
  fault: string
}

export function createAddressChecks(parts: CheckParts): Job {
  const { store, clock, log, known, config } = parts

  async function work(signal: AbortSignal): Promise<void> {
    const bound = new Set(parts.hostAddresses().map((ip) => canonicalIp(ip) ?? ip))
    const queue = [...config.sourceAddresses]
    let isChanged = false
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift())
        isChanged = (await check(next, bound)) || isChanged
    }
    await Promise.all(Array.from({ length: CONCURRENT }, worker))
    if (isChanged) await known.change(async () => {})
    // Others may have fallen out of use.
    else await known.reload()
  }

  /** Resolves whether its DNS has changed. */
  async function check(address: SourceAddress, bound: ReadonlySet<string>): Promise<boolean> {
    const { ip } = address
    const finding = await findingOf(address, bound)
    const before = await store.db.selectFrom('ips').selectAll().where('ip', '=', ip).executeTakeFirst()
    if (before === undefined) return false
    const now = Math.floor(clock.now())
    const was = before.is_confirmed === null ? null : Number(before.is_confirmed)
    // DNS that does not answer must not stop mail.
    const isKept = finding.isConfirmed === null && config.delivery.kind === 'direct'
    const isConfirmed = isKept ? (was as Flag | null) : flag(finding.isConfirmed)
    const rdns = isKept ? before.rdns : finding.rdns
    const { fault, isBound } = finding
    await store.db
      .updateTable('ips')
      .set({
        ...{ rdns, fault, is_bound: flag(isBound), is_confirmed: isConfirmed },
        ...{ checked_at: now, seen_at: now },
      })
      .where('ip', '=', ip)
      .execute()
    if (fault !== '' && fault !== before.fault) log.warn({ ip, fault }, 'a sending address has a fault')
    return rdns !== before.rdns || was !== isConfirmed
  }

  async function findingOf(address: SourceAddress, bound: ReadonlySet<string>): Promise<Finding> {
    const { ip, proxy } = address
    const isBound = proxy === undefined ? bound.has(address.localIp ?? ip) : null
    const ways = await wayFaults(address, isBound)
    if (config.delivery.kind !== 'direct')
      return { isBound, isConfirmed: null, rdns: '', fault: ways.join('; ') }
    const { name, fault, isKnown } = await confirmName(parts.resolver, ip)
    const faults = fault === null ? ways : [...ways, fault]
    return { isBound, isConfirmed: isKnown ? fault === null : null, rdns: name, fault: faults.join('; ') }
  }

  // Each process has addresses of its own.
  return createJob({ name: 'ip-checks', everyMs: EVERY_MS, scope: 'process', work })
}

/** Why connections cannot leave from an address. */
async function wayFaults({ ip, localIp = ip, proxy }: SourceAddress, isBound: boolean | null) {
  if (proxy !== undefined)
    return tryProxy(proxy).then(
      () => [],
      (error: Error) => [error.message],
    )
  return isBound ? [] : [`${localIp} is not an address of this machine`]
}

const flag = (value: boolean | null): Flag | null => (value === null ? null : value ? 1 : 0)
