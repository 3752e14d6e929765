/**
 * The texts of a received mail in UTF-8, for its POSTs and for its view: as they are, and without quotations and signature.
 *
 * Texts of up to 4 MB are worked on as a whole, by `LargeTexts`. A stranger may send more: larger ones are decoded piece by
 * piece whenever they are read, and nothing is searched in them, so they hold no memory.
 */
import {
  type Chunk,
  inPieces,
  readChunk,
  scanChunk,
  sliceChunk,
} from '../../protocols/message/mime-message.ts'
import { decodePieces } from '../../protocols/mime/charset.ts'
import type { MimeLeaf } from '../../protocols/mime/part-map.ts'
import type { LargeTexts } from './large-texts.ts'
import type { EncodedText } from './stored-view.ts'

/** Read anew by each `open`; an open one yields pieces that are valid until the next is requested. */
interface ByteSource {
  open(): AsyncIterable<Uint8Array>
}

/** UTF-8. The pieces of a source are of whole characters. */
export type Utf8 = Uint8Array | ByteSource

interface MailTexts {
  plain: Utf8
  /** Null: the mail has none. */
  html: Utf8 | null
  strippedText: Utf8
  strippedSignature: Utf8
  /** Empty without html. */
  strippedHtml: Utf8
}

/** Longest plain text, and longest html, that is read as a whole: a million characters, which quotations are searched in, in base64 and three bytes each. */
const WHOLE_BYTES_MAX = 4_000_000
/** Beginning of longer html that plain text is made from. */
const HTML_CHARS_MAX = 500_000

/** Leaves of `body` in order; those of a kind are joined by line ends. Without plain ones the text is made from the html. */
export async function mailTexts(
  largeTexts: LargeTexts,
  leaves: { plain: readonly MimeLeaf[]; html: readonly MimeLeaf[] },
  body: Chunk,
): Promise<MailTexts> {
  const long = {
    plain: isLong(leaves.plain) ? decodedText(largeTexts, leaves.plain, body) : null,
    html: isLong(leaves.html) ? decodedText(largeTexts, leaves.html, body) : null,
  }
  const isFromHtml = leaves.plain.length === 0
  const plain = isFromHtml ? null : long.plain ? [] : await encoded(leaves.plain, body)
  const html = !long.html ? await encoded(leaves.html, body) : isFromHtml ? [await beginning(long.html)] : []
  const texts = await largeTexts.storedTexts(plain, html)
  return {
    plain: long.plain ?? texts['body-plain'],
    html: leaves.html.length === 0 ? null : (long.html ?? texts['body-html']),
    strippedText: long.plain ?? texts['stripped-text'],
    strippedSignature: texts['stripped-signature'],
    strippedHtml: long.html ?? texts['stripped-html'],
  }
}

const isLong = (leaves: readonly MimeLeaf[]): boolean =>
  leaves.reduce((sum, { start, end }) => sum + end - start, 0) > WHOLE_BYTES_MAX

const encoded = (leaves: readonly MimeLeaf[], body: Chunk): Promise<EncodedText[]> =>
  Promise.all(
    leaves.map(async ({ start, end, encoding, charset }) => ({
      bytes: await readChunk(sliceChunk(body, start, end)),
      encoding,
      charset,
    })),
  )

const LINE_END = Buffer.from('\n')

/** The texts of leaves, decoded piece by piece. */
export const decodedText = (
  largeTexts: LargeTexts,
  leaves: readonly MimeLeaf[],
  body: Chunk,
): ByteSource => ({
  async *open() {
    for (const [at, leaf] of leaves.entries()) {
      if (at > 0) yield LINE_END
      const { open } = decodedLeaf(largeTexts, leaf, body)
      for await (const text of decodePieces(open, leaf.charset)) yield Buffer.from(text)
    }
  },
})

async function beginning({ open }: ByteSource): Promise<EncodedText> {
  const pieces: Buffer[] = []
  let characters = 0
  for await (const bytes of open()) {
    pieces.push(Buffer.from(bytes))
    characters += Buffer.from(bytes).toString().length
    if (characters >= HTML_CHARS_MAX) break
  }
  return { bytes: Buffer.concat(pieces), encoding: '8bit', charset: 'utf-8' }
}

const ENCODED = new Set(['base64', 'quoted-printable'])

/** The content of a part without its transfer encoding. What is encoded is decoded as a whole. */
export function decodedLeaf(largeTexts: LargeTexts, leaf: MimeLeaf, body: Chunk): ByteSource {
  const content = sliceChunk(body, leaf.start, leaf.end)
  if (ENCODED.has(leaf.encoding))
    return {
      async *open() {
        yield* inPieces(await largeTexts.decodeBytes(await readChunk(content), leaf.encoding)).open()
      },
    }
  return content instanceof Uint8Array ? inPieces(content) : { open: () => scanChunk(content) }
}
