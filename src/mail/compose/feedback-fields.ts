/**
 * The fields of bulk mail by which receivers return complaints (domains.md rule 27), for domains that have them switched on:
 *
 * - `CFBL-Address` and `CFBL-Feedback-ID` (RFC 9477): where to, and which delivery. The id is the delivery's token, which
 *   nobody else can make. Receivers use them only if the signature covers them and fits From and the address: §3.1.
 * - `Feedback-ID` of Gmail: campaign, account, kind of mail, sender; the figures are in its Postmaster Tools.
 *
 * What the sender wrote stays. protocols/dkim/sign.ts signs all three.
 */
import { readOrNull } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { isBelow } from '../../sending/domains/names/domain-names.ts'
import { FEEDBACK_LOCAL } from '../../sending/domains/names/report-addresses.ts'
import { readAuthors } from '../record/authors.ts'
import type { CopyTarget, MessageRecord, StoredHeader } from '../record/record.ts'
import { findHeader, headerText } from './headers.ts'

/** Gmail takes 5 to 15 characters as sender. */
const SENDER_CHARS = 12
/** Characters of a tag, as the campaign; what differs later belongs to one. */
const CAMPAIGN_CHARS_MAX = 32

type FeedbackDomain = Pick<
  Domain,
  'id' | 'name' | 'dkimAuthority' | 'mailfromHost' | 'returnPathValid' | 'cfblAddress' | 'feedbackId'
>

/** `headers`: the copy's own fields. Empty for mail without a signature of the domain. */
export function feedbackFields(
  {
    accountId,
    options,
    summary,
    content,
  }: Pick<MessageRecord, 'accountId' | 'options' | 'summary' | 'content'>,
  domain: FeedbackDomain,
  { delivery, list }: Pick<CopyTarget, 'delivery' | 'list'>,
  headers: readonly StoredHeader[],
): StoredHeader[] {
  if (!delivery || !options.dkim) return []
  const fields: StoredHeader[] = []
  const host = feedbackHost(domain)
  if (domain.cfblAddress && !findHeader(headers, 'cfbl-address') && isReportable(headers, domain, host)) {
    fields.push(['CFBL-Address', `${FEEDBACK_LOCAL}@${host}; report=arf`])
    if (!findHeader(headers, 'cfbl-feedback-id')) fields.push(['CFBL-Feedback-ID', delivery.sid])
  }
  if (domain.feedbackId && !findHeader(headers, 'feedback-id')) {
    const [tag = ''] = summary.tags
    const campaign = tag
      .toLowerCase()
      .replace(/[^a-z0-9_.-]+/g, '-')
      .slice(0, CAMPAIGN_CHARS_MAX)
    const kind = list ? 'list' : content.batch ? 'batch' : 'copies'
    fields.push(['Feedback-ID', [campaign, accountId, kind, domain.id.slice(-SENDER_CHARS)].join(':')])
  }
  return fields
}

/** The return path's host, whose mail comes here, where RFC 9477 §3.1.2 allows it; else the domain itself. */
const feedbackHost = ({ name, mailfromHost, returnPathValid }: FeedbackDomain): string =>
  returnPathValid && isBelow(mailfromHost, name) ? mailfromHost : name

/** The address is at the domain of From or below it, and the signature is of that domain or of one above it. */
function isReportable(headers: readonly StoredHeader[], { dkimAuthority }: FeedbackDomain, host: string) {
  const isAtOrBelow = (name: string, ancestor: string) => name === ancestor || isBelow(name, ancestor)
  const authors = readOrNull(() => readAuthors(headerText(headers, 'from'))) ?? []
  return (
    authors.length > 0 &&
    authors.every(({ domain }) => isAtOrBelow(host, domain) && isAtOrBelow(domain, dkimAuthority))
  )
}
