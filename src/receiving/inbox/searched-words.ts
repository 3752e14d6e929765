/** What a captured message is found by, besides its header. Pure. */
import type { ShownTexts } from './view.ts'

/** A search reads them all: 10,000 messages are then 80 MB at the most. */
const CHARS_MAX = 8_000
/** Length of HTML that is read for words: newsletters begin with styles. */
const HTML_CHARS_MAX = 200_000

/** Lower case, blanks joined. The text part, or the text of the HTML without tags; then the names of the files. */
export function searchedWords({ text, html, fileNames }: ShownTexts): string {
  const body = text.trim() === '' ? withoutTags(html.slice(0, HTML_CHARS_MAX).toLowerCase()) : text
  const names = fileNames.join(' ').slice(0, CHARS_MAX / 4)
  const words = body.slice(0, HTML_CHARS_MAX).replace(/\s+/g, ' ').trim()
  return `${words.slice(0, CHARS_MAX - names.length)} ${names}`
    .trim()
    .toLowerCase()
    .toWellFormed()
    .replaceAll('\0', ' ')
}

/** Elements whose content nobody reads. */
const HIDDEN = /^<(style|script|head|title)\b/

/** `html` in lower case. Enough for a search: no character references, and a tag ends at its first `>`. */
function withoutTags(html: string): string {
  const kept: string[] = []
  for (let at = 0; at < html.length; ) {
    const open = html.indexOf('<', at)
    kept.push(html.slice(at, open < 0 ? html.length : open))
    if (open < 0) break
    const [, hidden] = HIDDEN.exec(html.slice(open, open + 10)) ?? []
    const close = hidden === undefined ? open : indexOfEnd(html, hidden, open)
    const end = html.indexOf('>', close)
    at = end < 0 ? html.length : end + 1
  }
  return kept.join(' ')
}

function indexOfEnd(html: string, name: string, from: number): number {
  const end = html.indexOf(`</${name}`, from)
  return end < 0 ? html.length : end
}
