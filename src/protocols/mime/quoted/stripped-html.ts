/**
 * HTML without the quotations of mail programs, for stripped-html.
 *
 * The document is read once: into lines, as a reader sees them, and into pieces (elements, texts, pictures), each
 * with its range in the HTML and the lines that it holds. `quotations.ts` says which lines are quoted. Pieces with nothing
 * else are left out; the rest stays as it is, character by character, so what was balanced is so again.
 */
import { HIDDEN, readBounded } from './html-text.ts'
import { BLANK, findQuotations, isMarked, type Line, visibleText } from './quotations.ts'

/** Longer HTML is not read. */
const HTML_MAX = 1_000_000

/** Elements that stand on lines of their own. A cell of a table shares the line of its row. */
const BLOCKS = new Set(
  `address article aside blockquote body center dd details div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header
  hr html li main nav ol p pre section table tbody tfoot thead tr ul`.split(/\s+/),
)

/** Elements of mail programs that hold a quotation. */
const QUOTE_CLASSES = new Set(
  `yahoo_quoted moz-cite-prefix protonmail_quote tutanota_quote zmail_extra gmail_attr ms-outlook-mobile-reference-message
  airmail_on`.split(/\s+/),
)
const QUOTE_IDS = new Set(
  'olk_src_body_section mail-editor-reference-message-container yahoo_quoted'.split(' '),
)
/** Elements after which all is quoted. */
const MESSAGE_IDS = new Set('divrplyfwdmsg appendonsend stopspelling zwchr'.split(' '))
const MESSAGE_CLASSES = new Set(['outlookmessageheader'])
const OUTLOOK_RULE = /border-top:\s*solid\s+#(e1e1e1|b5c4df)/i
const RULE = /border-top(?:-style)?\s{0,9}:[^;]{0,99}\b(?:solid|dotted|dashed|double)\b/i

/** How an element marks what it holds; 'conversation': a quotation up to its first quoted block, then answers and more of those. */
type Mark = 'none' | 'block' | 'quoted' | 'conversation'

interface Piece {
  start: number
  end: number
  /** Its lines; none if `last` is less. */
  first: number
  last: number
}

/**
 * HTML without quotations; unchanged if nothing readable would be left; null if it is longer than a million characters or
 * over 300 levels deep, and so was not read. Takes time in proportion to the HTML.
 */
export function stripReplyHtml(html: string): string | null {
  const read = html.length <= HTML_MAX ? readDocument(html) : null
  if (read === null) return null
  const quoted = findQuotations(read.lines)
  /** For each line how many before it are quoted. */
  const before = new Uint32Array(quoted.length + 1)
  quoted.forEach((isQuoted, line) => {
    before[line + 1] = (before[line] as number) + Number(isQuoted)
  })
  let kept = ''
  let from = 0
  let cut = { start: 0, end: 0 }
  const endCut = () => {
    kept += html.slice(from, cut.start)
    if (cut.end > cut.start && joinsText(html, cut.start, cut.end)) kept += '<br>'
    from = cut.end
  }
  for (const { start, end, first, last } of read.pieces) {
    // A piece without lines goes with those around it.
    const isQuoted =
      last < first
        ? quoted[first - 1] === true && quoted[first] !== false
        : (before[last + 1] as number) - (before[first] as number) === last + 1 - first
    if (start < cut.end || !isQuoted) continue
    if (html.slice(cut.end, start).trim() !== '') {
      endCut()
      cut = { start, end }
    } else cut = { start: cut.end > cut.start ? cut.start : start, end }
  }
  endCut()
  return kept + html.slice(from)
}

/** Tags next to a cut are searched so far. */
const TAG_MAX = 300
const BLOCK_TAG = `</?(?:${[...BLOCKS, 'br'].join('|')})\\b[^<>]*>`
const BREAK_BEFORE = new RegExp(`(?:^|${BLOCK_TAG})\\s*$`, 'i')
const BREAK_AFTER = new RegExp(`^\\s*(?:$|${BLOCK_TAG})`, 'i')

/** Whether the texts around a cut would come to share a line. */
function joinsText(html: string, start: number, end: number): boolean {
  // Lines of preformatted text
  if (html[start - 1] === '\n' && html[end - 1] === '\n') return false
  const before = html.slice(Math.max(0, start - TAG_MAX), start)
  return !BREAK_BEFORE.test(before) && !BREAK_AFTER.test(html.slice(end, end + TAG_MAX))
}

interface OpenElement {
  piece: Piece
  mark: Mark
  isHidden: boolean
}

/** Lines and pieces in their order; null if the HTML is too deep. */
function readDocument(html: string): { lines: Line[]; pieces: Piece[] } | null {
  const lines: Line[] = []
  const pieces: Piece[] = []
  const open: OpenElement[] = []
  /** The text of the line that is not complete. */
  let text = ''
  let hidden = 0
  let preformatted = 0
  /** Open elements by what they mark. */
  const marks: Record<Mark, number> = { none: 0, block: 0, quoted: 0, conversation: 0 }
  /** Whether the open conversation's first block has ended. */
  let isAnswered = false

  const currentMark = (): Line['mark'] => {
    if (marks.quoted > 0) return 'quoted'
    if (marks.conversation > 0) return marks.block > 0 || !isAnswered ? 'quoted' : 'none'
    return marks.block > 0 ? 'block' : 'none'
  }
  const endLine = () => {
    const trimmed = text === '' ? '' : visibleText(text.replace(/\s+/g, ' '))
    const mark = isMarked(trimmed) ? 'quoted' : currentMark()
    lines.push(trimmed === '' ? BLANK_LINES[mark] : { text: trimmed, mark, begins: 'nothing' })
    text = ''
  }
  const endText = () => {
    if (text !== '') endLine()
  }
  const addPiece = (start: number, end: number, first: number, last: number) => {
    const piece = { start, end, first, last }
    pieces.push(piece)
    return piece
  }

  const isRead = readBounded(html, {
    onOpen(name, attributes, { start, end }) {
      const mark = markOf(name, attributes, marks.conversation > 0)
      const begins = beginningOf(name, attributes)
      const isHidden = HIDDEN.has(name)
      if (BLOCKS.has(name) || mark !== 'none' || begins !== 'nothing') endText()
      const piece = addPiece(start, end, lines.length, lines.length - 1)
      open.push({ piece, mark, isHidden })
      if (mark === 'conversation' && marks.conversation === 0) isAnswered = false
      marks[mark]++
      if (isHidden) hidden++
      if (name === 'pre') preformatted++
      if (begins !== 'nothing') lines.push({ text: '', mark: 'none', begins })
      if (hidden > 0) return
      if (name === 'br') endLine()
      if (name === 'img') text += PICTURE
      if (name === 'td' || name === 'th') text += text === '' ? '' : ' '
    },
    onText(given, { start, end }) {
      if (hidden > 0) return
      if (given.trim() === '' && preformatted === 0) {
        if (text !== '') text += ' '
        addPiece(start, end, lines.length, text === '' ? lines.length - 1 : lines.length)
        return
      }
      // Text without entities, as this is, has its length in the HTML.
      const parts = preformatted > 0 && given.length === end - start ? given.split(/(?<=\n)/) : [given]
      let at = start
      for (const part of parts) {
        text += part
        addPiece(at, parts.length === 1 ? end : at + part.length, lines.length, lines.length)
        at += part.length
        if (preformatted > 0 && part.endsWith('\n')) endLine()
      }
    },
    onClose(name, { start, end }, isImplied) {
      const { piece, mark, isHidden } = open.pop() as OpenElement
      if (BLOCKS.has(name) || mark !== 'none') endText()
      piece.last = text.trim() === '' ? lines.length - 1 : lines.length
      piece.end = isImplied ? Math.max(piece.end, start) : end
      marks[mark]--
      if (mark === 'block' && marks.block === 0) isAnswered = true
      if (isHidden) hidden--
      if (name === 'pre') preformatted--
    },
  })
  endText()
  return isRead ? { lines, pieces } : null
}

const BLANK_LINES: Record<Line['mark'], Line> = {
  none: BLANK,
  block: { ...BLANK, mark: 'block' },
  quoted: { ...BLANK, mark: 'quoted' },
}
/** Stands for a picture in a line, so that the line is not blank. */
const PICTURE = '\ufffc'

/** Outlook prefixes names with "x_" when it quotes them itself. */
const nameOf = (value: string | undefined) => (value ?? '').toLowerCase().replace(/^(?:x_)+/, '')
const classesOf = ({ class: given = '' }: Record<string, string>) => given.split(/\s+/).map(nameOf)

function markOf(name: string, attributes: Record<string, string>, isConversation: boolean): Mark {
  const classes = classesOf(attributes)
  if (QUOTE_IDS.has(nameOf(attributes['id'])) || classes.some((one) => QUOTE_CLASSES.has(one)))
    return 'quoted'
  if (nameOf(attributes['name']) === 'messagereplysection') return 'quoted'
  const isGmail = classes.some((one) => one === 'gmail_quote' || one === 'gmail_quote_container')
  if (name !== 'blockquote') return isGmail ? 'conversation' : 'none'
  if (attributes['type'] === 'cite' || attributes['cite']?.startsWith('mid:')) return 'quoted'
  // Outside its conversations, Gmail's own class is on what a writer quotes by a button. Without a border, web mail
  // indents a paragraph.
  return (isGmail && !isConversation) || /border:\s*none/i.test(attributes['style'] ?? '') ? 'none' : 'block'
}

function beginningOf(name: string, attributes: Record<string, string>): Line['begins'] {
  if (MESSAGE_IDS.has(nameOf(attributes['id']))) return 'message'
  if (classesOf(attributes).some((one) => MESSAGE_CLASSES.has(one))) return 'message'
  const style = attributes['style'] ?? ''
  if (name === 'div' && OUTLOOK_RULE.test(style)) return 'message'
  return name === 'hr' || (BLOCKS.has(name) && RULE.test(style)) ? 'section' : 'nothing'
}
