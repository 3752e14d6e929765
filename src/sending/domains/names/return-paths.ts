/**
 * Return-path hosts whose MX does not point here, so that late bounces never arrive. Reported to the operator,
 * because nothing else shows it. Uses the DNS results of the domain's last verification.
 */

import type { Store } from '../../../platform/store/store.ts'
import { normalizeName } from '../../../protocols/dns/names.ts'
import type { StoredCheck } from '../dns/dns-records.ts'

export interface LostReturnPaths {
  /** Domains checked: active ones that have been looked up in DNS. */
  domains: number
  /** How many hosts do not point here, and the first of them. */
  count: number
  hosts: readonly string[]
}

/** An operator with more domains than this reads the page of each domain. */
const DOMAINS_MAX = 1_000
const HOSTS_NAMED_MAX = 5

/** `mailHosts`: names of the SMTP port; an MX record may point to any of them. */
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

/** Reads "10 mx.example.org". */
const exchangeOf = (text: string) => text.slice(text.indexOf(' ') + 1).toLowerCase()
