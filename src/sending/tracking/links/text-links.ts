/**
 * Finds the http and https URLs in a plain text. Where one ends is a guess that every mail client makes; this is
 * the usual one (RFC 3986 appendix C, and what Markdown does): at a blank, quote or angle bracket, without
 * punctuation that ends the sentence, and without a closing bracket whose opening one is before the URL.
 */
import { LINKS_MAX } from './html-links.ts'
import { type Place, targetOf, URL_LENGTH_MAX } from './link-places.ts'

/** Linear: no part of it can match what the part before it matched. */
const CANDIDATE = /(?<![a-z0-9])https?:\/\/[^\s<>"\p{Cc}]+/giu
const ENDS_SENTENCE = new Set(".,;:!?'*_~|`…。，、；：！？’”»」』）】》")
const OPENING: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }

/** At most 10,000; the text after them stays as it is. */
export function findTextPlaces(text: string): Place[] {
  const places: Place[] = []
  for (const match of text.matchAll(CANDIDATE)) {
    const start = match.index
    const written = match[0]
    if (written.length > URL_LENGTH_MAX) continue
    const enclosed = text[start - 1] === '<' && text[start + written.length] === '>'
    const url = enclosed ? written : withoutEnding(written)
    const target = targetOf(url)
    if (target) places.push({ start, end: start + url.length, ...target })
    if (places.length === LINKS_MAX) break
  }
  return places
}

function withoutEnding(written: string): string {
  const counts = new Map<string, number>()
  for (const character of written) {
    if ('()[]{}'.includes(character)) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  let end = written.length
  for (; end > 0; end--) {
    const last = written[end - 1] as string
    const opening = OPENING[last]
    if (opening !== undefined) {
      const surplus = (counts.get(last) ?? 0) - (counts.get(opening) ?? 0)
      if (surplus <= 0) break
      counts.set(last, (counts.get(last) as number) - 1)
    } else if (!ENDS_SENTENCE.has(last)) break
  }
  return written.slice(0, end)
}
