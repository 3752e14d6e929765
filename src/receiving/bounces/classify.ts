/**
 * What a failed attempt means: whose fault it is, and what follows for the recipient. Pure.
 *
 * 1. The text is built: code, enhanced code, all lines joined by blanks. IP addresses become `ip`, the recipient's
 *    addresses `addr`, the sender's `from-addr` and its domain `from-domain`: so none of them looks like a word or a code
 *    of a rule, and "<from-addr>: user unknown" is not about the recipient.
 * 2. Patterns are tried in the order of what they prove (rules.ts), each over the whole text (protocols/smtp/reply-pattern.ts).
 *
 * Measured (Node 24, CPU of one core, 486 patterns of 102 rules), microseconds a reply: samples of rules 8, a reply no rule
 * knows 6, hostile texts 65 in the mean and up to 2,800. JavaScript's own expressions take 570,000 for the worst text of
 * 64 KB, and an operator's pattern has no bound at any length.
 */
import { isIP } from 'node:net'
import { type Category, type Fault, type Rule, type RuleSet, type Trial, UNCLASSIFIED } from './rules.ts'

/** Addresses that a reply may repeat. */
interface EnvelopeAddresses {
  recipients: readonly string[]
  senders: readonly string[]
}

/** A reply, or a condition of our own in the same form. */
export interface FailureText {
  /** 400 to 699. */
  code: number
  /** Such as "5.1.1"; null: none is known. */
  enhanced: string | null
  /** The enhanced code is what another server made of a reply that has none. Default: false. */
  isGuessed?: boolean
  /** It was said in reply to the content, not to an address. Default: false. */
  isOfContent?: boolean
  /** One or more lines, with or without the codes in front. */
  text: string
  envelope: EnvelopeAddresses
  /** No further attempt will be made. */
  permanent: boolean
}

export interface Classification {
  ruleId: string
  entity: string
  category: Category
  fault: Fault
  severity: 'PERMANENT' | 'TEMPORARY'
  critical: boolean
  explanation: string
  /** For `addBounce` of sending/suppressions/automatic.ts; null: it says nothing about the recipient. */
  suppression: 'hard' | 'soft' | null
}

/** Characters of a reply that are read. Real ones have 80 to 600; a server may send 400,000. */
const TEXT_LENGTH_MAX = 1_024

/** bounce-classification.md section 2. */
export function classify(rules: RuleSet, failure: FailureText): Classification {
  const { id, entity, category, fault, critical, explanation } = ruleOf(rules, failure)
  const severity = failure.permanent ? 'PERMANENT' : 'TEMPORARY'
  const suppression = suppressionOf(fault, failure)
  return { ruleId: id, entity, category, fault, severity, critical, explanation, suppression }
}

/**
 * What a failure adds to the suppressions (suppressions.md section 6), for replies and for notifications alike. Only 5xx
 * are hard: a 4xx that has become final by age has never said that the mailbox is gone. In reply to the content only a
 * code that says so is: carriers answer "unknown user" when the recipient's own filter refuses a mail.
 */
function suppressionOf(fault: Fault, failure: FailureText): Classification['suppression'] {
  const { code, enhanced, isOfContent, permanent } = failure
  if (!permanent) return null
  switch (fault) {
    case 'recipient-gone':
      return code < 500 || (isOfContent && !enhanced?.startsWith('5.1.')) ? 'soft' : 'hard'
    case 'recipient-closed':
    case 'receiver':
    case 'unknown':
      return 'soft'
    case 'sender':
    case 'host':
    case 'content':
    case 'policy':
      return null
  }
}

function ruleOf({ trials, prefilter }: RuleSet, failure: FailureText): Rule {
  const text = matchText(failure)
  const replyClass = `${Math.floor(failure.code / 100)}xx`
  const found = prefilter(text, (index) => {
    const { rule, pattern, evidence } = trials[index] as Trial
    return (
      (rule.replyClass === 'any' || rule.replyClass === replyClass) &&
      (evidence !== 'gone-code' || !failure.isGuessed) &&
      pattern.isIn(text)
    )
  })
  return found === null ? UNCLASSIFIED : (trials[found] as Trial).rule
}

/** Any return path of ours (mail/deliver/attempt/return-path.ts); servers repeat it, and the token would not help. */
const RETURN_PATH = /bounce\+[\w=+-]{1,64}@[\w.-]{1,255}/g

/** The text that rules are matched against, in lower case; exported for tests. */
export function matchText({ code, enhanced, text, envelope }: FailureText): string {
  const joined = joinLines(text.slice(0, TEXT_LENGTH_MAX).toLowerCase(), String(code))
  const whole =
    enhanced !== null && !joined.includes(enhanced) ? `${code} ${enhanced} ${joined}` : `${code} ${joined}`
  return maskIps(maskEnvelope(whole, envelope), 'ip').slice(0, TEXT_LENGTH_MAX)
}

function maskEnvelope(text: string, { recipients, senders }: EnvelopeAddresses): string {
  let masked = text
  for (const address of recipients) {
    if (address.includes('@')) masked = masked.replaceAll(address.toLowerCase(), 'addr')
  }
  if (masked.includes('bounce+')) masked = masked.replace(RETURN_PATH, 'from-addr')
  for (const address of senders) {
    const sender = address.toLowerCase()
    const domain = sender.slice(sender.lastIndexOf('@') + 1)
    // Most replies do not name the sender.
    if (!sender.includes('@') || !masked.includes(domain)) continue
    masked = masked.replaceAll(sender, 'from-addr')
    // A reply about the recipient may name the domain that both have.
    const isShared = recipients.some((recipient) => recipient.toLowerCase().endsWith(domain))
    if (!isShared) masked = masked.replaceAll(domain, 'from-domain')
  }
  return masked
}

/** Joins lines, without the code that each repeats. */
function joinLines(text: string, code: string): string {
  const withoutCode = (line: string) =>
    line.startsWith(code) && /^[ -]|^$/.test(line.slice(code.length, code.length + 1))
      ? line.slice(code.length + 1)
      : line
  return text
    .split(/[\r\n]+/)
    .map((line) => withoutCode(line.trim()).trim())
    .filter((line) => line !== '')
    .join(' ')
}

// Long enough for any address; the count bounds the search.
const IP_LIKE = /(?:(?<=ipv6:)|(?<![\w.:]))[0-9a-f:][0-9a-f.:]{2,44}/gi

function maskIps(text: string, by: string): string {
  return text.replace(IP_LIKE, (found, at: number) => {
    const address = found.replace(/[.:]+$/, '')
    const after = text[at + found.length] ?? ''
    const isWhole = address.length < found.length || !/\w/.test(after)
    return isWhole && isIP(address) !== 0 ? by + found.slice(address.length) : found
  })
}

const ADDRESS = /(?<![\w.!#$%&'*+/=?^`{|}~-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255}/g

/** A reply that can be shown to others: mail and IP addresses masked, the rest limited in length. */
export function maskedSample(code: number, text: string): string {
  const joined = joinLines(text.slice(0, TEXT_LENGTH_MAX), String(code))
  return maskIps(`${code} ${joined}`.replaceAll('\0', '').replace(ADDRESS, 'ADDR'), 'IP').slice(
    0,
    SAMPLE_LENGTH_MAX,
  )
}

/** Length of a reply shown in statistics. */
const SAMPLE_LENGTH_MAX = 512

/** The reason of events.md for a failure: a server's reply, or a condition of our own. */
const REASONS: Readonly<Record<Category, string>> = {
  BOUNCE: 'bounce',
  ESPBLOCK: 'espblock',
  BLACKLISTED: 'blacklisted',
  CONTENT: 'espblock',
  AUTHENTICATION: 'espblock',
  RATELIMIT: 'espblock',
  GREYLISTED: 'greylisted',
  MAILBOXFULL: 'generic',
  TECHNICAL: 'generic',
  GENERIC: 'generic',
}

/**
 * `reason` of the failed event of an immediate failure. That a mailbox is gone is a final statement: in a 4xx, before
 * the recipient was named, or in reply to the content, the same words do not mean it.
 */
export function reasonOf({ category, severity, suppression }: Classification): string {
  const isUnsaid = severity === 'TEMPORARY' || suppression === 'soft'
  return category === 'BOUNCE' && isUnsaid ? 'generic' : REASONS[category]
}
