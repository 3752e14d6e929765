/**
 * Accepting a message: from a checked draft to rows on disk.
 *
 * 1. What needs the account is checked: From domains, keys, source addresses, the template, the queue.
 * 2. The message gets its ids and header fields, large bodies become blobs.
 * 3. It is composed once, to know that it can be and how large it is.
 * 4. Message, one delivery per recipient and their accepted events are committed together.
 * 5. They enter the delivery engine, or it is woken. Only then is the call answered.
 */
import type { MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import { BadRequest, Forbidden } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { messageSize } from '../base/mime-message.ts'
import type { Delivery } from '../delivery/contract.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import type { MessageSummary } from '../events/event.ts'
import { addressKey, bareAddress, type Mailbox } from '../mime/address.ts'
import type { Statement, Store } from '../store/store.ts'
import type { KnownTags } from '../tags/known-tags.ts'
import {
  acceptedStatements,
  copyStatements,
  deliveryRows,
  type NewCopy,
  type RowParts,
} from './acceptance-rows.ts'
import {
  type ChosenTemplate,
  type ListExpander,
  type RecipientHabits,
  RenderError,
  type SandboxGate,
  type SourceChooser,
  type TemplateChooser,
} from './collaborators.ts'
import { isInline, type MessageContent, type MessageRecord, mimeFiles } from './content.ts'
import { type CopyParts, type CopyTarget, composeCopy } from './copy.ts'
import type { Draft } from './draft.ts'
import {
  findHeader,
  headerText,
  mailHeaders,
  messageIdOfCopy,
  newMessageId,
  readMessageId,
} from './headers.ts'
import { takePlaces } from './places.ts'
import type { QueueLimits } from './queue-limits.ts'
import type { MessageRecords } from './records.ts'
import { checkSecondaryKey, type SecondaryKeys } from './secondary-keys.ts'
import { messageStatement, type StoredBody, storeBody } from './stored-content.ts'
import { bestTimes, dueTime } from './timing.ts'
import { recipientLookup, usesRecipient } from './variables.ts'

/** Who sends, how, and for which domain. */
export interface Submission {
  domain: Domain
  method: 'http' | 'smtp'
  /** Of a submission; empty: the null sender. */
  envelopeSender?: string
  originatingIp: string | null
  keyId: string | null
  /**
   * Statements to commit with the message: what makes the call repeatable. `keepUntil`: Unix milliseconds of
   * the last delivery's due time.
   */
  also?(acceptance: Acceptance, keepUntil: number): readonly Statement[]
}

export interface Acceptance {
  /** Message-Id with its angle brackets. */
  id: string
  message: 'Queued. Thank you.'
}

export interface AcceptParts extends CopyParts, RowParts {
  store: Store
  domains: DomainDirectory
  records: MessageRecords
  clock: Clock
  templates: TemplateChooser
  habits: RecipientHabits
  sources: SourceChooser
  secondaryKeys: SecondaryKeys
  lists: ListExpander
  sandbox: SandboxGate
  tags: Pick<KnownTags, 'admit'>
  queueLimits: QueueLimits
  /** Unverified domains may send (capture mode). */
  allowUnverified: boolean
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wake' | 'wakeAt'>
  /** Told of each message and how many copies it has, before these are made. */
  accepted?(copies: number): void
}

const MESSAGE_BYTES_MAX = 25 * 1024 * 1024

const UNVERIFIED =
  'The domain is unverified and requires DNS configuration. Log in to your control panel to view required DNS records.'
const SANDBOX =
  'Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.'

const notAllowed = (domain: Domain, why: string) =>
  new Forbidden(`Domain ${domain.name} is not allowed to send: ${why}`)

/** @throws Forbidden when the domain cannot send now (messages.md rule 9) */
export function checkMaySend(domain: Domain, allowUnverified: boolean): void {
  if (domain.state === 'disabled') throw notAllowed(domain, 'The domain is disabled')
  if (domain.state === 'unverified' && !allowUnverified) throw notAllowed(domain, UNVERIFIED)
}

/**
 * Stores the message durably and queues it for every recipient.
 * @throws BadRequest, Forbidden, TooManyRequests with the contract's texts
 */
export async function acceptMessage(
  parts: AcceptParts,
  draft: Draft,
  submission: Submission,
): Promise<Acceptance> {
  const { store, clock } = parts
  const { domain } = submission
  const chosen = await checkDraft(parts, draft, domain)
  const now = clock.now()
  const admitted = parts.tags.admit(domain, draft.tags, now)
  const tags = admitted instanceof Promise ? await admitted : admitted
  const storing = storeBody(draft.body, parts.blobs)
  const body = storing instanceof Promise ? await storing : storing
  const record = makeRecord(draft, tags.tags, body, submission, chosen, now)
  await checkSize(parts, record, submission)
  const found = parts.lists.listsAmong(domain.accountId, draft.recipients)
  const lists = found instanceof Promise ? await found : found
  parts.accepted?.(draft.recipients.length)
  const making = copiesOf(parts, draft, record, now)
  const copies = making instanceof Promise ? await making : making
  const isList = ({ recipient }: NewCopy) => lists.has(addressKey(recipient))
  const direct = lists.size === 0 ? copies : copies.filter((copy) => !isList(copy))
  // The list's own address gets no mail, so there is no copy of its own that a batch's events could name.
  const viaLists = lists.size === 0 ? [] : copies.filter(isList).map((copy) => ({ ...copy, variables: null }))
  const template = record.summary.messageIdTemplate
  if (template !== undefined) record.content.repeatedIds = repeatedIds(template, direct)
  const acceptance: Acceptance = { id: template ?? `<${record.messageId}>`, message: 'Queued. Thank you.' }
  const keepUntil = copies.reduce((latest, { due }) => Math.max(latest, due.dueAt), now)
  const expansions =
    viaLists.length > 0 ? await expansionsOf(parts, draft, record, viaLists, direct, submission, now) : []
  const stored = messageStatement(parts.blobs, record)
  const content = stored instanceof Promise ? await stored : stored
  const rows = deliveryRows(record, parts.sources, direct, now)
  const places = takePlaces(parts.engine, rows)
  try {
    await store.commit([
      content,
      ...copyStatements(record, parts, direct, rows, now),
      ...(viaLists.length > 0
        ? acceptedStatements(record, parts, viaLists, deliveryRows(record, parts.sources, viaLists, now), now)
        : []),
      ...expansions,
      ...tags.statements,
      ...(submission.also?.(acceptance, keepUntil) ?? []),
    ])
  } catch (error) {
    places.cancel()
    throw error
  }
  if (copies.some(({ due }) => due.dueAt <= now)) parts.records.remember(record)
  parts.queueLimits.added(domain.id, direct.length)
  places.enter()
  if (viaLists.length > 0) parts.lists.wake()
  return acceptance
}

/** What the account and its other things must allow; gives the template. */
async function checkDraft(parts: AcceptParts, draft: Draft, domain: Domain): Promise<ChosenTemplate | null> {
  const queues = parts.queueLimits.check(domain)
  if (queues instanceof Promise) await queues
  const foreign = draft.from.filter((from) => from.domain !== domain.name)
  if (foreign.length > 0) await checkFromDomains(parts.domains, foreign, domain)
  if (domain.type === 'sandbox') await checkSandbox(parts.sandbox, domain, draft.recipients)
  parts.sources.check(domain, draft.options)
  const { secondaryDkim } = draft.options
  if (secondaryDkim !== null) await checkSecondaryKey(parts.secondaryKeys, domain.accountId, secondaryDkim)
  const chosen = draft.template ? await parts.templates.choose(domain, draft.template) : null
  if (draft.subject === null && draft.body.kind === 'parts' && chosen?.headers['Subject'] === undefined) {
    throw new BadRequest('subject parameter is missing')
  }
  return chosen
}

/** @throws Forbidden when a sandbox domain may not send to one of them */
export async function checkSandbox(
  gate: SandboxGate,
  domain: Domain,
  recipients: readonly Mailbox[],
): Promise<void> {
  if (domain.type !== 'sandbox' || (await gate.mayReceive(domain, recipients))) return
  throw notAllowed(domain, SANDBOX)
}

async function checkFromDomains(
  domains: DomainDirectory,
  authors: readonly Mailbox[],
  domain: Domain,
): Promise<void> {
  for (const author of authors) {
    const other = await domains.byName(author.domain)
    if (other && other.accountId !== domain.accountId) {
      throw new Forbidden(`From domain ${author.domain} belongs to another account`)
    }
  }
}

function makeRecord(
  draft: Draft,
  tags: readonly string[],
  body: StoredBody,
  submission: Submission,
  chosen: ChosenTemplate | null,
  now: number,
): MessageRecord {
  const { domain } = submission
  const messageId = givenMessageId(draft) ?? newMessageId(now, domain.name)
  const content: MessageContent = {
    headers: mailHeaders(draft, { domainName: domain.name, messageId, date: new Date(now) }),
    template:
      chosen && draft.template
        ? { chosen, variables: draft.template.variables, text: draft.template.text }
        : null,
    batch: draft.recipientVariables !== null,
    ...body,
  }
  const id = newId(now)
  const summary = summarise(draft, tags, content, submission, chosen)
  if (content.batch) {
    summary.batchId = id
    const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')?.[1]
    if (given !== undefined && usesRecipient(given)) summary.messageIdTemplate = given
  }
  return {
    id,
    accountId: domain.accountId,
    domainId: domain.id,
    domainName: domain.name,
    messageId,
    summary,
    options: draft.options,
    content,
    createdAt: now,
  }
}

/** Ids that more than one copy would have, each with the address key of the first of them. */
function repeatedIds(template: string, copies: readonly NewCopy[]): Record<string, string> {
  const first = new Map<string, string>()
  const repeated: Record<string, string> = {}
  for (const { recipient, variables } of copies) {
    const id = messageIdOfCopy(template, recipientLookup(recipient, variables ?? {}))
    if (id === null) continue
    const holder = first.get(id)
    if (holder === undefined) first.set(id, addressKey(recipient))
    else repeated[id] = holder
  }
  return repeated
}

/** The last valid one of the call, else that of the MIME message. */
function givenMessageId(draft: Draft): string | null {
  const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')?.[1]
  const own = given !== undefined && draft.recipientVariables && usesRecipient(given) ? undefined : given
  const inside =
    draft.body.kind === 'mime'
      ? draft.body.source.headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value
      : undefined
  return (
    (own === undefined ? null : readMessageId(own)) ?? (inside === undefined ? null : readMessageId(inside))
  )
}

function summarise(
  draft: Draft,
  tags: readonly string[],
  content: MessageContent,
  submission: Submission,
  chosen: ChosenTemplate | null,
): MessageSummary {
  const [sender] = draft.from
  const from = findHeader(content.headers, 'from')?.[1] ?? `postmaster@${submission.domain.name}`
  return {
    from: chosen && draft.from.length === 0 ? '' : from,
    to: headerText(content.headers, 'to'),
    subject: headerText(content.headers, 'subject'),
    sender: sender ? bareAddress(sender) : `postmaster@${submission.domain.name}`,
    recipients: draft.recipients.map((mailbox) => bareAddress(mailbox)),
    attachments: attachmentsOf(content),
    sizeBytes: 0,
    tags: [...tags],
    userVariables: draft.userVariables,
    testMode: draft.options.testMode,
    ...(draft.options.optimizeHours !== null && { optimized: true }),
    method: submission.method,
    originatingIp: submission.originatingIp,
    keyId: submission.keyId,
    template:
      chosen && draft.template
        ? { name: chosen.name, version: chosen.version, isText: draft.template.text }
        : null,
  }
}

/** Files that a reader sees as such: what an html part shows inside itself is none (messages.md rule 11). */
function attachmentsOf(content: MessageContent): MessageSummary['attachments'] {
  if (content.kind === 'parts') {
    return content.files
      .filter(({ disposition }) => disposition === 'attachment')
      .map((file) => ({
        filename: file.filename,
        'content-type': file.contentType,
        size: file.sizeBytes,
      }))
  }
  return mimeFiles(content)
    .filter((file) => !isInline(file))
    .map((file) => ({
      filename: file.filename,
      'content-type': file.type,
      size: file.sizeBytes,
    }))
}

/** The message as its sender wrote it. */
const WHOLE: CopyTarget = { delivery: null, recipient: null, variables: null, list: null }

/** Composes the message once and notes its size. @throws BadRequest over 25 MB */
async function checkSize(
  parts: AcceptParts,
  record: MessageRecord,
  { domain, method }: Submission,
): Promise<void> {
  try {
    const { message } = await composeCopy(parts, record, domain, WHOLE)
    record.summary.sizeBytes = messageSize(message)
  } catch (error) {
    // By HTTP a template that fails for these variables is told by a `rejected` event of each recipient
    // (templates.md rule 25); SMTP answers at once (smtp-submission.md rule 29).
    if (!(error instanceof RenderError)) throw error
    if (method === 'smtp') throw new BadRequest('Template render error', { cause: error })
  }
  if (record.summary.sizeBytes > MESSAGE_BYTES_MAX) {
    throw new BadRequest('Message is too large, max size is 25MB')
  }
}

/** The lists' part of the transaction; what the call says of members stays with the message. */
async function expansionsOf(
  parts: AcceptParts,
  draft: Draft,
  record: MessageRecord,
  viaLists: readonly NewCopy[],
  direct: readonly NewCopy[],
  { method, envelopeSender }: Submission,
  now: number,
): Promise<readonly Statement[]> {
  if (draft.recipientVariables) record.content.listVariables = Object.fromEntries(draft.recipientVariables)
  const post = {
    accountId: record.accountId,
    ...(method === 'smtp'
      ? { way: 'smtp' as const, envelopeSender: envelopeSender || null }
      : { way: 'api' as const }),
    messagePk: record.id,
    headers: record.content.headers.map(([name, value]) => [name, value] as const),
    lists: viaLists.map(({ recipient }) => recipient),
    exclude: direct.map(({ recipient }) => bareAddress(recipient)),
  }
  return parts.lists.expansionStatements(post, now)
}

function copiesOf(
  parts: AcceptParts,
  draft: Draft,
  record: MessageRecord,
  now: number,
): MaybePromise<NewCopy[]> {
  const { options, recipientVariables } = draft
  const start = Math.max(options.deliveryTime ?? 0, now)
  if (recipientVariables !== null || options.optimizeHours !== null || options.localMinute !== null)
    return personalCopies(parts, draft, record, start)
  const due = dueTime(start, options)
  return draft.recipients.map((recipient) => ({ recipient, variables: null, due, list: null }))
}

/** With variables or a time of their own. */
async function personalCopies(
  parts: AcceptParts,
  { options, recipientVariables, recipients }: Draft,
  record: MessageRecord,
  start: number,
): Promise<NewCopy[]> {
  const domain = { accountId: record.accountId, name: record.domainName }
  const own = await bestTimes(parts.habits, domain, record.summary.recipients, options, start)
  return recipients.map((recipient) => {
    const key = recipientVariables || own.size > 0 ? addressKey(recipient) : ''
    return {
      recipient,
      variables: recipientVariables ? (recipientVariables.get(key) ?? {}) : null,
      due: dueTime(own.get(key) ?? start, options),
      list: null,
    }
  })
}
