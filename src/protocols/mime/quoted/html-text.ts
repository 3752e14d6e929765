/**
 * Plain text from HTML, for messages with HTML only.
 *
 * The HTML is read once by htmlparser2, which bounds its depth, and handed to html-to-text reduced to the
 * elements that shape text, each one closed. That package has a parser of its own, of another version,
 * which nests some elements differently; so it gets nothing that can be read in two ways.
 */
import { compile } from 'html-to-text'
import { Parser, Tokenizer } from 'htmlparser2'

/** Longer HTML is cut: reading takes up to 1 µs a character, on the thread that serves requests. */
const HTML_MAX = 500_000
/** Levels of elements; newsletters have below 100. The parsers search all open elements for each tag. */
const DEPTH_MAX = 300
/** Levels of lists and quotations: each indents every line in it, so text could grow far beyond the HTML. */
const INDENT_DEPTH_MAX = 20
/** Characters read before the depth is checked again. */
const PIECE = 4_096
/** A link of another scheme is useless to a reader, and `data:` may be huge. */
const READABLE_LINK = /^(?:https?:|mailto:|tel:|ftp:|[^:]*$)/i

const INDENTING = new Set(['blockquote', 'ul', 'ol'])
export const HIDDEN = new Set(
  'head title style script template object svg math iframe noembed noframes select textarea audio video'.split(
    ' ',
  ),
)
const SHAPING = new Set(
  `a address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre
  section table tbody td tfoot th thead tr ul`.split(/\s+/),
)
/** Elements without an end tag. */
const VOID = new Set(['br', 'hr'])

const convert = compile({
  wordwrap: false,
  // The reduced HTML can be longer than what it was made of, by its escapes and end tags.
  limits: { maxInputLength: HTML_MAX * 10 },
  selectors: [
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
    ...['address', 'dd', 'dl', 'dt'].map((selector) => ({ selector, format: 'block' })),
    ...['td', 'th'].map((selector) => ({ selector, format: 'inlineSurround', options: { suffix: ' ' } })),
    { selector: 'tr', format: 'block', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    { selector: 'ul', options: { itemPrefix: '* ' } },
    { selector: 'a', options: { linkBrackets: ['(', ')'], hideLinkHrefIfSameAsText: true } },
  ],
})

/**
 * Text of an HTML document: links as `text (url)`, lists with `*` or numbers, no images, unwrapped lines
 * that end in LF. At most the first 500,000 characters are read; takes time in proportion to them. Of HTML
 * over 300 levels deep only the bare text is taken.
 */
export function htmlToText(html: string): string {
  const bounded = html.slice(0, HTML_MAX)
  const simple = simplified(bounded)
  const text = simple === null ? textNodes(bounded) : convert(simple)
  const lines = text.split('\n').map((line) => line.trimEnd())
  return lines.join('\n').trim()
}

/** A part of the HTML; `end` is behind its last character. */
interface Range {
  start: number
  end: number
}

interface HtmlHandler {
  onOpen: (name: string, attributes: Record<string, string>, tag: Range) => void
  onText: (text: string, range: Range) => void
  /** An implied end is at `start` of the tag that implies it, or at the end of the HTML. */
  onClose: (name: string, tag: Range, isImplied: boolean) => void
}

/**
 * Reads all of `html`, or returns false as soon as it is too deep to be read in bounded time; unclosed elements are open
 * to the end. Each onOpen has its onClose.
 */
export function readBounded(html: string, handler: HtmlHandler): boolean {
  let depth = 0
  let tooDeep = false
  const range = () => ({ start: parser.startIndex, end: parser.endIndex + 1 })
  const parser = new Parser({
    onopentag(name, attributes) {
      depth++
      tooDeep ||= depth > DEPTH_MAX
      handler.onOpen(name, attributes, range())
    },
    ontext: (text) => handler.onText(text, range()),
    onclosetag(name, isImplied) {
      depth--
      handler.onClose(name, isEnded ? { start: html.length, end: html.length } : range(), isImplied)
    },
  })
  let isEnded = false
  for (let at = 0; at < html.length && !tooDeep; at += PIECE) parser.write(html.slice(at, at + PIECE))
  isEnded = true
  if (!tooDeep) parser.end()
  return !tooDeep
}

/** The elements that shape text and the text in them; null if too deep. */
function simplified(html: string): string | null {
  const pieces: string[] = []
  let hidden = 0
  let indents = 0
  let tooIndented = false
  const complete = readBounded(html, {
    onOpen(name, attributes) {
      if (INDENTING.has(name)) indents++
      tooIndented ||= indents > INDENT_DEPTH_MAX
      if (HIDDEN.has(name)) hidden++
      if (hidden === 0 && SHAPING.has(name)) pieces.push(`<${name}${keptAttributes(name, attributes)}>`)
    },
    onText(text) {
      if (hidden === 0) pieces.push(escapeHtml(text))
    },
    onClose(name) {
      if (INDENTING.has(name)) indents--
      if (HIDDEN.has(name)) hidden--
      else if (hidden === 0 && SHAPING.has(name) && !VOID.has(name)) pieces.push(`</${name}>`)
    },
  })
  return complete && !tooIndented ? pieces.join('') : null
}

function keptAttributes(name: string, { href, start }: Record<string, string>): string {
  if (name === 'a' && href !== undefined && READABLE_LINK.test(href.trimStart()))
    return ` href="${escapeHtml(href)}"`
  return name === 'ol' && /^\d{1,9}$/.test(start ?? '') ? ` start="${start}"` : ''
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** The text between the tags, for HTML that is too deep to be converted. */
function textNodes(html: string): string {
  const pieces: string[] = []
  const nothing = () => {}
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ontext: (start, end) => pieces.push(html.slice(start, end)),
      ontextentity: (codePoint) => pieces.push(String.fromCodePoint(codePoint)),
      onattribdata: nothing,
      onattribentity: nothing,
      onattribend: nothing,
      onattribname: nothing,
      oncdata: nothing,
      onclosetag: nothing,
      oncomment: nothing,
      ondeclaration: nothing,
      onend: nothing,
      onopentagend: nothing,
      onopentagname: nothing,
      onprocessinginstruction: nothing,
      onselfclosingtag: nothing,
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return pieces.join('')
}
