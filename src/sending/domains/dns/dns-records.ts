/**
 * The DNS records that a domain should have, derived from its settings, its keys and the service's own names, and
 * their form in the contract (domains.md rules 1-5). Pure; `lookups.ts` looks them up.
 */
import { isIP } from 'node:net'
import type { Of } from '../../../base/shape.ts'
import type { DkimKeyRow } from '../../../platform/store/schema.ts'
import type { DmarcPolicy } from '../../../protocols/dns/dmarc.ts'
import type { RecordCheck } from '../../../protocols/dns/record-data.ts'
import { mergeSpf } from '../../../protocols/dns/spf.ts'
import { stsPolicyId, stsPolicyText, stsRecord } from '../../../protocols/mta-sts/policy.ts'
import type { Domain } from '../domain.ts'
import type { DNS_RECORD } from '../shapes.ts'

/** Where records point to; the configuration's `dnsTargets`. */
export interface DnsTargets {
  spfIncludeHost: string
  mxHosts: readonly string[]
  /** A host name, or an address. */
  tracking: string
  dkimZone: string | null
}

export type RecordPurpose =
  | 'dkim'
  | 'spf'
  | 'tracking'
  | 'mx'
  | 'return-path-spf'
  | 'return-path-mx'
  | 'mta-sts'
  | 'mta-sts-host'

export interface WantedRecord {
  purpose: RecordPurpose
  name: string
  type: 'TXT' | 'CNAME' | 'A' | 'AAAA' | 'MX'
  value: string
  /** MX only. */
  priority?: number
}

/** The result of one lookup of one record; stored as JSON. Without an answer `valid` and `found` are those of the previous check. */
export interface StoredCheck extends RecordCheck {
  purpose: RecordPurpose | 'dmarc'
  name: string
  type: string
  value: string
  /** "TXT mg.example.com" */
  asked: string
  /** "address:port"; '' when no server was queried. */
  server: string
  /** Unix milliseconds. */
  checkedAt: number
  /** DMARC only: what receivers do with mail that fails; absent: no record applies, or it was checked by an older version. */
  policy?: DmarcPolicy
}

const MX_PRIORITY = 10

/** What the records of a domain follow from. */
type RecordNames = Pick<Domain, 'name' | 'mailfromHost' | 'webPrefix' | 'mtaSts' | 'mtaStsMaxAge'>

/** All records of a domain except those of its DKIM keys. */
export function wantedRecords(domain: RecordNames, targets: DnsTargets): WantedRecord[] {
  const { name, mailfromHost } = domain
  const spf = `v=spf1 include:${targets.spfIncludeHost} ~all`
  const mx = (purpose: RecordPurpose, host: string): WantedRecord[] =>
    targets.mxHosts.map((value) => ({ purpose, name: host, type: 'MX', value, priority: MX_PRIORITY }))
  return [
    { purpose: 'spf', name, type: 'TXT', value: spf },
    trackingRecord(domain, targets),
    ...mx('mx', name),
    // Receivers check SPF for the host of the return path, and bounces are sent to it (RFC 7208 §2.4).
    ...(mailfromHost === name
      ? []
      : [
          { purpose: 'return-path-spf', name: mailfromHost, type: 'TXT', value: spf } as const,
          ...mx('return-path-mx', mailfromHost),
        ]),
    ...policyRecords(domain, targets),
  ]
}

const trackingRecord = (domain: RecordNames, { tracking }: DnsTargets): WantedRecord => ({
  ...{ purpose: 'tracking', name: trackingHost(domain), type: typeOfTarget(tracking), value: tracking },
})

const typeOfTarget = (target: string) =>
  ({ 0: 'CNAME', 4: 'A', 6: 'AAAA' })[isIP(target) as 0 | 4 | 6] as 'CNAME' | 'A' | 'AAAA'

/** First label of the host that a domain's MTA-STS policy is fetched from (RFC 8461 §3.2). */
export const POLICY_LABEL = 'mta-sts'

/** The MTA-STS policy that the service publishes for the domain; null: none. */
export function hostedPolicy(
  { mtaSts, mtaStsMaxAge }: Pick<Domain, 'mtaSts' | 'mtaStsMaxAge'>,
  { mxHosts }: Pick<DnsTargets, 'mxHosts'>,
): { text: string; id: string } | null {
  if (mtaSts === 'off') return null
  const text = stsPolicyText({ mode: mtaSts, mx: mxHosts, maxAgeSeconds: mtaStsMaxAge })
  return { text, id: stsPolicyId(text) }
}

function policyRecords(domain: RecordNames, targets: DnsTargets): WantedRecord[] {
  const policy = hostedPolicy(domain, targets)
  if (policy === null) return []
  const { tracking } = targets
  const host = `${POLICY_LABEL}.${domain.name}`
  return [
    { purpose: 'mta-sts-host', name: host, type: typeOfTarget(tracking), value: tracking },
    { purpose: 'mta-sts', name: `_mta-sts.${domain.name}`, type: 'TXT', value: stsRecord(policy.id) },
  ]
}

export const trackingHost = (domain: Pick<Domain, 'webPrefix' | 'name'>) =>
  `${domain.webPrefix}.${domain.name}`

/** The selector under which a key is shown: a new one applies from the moment it is chosen. */
export const shownSelector = (key: Pick<DkimKeyRow, 'selector' | 'next_selector'>) =>
  key.next_selector ?? key.selector

export const dkimName = (selector: string, authority: string) => `${selector}._domainkey.${authority}`

/** The record that publishes a key, or points to where the service publishes it. */
export function wantedKeyRecord(key: DkimKeyRow, sid: string | null, targets: DnsTargets): WantedRecord {
  const selector = shownSelector(key)
  const name = dkimName(selector, key.authority)
  if (key.managed === 1 && sid !== null && targets.dkimZone !== null)
    return { purpose: 'dkim', name, type: 'CNAME', value: dkimName(selector, `${sid}.${targets.dkimZone}`) }
  return { purpose: 'dkim', name, type: 'TXT', value: key.public_record }
}

/** The stored check of exactly this record; a check of an earlier value does not count. */
export function checkOf(wanted: WantedRecord, checks: readonly StoredCheck[]): StoredCheck | undefined {
  return checks.find(
    (check) =>
      check.purpose === wanted.purpose &&
      check.name === wanted.name &&
      check.type === wanted.type &&
      check.value === wanted.value,
  )
}

export function keyCheckOf(key: DkimKeyRow, wanted: WantedRecord): StoredCheck | undefined {
  return key.check_json ? checkOf(wanted, [JSON.parse(key.check_json) as StoredCheck]) : undefined
}

export const validity = (check: Pick<StoredCheck, 'valid'> | undefined): 'valid' | 'unknown' =>
  check?.valid ? 'valid' : 'unknown'

/** A record in the form of the contract. */
export function recordView(
  wanted: WantedRecord,
  check: Pick<StoredCheck, 'valid' | 'found'> | undefined,
  isActive = true,
): Of<typeof DNS_RECORD> {
  return {
    ...(wanted.type !== 'MX' && { name: wanted.name }),
    record_type: wanted.type,
    ...(wanted.priority !== undefined && { priority: String(wanted.priority) }),
    value: wanted.value,
    cached: check?.found ?? [],
    valid: validity(check),
    is_active: isActive,
  }
}

/** The value to publish now: an existing SPF record is kept and extended. */
export function valueToPublish(wanted: WantedRecord, found: readonly string[], includeHost: string): string {
  const isSpf = wanted.purpose === 'spf' || wanted.purpose === 'return-path-spf'
  const existing = found.filter((text) => /^v=spf1(?: |$)/i.test(text))
  return isSpf && existing.length > 0 ? mergeSpf(existing, includeHost) : wanted.value
}
