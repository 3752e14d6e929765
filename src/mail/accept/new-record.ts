/** The stored form of an accepted message: its ids, its header fields, and its summary for events. */
import { newId } from '../../base/ids.ts'
import { shownNames } from '../../platform/http/operation.ts'
import { addressKey, bareAddress } from '../../protocols/mime/address.ts'
import { mediaType } from '../../protocols/mime/parameters.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import {
  findHeader,
  headerText,
  mailHeaders,
  messageIdOfCopy,
  newMessageId,
  readMessageId,
} from '../compose/headers.ts'
import { isInline, type MessageContent, type MessageRecord, mimeFiles } from '../record/record.ts'
import { recipientLookup, usesRecipient } from '../record/variables.ts'
import type { Draft } from '../request/draft.ts'
import type { NewCopy } from './acceptance-rows.ts'
import type { Accepted } from './decide.ts'
import type { StoredBody } from './stored-content.ts'

/** Who sends, how, and for which domain. */
export interface MessageOrigin {
  domain: Domain
  method: 'http' | 'smtp'
  originatingIp: string | null
  keyId: string | null
  /** Parameters of the call that were not known, as `unknownNames` returns them. */
  ignored?: readonly string[]
}

/** `summary.sizeBytes` is 0 until the message has been composed. */
export function makeRecord(
  draft: Draft,
  accepted: Accepted,
  body: StoredBody,
  origin: MessageOrigin,
  now: number,
): MessageRecord {
  const { domain } = origin
  const messageId = givenMessageId(draft) ?? newMessageId(now, domain.name)
  const content: MessageContent = {
    headers: mailHeaders(draft, { domainName: domain.name, messageId, date: new Date(now) }),
    template:
      accepted.template && draft.template
        ? { chosen: accepted.template, variables: draft.template.variables, text: draft.template.text }
        : null,
    batch: draft.recipientVariables !== null,
    ...body,
  }
  const id = newId(now)
  const summary = summaryOf(draft, accepted, content, origin)
  if (content.batch) {
    summary.batchId = id
    const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')?.[1]
    if (given !== undefined && usesRecipient(given)) {
      summary.messageIdTemplate = given
      content.repeatedIds = repeatedIds(given, accepted.direct)
    }
  }
  if (accepted.viaLists.length > 0 && draft.recipientVariables)
    content.listVariables = Object.fromEntries(draft.recipientVariables)
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

/** Message-Ids that several copies would have, each with the address key of the first such copy. */
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

/** The last one of the call if it is valid, else that of the MIME message. */
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

function summaryOf(
  draft: Draft,
  { tags, template }: Accepted,
  content: MessageContent,
  { domain, method, originatingIp, keyId, ignored = [] }: MessageOrigin,
): MessageSummary {
  const [sender] = draft.from
  const { unknownHeaders = [] } = draft
  const from = findHeader(content.headers, 'from')?.[1] ?? `postmaster@${domain.name}`
  return {
    from: template && draft.from.length === 0 ? '' : from,
    to: headerText(content.headers, 'to'),
    subject: headerText(content.headers, 'subject'),
    sender: sender ? bareAddress(sender) : `postmaster@${domain.name}`,
    recipients: draft.recipients.map((mailbox) => bareAddress(mailbox)),
    attachments: attachmentsOf(content),
    sizeBytes: 0,
    tags: [...tags],
    userVariables: draft.userVariables,
    testMode: draft.options.testMode,
    ...(draft.options.optimizeHours !== null && { optimized: true }),
    ...(ignored.length + unknownHeaders.length > 0 && {
      ignored: [...ignored, ...shownNames([...new Set(unknownHeaders)])],
    }),
    method,
    originatingIp,
    keyId,
    template:
      template && draft.template
        ? { name: template.name, version: template.version, isText: draft.template.text }
        : null,
  }
}

/** Files that a mail program lists, without those shown inside an html part (messages.md rule 11). */
export function attachmentsOf(content: MessageContent): MessageSummary['attachments'] {
  if (content.kind === 'parts') {
    return content.files
      .filter(({ disposition }) => disposition === 'attachment')
      .map((file) => ({
        filename: file.filename,
        'content-type': mediaType(file.contentType),
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
