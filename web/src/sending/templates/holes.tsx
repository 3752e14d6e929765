/** Places of a preview where the sample has no value. */
import { partsByHoles } from './sample.ts'

/** The text with its holes marked. */
export function Marked({ text, missing }: { text: string; missing: readonly string[] }) {
  return partsByHoles(text, missing).map((part, at) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other name
    at % 2 === 0 ? part : <mark key={at}>{part}</mark>,
  )
}

/** For a frame, in which inline styles are allowed: mail is written for a white background. */
const MARK = 'background:#fff3bf;color:#664d03;outline:1px dashed #b08900;border-radius:3px'

/** Marks the holes of a message's texts; a picture without an address shows its name. */
export function markHoles(document: Document, missing: readonly string[]): void {
  if (missing.length === 0) return
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const found: Text[] = []
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) found.push(node as Text)
  for (const text of found) {
    const parts = partsByHoles(text.data, missing)
    if (parts.length === 1 || text.parentElement?.localName === 'style') continue
    text.replaceWith(...parts.map((part, at) => (at % 2 === 0 ? part : marked(document, part))))
  }
  for (const image of document.querySelectorAll('img[src]')) {
    const [, hole] = partsByHoles(image.getAttribute('src') ?? '', missing)
    if (hole === undefined) continue
    image.removeAttribute('src')
    image.setAttribute('alt', hole)
    image.setAttribute('style', `${image.getAttribute('style') ?? ''};${MARK}`)
  }
}

function marked(document: Document, text: string): HTMLElement {
  const mark = document.createElement('mark')
  mark.setAttribute('style', MARK)
  mark.textContent = text
  return mark
}
