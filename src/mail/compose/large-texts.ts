/**
 * Slow work on texts, by size: small texts at once, large ones in a worker thread, so that the main thread is never
 * blocked. A message may have 25 MB of text in millions of lines.
 */
import { join } from 'node:path'
import { createSideThread } from '../../base/flow/side-thread.ts'
import { decodeCharset } from '../../protocols/mime/charset.ts'
import { decodeContent, encodeText } from '../../protocols/mime/transfer-encoding.ts'
import { hasMadeIds, type NamedFile, withContentIds } from './inline-files.ts'
import { type EncodedText as EncodedPart, type StoredTexts, storedTexts, storedView } from './stored-view.ts'
import type { TextFunctions } from './text-thread.ts'

export type LargeTexts = ReturnType<typeof createLargeTexts>

/** Longer texts are encoded and decoded in the thread. That is 10 ms for lines of one character. */
const ENCODED_HERE_MAX = 512 * 1024
/** Making text of html of this size, once as it is and once without quotations, takes up to 120 ms. */
const VIEWED_HERE_MAX = 32 * 1024

export function createLargeTexts() {
  const thread = createSideThread<TextFunctions>(join(import.meta.dirname, 'text-thread.ts'))
  return {
    /** As `encodeText`. */
    encode: (text: string) =>
      text.length <= ENCODED_HERE_MAX
        ? encodeText(text)
        : thread
            .call('encode', () => [text])
            .then(({ encoding, content }) => ({ encoding, content: asBuffer(content) })),
    /** The text of encoded bytes in a character set. `bytes` are transferred if their memory is their own. */
    decode: (bytes: Uint8Array, encoding: string, charset: string) =>
      bytes.byteLength <= ENCODED_HERE_MAX
        ? decodeCharset(decodeContent(bytes, encoding), charset)
        : thread.call('decode', () => [bytes, encoding, charset], ownMemory),
    /** As `decodeContent`. */
    decodeBytes: (bytes: Uint8Array, encoding: string) =>
      bytes.byteLength <= ENCODED_HERE_MAX
        ? decodeContent(bytes, encoding)
        : thread.call('decodeBytes', () => [bytes, encoding], ownMemory),
    /** As `storedView`: the object, or its JSON. */
    storedView: (fields: Record<string, unknown>, texts: StoredTexts) =>
      (texts.plain?.length ?? 0) + texts.html.length <= VIEWED_HERE_MAX
        ? storedView(fields, texts)
        : thread.call('stored', () => [fields, texts]),
    /** As `withContentIds`. */
    withContentIds: (html: string, files: readonly NamedFile[]) =>
      html.length <= ENCODED_HERE_MAX || !hasMadeIds(files)
        ? withContentIds(html, files)
        : thread.call('withContentIds', () => [
            html,
            files.map(({ disposition, filename }) => ({ disposition, filename })),
          ]),
    /** As `storedTexts`. `bytes` are transferred if their memory is their own. */
    storedTexts: (plain: readonly EncodedPart[] | null, html: readonly EncodedPart[]) => {
      const all = [...(plain ?? []), ...html]
      return all.reduce((sum, { bytes }) => sum + bytes.byteLength, 0) <= VIEWED_HERE_MAX
        ? storedTexts(plain, html)
        : thread.call(
            'texts',
            () => [plain, html],
            () => all.flatMap(({ bytes }) => ownMemory([bytes])),
          )
    },
    close: () => thread.close(),
  }
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The first argument's, if it holds nothing else. */
function ownMemory([bytes]: readonly [Uint8Array, ...unknown[]]): ArrayBuffer[] {
  return bytes.byteLength > 0 && bytes.byteLength === bytes.buffer.byteLength
    ? [bytes.buffer as ArrayBuffer]
    : []
}
