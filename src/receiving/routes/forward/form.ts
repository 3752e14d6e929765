/**
 * The form of a received message (routes-inbound.md sections 6 to 8): parsed, raw, or the notice of a stored one.
 *
 * All of it but the recipient and the signature is the same for each destination and each attempt, and is made once
 * (posted-forms.ts). It is made piece by piece: a mail has 25 MB, its form several times that.
 */

import { randomHex } from '../../../base/ids.ts'
import { headerText } from '../../../mail/compose/headers.ts'
import type { LargeTexts } from '../../../mail/compose/large-texts.ts'
import { decodedLeaf, decodedText, mailTexts, type Utf8 } from '../../../mail/compose/mail-texts.ts'
import {
  type MessageRecord,
  type MimeContent,
  mimeFiles,
  type StoredHeader,
  storedChunk,
} from '../../../mail/record/record.ts'
import {
  encodeParts,
  encodeText,
  type FormPart,
  formEnd,
  formType,
  newBoundary,
} from '../../../platform/posts/form-data.ts'
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts'
import { type Chunk, chunkSize, readChunks } from '../../../protocols/message/mime-message.ts'
import type { MimeLeaf } from '../../../protocols/mime/part-map.ts'
import { signToken } from '../../../watching/webhooks/payload.ts'
import { wholeMessage } from './whole-message.ts'

export interface FormParts {
  blobs: BlobStore
  largeTexts: LargeTexts
}

export type FormKind = 'parsed' | 'raw' | 'notify'

/** A form that is to be made. A piece is valid until the next one is requested. */
export type FormPieces = ReturnType<typeof formPieces>

/** A form that was made. */
export interface MadeForm {
  boundary: string
  before: Chunk
  after: Chunk
}

interface FormAttempt {
  /** Envelope recipient. */
  recipient: string
  signingKey: string
  /** Unix milliseconds. */
  now: number
}

/** @param messageUrl of the stored message */
export function formPieces(parts: FormParts, record: MessageRecord, kind: FormKind, messageUrl: string) {
  const boundary = newBoundary()
  return {
    boundary,
    /** Up to the field `recipient`. */
    before: (): AsyncIterable<Uint8Array> =>
      encodeParts(boundary, kind === 'raw' ? [] : headerParts(record.content.headers)),
    /** From there up to the signature. @throws with code ENOENT if the content is gone */
    after: (): AsyncIterable<Uint8Array> =>
      encodeParts(boundary, sharedParts(parts, record, kind, messageUrl)),
  }
}

/** What one attempt sends. */
export function attemptForm(
  { boundary, before, after }: MadeForm,
  { recipient, signingKey, now }: FormAttempt,
): { contentType: string; body: Chunk } {
  const { timestamp, token, signature } = signToken(signingKey, String(Math.floor(now / 1000)), randomHex(25))
  const field = (name: string, value: string) => encodeText(boundary, name, value)
  const chunks = [
    before,
    field('recipient', recipient),
    after,
    // The very last fields, so that receivers which keep the last of several are safe against forged headers (rule 1).
    field('timestamp', timestamp),
    field('token', token),
    field('signature', signature),
    formEnd(boundary),
  ]
  const inMemory = chunks.filter((chunk) => chunk instanceof Uint8Array)
  const sizeBytes = chunks.reduce((sum, chunk) => sum + chunkSize(chunk), 0)
  const body =
    inMemory.length === chunks.length
      ? Buffer.concat(inMemory)
      : { sizeBytes, open: () => readChunks(chunks) }
  return { contentType: formType(boundary), body }
}

const headerParts = (headers: readonly StoredHeader[]): FormPart[] =>
  headers.map(([name, value]) => ({ name: titleCase(name), value }))

const titleCase = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/(^|-)([a-z])/g, (_whole, dash: string, letter: string) => dash + letter.toUpperCase())

async function* sharedParts(
  parts: FormParts,
  record: MessageRecord,
  kind: FormKind,
  messageUrl: string,
): AsyncGenerator<FormPart> {
  const content = record.content as MimeContent
  const { headers } = content
  const body = await storedChunk(content.body, content.body.sizeBytes, parts.blobs)
  yield { name: 'sender', value: record.summary.sender }
  yield { name: 'from', value: headerText(headers, 'from') }
  yield { name: 'subject', value: headerText(headers, 'subject') }
  yield { name: 'message-headers', value: JSON.stringify(headers.map(([name, value]) => [name, value])) }
  if (kind === 'raw') {
    yield { name: 'body-mime', value: await wholeMessage(headers, body) }
    return
  }
  if (kind === 'notify') {
    yield { name: 'domain', value: record.domainName }
    yield { name: 'message-url', value: messageUrl }
  }
  yield* textParts(parts, content.leaves, body)
  yield* fileParts(parts, content, body, kind === 'notify' ? messageUrl : null)
}

/** Texts that a reader shows as the message itself; further ones of the same kind follow it. */
const BODIES = new Set(['text/plain', 'text/html'])
const isBody = (leaf: MimeLeaf) =>
  BODIES.has(leaf.type) && leaf.disposition !== 'attachment' && leaf.filename === ''
/** An inline text of another kind, such as an invitation. */
const isOtherText = (leaf: MimeLeaf) =>
  leaf.type.startsWith('text/') &&
  !BODIES.has(leaf.type) &&
  leaf.disposition !== 'attachment' &&
  leaf.filename === '' &&
  leaf.contentId === null

async function* textParts(
  { largeTexts }: FormParts,
  leaves: readonly MimeLeaf[],
  body: Chunk,
): AsyncGenerator<FormPart> {
  const bodies = (type: string) => leaves.filter((leaf) => isBody(leaf) && leaf.type === type)
  const texts = await mailTexts(largeTexts, { plain: bodies('text/plain'), html: bodies('text/html') }, body)
  yield { name: 'body-plain', value: texts.plain }
  yield { name: 'stripped-text', value: texts.strippedText }
  yield { name: 'stripped-signature', value: texts.strippedSignature }
  if (texts.html !== null) yield { name: 'body-html', value: texts.html }
  const strippedHtml = texts.html === null ? inParagraph(texts.plain) : texts.strippedHtml
  if (!(strippedHtml instanceof Uint8Array) || strippedHtml.byteLength > 0)
    yield { name: 'stripped-html', value: strippedHtml }
  for (const leaf of leaves.filter(isOtherText))
    yield { name: `body-${leaf.type.slice('text/'.length)}`, value: decodedText(largeTexts, [leaf], body) }
}

const [PARAGRAPH, PARAGRAPH_END] = [Buffer.from('<p>'), Buffer.from('</p>')]
const EMPTY = Buffer.alloc(0)

/** Nothing of a text of blanks, unless it is long. */
function inParagraph(text: Utf8): Utf8 {
  if (text instanceof Uint8Array)
    return Buffer.from(text).toString().trim() === ''
      ? EMPTY
      : Buffer.concat([PARAGRAPH, escapedHtml(text), PARAGRAPH_END])
  return {
    async *open() {
      yield PARAGRAPH
      for await (const bytes of text.open()) yield escapedHtml(bytes)
      yield PARAGRAPH_END
    },
  }
}

/** ASCII alone changes, whatever the bytes around it. */
const escapedHtml = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(
    Buffer.from(buffer, byteOffset, byteLength)
      .toString('latin1')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;'),
    'latin1',
  )

/** @param messageUrl of a notice, which has links instead of files; null: none */
function* fileParts(
  { largeTexts }: FormParts,
  content: MimeContent,
  body: Chunk,
  messageUrl: string | null,
): Generator<FormPart> {
  const files = mimeFiles(content)
    .map((leaf, stored) => ({ leaf, stored }))
    .filter(({ leaf }) => !isOtherText(leaf))
  const urlOf = (at: number) => `${messageUrl}/attachments/${files[at]?.stored}`
  const placeOf = (at: number) => (messageUrl === null ? `attachment-${at + 1}` : urlOf(at))
  const places = files.flatMap(({ leaf }, at) =>
    leaf.contentId === null ? [] : [[`<${leaf.contentId}>`, placeOf(at)]],
  )
  if (files.length > 0) yield { name: 'attachment-count', value: String(files.length) }
  if (messageUrl !== null && files.length > 0) {
    const described = files.map(({ leaf }, at) => ({
      url: urlOf(at),
      'content-type': leaf.type,
      name: leaf.filename,
      size: leaf.sizeBytes,
    }))
    yield { name: 'attachments', value: JSON.stringify(described) }
  }
  if (places.length > 0) yield { name: 'content-id-map', value: JSON.stringify(Object.fromEntries(places)) }
  if (messageUrl !== null) return
  for (const [at, { leaf }] of files.entries())
    yield {
      name: `attachment-${at + 1}`,
      value: decodedLeaf(largeTexts, leaf, body),
      file: { name: leaf.filename || 'noname', contentType: leaf.type },
    }
}
