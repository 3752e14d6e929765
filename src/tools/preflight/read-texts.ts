/** What the checks need to know of a message's html and text, read in steps with other work in between. */
import { setImmediate } from 'node:timers/promises'
import { Parser } from 'htmlparser2'
import { UNSUBSCRIBE_VARIABLES } from '../../mail/record/variables.ts'
import { judgeLink, type LinkKind } from './links.ts'

/** Longer texts are read up to here: five times what Gmail shows. */
export const READ_CHARS_MAX = 512 * 1024
/** A millisecond or two of work. */
const STEP_CHARS = 32 * 1024
/** The parser searches all open elements for each tag; newsletters have below 100. */
const DEPTH_MAX = 300
/** Characters read before the depth is checked again. */
const PIECE_CHARS = 4_096
const EXAMPLES_MAX = 5
const EXAMPLE_CHARS_MAX = 200

export interface LinksFound {
  count: number
  kinds: Record<LinkKind, number>
  /** The first few of each kind that says something against them, cut. */
  examples: Partial<Record<LinkKind, string[]>>
}

export interface HtmlFacts {
  images: number
  withoutAlt: number
  /** Images inside the html: their characters. */
  dataChars: number
  dataImages: number
  /** Characters that readers see. */
  textChars: number
  /** False: the rest was not read, because it is too long or too deep. */
  isComplete: boolean
}

export const noLinks = (): LinksFound => ({
  count: 0,
  kinds: { ok: 0, empty: 0, broken: 0, private: 0, address: 0, insecure: 0, other: 0 },
  examples: {},
})

function addLink(found: LinksFound, value: string): void {
  // Placeholders and our own variables are no links yet; the placeholders have a check of their own.
  if (isVariable(value) || PLACEHOLDER_ONCE.test(value)) return
  const kind = judgeLink(value)
  found.count += 1
  found.kinds[kind] += 1
  if (kind === 'ok' || kind === 'other') return
  const examples = found.examples[kind] ?? []
  found.examples[kind] = examples
  const example = value.slice(0, EXAMPLE_CHARS_MAX)
  if (examples.length < EXAMPLES_MAX && !examples.includes(example)) examples.push(example)
}

const HIDDEN = new Set(['head', 'title', 'style', 'script', 'template'])

/** Adds the links of the html to `links`. */
export async function readHtml(html: string, links: LinksFound): Promise<HtmlFacts> {
  const facts: HtmlFacts = {
    ...{ images: 0, withoutAlt: 0, dataChars: 0, dataImages: 0, textChars: 0 },
    isComplete: html.length <= READ_CHARS_MAX,
  }
  let depth = 0
  let hidden = 0
  const parser = new Parser({
    onopentag(name, { href, src, alt }) {
      depth++
      if (HIDDEN.has(name)) hidden++
      if ((name === 'a' || name === 'area') && href !== undefined) addLink(links, href)
      if (name !== 'img') return
      facts.images += 1
      if (alt === undefined) facts.withoutAlt += 1
      if (src !== undefined && /^\s*data:/i.test(src)) {
        facts.dataImages += 1
        facts.dataChars += src.length
      } else addLink(links, src ?? '')
    },
    ontext(text) {
      if (hidden === 0) facts.textChars += text.replace(/\s+/g, '').length
    },
    onclosetag(name) {
      depth--
      if (HIDDEN.has(name)) hidden--
    },
  })
  const end = Math.min(html.length, READ_CHARS_MAX)
  for (let at = 0; at < end; at += PIECE_CHARS) {
    if (at > 0 && at % STEP_CHARS === 0) await setImmediate()
    parser.write(html.slice(at, Math.min(at + PIECE_CHARS, end)))
    if (depth > DEPTH_MAX) return { ...facts, isComplete: false }
  }
  parser.end()
  return facts
}

/** Adds the web addresses in a plain text to `links`. */
export async function readPlain(text: string, links: LinksFound): Promise<void> {
  const read = text.slice(0, READ_CHARS_MAX)
  let count = 0
  for (const [url] of read.matchAll(/\bhttps?:\/\/[^\s<>"]{0,9000}/gi)) {
    if (++count % 1_000 === 0) await setImmediate()
    addLink(links, url.slice(0, endOfUrl(url)))
  }
}

/** Punctuation after an address is the sentence's. */
function endOfUrl(url: string): number {
  let end = url.length
  while (end > 0 && ".,;:!?'])}".includes(url[end - 1] as string)) end--
  return end
}

/** What templates of this and other services leave behind when a value is missing. */
const PLACEHOLDER =
  /\{\{[^{}\n]{1,100}\}\}|\{%[^{}%\n]{1,100}%\}|%[a-z][a-z_]{2,40}(?:\.[^%\s]{1,100})?%|\*\|[A-Z0-9_:]{1,60}\|\*|\[\[[a-z][\w .]{0,60}\]\]/gi
const PLACEHOLDER_ONCE = new RegExp(PLACEHOLDER.source, 'i')

const VARIABLES: readonly string[] = UNSUBSCRIBE_VARIABLES
/** One that delivery replaces. */
const isVariable = (text: string) => VARIABLES.includes(text.trim().replace(/^%|%$/g, ''))

/** The different placeholders in the texts, at most a few of them. */
export function placeholdersIn(texts: readonly string[]): string[] {
  const found = new Set<string>()
  for (const text of texts) {
    for (const [placeholder] of text.slice(0, READ_CHARS_MAX).matchAll(PLACEHOLDER)) {
      if (!isVariable(placeholder)) found.add(placeholder)
      if (found.size >= EXAMPLES_MAX) return [...found]
    }
  }
  return [...found]
}
