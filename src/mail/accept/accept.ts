/**
 * Accepting a message: from a checked draft to rows on disk. This is the file to begin with in this folder.
 *
 * 1. Everything that the decision needs to know is loaded (send-facts.ts).
 * 2. The message is rejected, or not: a pure function of draft, facts and time (decide.ts).
 * 3. Its bodies are stored; it gets its ids and header fields (rows.ts).
 * 4. It is composed once, to check that it can be and to know its size.
 * 5. Message, one delivery per recipient and their accepted events are committed together (rows.ts). Posts to
 *    mailing lists get a row each, for expansion after the answer.
 * 6. The deliveries enter the engine's slots, or the engine is notified. Then the call is answered.
 */

import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { failPoint } from '../../base/flow/fail-point.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { CountedMail, MessageLimits } from '../../people/message-limits/limits.ts'
import type { FreeSpace } from '../../platform/store/blobs/free-space.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import { type Statement, type Store, StoreUnavailable } from '../../platform/store/store.ts'
import type { Tracing } from '../../platform/traces/tracing.ts'
import { messageSize } from '../../protocols/message/mime-message.ts'
import { bareAddress } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import type { EngineRelays } from '../../sending/relays/engine-relays.ts'
import { type KnownTags, newTagStatements } from '../../watching/tags/known-tags.ts'
import { type ComposedCopy, type CopyParts, composeCopy } from '../compose/copy.ts'
import { headerText } from '../compose/headers.ts'
import type { SecondaryKeys } from '../compose/secondary-keys.ts'
import type { Delivery, Reservation } from '../deliver/contract.ts'
import { authorFault } from '../record/authors.ts'
import type { CopyTarget, MessageRecord, MessageRecords } from '../record/record.ts'
import { RenderError } from '../record/variables.ts'
import type { Draft } from '../request/draft.ts'
import type { QueueLimits } from '../stored/queue-limits.ts'
import type { ACCEPTANCE } from '../stored/shapes.ts'
import { type Accepted, decide } from './decide.ts'
import type { ListExpander } from './list-recipients.ts'
import {
  acceptedStatements,
  copyStatements,
  deliveryRows,
  type MessageOrigin,
  makeRecord,
  messageStatement,
  type RowParts,
  sourceKeys,
  storeBody,
} from './rows.ts'
import { loadFacts, type SendFactsParts } from './send-facts.ts'

export interface Submission extends MessageOrigin {
  /** The span of the request; undefined or absent: it is not traced. */
  traceparent?: string | undefined
  /** MAIL FROM of SMTP submission; empty: the null sender. */
  envelopeSender?: string
  /**
   * Statements to commit with the message, which make the call repeatable. `keepUntil`: when the last delivery is due,
   * in Unix milliseconds.
   */
  also?(acceptance: Acceptance, keepUntil: number): readonly Statement[]
}

export type Acceptance = Of<typeof ACCEPTANCE>

/** The store as acceptance commits to it: nothing is taken in below the floor of free space. */
export function acceptingStore(store: Store, space: Pick<FreeSpace, 'check'>): Store {
  return {
    ...store,
    async commit(unit) {
      space.check()
      failPoint('accept-before-commit')
      const results = await store.commit(unit)
      failPoint('accept-after-commit')
      return results
    },
  }
}

export interface AcceptParts extends CopyParts, RowParts, SendFactsParts {
  store: Store
  domains: DomainDirectory
  records: MessageRecords
  clock: Clock
  sources: Sources
  relays: Pick<EngineRelays, 'mayAsk' | 'keysFor'>
  secondaryKeys: SecondaryKeys
  lists: ListExpander
  tags: Pick<KnownTags, 'known' | 'used'>
  queueLimits: QueueLimits
  limits: MessageLimits
  /** The configured prefix and its aliases. */
  headerPrefixes: readonly string[]
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wake' | 'wakeAt'>
  tracing: Tracing | undefined
  /** Called for each message with the number of its copies, before these are made. Null: nobody wants to know. */
  accepted: ((copies: number) => void) | null
}

/**
 * Stores the message durably and queues it for every recipient.
 * @throws BadRequest, Forbidden, NotFound, TooManyRequests with the contract's texts; then nothing was stored
 */
export function acceptMessage(parts: AcceptParts, draft: Draft, submission: Submission): Promise<Acceptance> {
  const { tracing, clock } = parts
  if (tracing === undefined) return accept(parts, draft, submission)
  return traceAcceptance(tracing, clock, submission, draft.recipients.length, (traceparent) =>
    accept(parts, { ...draft, options: { ...draft.options, traceparent } }, submission),
  )
}

async function accept(parts: AcceptParts, draft: Draft, submission: Submission): Promise<Acceptance> {
  const facts = await loadFacts(parts, draft, submission.domain, parts.clock.now())
  const now = parts.clock.now()
  const decision = decide(draft, facts, now)
  if (decision.kind === 'rejected') throw decision.error
  const { direct, viaLists, newTags, lastDueAt } = decision
  if (decision.tags.length > 0) parts.tags.used(facts.domain, decision)
  const record = await newRecord(parts, draft, decision, submission, now)
  parts.accepted?.(draft.recipients.length)
  const id = record.summary.messageIdTemplate ?? `<${record.messageId}>`
  const acceptance: Acceptance = { id, message: 'Queued. Thank you.' }
  const listPosts =
    viaLists.length > 0 ? await listPostStatements(parts, record, decision, submission, now) : []
  const message = await messageStatement(parts.blobs, record)
  const keyOf = sourceKeys(parts, record, facts.domain)
  const rows = deliveryRows(record, keyOf, direct, now)
  const reservations = reserveSlots(parts.engine, rows)
  try {
    const unit = [
      message,
      ...copyStatements(record, parts, direct, rows, now),
      ...listPosts,
      ...(newTags.length > 0 ? newTagStatements(facts.domain, newTags, now) : []),
      ...(submission.also?.(acceptance, lastDueAt) ?? []),
    ]
    await parts.limits.commit(countedMail(parts, record, decision), unit, (all) => parts.store.commit(all))
  } catch (error) {
    reservations.cancel(error instanceof StoreUnavailable)
    throw error
  }
  if (isDue(direct, now) || isDue(viaLists, now)) parts.records.remember(record)
  parts.queueLimits.added(facts.domain.id, direct.length)
  reservations.enter()
  if (viaLists.length > 0) parts.lists.wake()
  return acceptance
}

/** What a message counts against monthly limits (accounts.md section 5). */
function countedMail(
  { lists }: Pick<AcceptParts, 'lists'>,
  { accountId, domainName }: MessageRecord,
  { direct, viaLists }: Accepted,
): CountedMail {
  const mail = { accountId, domainName, recipients: direct.length + viaLists.length }
  if (viaLists.length === 0) return mail
  const addresses = viaLists.map(({ recipient }) => recipient)
  return { ...mail, later: (upTo) => lists.countMembers(accountId, addresses, upTo) }
}

const isDue = (copies: Accepted['direct'], now: number) => copies.some(({ due }) => due.dueAt <= now)

export const MESSAGE_BYTES_MAX = 25 * 1024 * 1024

/** The message as its sender wrote it. */
const WHOLE: CopyTarget = { delivery: null, recipient: null, variables: null, list: null }

/**
 * The record with its size; its bodies are stored.
 * @throws BadRequest for a message that cannot be composed, or over 25 MB; Forbidden for an author of another account
 */
function newRecord(
  parts: AcceptParts,
  draft: Draft,
  accepted: Accepted,
  submission: Submission,
  now: number,
): MaybePromise<MessageRecord> {
  return whenKnown(storeBody(draft.body, parts.blobs), (body) => {
    const record = makeRecord(draft, accepted, body, submission, now)
    const made = record.content.template
      ? rendered(parts, record, submission)
      : composed(parts, record, submission.domain)
    return whenKnown(made, ({ sizeBytes, author }) => {
      if (sizeBytes > MESSAGE_BYTES_MAX) throw new BadRequest('Message is too large, max size is 25MB')
      record.summary.sizeBytes = sizeBytes
      if (author === null || !isAuthorOfAll(record, accepted)) return record
      return whenKnown(authorFault(parts.domains, submission.domain, author), (fault) => {
        if (fault) throw fault
        return record
      })
    })
  })
}

interface Made extends Pick<ComposedCopy, 'author'> {
  sizeBytes: number
}

const composed = (parts: AcceptParts, record: MessageRecord, domain: Domain): MaybePromise<Made> =>
  whenKnown(composeCopy(parts, record, domain, WHOLE), ({ message, author }) => ({
    sizeBytes: messageSize(message),
    author,
  }))

/** Whether the author of the message as its sender wrote it is that of every copy: recipient variables change nothing. */
function isAuthorOfAll({ content }: MessageRecord, { template, viaLists }: Accepted): boolean {
  if (!content.batch && viaLists.length === 0) return true
  const ofTemplate = headerText(content.headers, 'from').trim() === '' ? template?.headers['From'] : undefined
  return ofTemplate !== undefined && !/\{\{|%/.test(ofTemplate)
}

/** Size 0 where the template fails. @throws BadRequest where SMTP rejects that */
async function rendered(parts: AcceptParts, record: MessageRecord, { domain, method }: Submission) {
  try {
    return await composed(parts, record, domain)
  } catch (error) {
    // By HTTP a template that fails for these variables is reported by a `rejected` event of each recipient
    // (templates.md rule 25); SMTP answers at once (smtp-submission.md rule 29).
    if (!(error instanceof RenderError)) throw error
    if (method === 'smtp') throw new BadRequest('Template render error', { cause: error })
    return { sizeBytes: 0, author: null }
  }
}

/**
 * The lists' part of the transaction: accepted events of their addresses, and their expansions. Whether a list distributes
 * the post depends on the header fields of the message, so that is looked up here and not with the facts.
 */
async function listPostStatements(
  parts: AcceptParts,
  record: MessageRecord,
  { direct, viaLists }: Accepted,
  { method, envelopeSender }: Submission,
  now: number,
): Promise<readonly Statement[]> {
  const { accountId } = record
  const headers = record.content.headers.map(([name, value]) => [name, value] as const)
  const expansions = await parts.lists.expansionStatements(
    {
      post:
        method === 'smtp'
          ? { way: 'smtp', accountId, headers, envelopeSender: envelopeSender || null }
          : { way: 'api', accountId, headers },
      messagePk: record.id,
      lists: viaLists.map(({ recipient }) => recipient),
      exclude: direct.map(({ recipient }) => bareAddress(recipient)),
    },
    now,
  )
  // Nothing is sent to the list's own address.
  const rows = deliveryRows(record, () => '', viaLists, now)
  return [...acceptedStatements(record, parts, viaLists, rows, now), ...expansions]
}

/** Exactly one of the two must be called. */
export interface Reservations {
  /** The rows are on disk. */
  enter(): void
  /** They are not; `mayExist`: the database went away before it answered, so they may be there all the same. */
  cancel(mayExist: boolean): void
}

/** Turns rows that are due now into claimed ones, up to the slots that the engine has free. */
export function reserveSlots(
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wakeAt'>,
  rows: readonly DeliveryRow[],
): Reservations {
  const reserved: { row: DeliveryRow; reservation: Reservation }[] = []
  const queued: DeliveryRow[] = []
  let firstDueAt = Number.POSITIVE_INFINITY
  for (const row of rows) {
    if (row.state !== 'queued') {
      firstDueAt = Math.min(firstDueAt, row.due_at)
      continue
    }
    const reservation = engine.reserve(row)
    if (!reservation) {
      queued.push(row)
      continue
    }
    Object.assign(row, reservation.lease)
    row.state = 'sending'
    reserved.push({ row, reservation })
  }
  return {
    enter() {
      for (const { row, reservation } of reserved) reservation.enter(row)
      if (queued.length > 0) engine.inserted(queued)
      if (firstDueAt < Number.POSITIVE_INFINITY) engine.wakeAt(firstDueAt)
    },
    cancel(mayExist) {
      for (const { row, reservation } of reserved) reservation.cancel(mayExist ? row : undefined)
    },
  }
}

/** @param accept stores the message with the given traceparent among its options */
export async function traceAcceptance<Acceptance extends { id: string }>(
  tracing: Tracing,
  clock: Clock,
  { domain, method, traceparent }: MessageOrigin & { traceparent?: string | undefined },
  recipients: number,
  accept: (traceparent: string) => Promise<Acceptance>,
): Promise<Acceptance> {
  const span = tracing.begin({
    name: 'accept message',
    // Of SMTP submission nothing comes before it.
    kind: method === 'smtp' ? 'server' : 'internal',
    parent: traceparent,
    at: clock.now(),
  })
  const attributes = {
    'sendwright.account.id': domain.accountId,
    'sendwright.domain': domain.name,
    'sendwright.method': method,
    'sendwright.recipients': recipients,
  }
  try {
    const acceptance = await accept(span.traceparent)
    span.end(clock.now(), { ...attributes, 'messaging.message.id': acceptance.id.slice(1, -1) }, false)
    return acceptance
  } catch (error) {
    // Its text may show addresses.
    const type = error instanceof Error ? error.name : 'Error'
    span.end(clock.now(), { ...attributes, 'error.type': type }, true)
    throw error
  }
}
