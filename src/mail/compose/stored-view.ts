/** The texts in the answer about a stored message: as given, and derived from those. */
import { decodeCharset } from '../../protocols/mime/charset.ts'
import { htmlToText } from '../../protocols/mime/quoted/html-text.ts'
import { splitSignature, stripReply } from '../../protocols/mime/quoted/stripped.ts'
import { stripReplyHtml } from '../../protocols/mime/quoted/stripped-html.ts'
import { decodeContent } from '../../protocols/mime/transfer-encoding.ts'

export interface StoredTexts {
  /** Null: made from the html. */
  plain: string | null
  /** '' if missing. */
  html: string
}

/** `fields` with the members for the texts filled in, in their order. Linear in the texts. */
export function storedView(
  fields: Readonly<Record<string, unknown>>,
  { plain: given, html }: StoredTexts,
): Record<string, unknown> {
  const plain = given ?? (html === '' ? '' : htmlToText(html))
  const strippedHtml = stripReplyHtml(html)
  // Of html alone, its elements say better what is quoted than the text that was made of it.
  const isHtmlAlone = given === null && strippedHtml !== null
  const stripped = isHtmlAlone
    ? splitSignature(strippedHtml === html ? plain : htmlToText(strippedHtml))
    : stripReply(plain)
  return {
    ...fields,
    'body-html': html,
    'body-plain': plain,
    'stripped-html': strippedHtml ?? html,
    'stripped-text': stripped.text,
    'stripped-signature': stripped.signature,
  }
}

/** The members in their order; `storedView` fills them in. */
export const EMPTY_TEXTS = {
  'body-html': '',
  'body-plain': '',
  'stripped-html': '',
  'stripped-text': '',
  'stripped-signature': '',
}

/** The content of a part as a mail has it. */
export interface EncodedText {
  bytes: Uint8Array
  encoding: string
  charset: string
}

export type TextName = keyof typeof EMPTY_TEXTS

/** The same members in UTF-8, of parts that follow each other. `plain`: null: made from the html. */
export function storedTexts(
  plain: readonly EncodedText[] | null,
  html: readonly EncodedText[],
): Record<TextName, Uint8Array> {
  const joined = (parts: readonly EncodedText[]) =>
    parts.map((part) => decodeCharset(decodeContent(part.bytes, part.encoding), part.charset)).join('\n')
  const view = storedView({}, { plain: plain && joined(plain), html: joined(html) })
  const bytes = (name: TextName) => Buffer.from(view[name] as string)
  return {
    'body-html': bytes('body-html'),
    'body-plain': bytes('body-plain'),
    'stripped-html': bytes('stripped-html'),
    'stripped-text': bytes('stripped-text'),
    'stripped-signature': bytes('stripped-signature'),
  }
}
