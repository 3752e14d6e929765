/**
 * Builds a message from its parts: RFC 2045 to 2047, 2231, 2387, 2392.
 *
 *     mixed( related( alternative( text/plain, text/x-amp-html, text/html ), inline files ), attachments )
 *
 * A level with one child is left out. The same input gives the same bytes.
 *
 * 1. Texts and files become leaves, their content transfer-encoded.
 * 2. Leaves are put into levels; one boundary per level, proven not to occur in any leaf.
 * 3. The tree is written into chunks; large and lazy files are neither copied nor read here.
 */
import { hash } from 'node:crypto'
import type { Chunk, MimeMessage } from '../message/mime-message.ts'
import { type HeaderOptions, headerField, parameterField } from './header.ts'
import { type ContentType, type Parameter, parseContentType } from './parameters.ts'
import { blankControls } from './quoted/text-safety.ts'
import {
  type EncodedText,
  encodeBase64Chunk,
  encodeText,
  isSevenBit,
  type TransferEncoding,
} from './transfer-encoding.ts'

/** A file as given. `content` must not be changed as long as the message is in use. */
export type BodyFile = {
  /** Unicode; '' is sent as "attachment". */
  filename: string
  /** As the user gave it; what is not `type/subtype` is sent as application/octet-stream. */
  contentType: string
  content: Chunk
  /** Without angle brackets. Inline files without one get their file name, so that `cid:<filename>` works. */
  contentId?: string
}

/** A file already transfer-encoded: encoding a large one once serves every recipient of a batch. */
export type EncodedFile = {
  filename: string
  type: ContentType
  encoding: TransferEncoding
  content: Chunk
  contentId?: string
}

export type MessageParts = {
  /** Names and Unicode values in the order in which they are sent. Those that compose writes itself are skipped. */
  headers: readonly (readonly [name: string, value: string])[]
  /** A text may be transfer-encoded already. */
  text?: string | EncodedText
  html?: string | EncodedText
  amp?: string | EncodedText
  inline: readonly (BodyFile | EncodedFile)[]
  attachments: readonly (BodyFile | EncodedFile)[]
  /** The message travels with SMTPUTF8: header fields in UTF-8 (RFC 6532). */
  utf8: boolean
  /** Boundaries are derived from it; the message's id serves. */
  boundarySeed: string
}

type Leaf = { fields: string[]; encoding: TransferEncoding; content: string | Chunk }
type Level = { subtype: 'alternative' | 'related' | 'mixed'; children: MimeNode[] }
type MimeNode = Leaf | Level

const OWN_FIELDS = new Set(['mime-version', 'content-type', 'content-transfer-encoding'])
const OCTET_STREAM: ContentType = { type: 'application/octet-stream', parameters: [] }
const DEFAULT_FILENAME = 'attachment'
/** Adjacent chunks in memory are joined up to this size: fewer writes to the socket for one copy. */
const JOINED_BYTES_MAX = 65_536
/** After a clash boundaries are made again, with the content hashed in; a second clash would be a collision of SHA-256. */
const BOUNDARY_TRIES_MAX = 3

/**
 * Composes a message. Header fields are in the given order, then Mime-Version and the content fields.
 *
 * Time of one core (Node 24, warm), 10 KB of text and html with eight header fields: 30 µs when ASCII, 77 µs as
 * quoted-printable, 79 µs as base64; a 100 KB attachment 170 µs, or next to nothing if encoded before.
 * @throws HeaderSyntaxError for a bad header name.
 */
export function composeMessage(parts: MessageParts): MimeMessage {
  const options: HeaderOptions = { utf8: parts.utf8 }
  const headers: string[] = []
  for (const [name, value] of parts.headers) {
    if (!OWN_FIELDS.has(name.toLowerCase())) headers.push(headerField(name, value, options))
  }
  const leaves: Leaf[] = []
  const root = buildTree(parts, leaves)
  const boundary = isLevel(root) ? chooseBoundary(parts.boundarySeed, leaves) : ''
  headers.push('Mime-Version: 1.0', ...fieldsOf(root, boundary))
  const writer = new BodyWriter()
  writeContent(writer, root, boundary)
  writer.endLine()
  return { headers, body: writer.finish(), composed: true }
}

/**
 * Transfer-encodes a file once, to be used in any number of messages.
 *
 * RFC 2046 §5.2.1 and RFC 2045 §6.4 allow no encoding for message and multipart types. A message that is
 * clean 7bit is attached as it is; any other is labelled application/octet-stream and encoded as base64:
 * re-encoding its inside would change the bytes and break its signatures.
 */
export function encodeFile(file: BodyFile): EncodedFile {
  const given = parseContentType(file.contentType) ?? OCTET_STREAM
  const { filename, content } = file
  const contentId = file.contentId === undefined ? {} : { contentId: file.contentId }
  const asIs = given.type === 'message/rfc822' && content instanceof Uint8Array && isSevenBit(content)
  if (asIs)
    return { filename, type: { type: given.type, parameters: [] }, encoding: '7bit', content, ...contentId }
  const composite = /^(message|multipart)\//.test(given.type)
  const type = composite ? OCTET_STREAM : given
  return { filename, type, encoding: 'base64', content: encodeBase64Chunk(content), ...contentId }
}

/** The tree of rule 10 of the contract's messages.md; `leaves` collects every leaf in it. */
function buildTree(parts: MessageParts, leaves: Leaf[]): MimeNode {
  const leaf = (node: Leaf) => {
    leaves.push(node)
    return node
  }
  const texts: MimeNode[] = []
  if (parts.text !== undefined) texts.push(leaf(textLeaf('text/plain', parts.text)))
  if (parts.amp !== undefined) texts.push(leaf(textLeaf('text/x-amp-html', parts.amp)))
  if (parts.html !== undefined) texts.push(leaf(textLeaf('text/html', parts.html)))
  const related = [
    ...level('alternative', texts),
    ...parts.inline.map((file) => leaf(fileLeaf(file, 'inline'))),
  ]
  const mixed = [
    ...level('related', related),
    ...parts.attachments.map((file) => leaf(fileLeaf(file, 'attachment'))),
  ]
  return level('mixed', mixed)[0] ?? leaf(textLeaf('text/plain', ''))
}

/** No node for no children, the child itself for one. */
function level(subtype: Level['subtype'], children: MimeNode[]): MimeNode[] {
  return children.length <= 1 ? children : [{ subtype, children }]
}

function textLeaf(type: string, text: string | EncodedText): Leaf {
  const { encoding, content } = typeof text === 'string' ? encodeText(text) : text
  return { fields: [`Content-Type: ${type}; charset=utf-8`, encodingField(encoding)], encoding, content }
}

function fileLeaf(file: BodyFile | EncodedFile, disposition: 'inline' | 'attachment'): Leaf {
  const { type, encoding, content, contentId, filename } = 'encoding' in file ? file : encodeFile(file)
  const shown = blankControls(filename).trim() || DEFAULT_FILENAME
  const named: Parameter[] = [...type.parameters, ['name', shown]]
  const fields = [
    parameterField('Content-Type', type.type, named),
    encodingField(encoding),
    parameterField('Content-Disposition', disposition, [['filename', shown]]),
  ]
  const id = contentId ?? (disposition === 'inline' ? shown : undefined)
  if (id !== undefined) fields.push(headerField('Content-Id', `<${safeContentId(id)}>`))
  return { fields, encoding, content }
}

function encodingField(encoding: TransferEncoding): string {
  return `Content-Transfer-Encoding: ${encoding}`
}

/** Blanks, angle brackets and non-ASCII percent-encoded, as in the cid URL that names it (RFC 2392 §2). */
function safeContentId(id: string): string {
  return blankControls(id)
    .trim()
    .replace(/[^\x21-\x3b\x3d\x3f-\x7e]+/g, (run) => encodeURIComponent(run))
}

/** A boundary without its last letter, which is the level; at most 70 characters (RFC 2046 §5.1.1). */
function chooseBoundary(seed: string, leaves: readonly Leaf[]): string {
  let digest = hash('sha256', seed)
  for (let tries = 0; tries < BOUNDARY_TRIES_MAX; tries++) {
    const boundary = `=_${digest.slice(0, 32)}_`
    if (!leaves.some((leaf) => occursIn(leaf, boundary))) return boundary
    digest = hash(
      'sha256',
      leaves.reduce((held, leaf) => hash('sha256', held + contentDigest(leaf)), digest),
    )
  }
  throw new Error('Cannot find a boundary that does not occur in the message')
}

/** "=_" occurs neither in base64 nor in quoted-printable, where hex digits or a line end follow "=". */
function occursIn(leaf: Leaf, boundary: string): boolean {
  if (leaf.encoding !== '7bit') return false
  if (typeof leaf.content === 'string') return leaf.content.includes(boundary)
  // Only content in memory is ever sent as 7bit, see encodeFile; a lazy one counts as a clash.
  return leaf.content instanceof Uint8Array ? asBuffer(leaf.content).includes(boundary, 0, 'latin1') : true
}

function contentDigest(leaf: Leaf): string {
  const { content } = leaf
  return typeof content === 'string' || content instanceof Uint8Array ? hash('sha256', content) : ''
}

function isLevel(node: MimeNode): node is Level {
  return 'subtype' in node
}

function boundaryOf(node: Level, boundary: string): string {
  return boundary + node.subtype[0]
}

function fieldsOf(node: MimeNode, boundary: string): string[] {
  if (!isLevel(node)) return node.fields
  // As parameterField writes it in 5 us: the boundary's length leaves no room for it on the first line.
  if (node.subtype !== 'related')
    return [`Content-Type: multipart/${node.subtype};\r\n boundary="${boundaryOf(node, boundary)}"`]
  const parameters: Parameter[] = [
    ['boundary', boundaryOf(node, boundary)],
    ['type', typeOf(node.children[0] as MimeNode)],
  ]
  return [parameterField('Content-Type', `multipart/${node.subtype}`, parameters)]
}

/** The type of the root of a related level, which RFC 2387 §3.1 wants as a parameter. */
function typeOf(node: MimeNode): string {
  if (isLevel(node)) return `multipart/${node.subtype}`
  return (/^Content-Type: ([^;]+)/.exec(node.fields[0] as string) as RegExpExecArray)[1] as string
}

function writeContent(writer: BodyWriter, node: MimeNode, boundary: string): void {
  if (!isLevel(node)) {
    writer.add(node.content)
    return
  }
  const delimiter = `--${boundaryOf(node, boundary)}`
  node.children.forEach((child, index) => {
    // The CRLF before a delimiter belongs to it, not to the content before (RFC 2046 §5.1.1).
    writer.add(
      `${index === 0 ? '' : '\r\n'}${delimiter}\r\n${fieldsOf(child, boundary).join('\r\n')}\r\n\r\n`,
    )
    writeContent(writer, child, boundary)
  })
  writer.add(`\r\n${delimiter}--\r\n`)
}

/** Collects the body, joining what is small. Pieces are written one by one: as one string they would be copied once more. */
class BodyWriter {
  readonly #chunks: Chunk[] = []
  #pieces: (string | Uint8Array)[] = []
  #bytes = 0
  #endsLine = true

  /** A string is ASCII. */
  add(content: string | Chunk): void {
    if (typeof content === 'string') {
      if (content === '') return
      this.#endsLine = content.endsWith('\r\n')
      this.#pieces.push(content)
      this.#bytes += content.length
    } else if (content instanceof Uint8Array) this.#addBytes(content)
    else {
      this.#flush()
      this.#chunks.push(content)
      this.#endsLine = false
    }
  }

  /** A message ends with a line end, whatever its last part is. */
  endLine(): void {
    if (!this.#endsLine) this.add('\r\n')
  }

  finish(): Chunk[] {
    this.#flush()
    return this.#chunks
  }

  #addBytes(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return
    this.#endsLine = bytes.at(-2) === 0x0d && bytes.at(-1) === 0x0a
    if (this.#bytes + bytes.byteLength > JOINED_BYTES_MAX) this.#flush()
    if (bytes.byteLength > JOINED_BYTES_MAX) {
      this.#chunks.push(bytes)
      return
    }
    this.#pieces.push(bytes)
    this.#bytes += bytes.byteLength
  }

  #flush(): void {
    const [first] = this.#pieces
    if (first === undefined) return
    const isWhole = this.#pieces.length === 1 && first instanceof Uint8Array
    this.#chunks.push(isWhole ? first : joined(this.#pieces, this.#bytes))
    this.#pieces = []
    this.#bytes = 0
  }
}

function joined(pieces: readonly (string | Uint8Array)[], sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes)
  let at = 0
  for (const piece of pieces) {
    if (typeof piece === 'string') bytes.write(piece, at, 'latin1')
    else bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
