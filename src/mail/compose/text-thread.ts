/** The worker thread for large texts (large-texts.ts): each function is linear in its input. */
import { serve } from '../../base/flow/side-thread.ts'
import { decodeCharset } from '../../protocols/mime/charset.ts'
import { decodeContent, encodeText, type TransferEncoding } from '../../protocols/mime/transfer-encoding.ts'
import { withContentIds } from './inline-files.ts'
import { type StoredTexts, storedTexts, storedView } from './stored-view.ts'

const functions = {
  encode(text: string): { encoding: TransferEncoding; content: Uint8Array } {
    const { encoding, content } = encodeText(text)
    return { encoding, content: typeof content === 'string' ? Buffer.from(content, 'latin1') : content }
  },
  decode: (bytes: Uint8Array, encoding: string, charset: string): string =>
    decodeCharset(decodeContent(bytes, encoding), charset),
  decodeBytes: (bytes: Uint8Array, encoding: string): Uint8Array => decodeContent(bytes, encoding),
  stored: (fields: Record<string, unknown>, texts: StoredTexts): Uint8Array =>
    Buffer.from(JSON.stringify(storedView(fields, texts))),
  withContentIds,
  texts: storedTexts,
}

export type TextFunctions = typeof functions

serve(functions)
