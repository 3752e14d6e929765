/** The texts in the answer about a stored message: as given, and derived from those. */
import { htmlToText } from '../../mime/html-text.ts'
import { stripReply, stripReplyHtml } from '../../mime/stripped.ts'

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
  const stripped = stripReply(plain)
  return {
    ...fields,
    'body-html': html,
    'body-plain': plain,
    'stripped-html': html === '' ? '' : stripReplyHtml(html),
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
