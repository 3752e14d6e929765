/** The stored message as `GET /v3/domains/{domain}/messages/{key}` shows it (messages.md, StoredMessage). */

import { ID_PATTERN } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import {
  type Chunk,
  messageBytes,
  messageSize,
  readChunk,
  scanMessage,
  sliceChunk,
} from '../../protocols/message/mime-message.ts'
import { formatContentType, mediaType, parseContentType } from '../../protocols/mime/parameters.ts'
import type { MimeLeaf } from '../../protocols/mime/part-map.ts'
import { DELIVERED_HEADER_LIMITS, splitMessage, unfoldedValue } from '../../protocols/mime/split.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type Copy, type CopyParts, makeCopy } from '../compose/copy.ts'
import { contentIds } from '../compose/inline-files.ts'
import { mailTexts, type Utf8 } from '../compose/mail-texts.ts'
import { targetOf } from '../compose/prepare.ts'
import { EMPTY_TEXTS } from '../compose/stored-view.ts'
import { kindOfLeaf, type TextKind } from '../compose/texts.ts'
import {
  type CopyTarget,
  fileChunk,
  isInline,
  type MessageRecord,
  type MessageRecords,
  type MimeContent,
  mimeFiles,
  type StoredFile,
  storedChunk,
} from '../record/record.ts'
import { RenderError } from '../record/variables.ts'
import { jsonStream } from './json-stream.ts'

export interface StoredParts extends CopyParts, Pick<Core, 'store' | 'domains'> {
  records: MessageRecords
}

/** A stored message: that of a call, or one recipient's copy of a batch. */
export interface Stored {
  record: MessageRecord
  domain: Domain
  target: CopyTarget
  /** Bare addresses that it went to. */
  recipients: readonly string[]
}

/** @throws BadRequest for a malformed key, NotFound for one that names nothing of this domain and account */
export async function findStored(
  parts: StoredParts,
  accountId: string,
  domainName: string,
  key: string,
): Promise<Stored> {
  const domain = await parts.domains.byName(domainName)
  if (!domain || domain.accountId !== accountId) throw new NotFound('Domain not found')
  if (!ID_PATTERN.test(key)) throw new BadRequest('Invalid storage key')
  const whole = await parts.records.byId(key)
  if (whole && whole.domainId === domain.id && whole.accountId === accountId) {
    const target = { delivery: null, recipient: null, variables: null, list: null }
    return { record: whole, domain, target, recipients: whole.summary.recipients }
  }
  const delivery = await deliveryOf(parts.store, key)
  const record = delivery ? await parts.records.byId(delivery.message_pk) : null
  if (!delivery || !record?.content.batch || record.domainId !== domain.id)
    throw new NotFound('Message not found')
  const target = { ...targetOf(delivery, () => Buffer.alloc(8)), delivery: null }
  return { record, domain, target, recipients: [delivery.recipient] }
}

async function deliveryOf(store: Store, id: string): Promise<DeliveryRow | undefined> {
  return store.db.selectFrom('deliveries').selectAll().where('id', '=', id).executeTakeFirst()
}

/**
 * As composed, without what delivery adds. A template that fails for these variables is shown unrendered; if they make
 * no valid Message-Id, the call's is shown.
 */
export async function storedCopy(parts: StoredParts, { record, domain, target }: Stored): Promise<Copy> {
  try {
    return await makeCopy(parts, record, domain, target)
  } catch (error) {
    if (!(error instanceof RenderError)) throw error
    const content = { ...record.content, template: null }
    const { messageIdTemplate: _, ...summary } = record.summary
    return makeCopy(parts, { ...record, content, summary }, domain, target)
  }
}

/** An object, or its JSON. */
export type View = object | Uint8Array | AsyncGenerator<Uint8Array>

/** All fields, also of what the message lacks: then an empty string. `url`: of the message itself. */
export async function storedMessage(parts: StoredParts, stored: Stored, url: string): Promise<View> {
  const { record } = stored
  const copy = await storedCopy(parts, stored)
  const { summary } = copy.about
  const head = Buffer.from(`${copy.message.headers.join('\r\n')}\r\n\r\n`)
  const headers = splitMessage(head, DELIVERED_HEADER_LIMITS).headers.map(
    ({ name, value }) => [name, value] as const,
  )
  const header = (name: string) => headers.find(([other]) => other.toLowerCase() === name)?.[1] ?? ''
  const files = storedFiles(record).map((file, n) => ({ ...file, n }))
  const variables = record.content.template?.variables ?? {}
  const fields = {
    'Content-Transfer-Encoding': header('content-transfer-encoding'),
    'Content-Type': header('content-type'),
    From: summary.from,
    'Message-Id': `<${copy.about.messageId}>`,
    'Mime-Version': header('mime-version'),
    Subject: summary.subject,
    To: summary.to,
    [`${parts.headerPrefix}Tag`]: summary.tags.join(', '),
    [`${parts.headerPrefix}Template-Name`]: summary.template?.name ?? '',
    [`${parts.headerPrefix}Template-Variables`]:
      Object.keys(variables).length > 0 ? JSON.stringify(variables) : '',
    sender: summary.sender,
    from: summary.from,
    subject: summary.subject,
    recipients: stored.recipients.join(', '),
    ...EMPTY_TEXTS,
    'message-headers': headers,
    attachments: files
      .filter(({ disposition }) => disposition === 'attachment')
      .map((file) => describe(file, file.n, url)),
    'content-id-map': Object.fromEntries(
      files
        .filter(({ contentId }) => contentId !== null)
        .map((file) => [`<${file.contentId}>`, describe(file, file.n, url)]),
    ),
  }
  if (record.content.incoming !== undefined) return receivedView(parts, record.content as MimeContent, fields)
  const texts = await copy.texts()
  const html = texts.find(({ kind }) => kind === 'html')?.value ?? ''
  const plain = texts.find(({ kind }) => kind === 'text')?.value ?? null
  return parts.largeTexts.storedView(fields, { plain, html })
}

/** Larger texts of a view are sent piece by piece. */
const VIEWED_AT_ONCE_MAX = 256 * 1024

/** Nothing in received mail is changed; a stranger's texts may have 25 MB, and more in JSON. */
async function receivedView(
  { blobs, largeTexts }: StoredParts,
  { body, leaves }: MimeContent,
  fields: Record<string, unknown>,
): Promise<View> {
  const first = (kind: TextKind) => leaves.filter((leaf) => kindOfLeaf(leaf) === kind).slice(0, 1)
  const chunk = await storedChunk(body, body.sizeBytes, blobs)
  const texts = await mailTexts(largeTexts, { plain: first('text'), html: first('html') }, chunk)
  return viewWith(fields, {
    'body-html': texts.html ?? EMPTY,
    'body-plain': texts.plain,
    'stripped-html': texts.strippedHtml,
    'stripped-text': texts.strippedText,
    'stripped-signature': texts.strippedSignature,
  })
}

const EMPTY = Buffer.alloc(0)

function viewWith(fields: Record<string, unknown>, texts: Record<string, Utf8>): View {
  const known = Object.entries(texts).flatMap(([name, text]) =>
    text instanceof Uint8Array ? [[name, text] as const] : [],
  )
  const isSmall = known.reduce((sum, [, text]) => sum + text.byteLength, 0) <= VIEWED_AT_ONCE_MAX
  if (!isSmall || known.length < Object.keys(texts).length) return jsonStream(fields, texts)
  return {
    ...fields,
    ...Object.fromEntries(known.map(([name, text]) => [name, Buffer.from(text).toString()])),
  }
}

interface ShownFile extends Omit<StoredFile, 'bytes'> {
  contentId: string | null
}

/** The files in the order in which they are numbered. */
function storedFiles({ content }: MessageRecord): ShownFile[] {
  if (content.kind === 'parts') {
    const ids = contentIds(content.files)
    return content.files.map(({ disposition, filename, contentType, sizeBytes }, at) => ({
      disposition,
      filename,
      contentType: mediaType(contentType),
      sizeBytes,
      contentId: ids[at] ?? null,
    }))
  }
  return mimeFiles(content).map((leaf) => ({
    disposition: isInline(leaf) ? 'inline' : 'attachment',
    filename: leaf.filename,
    contentType: leaf.type,
    sizeBytes: leaf.sizeBytes,
    contentId: leaf.contentId,
  }))
}

function describe(file: ShownFile, n: number, url: string): Record<string, unknown> {
  const { filename, contentType, sizeBytes } = file
  return { name: filename, 'content-type': contentType, size: sizeBytes, url: `${url}/attachments/${n}` }
}

/** The bytes and the type of file `n`. @throws NotFound */
export async function storedFile(
  parts: StoredParts,
  { record }: Stored,
  n: number,
): Promise<{ chunk: Chunk; contentType: string }> {
  const { content } = record
  const shown = storedFiles(record)[n]
  if (!shown) throw new NotFound('Message not found')
  if (content.kind === 'parts') {
    const file = content.files[n]
    if (!file) throw new NotFound('Message not found')
    return { chunk: await fileChunk(file, parts.blobs), contentType: file.contentType }
  }
  const leaf = mimeFiles(content)[n]
  if (!leaf) throw new NotFound('Message not found')
  const body = await storedChunk(content.body, content.body.sizeBytes, parts.blobs)
  const bytes = await readChunk(sliceChunk(body, leaf.start, leaf.end))
  const chunk = await parts.largeTexts.decodeBytes(bytes, leaf.encoding)
  return { chunk, contentType: await contentTypeOf(content, leaf, body) }
}

/** With its parameters, which are in the part's header alone. */
async function contentTypeOf({ headers }: MimeContent, leaf: MimeLeaf, body: Chunk): Promise<string> {
  const fields =
    leaf.headerStart < 0
      ? headers.map(([name, value, raw]) => ({ name, raw: raw ?? `${name}: ${value}` }))
      : splitMessage(await readChunk(sliceChunk(body, leaf.headerStart, leaf.start))).headers
  const field = fields.find(({ name }) => name.toLowerCase() === 'content-type')
  const type = field ? parseContentType(unfoldedValue(field.raw)) : null
  return type?.type === leaf.type ? formatContentType(type) : leaf.type
}

/** The answer to `Accept: message/rfc2822`. */
export async function storedMime(parts: StoredParts, stored: Stored): Promise<View> {
  const { about, message } = await storedCopy(parts, stored)
  const { summary } = about
  const fields = {
    recipients: stored.recipients.join(', '),
    recipient: stored.recipients[0] ?? '',
    sender: summary.sender,
    from: summary.from,
    subject: summary.subject,
    'body-mime': '',
  }
  const isSmall = messageSize(message) <= VIEWED_AT_ONCE_MAX
  return viewWith(fields, {
    'body-mime': isSmall ? await messageBytes(message) : { open: () => scanMessage(message) },
  })
}
