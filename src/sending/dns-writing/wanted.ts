/** What a domain asks for in DNS: the records of its DNS page, and where there is none, a DMARC policy and an address for TLS reports. */

import type { Store } from '../../platform/store/store.ts'
import { canonicalData, quotedText, type WritableType } from '../../protocols/dns/presentation.ts'
import type { DnsTargets } from '../domains/dns/dns-records.ts'
import { DMARC_ADVICE, type LookupParts, lookUpDmarc } from '../domains/dns/lookups.ts'
import { readDnsState } from '../domains/dns/verification.ts'
import type { Domain } from '../domains/domain.ts'
import { tlsReportAdvice } from '../domains/names/report-addresses.ts'
import { recordStates } from '../domains/view.ts'
import type { Wanted, WrittenPurpose } from './plan.ts'

interface WantedParts extends LookupParts {
  store: Store
  targets: DnsTargets
  publicUrl: string
}

/** The records by purpose and name; those that others lead to come first. Asks DNS for a policy above the domain. */
export async function wantedOf(parts: WantedParts, domain: Domain): Promise<Wanted[]> {
  const state = await readDnsState(parts.store, domain)
  const records = recordStates(domain, state, parts.targets).map(({ wanted }) => ({
    ...{ purpose: wanted.purpose, name: wanted.name, type: wanted.type },
    data: dataOf(
      wanted.type,
      wanted.priority === undefined ? wanted.value : `${wanted.priority} ${wanted.value}`,
    ),
  }))
  const groups = Map.groupBy(records, ({ purpose, name, type }) => `${purpose} ${name} ${type}`)
  const own = [...groups.values()].map(([first, ...more]): Wanted => {
    const { purpose, name, type, data } = first as (typeof records)[number]
    return { purpose, name, type, values: [data, ...more.map((one) => one.data)] }
  })
  const text = (purpose: WrittenPurpose, name: string, value: string): Wanted => ({
    ...{ purpose, name: `${name}.${domain.name}`, type: 'TXT', values: [quotedText(value)] },
  })
  const hold = await dmarcHold(parts, domain)
  return [
    ...own,
    { ...text('dmarc', '_dmarc', DMARC_ADVICE), ...(hold !== null && { hold }) },
    text('tls-rpt', '_smtp._tls', tlsReportAdvice(domain.name, parts.publicUrl)),
  ]
}

function dataOf(type: WritableType, data: string): string {
  const canonical = canonicalData(type, type === 'TXT' ? quotedText(data) : data)
  if (canonical === null) throw new Error(`A record of a domain that cannot be written: ${type} ${data}`)
  return canonical
}

/** A record of the domain's own would take the place of a stricter one of its organization (RFC 9989 §4.10.1). */
async function dmarcHold(parts: WantedParts, domain: Domain): Promise<string | null> {
  const use = {
    fromDomain: domain.name,
    dkimDomain: domain.dkimHost,
    returnPathDomain: domain.mailfromHost,
  }
  const { answered, policy } = await lookUpDmarc(parts, use, undefined)
  if (!answered) return 'DNS does not say whether a policy applies'
  return policy === undefined ? null : 'a policy applies to the domain'
}

/** Variables of the template of Domain Connect: selector and record of the key that signs, or will; or the label of its zone. */
export async function connectVariables(
  { store, targets }: Pick<WantedParts, 'store' | 'targets'>,
  domain: Domain,
): Promise<Record<string, string>> {
  const state = await readDnsState(store, domain)
  const keys = recordStates(domain, state, targets).filter(({ wanted }) => wanted.purpose === 'dkim')
  const { wanted } = keys.find(({ isActive }) => isActive) ?? keys[0] ?? {}
  if (wanted === undefined) return {}
  if (wanted.type === 'CNAME') return { sid: state.sid ?? '' }
  return { selector: wanted.name.split('._domainkey.', 1)[0] ?? '', dkim: wanted.value }
}
