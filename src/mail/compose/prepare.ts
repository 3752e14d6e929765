/**
 * Prepares one delivery: its copy (copy.ts), its envelope, its signatures. This is the file to begin with in this folder.
 * A delivery that must not be sent is decided here: account or domain held, cancelled, domain gone, suppressed, too old, not
 * composable, test mode.
 */

import { ServiceError } from '../../base/process/errors.ts'
import { shortageOf } from '../../base/process/shortage.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type AccountDirectory, maySend } from '../../people/accounts/account-directory.ts'
import type { SandboxGate } from '../../people/sandbox/gate.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import { type SigningKey, signMessage } from '../../protocols/dkim/sign.ts'
import { type MimeMessage, messageSize } from '../../protocols/message/mime-message.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import { makeFit } from '../../protocols/mime/downgrade.ts'
import { splitMessage } from '../../protocols/mime/split.ts'
import type { ContentCheck, Judgement } from '../../sending/content-check/check.ts'
import { HELD_MS_MAX, type Holds } from '../../sending/content-check/holds.ts'
import { type Domain, sendTime } from '../../sending/domains/domain.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import { returnPathHost } from '../../sending/domains/names/name-owner.ts'
import type { StoppingList, SuppressionCheck } from '../../sending/suppressions/check.ts'
import type { EventMessage, MessageSummary } from '../../watching/events/event.ts'
import {
  CODE_TEST_MODE,
  CONTENT_MISSING,
  contentRefused,
  type Outcome,
  REASON_CONTENT_CHECK,
  REASON_CONTENT_HELD,
  REASON_SEND_WINDOW,
} from '../deliver/attempt/outcome.ts'
import { deliveryToken, type ReturnPathMac, returnPathOf } from '../deliver/attempt/return-path.ts'
import type { ClaimedDelivery } from '../deliver/claim/queue.ts'
import { type Prepared, type TlsPolicy, Unprepared } from '../deliver/contract.ts'
import { authorFault } from '../record/authors.ts'
import { knownMessage } from '../record/event-message.ts'
import type { RecipientVariables } from '../record/options.ts'
import {
  type CopyTarget,
  isForward,
  type ListCopy,
  type MessageRecord,
  type MessageRecords,
} from '../record/record.ts'
import { CopyTooLarge, RenderError } from '../record/variables.ts'
import type { ArchiveNotes } from '../stored/archive.ts'
import type { AttemptsInProgress } from '../stored/in-progress.ts'
import { type Copy, type CopyParts, makeCopy } from './copy.ts'
import { isSuppressed } from './headers.ts'
import { type SecondaryKeys, secondaryKey } from './secondary-keys.ts'
import { isSignature } from './texts.ts'

export interface PrepareParts extends CopyParts, Pick<Core, 'store' | 'domains' | 'clock'> {
  records: MessageRecords
  accounts: Pick<AccountDirectory, 'byId'>
  signingKeys: SigningKeys
  suppressions: SuppressionCheck
  secondaryKeys: SecondaryKeys
  returnPathMac: ReturnPathMac
  archive: ArchiveNotes
  inProgress: AttemptsInProgress
  sandbox: SandboxGate
  /** Null: content is not checked. */
  contentCheck: ContentCheck | null
  contentHolds: Pick<Holds, 'holdStatement' | 'decisionOn' | 'isFull'>
}

const TEST_MODE: Outcome = { kind: 'delivered', code: CODE_TEST_MODE, message: 'test mode', enhanced: null }

/** Its window is over: given up with the result of the last attempt, if there was one. */
const tooOld = ({ last_code: code, last_reply: message }: ClaimedDelivery): Outcome => ({
  kind: 'deferred',
  failure: { code: code ?? 0, enhanced: null, message: message ?? '', description: '' },
})

/** @throws Unprepared when content or keys cannot be read; other errors as they come */
export async function prepareDelivery(parts: PrepareParts, delivery: ClaimedDelivery): Promise<Prepared> {
  try {
    return await prepare(parts, delivery)
  } catch (error) {
    throw isMissingFile(error) ? new Unprepared(CONTENT_MISSING, { cause: error }) : error
  }
}

const isMissingFile = (error: unknown) => (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'

/** The message as its events name it, from what is left of it: its content is not read. */
export async function describeDelivery(
  parts: PrepareParts,
  delivery: ClaimedDelivery,
): Promise<EventMessage> {
  const row = await parts.store.db
    .selectFrom('messages')
    .select(['domain_name', 'message_id', 'summary_json'])
    .where('id', '=', delivery.message_pk)
    .executeTakeFirst()
    .catch((error: unknown) => {
      // A damaged page must not keep the delivery from ending; a database that is away does.
      if (error instanceof ServiceError) throw error
      return undefined
    })
  const { recipient, variables, list } = targetOf(delivery, parts.returnPathMac)
  const message = {
    id: delivery.message_pk,
    accountId: delivery.account_id,
    domainName: row?.domain_name ?? (await parts.domains.byId(delivery.domain_id))?.name ?? '',
    messageId: row?.message_id ?? delivery.message_pk,
    summary: { ...unknownSummary(delivery), ...summaryIn(row?.summary_json) },
    // In batch mode every recipient has variables, possibly none.
    content: { batch: variables !== null && list === null },
  }
  return knownMessage(message, parts.storageUrl, recipient, delivery, variables, list)
}

/** What can be read of it: a damaged one must not keep the delivery from ending either. */
function summaryIn(text = '{}'): Partial<MessageSummary> {
  try {
    const summary: unknown = JSON.parse(text)
    return isPlainObject(summary) ? summary : {}
  } catch {
    return {}
  }
}

/** The summary of a message whose row is gone. */
const unknownSummary = ({ recipient, recipient_header: to }: ClaimedDelivery): MessageSummary => ({
  from: '',
  to,
  subject: '',
  sender: '',
  recipients: [recipient],
  attachments: [],
  sizeBytes: 0,
  tags: [],
  userVariables: {},
  testMode: false,
  method: 'http',
  originatingIp: null,
  keyId: null,
  template: null,
})

async function prepare(parts: PrepareParts, delivery: ClaimedDelivery): Promise<Prepared> {
  const domain = await parts.domains.byId(delivery.domain_id)
  const isHeld = domain?.state === 'disabled' || !maySend(await parts.accounts.byId(delivery.account_id))
  // Before its content is read: there may be many.
  if (isHeld && parts.clock.now() < delivery.expires_at) return { kind: 'held' }
  const record = await parts.records.byId(delivery.message_pk)
  if (!record) throw new Unprepared(CONTENT_MISSING)
  const target = targetOf(delivery, parts.returnPathMac)
  const decided = (outcome: Outcome): Prepared => {
    const { recipient, variables, list } = target
    const about = knownMessage(record, parts.storageUrl, recipient, delivery, variables, list)
    return { kind: 'decided', about, outcome, traceparent: record.options.traceparent }
  }
  if (!parts.inProgress.begin(delivery)) return decided(rejected('cancelled'))
  if (isHeld) return decided(tooOld(delivery))
  if (!domain) return decided(rejected('The domain was deleted'))
  // Again, for members of lists, which acceptance did not see.
  if (domain.type === 'sandbox' && !(await parts.sandbox.mayReceive(domain, [target.recipient])))
    return decided(rejected('Sandbox subdomains are for test purposes only.'))
  // The window of o:deliver-within promises that nothing arrives after it (messages.md rule 42).
  if (record.options.deliverWithinMs !== null && parts.clock.now() >= delivery.expires_at)
    return decided(tooOld(delivery))
  const outside = outsideWindow(parts, record, domain, delivery, target)
  if (outside) return outside
  const { tags } = record.summary
  const suppressed = await parts.suppressions.suppressionOf(
    domain.id,
    delivery.recipient,
    tags,
    listsAgainst(record, target),
  )
  if (suppressed) return decided(suppressed)
  let copy: Copy
  try {
    copy = await makeCopy(parts, record, domain, target)
  } catch (error) {
    if (error instanceof RenderError) return decided(rejected('Template render error', error.message))
    if (error instanceof CopyTooLarge) return decided(rejected(error.message))
    throw error
  }
  const fault = copy.author === null ? null : await authorFault(parts.domains, domain, copy.author)
  if (fault) return decided(rejected(fault.message))
  const { testMode, traceparent } = record.options
  if (testMode) return { kind: 'decided', about: copy.about, outcome: TEST_MODE, traceparent }
  if (record.options.review === true) {
    const stopped = await review(parts, record, delivery, copy)
    if (stopped) return stopped
  }
  if (parts.contentCheck !== null && !isServiceMail(record)) {
    const checked = await checkContent(parts, parts.contentCheck, record, delivery, copy, target.variables)
    if ('kind' in checked) return checked
    copy = checked
  }
  return signedDelivery(parts, record, domain, delivery, copy, target)
}

/**
 * What becomes of mail that its sender has put before a person; null: it was released. The decision is for this message alone,
 * not for others with its content, whose recipients the person has not seen.
 */
async function review(
  parts: PrepareParts,
  record: MessageRecord,
  delivery: ClaimedDelivery,
  { about }: Copy,
): Promise<Prepared | null> {
  const decision = await parts.contentHolds.decisionOn(record.id)
  if (decision === 'released') return null
  const { traceparent } = record.options
  if (decision === 'dropped') return { kind: 'decided', about, outcome: contentRefused(REVIEW), traceparent }
  if (parts.clock.now() >= delivery.expires_at)
    return { kind: 'decided', about, outcome: tooOld(delivery), traceparent }
  if (await parts.contentHolds.isFull(record)) {
    const dueAt = Math.ceil(Math.min(parts.clock.now() + REVIEW_AGAIN_MS, delivery.expires_at))
    return { kind: 'waits', reason: REASON_CONTENT_HELD, dueAt, also: [] }
  }
  return heldDelivery(parts, record, delivery, { digest: record.id, reason: REVIEW })
}

/** What is behind others of its account looks again whether it may be shown. */
const REVIEW_AGAIN_MS = 10 * MINUTE_MS

/** Why it is kept, for the person who decides. */
const REVIEW = 'review asked for'

/** Waits for the hours of the message or its domain, which no received mail that is forwarded has. Null: it is time. */
function outsideWindow(
  { clock }: PrepareParts,
  record: MessageRecord,
  domain: Domain,
  { expires_at }: ClaimedDelivery,
  target: CopyTarget,
): Prepared | null {
  const now = clock.now()
  const opensAt = isForward(record, target) ? now : sendTime(now, record.options, domain)
  if (opensAt === now) return null
  const isSenders = record.options.deliverWithinMs !== null
  const dueAt = Math.ceil(isSenders ? Math.min(opensAt, expires_at) : opensAt)
  return { ...{ kind: 'waits', reason: REASON_SEND_WINDOW, dueAt, also: [] }, extendsWindow: !isSenders }
}

/** The copy to send, which says what was found; or what becomes of the delivery instead. */
async function checkContent(
  parts: PrepareParts,
  check: ContentCheck,
  record: MessageRecord,
  delivery: ClaimedDelivery,
  copy: Copy,
  variables: RecipientVariables | null,
): Promise<Prepared | Copy> {
  const { recipient, attempts, expires_at } = delivery
  const now = parts.clock.now()
  const judged = await check.judge({
    ...{ record, recipient, variables, message: copy.message, isFirst: attempts === 0 },
    // Whom readers see: the return path is our own.
    sender: record.summary.sender,
  })
  if ('againAt' in judged) {
    const { againAt: dueAt } = judged
    return { kind: 'waits', reason: REASON_CONTENT_CHECK, dueAt, extendsWindow: true, also: [] }
  }
  const { level, decision, reason, score } = judged
  if (level === 'pass') return copy
  const noted = (action: 'tag' | 'refuse' | 'released'): EventMessage => ({
    ...copy.about,
    contentCheck: { action, reason, ...(score !== null && { score }) },
  })
  // A person has seen the message.
  const isReviewed = level === 'hold' && record.options.review === true
  if (decision === 'released' || isReviewed) return { ...copy, about: noted('released') }
  if (level === 'refuse' || decision === 'dropped') {
    const { traceparent } = record.options
    return { kind: 'decided', about: noted('refuse'), outcome: contentRefused(reason), traceparent }
  }
  if (level === 'hold')
    return now >= expires_at
      ? { kind: 'decided', about: copy.about, outcome: tooOld(delivery) }
      : heldDelivery(parts, record, delivery, judged)
  const { message } = copy
  const headers = [...message.headers, ...tagFields(parts.headerPrefix, score)]
  return { ...copy, about: noted('tag'), message: { ...message, headers } }
}

/** As received mail has them. */
const tagFields = (prefix: string, score: number | null): string[] => [
  `${prefix}Sflag: Yes`,
  ...(score === null ? [] : [`${prefix}Sscore: ${Math.round(score * 10) / 10}`]),
]

/** Until a person decides, or its window ends, which is as long as people need where the sender has not set it. */
function heldDelivery(
  { clock, contentHolds }: PrepareParts,
  record: MessageRecord,
  { id, expires_at }: ClaimedDelivery,
  judged: Pick<Judgement, 'digest' | 'reason'>,
): Prepared {
  const now = clock.now()
  const isSenders = record.options.deliverWithinMs !== null
  const dueAt = isSenders ? expires_at : Math.max(expires_at, Math.ceil(now + HELD_MS_MAX))
  return {
    ...{ kind: 'waits', reason: REASON_CONTENT_HELD, dueAt },
    also: [
      contentHolds.holdStatement(record, judged, now),
      { sql: 'UPDATE deliveries SET expires_at = ? WHERE id = ?', values: [dueAt, id] },
    ],
  }
}

/** Mail of the service itself is not the domain's, whatever domain it is sent from (decision 59). */
const isServiceMail = ({ accountId }: MessageRecord) => accountId === SYSTEM_ACCOUNT_ID

/**
 * Undefined: all lists. Unsubscribes do not apply to mail of the service itself, nor do complaints to forwarded mail,
 * which others wrote (suppressions.md section 7 rules 6 and 10).
 */
function listsAgainst(
  record: MessageRecord,
  target: Pick<CopyTarget, 'list'>,
): readonly StoppingList[] | undefined {
  if (isForward(record, target)) return ['bounces']
  return isServiceMail(record) ? ['bounces', 'complaints'] : undefined
}

async function signedDelivery(
  parts: PrepareParts,
  record: MessageRecord,
  domain: Domain,
  delivery: ClaimedDelivery,
  copy: Copy,
  target: ReturnType<typeof targetOf>,
): Promise<Prepared> {
  const { options } = record
  const asItCame = isForward(record, target)
  // A signature of ours would vouch for a stranger's mail; a list vouches for what it distributes.
  const signing = await (asItCame ? NO_KEYS : keysFor(parts, record, domain)).catch((error: unknown) => {
    throw unreadableKey(error)
  })
  const signed = async (plain: MimeMessage): Promise<MimeMessage> => {
    const signatures = await signMessage(plain, signing, { signedAt: new Date(record.createdAt) })
    return { ...plain, headers: [...signatures, ...plain.headers] }
  }
  const message = await signed(copy.message)
  const hidden = asItCame || isSuppressed('Sending-Ip', options.suppressHeaders)
  const sourceHeader = hidden ? null : `${parts.headerPrefix}Sending-Ip`
  // The links of the service's own mail are secrets of the recipient (decision 59).
  const archiveTo = isServiceMail(record) || asItCame ? null : (options.archiveTo ?? domain.archiveTo)
  if (archiveTo !== null)
    parts.archive.note(delivery, { url: archiveTo, headers: message.headers, sourceHeader })
  return {
    kind: 'send',
    about: copy.about,
    returnPath: returnPathOf(target.delivery.sid, await returnPathHost(parts.domains, domain)),
    message,
    sizeBytes: messageSize(message),
    utf8: copy.utf8 || /[^\x00-\x7f]/.test(delivery.recipient),
    tls: tlsOf(record, domain, copy.message.headers),
    primaryDkim: signing[0] ? `${signing[0].selector}._domainkey.${signing[0].domain}` : null,
    windowIsSenders: options.deliverWithinMs !== null,
    sourceHeader,
    ...((asItCame || isSuppressed('Sid', options.suppressHeaders)) && {
      sidField: `${parts.headerPrefix}Sid: ${target.delivery.sid}`,
    }),
    traceparent: options.traceparent,
    ...(!message.composed && { toSevenBit: () => sevenBit(copy.message, message, signed) }),
  }
}

/**
 * The author's `TLS-Required: No` takes precedence over the domain and the receivers, not over what the message's own options or
 * its envelope demand (RFC 8689 §3).
 */
function tlsOf({ options }: MessageRecord, domain: Domain, headers: readonly string[]): TlsPolicy {
  const { requireTls, skipVerification } = options
  if (requireTls === 'requiretls') return { required: 'requiretls', verify: true }
  const isOptional = options.isTlsReport || (requireTls !== true && headers.some(isTlsRequiredNo))
  if (isOptional) return { required: false, verify: false, isOptional }
  return {
    required: requireTls ?? domain.requireTls,
    verify: !(skipVerification ?? domain.skipVerification),
  }
}

const isTlsRequiredNo = (field: string) => /^tls-required:\s*no\s*$/i.test(field)

const NO_KEYS: Promise<SigningKey[]> = Promise.resolve([])

/** Temporary faults of the database or the machine are passed on; any other fault is the key's. */
function unreadableKey(error: unknown): unknown {
  const isTemporary = error instanceof ServiceError || shortageOf(error) !== null
  return isTemporary ? error : new Unprepared('a signing key of the domain cannot be read', { cause: error })
}

/** Most servers accept 8-bit mail: it is converted, and signed again, only for those that do not. */
async function sevenBit(
  plain: MimeMessage,
  asIs: MimeMessage,
  signed: (message: MimeMessage) => Promise<MimeMessage>,
): Promise<{ message: MimeMessage; sizeBytes: number } | null> {
  const { headers } = splitMessage(Buffer.from(`${plain.headers.join('\r\n')}\r\n\r\n`))
  const fit = await makeFit(headers, plain.body, 'seven-bit').catch((error: unknown) => {
    throw isMissingFile(error) ? new Unprepared(CONTENT_MISSING, { cause: error }) : error
  })
  if (fit === null) return null
  if (!fit.changed) return { message: asIs, sizeBytes: messageSize(asIs) }
  if (headers.some(({ name }) => isSignature(name))) return null
  const { fields } = fit
  const own = fields === null ? headers : headers.filter(({ name }) => !CONTENT_FIELD.test(name))
  const message = await signed({ headers: [...own.map(({ raw }) => raw), ...(fields ?? [])], body: fit.body })
  return { message, sizeBytes: messageSize(message) }
}

const CONTENT_FIELD = /^content-(?:type|transfer-encoding)$/i

/** The target of a delivery's copy, as its row has it. */
export function targetOf(
  delivery: Pick<DeliveryRow, 'id' | 'recipient_header' | 'variables_json' | 'list_json'>,
  mac: ReturnPathMac,
): CopyTarget & { delivery: { id: string; sid: string }; recipient: NonNullable<CopyTarget['recipient']> } {
  const { id, variables_json: variables, list_json: list } = delivery
  return {
    delivery: { id, sid: deliveryToken(id, mac) },
    recipient: parseMailbox(delivery.recipient_header),
    variables: variables === null ? null : (JSON.parse(variables) as RecipientVariables),
    list: list === null ? null : (JSON.parse(list) as ListCopy),
  }
}

const rejected = (reason: string, description = ''): Outcome => ({ kind: 'rejected', reason, description })

/**
 * Active RSA keys alternate between messages; an Ed25519 key signs as well (domain-keys.md rule 10). The choice depends
 * on the message's time, so that a retry is signed by the same key. The message's secondary key is last.
 */
async function keysFor(parts: PrepareParts, record: MessageRecord, domain: Domain): Promise<SigningKey[]> {
  if (!record.options.dkim) return []
  const keys = await parts.signingKeys.active(domain.dkimAuthority)
  const rsa = keys.filter((key) => key.algorithm === 'rsa')
  const turn = rsa[Math.floor(record.createdAt) % Math.max(rsa.length, 1)]
  const { secondaryDkim, secondaryDkimPublic } = record.options
  const second =
    secondaryDkim &&
    (await secondaryKey(parts.secondaryKeys, record.accountId, secondaryDkim, secondaryDkimPublic))
  return [
    ...(turn ? [turn] : []),
    ...keys.filter((key) => key.algorithm === 'ed25519'),
    ...(second ? [second] : []),
  ]
}

/** The body of a delivery as it was sent; null when its message is gone. The same delivery has the same bytes each time. */
export async function bodyOfDelivery(
  parts: PrepareParts,
  deliveryId: string,
): Promise<MimeMessage['body'] | null> {
  const delivery = await parts.store.db
    .selectFrom('deliveries')
    .selectAll()
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  const record = delivery ? await parts.records.byId(delivery.message_pk) : null
  const domain = delivery ? await parts.domains.byId(delivery.domain_id) : null
  if (!delivery || !record || !domain) return null
  const { message } = await makeCopy(parts, record, domain, targetOf(delivery, parts.returnPathMac))
  return message.body
}
