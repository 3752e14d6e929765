/**
 * The texts of a content that a copy may change, and how changed ones are put back: for a message of parts its text, html
 * and AMP; for a MIME message the text parts in it, found by their offsets and decoded. `Frame` keeps what all copies of a
 * message have in common.
 */
import { allKnown, Lazy, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import {
  type Chunk,
  chunkSize,
  type MimeMessage,
  readChunk,
  sliceChunk,
} from '../../protocols/message/mime-message.ts'
import { composeMessage, type EncodedFile, encodeFile } from '../../protocols/mime/compose.ts'
import { makeFit } from '../../protocols/mime/downgrade.ts'
import type { MimeLeaf } from '../../protocols/mime/part-map.ts'
import { splitMessage } from '../../protocols/mime/split.ts'
import type { EncodedText } from '../../protocols/mime/transfer-encoding.ts'
import type { Rendered } from '../../sending/templates/rendering/render-messages.ts'
import {
  attach,
  fileChunk,
  type MessageContent,
  type MessageRecord,
  type MimeContent,
  type PartsContent,
  type StoredFile,
  type StoredHeader,
  storedChunk,
} from '../record/record.ts'
import { type CutText, cutText, usesUnsubscribe } from '../record/variables.ts'
import { sendableField } from './headers.ts'
import { contentIds } from './inline-files.ts'
import type { LargeTexts } from './large-texts.ts'

export type TextKind = 'text' | 'html' | 'amp'

export interface TextPart {
  kind: TextKind
  value: string
  /** Its part of a MIME message; null in a message of parts. */
  leaf: MimeLeaf | null
}

/** Content fields and body of a copy. */
export interface Composed {
  /** Raw fields: Mime-Version, Content-Type and their like. Null: as the message has them (MIME). */
  fields: string[] | null
  body: Chunk[]
  /** As in `MimeMessage`. */
  composed: boolean
}

const KINDS: Readonly<Record<string, TextKind>> = {
  'text/plain': 'text',
  'text/html': 'html',
  'text/x-amp-html': 'amp',
}

export const kindOfLeaf = (leaf: MimeLeaf): TextKind | null =>
  leaf.disposition === 'attachment' ? null : (KINDS[leaf.type] ?? null)

/** All texts in order of appearance. */
export function textsOf(
  content: MessageContent,
  blobs: BlobStore,
  largeTexts: LargeTexts,
): MaybePromise<TextPart[]> {
  if (content.kind === 'mime') return textsOfMime(content, blobs, largeTexts)
  const { text, html, amp, files } = content
  const shown = html === null || files.length === 0 ? html : largeTexts.withContentIds(html, files)
  return whenKnown(shown, (value) => {
    const parts: TextPart[] = []
    if (text !== null) parts.push({ kind: 'text', value: text, leaf: null })
    if (value !== null) parts.push({ kind: 'html', value, leaf: null })
    if (amp !== null) parts.push({ kind: 'amp', value: amp, leaf: null })
    return parts
  })
}

async function textsOfMime(content: MimeContent, blobs: BlobStore, largeTexts: LargeTexts) {
  const parts: TextPart[] = []
  const body = await storedChunk(content.body, content.body.sizeBytes, blobs)
  for (const leaf of content.leaves) {
    const kind = kindOfLeaf(leaf)
    if (kind !== null) parts.push({ kind, value: await leafText(body, leaf, largeTexts), leaf })
  }
  return parts
}

async function leafText(body: Chunk, leaf: MimeLeaf, largeTexts: LargeTexts): Promise<string> {
  const bytes = await readChunk(sliceChunk(body, leaf.start, leaf.end))
  return largeTexts.decode(bytes, leaf.encoding, leaf.charset)
}

/** Files with their transfer encoding, made once for all copies of a message. */
export interface EncodedFiles {
  inline: EncodedFile[]
  attachments: EncodedFile[]
}

const NO_FILES: EncodedFiles = { inline: [], attachments: [] }

/** None for a MIME message: its files stay in place. */
export function encodeFiles(content: MessageContent, blobs: BlobStore): MaybePromise<EncodedFiles> {
  return content.kind === 'mime' || content.files.length === 0 ? NO_FILES : encodeStored(content, blobs)
}

async function encodeStored(content: PartsContent, blobs: BlobStore): Promise<EncodedFiles> {
  const ids = contentIds(content.files)
  const encoded = async (file: StoredFile, at: number) => {
    const contentId = ids[at] ?? null
    return encodeFile({
      filename: file.filename,
      contentType: file.contentType,
      content: await fileChunk(file, blobs),
      ...(contentId !== null && { contentId }),
    })
  }
  const files = await Promise.all(content.files.map(encoded))
  const encodedAs = (disposition: StoredFile['disposition']) =>
    files.filter((_, at) => content.files[at]?.disposition === disposition)
  return { inline: encodedAs('inline'), attachments: encodedAs('attachment') }
}

/** A message of parts with these texts; `encoded`: the same texts encoded, in order. Same input, same bytes. */
export function composeParts(
  texts: readonly TextPart[],
  files: EncodedFiles,
  seed: string,
  encoded: readonly EncodedText[],
): Composed {
  const value = (kind: TextKind) => encoded[texts.findIndex((part) => part.kind === kind)]
  const [text, html, amp] = [value('text'), value('html'), value('amp')]
  const message: MimeMessage = composeMessage({
    headers: [],
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    ...(amp !== undefined && { amp }),
    ...files,
    utf8: false,
    boundarySeed: seed,
  })
  return { fields: message.headers, body: message.body, composed: message.composed === true }
}

/**
 * A MIME message with changed texts: a changed part gets a new transfer encoding and UTF-8, every other byte stays.
 * `changed` is in the order of the message.
 */
export async function composeMime(
  content: MimeContent,
  changed: readonly TextPart[],
  blobs: BlobStore,
  largeTexts: LargeTexts,
): Promise<Composed> {
  const body = await storedChunk(content.body, content.body.sizeBytes, blobs)
  const chunks: Chunk[] = []
  let fields: string[] | null = null
  let at = 0
  const take = (start: number, end: number) => {
    const piece = sliceChunk(body, start, end)
    if (chunkSize(piece) > 0) chunks.push(piece)
  }
  for (const { leaf, value } of changed) {
    if (!leaf) continue
    const { encoding, content: encoded } = await largeTexts.encode(value)
    const bytes = typeof encoded === 'string' ? Buffer.from(encoded, 'latin1') : encoded
    if (leaf.headerStart < 0) {
      fields = contentFields(
        content.headers.flatMap(([, , raw]) => raw ?? []),
        leaf,
        encoding,
      )
    } else {
      take(at, leaf.headerStart)
      const head = await readChunk(sliceChunk(body, leaf.headerStart, leaf.start))
      const given = splitMessage(head).headers.map(({ raw }) => raw)
      const rest = given.filter((raw) => !CONTENT_FIELD.test(raw))
      chunks.push(Buffer.from(`${[...contentFields(given, leaf, encoding), ...rest].join('\r\n')}\r\n\r\n`))
    }
    chunks.push(bytes)
    at = leaf.end
  }
  take(at, content.body.sizeBytes)
  const composed = { fields, body: chunks, composed: false }
  return content.leaves.some(({ longLine }) => longLine) ? inShortLines(content, composed) : composed
}

/**
 * Servers may reject lines over 998 bytes (RFC 5322 §2.1.1). A message with a foreign signature stays as it is.
 */
async function inShortLines(content: MimeContent, composed: Composed): Promise<Composed> {
  if (content.headers.some(([name]) => isSignature(name))) return composed
  const given = composed.fields ?? content.headers.flatMap(([, , raw]) => raw ?? [])
  const { headers } = splitMessage(Buffer.from(`${given.join('\r\n')}\r\n\r\n`))
  const fit = await makeFit(headers, composed.body, 'short-lines')
  return fit?.changed ? { ...composed, fields: fit.fields ?? composed.fields, body: fit.body } : composed
}

/** A foreign signature over the body (RFC 6376 §3.5): a changed body would break it. */
export const isSignature = (name: string) => name.toLowerCase() === 'dkim-signature'

/** Fields that a re-encoded part replaces; the others, Content-Id and Content-Disposition, stay. */
const CONTENT_FIELD = /^(?:content-type|content-transfer-encoding)[ \t]*:/i

function contentFields(given: readonly string[], leaf: MimeLeaf, encoding: string): string[] {
  const flowed = given.some((raw) => /^content-type[ \t]*:/i.test(raw) && /format\s*=\s*"?flowed/i.test(raw))
  const format = flowed ? '; format=flowed' : ''
  return [`Content-Type: ${leaf.type}; charset=utf-8${format}`, `Content-Transfer-Encoding: ${encoding}`]
}

/** Longer texts are searched for variables in each copy. */
const CUT_CHARS_MAX = 256 * 1024
/** So are texts with more than 16 variables and one per 256 characters: each piece takes about a hundred bytes. */
const CUTS_FREE = 16
const CHARS_PER_CUT = 256
/** Batches often have one or two recipients: these are composed directly. */
const MERGED_FROM = 3

/** A message of which copies are made by filling in values (batch/merge.ts). */
interface Merged {
  fill(values: readonly (readonly string[])[]): Composed | null
}

type Merging = (
  texts: readonly TextPart[],
  cuts: readonly CutText[],
  files: EncodedFiles,
  seed: string,
) => Merged | null

export interface FrameParts {
  blobs: BlobStore
  largeTexts: LargeTexts
}

/** What all copies of a message share, kept as long as the record is remembered. */
export class Frame {
  readonly #record: MessageRecord
  readonly #blobs: BlobStore
  readonly #largeTexts: LargeTexts
  readonly #texts: Lazy<readonly TextPart[]>
  readonly #files: Lazy<EncodedFiles>
  readonly #plain: Lazy<Composed>
  /** Undefined: not tried yet. */
  #cuts: readonly CutText[] | null | undefined
  #merge: Merged | null | undefined
  /** Copies with values of their own so far. */
  #filled = 0
  #usesVariable: boolean | null = null
  /** Fields that are the same in all copies, as they are sent. */
  readonly #raw = new Map<StoredHeader, string>()

  constructor(record: MessageRecord, { blobs, largeTexts }: FrameParts) {
    this.#record = record
    this.#blobs = blobs
    this.#largeTexts = largeTexts
    const { content } = record
    this.#texts = new Lazy(() => textsOf(content, blobs, largeTexts))
    this.#files = new Lazy(() => encodeFiles(content, blobs))
    this.#plain = new Lazy(() => this.#composePlain())
  }

  texts(): MaybePromise<readonly TextPart[]> {
    return this.#texts.get()
  }

  withContentIds(rendered: Rendered): MaybePromise<Rendered> {
    const { content } = this.#record
    if (content.kind === 'mime' || content.files.length === 0) return rendered
    const html = this.#largeTexts.withContentIds(rendered.html, content.files)
    return whenKnown(html, (value) => ({ ...rendered, html: value }))
  }

  /** The message as its sender wrote it. */
  plain(): MaybePromise<Composed> {
    return this.#plain.get()
  }

  #composePlain(): MaybePromise<Composed> {
    const { content } = this.#record
    if (content.kind === 'mime') return composeMime(content, [], this.#blobs, this.#largeTexts)
    return whenKnown(allKnown([this.#texts.get(), this.#files.get()]), ([texts, files]) =>
      this.#composeParts(texts, files),
    )
  }

  #composeParts(texts: readonly TextPart[], files: EncodedFiles): MaybePromise<Composed> {
    const encoded = allKnown(texts.map(({ value }) => this.#largeTexts.encode(value)))
    return whenKnown(encoded, (all) => composeParts(texts, files, this.#record.id, all))
  }

  async compose(texts: readonly TextPart[]): Promise<Composed> {
    const { content } = this.#record
    if (content.kind === 'parts') return this.#composeParts(texts, await this.#files.get())
    const given = await this.texts()
    const differing = texts.filter((part, index) => part.value !== given[index]?.value)
    return composeMime(content, differing, this.#blobs, this.#largeTexts)
  }

  /** Its texts, cut at their variables; null: the pieces would take too much memory. */
  cuts(texts: readonly TextPart[]): readonly CutText[] | null {
    if (this.#cuts === undefined) this.#cuts = cutTexts(texts)
    return this.#cuts
  }

  /** One copy with these values for the texts' variables; null: it has to be composed. */
  async fill(
    cuts: readonly CutText[],
    values: readonly (readonly string[])[],
    merge: Merging,
  ): Promise<Composed | null> {
    const { content, id } = this.#record
    if (content.kind !== 'parts' || ++this.#filled < MERGED_FROM) return null
    if (this.#merge === undefined) {
      const [texts, files] = [await this.#texts.get(), await this.#files.get()]
      // Other copies may have waited too.
      if (this.#merge === undefined) this.#merge = merge(texts, cuts, files, id)
      if (this.#merge) this.#plain.forget()
    }
    return this.#merge?.fill(values) ?? null
  }

  /** Its texts or header fields contain an unsubscribe variable. */
  usesVariable(): MaybePromise<boolean> {
    if (this.#usesVariable !== null) return this.#usesVariable
    const inHeaders = this.#record.content.headers.some(([, value]) => usesUnsubscribe(value))
    const look = (texts: readonly TextPart[]) => {
      this.#usesVariable = inHeaders || texts.some(({ value }) => usesUnsubscribe(value))
      return this.#usesVariable
    }
    return whenKnown(this.#texts.get(), look)
  }

  /** A field as it is sent in ASCII; one of the record's own is written once for all copies. */
  rawField(field: StoredHeader): string {
    const known = this.#raw.get(field)
    if (known !== undefined) return known
    const raw = sendableField(field, false)
    if (this.#record.content.headers.includes(field)) this.#raw.set(field, raw)
    return raw
  }
}

function cutTexts(texts: readonly TextPart[]): CutText[] | null {
  const characters = texts.reduce((sum, { value }) => sum + value.length, 0)
  if (characters > CUT_CHARS_MAX) return null
  const cuts = texts.map(({ value }) => cutText(value))
  const count = cuts.reduce((sum, { names }) => sum + names.length, 0)
  return count > CUTS_FREE + characters / CHARS_PER_CUT ? null : cuts
}

const FRAME = Symbol('frame')

export function frameOf(record: MessageRecord & { [FRAME]?: Frame }, parts: FrameParts): Frame {
  return record[FRAME] ?? attach(record, FRAME, new Frame(record, parts))
}
