/**
 * Whether a message is accepted, and when and how each recipient gets it: a function of the draft, the facts
 * (send-facts.ts) and the time. The checks run in the contract's order (messages.md rule 1): of several faults the first
 * one answers. The last check, the size of the built message, needs the message itself (accept.ts).
 */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { BadRequest, Forbidden, type ServiceError, TooManyRequests } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { quotable } from '../../base/values.ts'
import { maySend } from '../../people/accounts/account-directory.ts'
import { limitReached } from '../../people/message-limits/limits.ts'
import { addressKey, type Mailbox } from '../../protocols/mime/address.ts'
import { type Domain, refusesMail, sendTime } from '../../sending/domains/domain.ts'
import { type AdmittedTags, admitTags } from '../../watching/tags/known-tags.ts'
import { LIFETIME_MS } from '../deliver/attempt/schedule.ts'
import { foreignAuthor } from '../record/authors.ts'
import type { MessageOptions, RecipientVariables } from '../record/options.ts'
import type { ChosenTemplate, ListCopy } from '../record/record.ts'
import type { Draft } from '../request/draft.ts'
import { invalidArchive, invalidKey } from '../request/options.ts'
import { QUEUE_DISABLED_REASON } from '../stored/queue-limits.ts'
import type { SendFacts, SendFactsParts } from './send-facts.ts'

export type Decision = Accepted | { kind: 'rejected'; error: ServiceError }

export interface NewCopy {
  recipient: Mailbox
  /** Not null in batch and list mode. */
  variables: RecipientVariables | null
  due: DueTime
  list: ListCopy | null
}

export interface Accepted {
  kind: 'accepted'
  template: ChosenTemplate | null
  /** Tags that the message carries. */
  tags: readonly string[]
  /** The tags among them that the domain has not used before. */
  newTags: readonly string[]
  /** Recipients that get a copy. */
  direct: readonly NewCopy[]
  /** Recipients that are mailing lists: accepted, then expanded. */
  viaLists: readonly NewCopy[]
  /** When the last of them is due. */
  lastDueAt: number
}

const NO_TAGS: AdmittedTags = { tags: [], newTags: [] }

/** Pure. */
export function decide(draft: Draft, facts: SendFacts, now: number): Decision {
  const error = faultOf(draft, facts, now)
  if (error !== null) return { kind: 'rejected', error }
  const copies = copiesOf(draft, facts, now)
  const isList = ({ recipient }: NewCopy) => facts.lists.has(addressKey(recipient))
  const hasLists = facts.lists.size > 0
  return {
    kind: 'accepted',
    template: facts.template as ChosenTemplate | null, // a BadRequest was returned above
    ...(draft.tags.length === 0 ? NO_TAGS : admitTags(draft.tags, facts.tags)),
    direct: hasLists ? copies.filter((copy) => !isList(copy)) : copies,
    // A list's own address gets no mail, so there is no copy that a batch's events could name.
    viaLists: hasLists ? copies.filter(isList).map((copy) => ({ ...copy, variables: null })) : [],
    lastDueAt: copies.reduce((latest, { due }) => Math.max(latest, due.dueAt), now),
  }
}

function faultOf(draft: Draft, facts: SendFacts, now: number): ServiceError | null {
  const { domain } = facts
  return (
    accountFault(domain, facts.accountMaySend) ??
    stateFault(domain, facts.allowUnverified) ??
    queueFault(domain, facts.queueDisabledUntil, now) ??
    limitFault(domain, facts.limitReached) ??
    authorFault(facts) ??
    sandboxFault(domain, facts.recipientsAllowed) ??
    sourceFault(draft, facts) ??
    keyFault(draft, facts) ??
    archiveFault(draft, facts) ??
    templateFault(draft, facts)
  )
}

const notAllowed = (domain: Domain, why: string) =>
  new Forbidden(`Domain ${domain.name} is not allowed to send: ${why}`)

const UNVERIFIED =
  'The domain is unverified and requires DNS configuration. Log in to your control panel to view required DNS records.'
const SANDBOX =
  'Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.'

const accountFault = (domain: Domain, maySend: boolean): ServiceError | null =>
  maySend ? null : notAllowed(domain, 'The subaccount is disabled.')

function stateFault(domain: Domain, allowUnverified: boolean): ServiceError | null {
  if (refusesMail(domain)) return notAllowed(domain, 'The domain is disabled')
  return domain.state === 'unverified' && !allowUnverified ? notAllowed(domain, UNVERIFIED) : null
}

/** @throws Forbidden when the domain cannot send now (messages.md rule 9) */
export function checkMaySend(
  domain: Domain,
  { accountMaySend, allowUnverified }: Pick<SendFacts, 'accountMaySend' | 'allowUnverified'>,
): void {
  const fault = accountFault(domain, accountMaySend) ?? stateFault(domain, allowUnverified)
  if (fault) throw fault
}

/** A queue of the domain held too many messages (messages.md rule 47). */
export function queueFault(domain: Domain, disabledUntil: number, now: number): ServiceError | null {
  if (disabledUntil <= now) return null
  const seconds = Math.max(1, Math.ceil((disabledUntil - now) / 1000))
  const text = `Domain ${domain.name} is not allowed to send: ${QUEUE_DISABLED_REASON}, try again after ${seconds} seconds`
  return new TooManyRequests(seconds, text)
}

/** The recipients would pass the monthly limit (accounts.md section 5). */
export const limitFault = (domain: Domain, isReached: boolean): ServiceError | null =>
  isReached ? limitReached(domain.name) : null

/** From may name any domain except one of another account (messages.md rule 5). */
const authorFault = ({ foreignAuthor: domain }: SendFacts): ServiceError | null =>
  domain === null ? null : foreignAuthor(domain)

export const sandboxFault = (domain: Domain, recipientsAllowed: boolean): ServiceError | null =>
  recipientsAllowed ? null : notAllowed(domain, SANDBOX)

function sourceFault({ options }: Draft, facts: SendFacts): ServiceError | null {
  if (options.sendingIp !== null && !facts.sendingIpAllowed) return sendingIpNotAllowed(options.sendingIp)
  if (options.sendingIpPool !== null && !facts.poolExists) return unknownPool(options.sendingIpPool)
  return facts.relayAllowed ? null : unknownRelay(options.relay ?? '')
}

function keyFault({ options: { secondaryDkim } }: Draft, facts: SendFacts): ServiceError | null {
  return secondaryDkim !== null && !facts.secondaryKeyExists ? invalidKey(secondaryDkim.given) : null
}

const archiveFault = ({ options: { archiveTo } }: Draft, facts: SendFacts): ServiceError | null =>
  archiveTo !== null && !facts.archiveAllowed ? invalidArchive(archiveTo) : null

/** First the template itself, then the subject, which it may have to supply. */
function templateFault({ subject, body }: Draft, { template }: SendFacts): ServiceError | null {
  if (template instanceof BadRequest) return template
  const missing = subject === null && body.kind === 'parts' && template?.headers['Subject'] === undefined
  return missing ? new BadRequest('subject parameter is missing') : null
}

function copiesOf(
  { options, recipientVariables, recipients }: Draft,
  { bestTimes, domain }: Pick<SendFacts, 'bestTimes' | 'domain'>,
  now: number,
): NewCopy[] {
  const start = Math.max(options.deliveryTime ?? 0, now)
  if (recipientVariables === null && bestTimes.size === 0) {
    const due = dueTime(sendTime(start, options, domain), options)
    return recipients.map((recipient) => ({ recipient, variables: null, due, list: null }))
  }
  return recipients.map((recipient) => {
    const key = addressKey(recipient)
    return {
      recipient,
      variables: recipientVariables ? (recipientVariables.get(key) ?? {}) : null,
      due: dueTime(sendTime(bestTimes.get(key) ?? start, options, domain), options),
      list: null,
    }
  })
}

const sendingIpNotAllowed = (ip: string) =>
  new Forbidden(`Rejected: IP ${quotable(ip)} can't be used to send the message`)

const unknownPool = (id: string) =>
  new BadRequest(`${quotable(id)} is not a valid IP pool (value of 'o:sending-ip-pool')`)

const unknownRelay = (name: string) =>
  new BadRequest(`${quotable(name)} is not a valid relay (value of 'o:relay')`)

/** Where the domain says nothing. */
export const SCHEDULE_MAX_MS = 7 * DAY_MS

/** How far ahead a delivery time may lie (rule 41). */
export const scheduleMaxMs = (domain: Domain) =>
  domain.messageTtlSeconds > 0 ? domain.messageTtlSeconds * 1000 : SCHEDULE_MAX_MS

export interface DueTime {
  dueAt: number
  expiresAt: number
}

/** Due and end of one delivery; whole milliseconds. */
export function dueTime(dueAt: number, options: MessageOptions): DueTime {
  return { dueAt: Math.floor(dueAt), expiresAt: Math.floor(dueAt + (options.deliverWithinMs ?? LIFETIME_MS)) }
}

/** @throws Forbidden when the domain cannot send now (messages.md rule 9) */
export const checkSender = (
  { accounts, allowUnverified }: Pick<SendFactsParts, 'accounts' | 'allowUnverified'>,
  domain: Domain,
): MaybePromise<void> =>
  whenKnown(accounts.byId(domain.accountId), (account) => {
    checkMaySend(domain, { accountMaySend: maySend(account), allowUnverified })
  })
