/** What the answer about a stored message says of its texts: given ones, and what is made of them. */
import { htmlToText } from '../mime/html-text.ts'
import { stripReply, stripReplyHtml } from '../mime/stripped.ts'

export interface StoredTexts {
  /** Null: there is none, and the html is made into one. */
  plain: string | null
  /** '' if there is none. */
  html: string
}

/** `fields` with the members for the texts filled in, in their places. Linear in the texts. */
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
