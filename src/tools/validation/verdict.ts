/** The result of a validation, from what is known of the address: validation.md section 2. Pure. */
import { rootAddressOf, type ValidAddress } from './address.ts'
import { followsProviderRules, suggestedDomain } from './providers.ts'
import type { Engagement, ResultName, Risk, ValidationResult } from './shapes.ts'
import { isDisposableDomain, isRoleName } from './word-lists.ts'

/** Whether the domain receives mail; `unknown`: DNS gave no answer. */
export type DomainMail = 'accepts' | 'refuses' | 'unknown'

/** What the account's own mail says about an address. */
export interface History {
  /** On a bounce list, or a hard bounce in the last 90 days. */
  bounced: boolean
  /** Unix milliseconds, in the last 90 days; null: not delivered. */
  deliveredAt: number | null
  engagement: Engagement | null
}

/** What the receiving server said about a recipient; `unknown`: it was not asked, or gave another answer. */
export type ProbeResult = 'accepted' | 'catch-all' | 'no-mailbox' | 'unknown'

export interface Facts {
  mail: DomainMail
  history: History
  /** The caller wants to know what the provider says. */
  providerLookup: boolean
  probe: ProbeResult
}

interface Verdict {
  result: ResultName
  risk: Risk
  reason: string | null
}

export const malformedResult = (given: string, reason: string): ValidationResult => ({
  address: given,
  is_disposable_address: false,
  is_role_address: false,
  reason: [reason],
  result: 'undeliverable',
  risk: 'high',
})

/** A probe is worth its connection only where nothing else decides. */
export const needsProbe = (address: ValidAddress, facts: Omit<Facts, 'probe'>): boolean =>
  facts.providerLookup &&
  facts.mail === 'accepts' &&
  verdictOf(address, { ...facts, probe: 'unknown' }).reason === 'unknown_provider'

export function resultOf(address: ValidAddress, facts: Facts): ValidationResult {
  const verdict = verdictOf(address, facts)
  const isRole = isRoleName(address.local)
  const { deliveredAt, engagement } = facts.history
  const suggestion = facts.mail === 'accepts' ? null : suggestedDomain(address.domain)
  const root = rootAddressOf(address)
  return {
    address: address.given,
    ...(suggestion !== null && {
      did_you_mean: `${address.given.slice(0, address.given.lastIndexOf('@'))}@${suggestion}`,
    }),
    is_disposable_address: isDisposableDomain(address.domain),
    is_role_address: isRole,
    reason: [...(verdict.reason === null ? [] : [verdict.reason]), ...(isRole ? [ROLE] : [])],
    result: verdict.result,
    risk: isRole && verdict.risk !== 'high' ? 'medium' : verdict.risk,
    ...(root !== null && { root_address: root }),
    ...(deliveredAt !== null && { last_seen: Math.floor(deliveredAt / 1000) }),
    ...(engagement && { engagement }),
  }
}

const ROLE = 'mailbox_is_role_address'

/** Rows 2 to 11 of the table: the first that decides. */
function verdictOf({ local, domain }: ValidAddress, facts: Facts): Verdict {
  const { mail, history, providerLookup, probe } = facts
  if (mail === 'refuses') return { result: 'undeliverable', risk: 'high', reason: 'no_mx' }
  if (!followsProviderRules(local, domain))
    return { result: 'undeliverable', risk: 'high', reason: 'failed custom grammar check' }
  if (isDisposableDomain(domain))
    return { result: 'do_not_send', risk: 'high', reason: 'mailbox_is_disposable_address' }
  if (history.bounced || (providerLookup && probe === 'no-mailbox'))
    return { result: 'undeliverable', risk: 'high', reason: 'mailbox_does_not_exist' }
  if (history.deliveredAt !== null) return { result: 'deliverable', risk: 'low', reason: null }
  if (!providerLookup) return { result: 'unknown', risk: 'unknown', reason: 'no_data' }
  if (probe === 'catch-all') return { result: 'catch_all', risk: 'medium', reason: 'catch_all' }
  if (probe === 'accepted') return { result: 'deliverable', risk: 'low', reason: null }
  return { result: 'unknown', risk: 'unknown', reason: 'unknown_provider' }
}
