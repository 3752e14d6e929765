/** Describes the state of a domain's records in words. Pure. */
import type { DnsChange, DomainDns, ExplainedRecord, RecordPurpose, RecordToPublish } from '../domains-api.ts'

/**
 * `missing`: no such record was found; `wrong`: another value was found; `elsewhere`: mail goes to other
 * hosts, which may be intended; `unchecked`: no check so far.
 */
export type RecordState = 'valid' | 'missing' | 'wrong' | 'elsewhere' | 'unchecked'

/** Other texts may share the name with an SPF record; they are not a mistake. */
const LOOKS_LIKE_SPF = /^\W*v\s*=\s*spf|^spf2/i

export function recordState({ record, valid, found, checked_at }: ExplainedRecord): RecordState {
  if (valid === 'valid') return 'valid'
  if (checked_at === undefined) return 'unchecked'
  const isSpf = record.purpose === 'spf' || record.purpose === 'return-path-spf'
  const rivals = isSpf ? found.filter((text) => LOOKS_LIKE_SPF.test(text)) : found
  if (rivals.length === 0) return 'missing'
  return record.purpose === 'mx' ? 'elsewhere' : 'wrong'
}

/** A domain can send without the others. */
export const isNeeded = ({ purpose }: RecordToPublish) =>
  purpose === 'dkim' || purpose === 'spf' || purpose === 'return-path-spf'

/** The found value to show: none if it is right, or one of several valid ones. */
export function foundToShow({ record, valid, found }: ExplainedRecord): string[] {
  const others = found.filter((text) => text !== record.value)
  return valid === 'valid' && found.length > 1 ? [] : others.filter((text) => text !== mxText(record))
}

/** As returned by a check. */
const mxText = ({ priority, value }: RecordToPublish) => `${priority} ${value}`

export interface RecordGroup {
  title: string
  /** The purpose, and the effect of its absence. */
  purpose: string
  records: ExplainedRecord[]
}

const LEAVE_OUT = 'Leave these out if the domain has its mailboxes elsewhere'
/** For a domain that is its own return path. */
const BOUNCES_COME_HERE = `For bounces that come after delivery, and mail to unsubscribe addresses. ${LEAVE_OUT}, and give it a return path of its own: mailfrom_host.`

const GROUPS: readonly { title: string; purpose: string; holds: readonly RecordPurpose[] }[] = [
  {
    title: 'Sending',
    purpose: 'Both are needed: DKIM lets receivers check the signatures, SPF names who may send.',
    holds: ['dkim', 'spf'],
  },
  {
    title: 'Return path',
    purpose:
      'Bounces that come after delivery are sent to this host. If its mail goes elsewhere they are lost.',
    holds: ['return-path-spf', 'return-path-mx'],
  },
  {
    title: 'Tracking',
    purpose:
      'For opens, clicks and unsubscribe links under your own name. Without it they use the name of this service.',
    holds: ['tracking'],
  },
  {
    title: 'Receiving',
    purpose: `For mail to unsubscribe addresses. ${LEAVE_OUT}.`,
    holds: ['mx'],
  },
  {
    title: 'MTA-STS',
    purpose:
      'Senders fetch the policy from this host, over https, and again when the id in the record is another one.',
    holds: ['mta-sts-host', 'mta-sts'],
  },
]

/** The records by purpose, those required for verification first, without empty groups. */
export function recordGroups(records: readonly ExplainedRecord[]): RecordGroup[] {
  const ownReturnPath = !records.some(({ record }) => record.purpose === 'return-path-mx')
  return GROUPS.map(({ title, purpose, holds }) => ({
    title,
    purpose: ownReturnPath && holds.includes('mx') ? BOUNCES_COME_HERE : purpose,
    records: records.filter(({ record }) => holds.includes(record.purpose)),
  })).filter((group) => group.records.length > 0)
}

/** Which of the two required kinds are not right yet, by the service's own rules. */
export function stillNeeded(records: readonly ExplainedRecord[]): ('DKIM' | 'SPF')[] {
  const of = (purpose: RecordPurpose) => records.filter(({ record }) => record.purpose === purpose)
  const isRight = ({ valid }: ExplainedRecord) => valid === 'valid'
  const keys = of('dkim')
  const managed = keys.some(({ record }) => record.type === 'CNAME')
  const signing = managed ? keys : keys.filter(({ record }) => record.is_active)
  // While no key signs, one right record is enough: that key will sign.
  const hasDkim = signing.length > 0 ? signing.every(isRight) : keys.some(isRight)
  const hasSpf = of('spf').every(isRight)
  return [...(hasDkim ? [] : (['DKIM'] as const)), ...(hasSpf ? [] : (['SPF'] as const))]
}

/** Unix milliseconds of the latest check of any record; undefined before the first. */
export function lastCheckedMs({ records, dmarc }: DomainDns): number | undefined {
  const times = [...records, dmarc].map(({ checked_at }) => Date.parse(checked_at ?? ''))
  const known = times.filter((ms) => Number.isFinite(ms))
  return known.length > 0 ? Math.max(...known) : undefined
}

const LONG_VALUE_CHARS = 120 // longer values would hide the message

/**
 * The message without what the page already shows: the question and the server at its beginning, and at its end a long
 * value, which is shown above with its copy button.
 */
export function advice(look: Pick<ExplainedRecord, 'asked' | 'server' | 'sentence'>, value: string): string {
  const at = look.asked.indexOf(' ')
  const [type, name] = [look.asked.slice(0, at), look.asked.slice(at + 1)]
  const source = `${look.server} was asked for ${type} records of ${name}. `
  const rest = look.sentence.startsWith(source) ? look.sentence.slice(source.length) : look.sentence
  return value.length > LONG_VALUE_CHARS && rest.endsWith(`: ${value}`)
    ? `${rest.slice(0, -value.length - 2)}, with the value above.`
    : rest
}

/** Title of a card: "DKIM key k1", "MX", ... */
export function recordTitle({
  purpose,
  name,
}: Pick<DnsChange['entries'][number], 'purpose' | 'name'>): string {
  switch (purpose) {
    case 'dkim':
      return `DKIM key ${name.split('._domainkey.', 1)[0]}`
    case 'spf':
      return 'SPF'
    case 'tracking':
      return 'Tracking host'
    case 'mx':
      return 'Mail host'
    case 'return-path-spf':
      return 'SPF of the return path'
    case 'return-path-mx':
      return 'Mail host of the return path'
    case 'mta-sts-host':
      return 'Host of the MTA-STS policy'
    case 'mta-sts':
      return 'Id of the MTA-STS policy'
    case 'dmarc':
      return 'DMARC policy'
    case 'tls-rpt':
      return 'Address for TLS reports'
  }
}
