/** MTA-STS policies by our own resolver and HTTPS client, kept in a table. */

import { anyCidrContains, type Cidr, isPublicAddress } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { type FetchOptions, fetchPolicy } from '../../../protocols/mta-sts/fetch.ts'
import { createStsPolicies, type StsPolicies } from '../../../protocols/mta-sts/policies.ts'

const KEEP = `INSERT INTO mta_sts_policies (domain, policy_id, policy_text, expires_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, policy_text = excluded.policy_text,
    expires_at = excluded.expires_at`

export function createStoredPolicies(parts: {
  store: Store
  resolver: Resolver
  clock: Clock
  allow: readonly Cidr[]
  /** For tests: another port, other roots. */
  fetch?: Pick<FetchOptions, 'port' | 'ca' | 'timeoutMs'>
}): StsPolicies {
  const { store, resolver, clock, allow } = parts
  const mayReach = (address: string) => isPublicAddress(address) || anyCidrContains(allow, address)

  async function addressesOf(host: string): Promise<string[]> {
    const answers = await Promise.all([resolver.query(host, 'AAAA'), resolver.query(host, 'A')])
    return answers.flatMap(({ records }) => records.filter(mayReach))
  }
  return createStsPolicies({
    clock,
    async txt(name) {
      const answer = await resolver.query(name, 'TXT')
      const isAnswer = answer.kind === 'records' || answer.kind === 'nodata' || answer.kind === 'nxdomain'
      return isAnswer ? answer.records : null
    },
    fetch: (domain) => fetchPolicy(domain, { ...parts.fetch, addressesOf }),
    async known(domain) {
      const row = await store.db
        .selectFrom('mta_sts_policies')
        .selectAll()
        .where('domain', '=', domain)
        .executeTakeFirst()
      return row
        ? { domain, id: row.policy_id, text: row.policy_text, expiresAt: Number(row.expires_at) }
        : null
    },
    async keep({ domain, id, text, expiresAt }) {
      await store.commit([{ sql: KEEP, values: [domain, id, text, expiresAt] }])
    },
  })
}
