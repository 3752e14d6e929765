/** Places in a text that tracking replaces, and the replacing. */

/** The range from `start` to before `end` holds a link to `url`; null: text to remove. */
export interface Place {
  start: number
  end: number
  url: string | null
  /** Host and port of the URL in lower case. */
  host: string
}

/** Browsers and servers do not follow longer URLs. */
export const URL_LENGTH_MAX = 16_384
/** `http:x` without slashes would be relative to the redirect that carries it. */
const WEB_URL = /^https?:\/\//i

/**
 * The URL of a written link and its host, or null for what is not tracked: other schemes, fragments, invalid URLs,
 * and anything with control characters, which clients strip inconsistently.
 */
export function targetOf(written: string): { url: string; host: string } | null {
  const url = withoutBlanks(written)
  if (!WEB_URL.test(url) || url.length > URL_LENGTH_MAX || /\p{Cc}/u.test(written)) return null
  const parsed = URL.parse(url)
  return parsed && { url, host: parsed.host }
}

/** Spaces around a URL do not belong to it; blanks other than U+0020 are part of it. */
function withoutBlanks(text: string): string {
  let start = 0
  let end = text.length
  while (text[start] === ' ') start++
  while (end > start && text[end - 1] === ' ') end--
  return text.slice(start, end)
}

export interface Edit {
  start: number
  end: number
  text: string
}

/** The text with the range of each edit replaced; edits are in order and do not overlap. */
export function replaceAt(text: string, edits: readonly Edit[]): string {
  if (edits.length === 0) return text
  const pieces: string[] = []
  let at = 0
  for (const edit of edits) {
    pieces.push(text.slice(at, edit.start), edit.text)
    at = edit.end
  }
  pieces.push(text.slice(at))
  return pieces.join('')
}
