/** Plain text from HTML, for messages that come or are sent with HTML only. */
import { compile } from 'html-to-text'
import { Parser, Tokenizer } from 'htmlparser2'

/** Longer HTML is cut: converting takes up to 0.6 µs a character, on the thread that serves requests. */
const HTML_MAX = 500_000
/** Levels of elements; newsletters have below 100. The parsers search all open elements for each tag. */
const DEPTH_MAX = 300
/** Levels of lists and quotations: each indents every line in it, so the text could grow far beyond the HTML. */
const INDENT_DEPTH_MAX = 20
/** What lies deeper is left out of the text. */
const TEXT_DEPTH_MAX = 250
/** A link of another scheme says nothing to a reader, and `data:` may be huge. */
const READABLE_LINK = /^(https?:|mailto:|tel:|ftp:|\/|[^:]*$)/i

const INDENTING = new Set(['blockquote', 'ul', 'ol'])
/** Characters read before the depth is looked at again. */
const PIECE = 4_096

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: HTML_MAX, maxDepth: TEXT_DEPTH_MAX, ellipsis: '' },
  selectors: [
    ...['img', 'head', 'title', 'template', 'object', 'svg'].map((selector) => ({
      selector,
      format: 'skip',
    })),
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
    { selector: 'ul', options: { itemPrefix: '* ' } },
    { selector: 'tr', format: 'block', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    { selector: 'td', format: 'inlineSurround', options: { suffix: ' ' } },
    { selector: 'th', format: 'inlineSurround', options: { suffix: ' ' } },
    {
      selector: 'a',
      options: {
        linkBrackets: ['(', ')'],
        hideLinkHrefIfSameAsText: true,
        pathRewrite: (path: string) => (READABLE_LINK.test(path.trim()) ? path : ''),
      },
    },
  ],
})

/**
 * Text of an HTML document: links as `text (url)`, lists with `*` or numbers, no images, unwrapped lines
 * that end in LF. At most the first 500,000 characters are read; takes time in proportion to them.
 */
export function htmlToText(html: string): string {
  const bounded = html.slice(0, HTML_MAX)
  const text = isTooDeep(bounded) ? textNodes(bounded) : convert(bounded)
  const lines = text.split('\n').map((line) => line.trimEnd())
  return lines.join('\n').trim()
}

/** True if elements nest deeper than can be handled in bounded time; unclosed ones are open to the end. */
export function isTooDeep(html: string): boolean {
  let depth = 0
  let indents = 0
  let tooDeep = false
  const parser = new Parser({
    onopentag(name) {
      depth++
      if (INDENTING.has(name)) indents++
      tooDeep ||= depth > DEPTH_MAX || indents > INDENT_DEPTH_MAX
    },
    onclosetag(name) {
      depth--
      if (INDENTING.has(name)) indents--
    },
  })
  for (let at = 0; at < html.length && !tooDeep; at += PIECE) parser.write(html.slice(at, at + PIECE))
  return tooDeep
}

/** The text between the tags, for HTML that is too deep to be converted. */
function textNodes(html: string): string {
  let text = ''
  const nothing = () => {}
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ontext: (start, end) => {
        text += html.slice(start, end)
      },
      ontextentity: (codePoint) => {
        text += String.fromCodePoint(codePoint)
      },
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
  return text
}
