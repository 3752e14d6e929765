/** Domains and their records in the form of the contract. */
import { formatGmt, formatRfc3339 } from '../base/dates.ts'
import {
  checkOf,
  type DnsTargets,
  keyCheckOf,
  type RecordView,
  recordView,
  type StoredCheck,
  trackingHost,
  valueToPublish,
  type WantedRecord,
  wantedKeyRecord,
  wantedRecords,
} from './dns-records.ts'
import type { Domain } from './domain.ts'
import { DMARC_ADVICE } from './lookups.ts'
import type { OwnRecordCheck } from './own-records.ts'
import type { DnsState } from './verification.ts'

/** A domain as every domain operation returns it. `isSubaccounts`: its account is a subaccount. */
export function domainView(domain: Domain, isSubaccounts = false): Record<string, unknown> {
  const { disabled } = domain
  return {
    id: domain.id,
    name: domain.name,
    created_at: formatGmt(new Date(domain.createdAt)),
    state: domain.state,
    type: domain.type,
    is_disabled: domain.state === 'disabled',
    smtp_login: `postmaster@${domain.name}`,
    spam_action: domain.spamAction,
    require_tls: domain.requireTls,
    skip_verification: domain.skipVerification,
    wildcard: domain.wildcard,
    use_automatic_sender_security: domain.useAutomaticSenderSecurity,
    encrypt_incoming_message: domain.encryptIncomingMessage,
    web_prefix: domain.webPrefix,
    web_scheme: domain.webScheme,
    message_ttl: domain.messageTtlSeconds,
    tracking_host: trackingHost(domain),
    ...(domain.archiveTo && { archive_to: domain.archiveTo }),
    ...(isSubaccounts && { subaccount_id: domain.accountId }),
    ...(disabled && {
      disabled: {
        code: disabled.code,
        note: disabled.note,
        reason: disabled.reason,
        permanently: disabled.permanently,
        ...(disabled.until !== undefined && { until: formatGmt(new Date(disabled.until)) }),
      },
    }),
  }
}

export const extendedView = (domain: Domain) => ({
  dkim_host: domain.dkimHost,
  mailfrom_host: domain.mailfromHost,
  pod: 'default',
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

export interface RecordViews {
  receiving_dns_records: RecordView[]
  sending_dns_records: RecordView[]
}

/** The two lists of D2 to D5. Records of a separate return-path host are only in our own operations. */
export function recordViews(states: readonly RecordState[]): RecordViews {
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
): { records: object[]; dmarc: object } {
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
      ...(dmarc && { record: { purpose: 'dmarc', name: dmarc.name, type: 'TXT', value: DMARC_ADVICE } }),
      ...explained(dmarc),
    },
  }
}

/** What is wrong with the operator's own records, which those of the domain refer to; empty: nothing. */
export const serviceFaults = (checks: readonly OwnRecordCheck[]): object[] =>
  checks
    .filter(({ state }) => state !== 'valid')
    .map(({ records, state, found, sentence }) => ({ records, state, found, sentence }))

function explained(check: StoredCheck | undefined): object {
  if (!check) return { asked: '', server: '', found: [], valid: 'unknown', sentence: 'Not looked up yet.' }
  return {
    asked: check.asked,
    server: check.server,
    found: check.found,
    valid: check.valid ? 'valid' : 'unknown',
    sentence: check.sentence,
    checked_at: formatRfc3339(new Date(check.checkedAt)),
  }
}
