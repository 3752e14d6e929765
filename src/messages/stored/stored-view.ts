/** The texts in the answer about a stored message: as given, and derived from those. */
import { htmlToText } from '../../mime/html-text.ts'
import { splitSignature, stripReply } from '../../mime/stripped.ts'
import { stripReplyHtml } from '../../mime/stripped-html.ts'

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
