/** From a draft to the header fields of the mail, and from stored content to the MIME message of one recipient. */
import { randomHex } from '../base/ids.ts'
import type { MimeMessage } from '../base/mime-message.ts'
import { bareAddress, formatMailbox, type Mailbox } from '../mime/address.ts'
import { composeMessage } from '../mime/compose.ts'
import type { BlobStore } from '../store/blobs.ts'
import { fileChunk, type MessageContent, type StoredFile } from './content.ts'
import type { Draft } from './draft.ts'

/** Header fields that may stand only once (RFC 5322 §3.6): a given one replaces ours. */
const ONCE = new Set([
  'date',
  'from',
  'sender',
  'reply-to',
  'to',
  'cc',
  'message-id',
  'in-reply-to',
  'references',
  'subject',
])

/** `YYYYMMDDhhmmss.<16 hex digits>@<domain>`, UTC, without angle brackets (messages.md rule 3). */
export function newMessageId(nowMs: number, domain: string): string {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)
  return `${stamp}.${randomHex(8)}@${domain}`
}

/** A given Message-Id without its brackets, or null if it is none (RFC 5322 §3.6.4). */
export function readMessageId(value: string): string | null {
  const match = /^\s*<?([^\s<>@\p{Cc}]+@[^\s<>@\p{Cc}]+)>?\s*$/u.exec(value)
  return match?.[1] ?? null
}

/** The fields of the mail in their order, those given by the caller in place of ours (messages.md rules 5, 12, 14). */
export function mailHeaders(
  draft: Draft,
  about: { domainName: string; messageId: string; date: Date; headerPrefix: string },
): [string, string][] {
  const { domainName, messageId, date, headerPrefix } = about
  const fields: [string, string][] = [
    ['From', list(draft.from)],
    ['To', list(draft.to)],
  ]
  if (draft.cc.length > 0) fields.push(['Cc', list(draft.cc)])
  fields.push(['Subject', draft.subject], ['Date', rfc5322Date(date)], ['Message-Id', `<${messageId}>`])
  const sender = draft.from[0] as Mailbox
  // Several authors need a sender (RFC 5322 §3.6.2); so does a From of a domain that we do not send for.
  if (draft.from.length > 1 || sender.domain !== domainName)
    fields.push(['Sender', `postmaster@${domainName}`])
  for (const [name, value] of draft.headers) {
    const lower = name.toLowerCase()
    if (lower === 'message-id') continue
    const at = ONCE.has(lower) ? fields.findIndex(([other]) => other.toLowerCase() === lower) : -1
    if (at >= 0) fields[at] = [name, value]
    else fields.push([name, value])
  }
  for (const tag of draft.tags) fields.push([`${headerPrefix}Tag`, tag])
  if (Object.keys(draft.userVariables).length > 0) {
    fields.push([`${headerPrefix}Variables`, JSON.stringify(draft.userVariables)])
  }
  return fields
}

const list = (mailboxes: readonly Mailbox[]) => mailboxes.map(formatMailbox).join(', ')

/** `Mon, 01 Jun 2026 12:00:00 +0000` (RFC 5322 §3.3). */
function rfc5322Date(date: Date): string {
  return date.toUTCString().replace('GMT', '+0000')
}

/** True if any address of the message needs SMTPUTF8 (RFC 6531): a local part that is not ASCII. */
export function needsUtf8(addresses: readonly string[]): boolean {
  return addresses.some((address) => /[^\x20-\x7e]/.test(address))
}

/** The MIME message of one recipient; `extra` fields go behind the stored ones. Same input, same bytes. */
export async function buildMessage(
  content: MessageContent,
  extra: readonly (readonly [string, string])[],
  options: { seed: string; utf8: boolean },
  blobs: BlobStore,
): Promise<MimeMessage> {
  const bodyFile = async (file: StoredFile) => ({
    filename: file.filename,
    contentType: file.contentType,
    content: await fileChunk(file, blobs),
  })
  const inline = content.files.filter((file) => file.disposition === 'inline')
  const attachments = content.files.filter((file) => file.disposition === 'attachment')
  return composeMessage({
    headers: [...content.headers, ...extra],
    ...(content.text !== null && { text: content.text }),
    ...(content.html !== null && { html: content.html }),
    ...(content.amp !== null && { amp: content.amp }),
    inline: await Promise.all(
      inline.map(async (file) => ({ ...(await bodyFile(file)), contentId: file.filename })),
    ),
    attachments: await Promise.all(attachments.map(bodyFile)),
    utf8: options.utf8,
    boundarySeed: options.seed,
  })
}

/** Bare addresses, as events and the stored message name them. */
export const bareAddresses = (mailboxes: readonly Mailbox[]) => mailboxes.map(bareAddress)
