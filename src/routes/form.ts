/** The POST of a received message (routes-inbound.md sections 6 to 8): parsed, raw, or the notice of a stored one. */

import type { ByteBudget } from '../base/byte-budget.ts'
import type { MaybePromise } from '../base/cache.ts'
import { randomHex } from '../base/ids.ts'
import { type Chunk, readChunk, sliceChunk } from '../base/mime-message.ts'
import { type EncodedForm, encodeForm, type FormPart } from '../http-posts/form-data.ts'
import {
  type MessageRecord,
  type MimeContent,
  mimeFiles,
  type StoredHeader,
  storedChunk,
} from '../messages/composing/content.ts'
import { headerText } from '../messages/composing/headers.ts'
import type { LargeTexts } from '../messages/composing/large-texts.ts'
import type { MimeLeaf } from '../mime/part-map.ts'
import type { BlobStore } from '../store/blobs.ts'
import { signToken } from '../webhooks/payload.ts'
import { wholeMessage } from './whole-message.ts'

export interface FormParts {
  blobs: BlobStore
  largeTexts: LargeTexts
  /** Memory for large attachments while they are sent. */
  bodiesOut: ByteBudget
}

export interface PostedMail {
  kind: 'parsed' | 'raw' | 'notify'
  /** Envelope recipient. */
  recipient: string
  /** Of the stored message. */
  messageUrl: string
  signingKey: string
  /** Unix milliseconds. */
  now: number
}

/** @throws with code ENOENT if the content is gone */
export async function postForm(
  parts: FormParts,
  record: MessageRecord,
  mail: PostedMail,
): Promise<EncodedForm> {
  const content = record.content as MimeContent
  const body = await storedChunk(content.body, content.body.sizeBytes, parts.blobs)
  const { headers } = content
  const common: FormPart[] = [
    { name: 'recipient', value: mail.recipient },
    { name: 'sender', value: record.summary.sender },
    { name: 'from', value: headerText(headers, 'from') },
    { name: 'subject', value: headerText(headers, 'subject') },
    { name: 'message-headers', value: JSON.stringify(headers.map(([name, value]) => [name, value])) },
  ]
  const own =
    mail.kind === 'raw'
      ? [...common, { name: 'body-mime', value: await wholeMessage(headers, body, parts.bodiesOut) }]
      : [...headerParts(headers), ...common, ...(await parsedParts(parts, record, body, mail))]
  return encodeForm([...own, ...signatureParts(mail)])
}

/** The very last fields, so that receivers which keep the last of several are safe against forged headers (rule 1). */
function signatureParts({ signingKey, now }: PostedMail): FormPart[] {
  const { timestamp, token, signature } = signToken(signingKey, String(Math.floor(now / 1000)), randomHex(25))
  return [
    { name: 'timestamp', value: timestamp },
    { name: 'token', value: token },
    { name: 'signature', value: signature },
  ]
}

const headerParts = (headers: readonly StoredHeader[]): FormPart[] =>
  headers.map(([name, value]) => ({ name: titleCase(name), value }))

const titleCase = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/(^|-)([a-z])/g, (_whole, dash: string, letter: string) => dash + letter.toUpperCase())

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

async function parsedParts(
  parts: FormParts,
  record: MessageRecord,
  body: Chunk,
  mail: PostedMail,
): Promise<FormPart[]> {
  const content = record.content as MimeContent
  const texts = await textParts(parts, content.leaves, body)
  const files = mimeFiles(content)
    .map((leaf, stored) => ({ leaf, stored }))
    .filter(({ leaf }) => !isOtherText(leaf))
  const ids = (value: (at: number) => string) =>
    Object.fromEntries(
      files.flatMap(({ leaf }, at) => (leaf.contentId === null ? [] : [[`<${leaf.contentId}>`, value(at)]])),
    )
  const isNotice = mail.kind === 'notify'
  const urlOf = (at: number) => `${mail.messageUrl}/attachments/${files[at]?.stored}`
  const map = ids((at) => (isNotice ? urlOf(at) : `attachment-${at + 1}`))
  const count = files.length > 0 ? [{ name: 'attachment-count', value: String(files.length) }] : []
  const idMap = Object.keys(map).length > 0 ? [{ name: 'content-id-map', value: JSON.stringify(map) }] : []
  if (!isNotice)
    return [
      ...texts,
      ...count,
      ...idMap,
      ...(await fileParts(
        parts,
        files.map(({ leaf }) => leaf),
        body,
      )),
    ]
  const described = files.map(({ leaf }, at) => ({
    url: urlOf(at),
    'content-type': leaf.type,
    name: leaf.filename,
    size: leaf.sizeBytes,
  }))
  return [
    { name: 'domain', value: record.domainName },
    { name: 'message-url', value: mail.messageUrl },
    ...texts,
    ...count,
    ...(described.length > 0 ? [{ name: 'attachments', value: JSON.stringify(described) }] : []),
    ...idMap,
  ]
}

async function textParts(parts: FormParts, leaves: readonly MimeLeaf[], body: Chunk): Promise<FormPart[]> {
  const { largeTexts } = parts
  const read = async (leaf: MimeLeaf) => {
    const bytes = await readChunk(sliceChunk(body, leaf.start, leaf.end))
    return largeTexts.decode(bytes, leaf.encoding, leaf.charset)
  }
  const joined = async (type: string) => {
    const texts: string[] = []
    for (const leaf of leaves) if (isBody(leaf) && leaf.type === type) texts.push(await read(leaf))
    return texts.length === 0 ? null : texts.join('\n')
  }
  const plain = await joined('text/plain')
  const html = await joined('text/html')
  const view = await viewOf(largeTexts.storedView({}, { plain, html: html ?? '' }))
  const fields: FormPart[] = [
    { name: 'body-plain', value: view['body-plain'] ?? '' },
    { name: 'stripped-text', value: view['stripped-text'] ?? '' },
    { name: 'stripped-signature', value: view['stripped-signature'] ?? '' },
  ]
  if (html !== null) fields.push({ name: 'body-html', value: html })
  const strippedHtml = html === null ? inParagraph(view['body-plain'] ?? '') : (view['stripped-html'] ?? '')
  if (strippedHtml !== '') fields.push({ name: 'stripped-html', value: strippedHtml })
  for (const leaf of leaves.filter(isOtherText))
    fields.push({ name: `body-${leaf.type.slice('text/'.length)}`, value: await read(leaf) })
  return fields
}

/** Large texts are worked on in a thread, which returns JSON. */
async function viewOf(view: MaybePromise<object | Uint8Array>): Promise<Record<string, string>> {
  const known = await view
  return (known instanceof Uint8Array ? JSON.parse(Buffer.from(known).toString()) : known) as Record<
    string,
    string
  >
}

const inParagraph = (text: string) =>
  text.trim() === ''
    ? ''
    : `<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')}</p>`

/** Larger files are decoded while they are sent. */
const SMALL_FILE_BYTES_MAX = 128 * 1024
/** Files in memory together. */
const SMALL_FILES_BYTES_MAX = 512 * 1024

async function fileParts(parts: FormParts, leaves: readonly MimeLeaf[], body: Chunk): Promise<FormPart[]> {
  const made: FormPart[] = []
  let inMemory = 0
  for (const [at, leaf] of leaves.entries()) {
    const bytes = leaf.end - leaf.start
    const isSmall = bytes <= SMALL_FILE_BYTES_MAX && inMemory + bytes <= SMALL_FILES_BYTES_MAX
    if (isSmall) inMemory += bytes
    made.push({
      name: `attachment-${at + 1}`,
      value: isSmall ? await decoded(parts, leaf, body) : await lazyFile(parts, leaf, body),
      file: { name: leaf.filename || 'noname', contentType: leaf.type },
    })
  }
  return made
}

async function decoded({ largeTexts }: FormParts, leaf: MimeLeaf, body: Chunk): Promise<Uint8Array> {
  const bytes = await readChunk(sliceChunk(body, leaf.start, leaf.end))
  return largeTexts.decodeBytes(bytes, leaf.encoding)
}

const PLAIN_ENCODINGS = new Set(['7bit', '8bit', 'binary'])

/** The exact size has to be known before: some receivers cannot read a body without its length. */
async function lazyFile(parts: FormParts, leaf: MimeLeaf, body: Chunk): Promise<Chunk> {
  const encoded = sliceChunk(body, leaf.start, leaf.end)
  if (PLAIN_ENCODINGS.has(leaf.encoding)) return encoded
  const whole = async <T>(use: (bytes: Uint8Array) => T): Promise<T> => {
    const release = await parts.bodiesOut.take(2 * (leaf.end - leaf.start))
    try {
      return use(await decoded(parts, leaf, body))
    } finally {
      release?.()
    }
  }
  const sizeBytes = await whole((bytes) => bytes.byteLength)
  return {
    sizeBytes,
    async *open() {
      const release = await parts.bodiesOut.take(2 * (leaf.end - leaf.start))
      try {
        yield await decoded(parts, leaf, body)
      } finally {
        release?.()
      }
    },
  }
}
