/**
 * Finds the places in an html text that tracking changes, without changing anything: links, attributes to remove,
 * the ends of the body's tags. Each has its position, so that all other bytes stay as they were written.
 *
 * The tokenizer reads html as browsers do: comments (conditional ones too), style, script, textarea and similar
 * elements hold no links, an unterminated tag is no tag, and the first of two attributes with the same name counts.
 * It is linear in the input, so hostile input costs no more than its length.
 */
import { setImmediate } from 'node:timers/promises'
import { Tokenizer } from 'htmlparser2'
import { type Place, targetOf, URL_LENGTH_MAX } from './link-places.ts'

export interface HtmlPlaces {
  /** In order, not overlapping. */
  places: readonly Place[]
  /** After the first `<body ...>`. */
  bodyStart: number | null
  /** Before the last `</body>`. */
  bodyEnd: number | null
}

/** Links rewritten per part, about 30 ms of work; the text after them stays as it is. */
export const LINKS_MAX = 10_000

/** The blanks between attributes in html. */
const BLANKS = ' \t\n\f\r'

type Callbacks = ConstructorParameters<typeof Tokenizer>[1]

const ignore = () => {}
const IGNORE_ALL: Callbacks = {
  onattribdata: ignore,
  onattribentity: ignore,
  onattribend: ignore,
  onattribname: ignore,
  oncdata: ignore,
  onclosetag: ignore,
  oncomment: ignore,
  ondeclaration: ignore,
  onend: ignore,
  onopentagend: ignore,
  onopentagname: ignore,
  onprocessinginstruction: ignore,
  onselfclosingtag: ignore,
  ontext: ignore,
  ontextentity: ignore,
}

interface Attribute {
  name: 'href' | 'disable-tracking'
  nameStart: number
  nameEnd: number
  valueStart: number
  valueEnd: number
}

export function findHtmlPlaces(html: string): HtmlPlaces {
  const reader = createReader(html)
  reader.write(html)
  return reader.end()
}

/** Longer html takes so long that it is read in steps, with other work in between. */
export const AT_ONCE_CHARS_MAX = 512 * 1024
/** About 5 ms. */
const STEP_CHARS = 256 * 1024

/** The same for html of any size, in steps. */
export async function findHtmlPlacesInSteps(html: string, stepChars = STEP_CHARS): Promise<HtmlPlaces> {
  const reader = createReader(html)
  for (let at = 0; at < html.length; at += stepChars) {
    if (at > 0) await setImmediate()
    reader.write(html.slice(at, at + stepChars))
  }
  return reader.end()
}

/** Reads `html`, which it receives in pieces. */
function createReader(html: string): { write(piece: string): void; end(): HtmlPlaces } {
  const places: Place[] = []
  let links = 0
  let bodyStart: number | null = null
  let bodyEnd: number | null = null
  let tag: 'link' | 'body' | null = null
  let attribute: Attribute | null = null
  let href: { attribute: Attribute; end: number } | null = null
  let removed: Place[] = []

  const nameAt = (start: number, end: number) => html.slice(start, end).toLowerCase()
  const endTag = (index: number) => {
    if (tag === 'body') bodyStart ??= index + 1
    // The places of one tag are in the order of its attributes: either its link is tracked or something is removed.
    if (removed.length > 0) for (const place of removed) places.push(place)
    else if (href && links < LINKS_MAX) {
      const { valueStart, valueEnd } = href.attribute
      const target = targetOf(decodeValue(html, valueStart, valueEnd, href.end))
      if (target) {
        places.push({ start: valueStart, end: valueEnd, ...target })
        links++
      }
    }
    tag = null
  }
  const tokenizer = new Tokenizer(
    { decodeEntities: false },
    {
      ...IGNORE_ALL,
      onopentagname(start, end) {
        // This runs for every tag and few have such a name, so compare the length first.
        const length = end - start
        const name = length === 1 || length === 4 ? nameAt(start, end) : ''
        tag = name === 'a' || name === 'area' ? 'link' : name === 'body' ? 'body' : null
        href = null
        removed = []
      },
      onattribname(start, end) {
        attribute = null
        if (tag !== 'link') return
        const name = nameAt(start, end)
        if (name !== 'href' && name !== 'disable-tracking') return
        attribute = { name, nameStart: start, nameEnd: end, valueStart: end, valueEnd: end }
      },
      // Called more than once for a value that spans two pieces.
      onattribdata(start, end) {
        if (attribute === null) return
        const isFirst = attribute.valueEnd === attribute.nameEnd
        attribute = { ...attribute, valueStart: isFirst ? start : attribute.valueStart, valueEnd: end }
      },
      onattribend(_quote, end) {
        if (attribute?.name === 'href') href ??= { attribute, end }
        if (attribute?.name === 'disable-tracking' && removed.length < LINKS_MAX)
          removed.push(...removedAttribute(html, attribute, end))
        attribute = null
      },
      onopentagend: endTag,
      onselfclosingtag: endTag,
      onclosetag(start, end) {
        if (end - start === 4 && nameAt(start, end) === 'body') bodyEnd = start - '</'.length
      },
    },
  )
  return {
    write: (piece) => tokenizer.write(piece),
    end() {
      tokenizer.end()
      return { places, bodyStart, bodyEnd }
    },
  }
}

/** `disable-tracking=true` with the blanks before it; the attributes around it must stay separated. */
function removedAttribute(
  html: string,
  { nameStart, valueStart, valueEnd }: Attribute,
  end: number,
): Place[] {
  if (html.slice(valueStart, valueEnd).trim().toLowerCase() !== 'true') return []
  let start = nameStart
  if (BLANKS.includes(html[end] ?? '') || html[end] === '>') {
    while (BLANKS.includes(html[start - 1] ?? '<')) start--
  }
  return [{ start, end, url: null, host: '' }]
}

/** A longer value is too long for a link however it is decoded. The longest reference has 33 characters. */
const DECODED_CHARS_MAX = URL_LENGTH_MAX * 33

/** The value of an attribute with its character references decoded, by the standard's rules for attributes. */
function decodeValue(html: string, start: number, end: number, attributeEnd: number): string {
  const raw = html.slice(start, end)
  if (!raw.includes('&') || raw.length > DECODED_CHARS_MAX) return raw
  // Most hrefs have no other reference; saves 2 µs per link.
  if (!raw.replaceAll('&amp;', '').includes('&')) return raw.replaceAll('&amp;', '&')
  // Runs the same tokenizer over this one attribute, so that it decodes in the same context as above.
  const written = attributeEnd > end ? html.slice(start - 1, attributeEnd) : raw
  const text = `<a b=${written}>`
  let value = ''
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ...IGNORE_ALL,
      onattribdata: (from, to) => {
        value += text.slice(from, to)
      },
      onattribentity: (codepoint) => {
        value += String.fromCodePoint(codepoint)
      },
    },
  )
  tokenizer.write(text)
  tokenizer.end()
  return value
}
