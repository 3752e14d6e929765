/** Domains and their records in the form of the contract. */

import type { Of } from '../../base/shape.ts'
import { formatGmt, formatRfc3339 } from '../../base/time/dates.ts'
import {
  checkOf,
  type DnsTargets,
  keyCheckOf,
  recordView,
  type StoredCheck,
  trackingHost,
  validity,
  valueToPublish,
  type WantedRecord,
  wantedKeyRecord,
  wantedRecords,
} from './dns/dns-records.ts'
import { DMARC_ADVICE } from './dns/lookups.ts'
import type { OwnRecordCheck } from './dns/own-records.ts'
import type { DnsState } from './dns/verification.ts'
import type { Domain } from './domain.ts'
import { type Disablement, shownFields } from './fields.ts'
import type { DOMAIN, DOMAIN_DNS } from './shapes.ts'

/**
 * A domain as every domain operation returns it.
 * @param about `isSubaccounts`: its account is a subaccount; `isExtended`: with `h:extended`; `pod`: of the service
 */
export function domainView(
  domain: Domain,
  { isSubaccounts = false, isExtended = false, pod = null as string | null } = {},
): Of<typeof DOMAIN> {
  const { disabled } = domain
  return {
    ...shownFields(domain, isExtended),
    created_at: formatGmt(new Date(domain.createdAt)),
    is_disabled: domain.state === 'disabled',
    smtp_login: `postmaster@${domain.name}`,
    tracking_host: trackingHost(domain),
    ...(isExtended && { pod: pod ?? 'default' }),
    ...(isSubaccounts && { subaccount_id: domain.accountId }),
    ...(disabled && { disabled: disablementView(disabled) }),
  }
}

const disablementView = ({ until, ...disabled }: Disablement) => ({
  ...disabled,
  ...(until !== undefined && { until: formatGmt(new Date(until)) }),
})

/** One record with the result of its last check. */
export interface RecordState {
  wanted: WantedRecord
  check: StoredCheck | undefined
  isActive: boolean
}

/** All records of a domain, those of its keys first. */
export function recordStates(domain: Domain, dns: DnsState, targets: DnsTargets): RecordState[] {
  const keys = dns.keys.map((key) => {
    const wanted = wantedKeyRecord(key, dns.sid, targets)
    const check = domain.dkimUnverified ? undefined : keyCheckOf(key, wanted)
    return { wanted, check, isActive: key.active === 1 }
  })
  const others = wantedRecords(domain, targets).map((wanted) => ({
    wanted,
    check: checkOf(wanted, dns.checks),
    isActive: true,
  }))
  return [...keys, ...others]
}

/** The two lists of D2 to D5. Records of a separate return-path host are only in our own operations. */
export function recordViews(states: readonly RecordState[]) {
  const views = (purposes: readonly string[]) =>
    states
      .filter(({ wanted }) => purposes.includes(wanted.purpose))
      .map(({ wanted, check, isActive }) => recordView(wanted, check, isActive))
  return { receiving_dns_records: views(['mx']), sending_dns_records: views(['dkim', 'spf', 'tracking']) }
}

/** Every record with the query, the server, the answer and what to do (own operation `/dns`). */
export function explainedRecords(
  states: readonly RecordState[],
  dns: DnsState,
  targets: DnsTargets,
): Omit<Of<typeof DOMAIN_DNS>, 'service'> {
  const records = states.map(({ wanted, check, isActive }) => ({
    record: {
      purpose: wanted.purpose,
      name: wanted.name,
      type: wanted.type,
      value: valueToPublish(wanted, check?.found ?? [], targets.spfIncludeHost),
      ...(wanted.priority !== undefined && { priority: wanted.priority }),
      is_active: isActive,
    },
    ...explained(check),
  }))
  const dmarc = dns.checks.find((check) => check.purpose === 'dmarc')
  return {
    records,
    dmarc: {
      ...(dmarc && {
        record: { purpose: 'dmarc', name: dmarc.name, type: 'TXT', value: DMARC_ADVICE } as const,
      }),
      ...explained(dmarc),
    },
  }
}

/** What is wrong with the operator's own records, which those of the domain refer to; empty: nothing. */
export const serviceFaults = (checks: readonly OwnRecordCheck[]) =>
  checks.flatMap(({ records, state, found, sentence }) =>
    state === 'valid' ? [] : [{ records, state, found, sentence }],
  )

function explained(check: StoredCheck | undefined) {
  if (!check) {
    const valid = 'unknown' as const
    return { asked: '', server: '', found: [], valid, sentence: 'Not looked up yet.' }
  }
  return {
    asked: check.asked,
    server: check.server,
    found: check.found,
    valid: validity(check),
    sentence: check.sentence,
    checked_at: formatRfc3339(new Date(check.checkedAt)),
  }
}
