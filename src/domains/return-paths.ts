/**
 * Return-path hosts whose MX does not lead here: bounces that come after delivery never arrive from there. Told to the
 * operator, because nothing else shows it; what DNS says is that of the domain's last verification.
 */
import { normalizeName } from '../dns/names.ts'
import type { Store } from '../store/store.ts'
import type { StoredCheck } from './records.ts'

export interface LostReturnPaths {
  /** Domains looked at: active ones whose DNS has been asked. */
  domains: number
  /** How many hosts do not lead here, and the first of them. */
  count: number
  hosts: readonly string[]
}

/** An operator with more than this reads the domains' own pages. */
const DOMAINS_MAX = 1_000
const HOSTS_NAMED_MAX = 5

/** `mailHosts`: names under which the SMTP port is reached, in any of which an MX record may lead here. */
export async function lostReturnPaths(store: Store, mailHosts: readonly string[]): Promise<LostReturnPaths> {
  const own = new Set(mailHosts.map((host) => normalizeName(host) ?? host))
  const rows = await store.db
    .selectFrom('domains')
    .innerJoin('domain_dns', 'domain_dns.domain_id', 'domains.id')
    .select(['domains.mailfrom_host', 'domain_dns.checks_json'])
    .where('domains.type', '=', 'custom')
    .where('domains.state', '=', 'active')
    .orderBy('domains.name')
    .limit(DOMAINS_MAX)
    .execute()
  const lost = new Set<string>()
  for (const { mailfrom_host: host, checks_json } of rows) {
    const mx = (JSON.parse(checks_json) as StoredCheck[]).filter(
      ({ type, name }) => type === 'MX' && name === host,
    )
    const isLost = mx.length > 0 && !mx.some(({ found }) => found.some((text) => own.has(exchangeOf(text))))
    if (isLost) lost.add(host)
  }
  return { domains: rows.length, count: lost.size, hosts: [...lost].slice(0, HOSTS_NAMED_MAX) }
}

/** Of "10 mx.example.org". */
const exchangeOf = (text: string) => text.slice(text.indexOf(' ') + 1).toLowerCase()
