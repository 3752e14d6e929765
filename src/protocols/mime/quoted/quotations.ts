/**
 * Finds in a reply what was not newly written: the one judgement for plain text and HTML, which only differ in how
 * they become lines (`stripped.ts`, `stripped-html.ts`).
 *
 * 1. Lines marked as quoted are a quotation: by ">", or by an element that only mail programs make. So is a line without
 *    ">" between two with it, if it continues the one before.
 * 2. An attribution ("On ... wrote:", also wrapped), a block of header fields, or a rule "Original Message" begins a
 *    quotation. Marked lines that follow belong to it, and text below those is new again. If none follow, all the
 *    rest is quoted.
 * 3. A rule "Forwarded message", or an element with which a program begins the old message, takes all the rest.
 * 4. An indented block that a writer may have made as well is a quotation below an attribution, and at the very end.
 *
 * If nothing would be left, nothing is a quotation: a forwarded message alone is what its sender sends.
 *
 * These are habits of mail programs, not a standard: a guess that may fail either way, so the whole text is always
 * kept too. Takes time in proportion to the lines.
 */
import {
  BARE_RULE,
  DASHED_WROTE,
  FORWARD_SENTENCE,
  type HeaderField,
  headerField,
  OPENING,
  QUOTING,
  TITLED_RULE,
  titleKind,
  WROTE_AFTER_NAME,
  WROTE_ANYWHERE,
  WROTE_INSIDE,
  WROTE_LAST,
} from './quotation-words.ts'

export interface Line {
  /** As of `visibleText`; '' for a blank line. */
  text: string
  /** How the line is marked: not, as an indented block, or as only mail programs do. */
  mark: 'none' | 'block' | 'quoted'
  /** What begins with this line, by its element: nothing, a section with a rule above, or the old message. */
  begins: 'nothing' | 'section' | 'message'
}

export const BLANK: Line = Object.freeze({ text: '', mark: 'none', begins: 'nothing' })

/** Marks for the direction of writing, and blanks without width. */
const INVISIBLE = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g

/** The text of a line as it is seen. */
export function visibleText(raw: string): string {
  const text = raw.trim()
  return text.length <= PATTERN_TEXT_MAX ? text.replace(INVISIBLE, '').trim() : text
}

/** Whether a line begins with ">"; ">>> see here <<<" is an ornament. */
export const isMarked = (raw: string) => /^ {0,3}>/.test(raw) && !raw.endsWith('<')

/** Longer texts introduce nothing: no pattern sees them. */
const PATTERN_TEXT_MAX = 300
/** Mail programs wrap "On ... wrote:" into at most so many lines. */
const ATTRIBUTION_LINES_MAX = 5
/** Blank lines that mail programs leave between an introduction and the quotation. */
const BLANK_LINES_MAX = 4
/** Lines of a header block: each of its fields may be wrapped. */
const HEADER_LINES_MAX = 12
/** Lines in a row in a header block that continue a field. */
const FIELD_CONTINUATIONS_MAX = 2
/** Programs wrap lines that they send at 70 to 80 characters; ">" before some of them came later. */
const WRAPPED_LINE_MIN = 50
const TITLE_WORDS_MAX = 4
/** "You wrote:" over marked lines: with more words it may be the end of a sentence. */
const SHORT_ATTRIBUTION_WORDS_MAX = 4

/** For each line whether it is part of a quotation. */
export function findQuotations(lines: readonly Line[]): boolean[] {
  const quoted = new Array<boolean>(lines.length).fill(false)
  const lastText = lines.findLastIndex((line) => line.text !== '')
  let blocksAreQuoted = false
  let at = 0
  const quote = (until: number) => {
    quoted.fill(true, at, until)
    at = until
  }
  while (at < lines.length) {
    const line = lines[at] as Line
    if (beginsRest(line)) {
      quote(lines.length)
      break
    }
    const introduction = introductionAt(lines, at)
    if (introduction > 0) {
      quote(at + introduction)
      const next = nextText(lines, at)
      if (next === undefined || next.mark === 'none') quote(lines.length)
      else if (next.mark === 'block') blocksAreQuoted = true
    } else if (line.mark === 'quoted' || continuesQuotation(lines, at)) quote(at + 1)
    else if (line.mark === 'block') {
      const end = blockEnd(lines, at)
      if (blocksAreQuoted || end > lastText) quote(end)
      else at = end
    } else if (line.text === '' && quoted[at - 1]) quote(at + 1)
    else at++
  }
  return lines.some((line, index) => line.text !== '' && !quoted[index]) ? quoted : quoted.fill(false)
}

function blockEnd(lines: readonly Line[], from: number): number {
  let end = from
  while (lines[end]?.mark === 'block') end++
  return end
}

/** The next line with text, within the blank lines that mail programs leave. */
function nextText(lines: readonly Line[], from: number): Line | undefined {
  for (let index = from; index <= from + BLANK_LINES_MAX; index++)
    if (lines[index]?.text !== '') return lines[index]
  return undefined
}

const canIntroduce = ({ text, mark }: Line) =>
  text !== '' && mark !== 'quoted' && text.length <= PATTERN_TEXT_MAX

function beginsRest(line: Line): boolean {
  if (line.begins === 'message') return true
  if (!canIntroduce(line)) return false
  return FORWARD_SENTENCE.test(line.text) || titledRule(line.text) === 'forwarded'
}

function titledRule(text: string): 'original' | 'forwarded' | null {
  const [, words = ''] = TITLED_RULE.exec(text) ?? []
  return words === '' || words.split(/\s+/).length > TITLE_WORDS_MAX ? null : titleKind(words)
}

/** How many lines from `index` on introduce a quotation; 0 if none. */
function introductionAt(lines: readonly Line[], index: number): number {
  const line = lines[index] as Line
  if (line.begins === 'section' || (line.mark === 'none' && BARE_RULE.test(line.text)))
    return sectionAt(lines, index)
  if (!canIntroduce(line)) return 0
  if (titledRule(line.text) === 'original') return 1 + headerBlockAt(lines, index + 1, true)
  return headerBlockAt(lines, index, false) || attributionAt(lines, index)
}

/** A rule counts if a header block or an attribution is below it. */
function sectionAt(lines: readonly Line[], index: number): number {
  let from = index + 1
  while (from <= index + BLANK_LINES_MAX && lines[from]?.text === '' && lines[from]?.begins !== 'message')
    from++
  const line = lines[from]
  if (line?.begins === 'message') return from - index
  if (line === undefined || !canIntroduce(line)) return 0
  const length = headerBlockAt(lines, from, true) || attributionAt(lines, from)
  return length === 0 ? 0 : from - index + length
}

/** Lines of the header block that begins at `index`; 0 if none does. `ruled`: below a rule, where less is enough. */
function headerBlockAt(lines: readonly Line[], index: number, ruled: boolean): number {
  const fields = new Set<HeaderField>()
  let hasAddress = false
  let hasTime = false
  let end = index
  for (let at = index; at < index + HEADER_LINES_MAX && at - end <= FIELD_CONTINUATIONS_MAX; at++) {
    const line = lines[at]
    if (line === undefined || line.text === '' || line.mark === 'quoted') break
    const text = line.text.slice(0, PATTERN_TEXT_MAX)
    const field = headerField(text)
    if (field === null && at === index) return 0
    if (field === null) continue
    fields.add(field)
    hasAddress ||= (field === 'from' || field === 'to') && ADDRESS.test(text)
    hasTime ||= TIME.test(text) && (field === 'date' || ruled) && DAY.test(text)
    end = at + 1
  }
  const isBlock =
    (fields.has('from') && fields.size >= 3 && (fields.has('subject') || hasAddress || hasTime)) ||
    (fields.has('from') && (fields.has('date') || fields.has('subject')) && ruled) ||
    (hasAddress && hasTime && (fields.size >= 2 || ruled))
  return isBlock ? end - index : 0
}

const ADDRESS = /[^\s@<>(]@[^\s@<>)]/
const TIME = /\d{1,2}\s?[:.hH時时시]\s?\d{2}/
const DAY = /(?<!\d)(?:19|20)\d\d(?!\d)|\d{1,2}[/-]\d{1,2}|\d{1,2}\.\s?\d{1,2}\./
/** A date, perhaps after the name of a day. */
const DATE_FIRST = /^["'(*]?(?:\p{L}{2,14}[.,]{0,2}\s){0,2}\d{1,4}/u
const ADDRESS_BRACKETED = /[<(][^<>()\s]+@[^<>()\s]+[>)]/
const ADDRESS_LAST = /@[^\s@<>]+[>)\]]*\s?[:：]$/
const ADDRESS_LAST_BARE = /@[^\s@<>]+>$/

/** Lines of the attribution that begins at `index`; 0 if none does. */
function attributionAt(lines: readonly Line[], index: number): number {
  let joined = ''
  for (let count = 1; count <= ATTRIBUTION_LINES_MAX; count++) {
    const line = lines[index + count - 1]
    if (line === undefined || line.begins !== 'nothing') return 0
    // In an address that was wrapped, ">" is no mark.
    if (line.mark === 'quoted' && !isOpenBracket(joined)) return 0
    if (line.text === '') {
      if (lines[index + count]?.text === '<') continue
      return 0
    }
    joined = count === 1 ? line.text : `${joined} ${line.text}`
    if (joined.length > PATTERN_TEXT_MAX) return 0
    if (isAttribution(joined, lines[index + count], nextText(lines, index + count))) return count
    if (isBareAttribution(joined) && quotesRest(lines, index + count)) return count
    if (count === 1 && !mayContinue(joined, lines[index - 1])) return 0
  }
  return 0
}

/** Whether the first line of an attribution that is wrapped may look like this. `above`: the line above it. */
function mayContinue(text: string, above: Line | undefined): boolean {
  if (OPENING.test(text) || DATE_FIRST.test(text) || isOpenBracket(text)) return true
  const beginsParagraph = above === undefined || above.text === '' || above.mark !== 'none'
  return beginsParagraph && (DAY.test(text) || ADDRESS.test(text))
}

const isOpenBracket = (text: string) => text.split('<').length > text.split('>').length

/** `below`: the line below; `next`: the next one with text. */
function isAttribution(text: string, below: Line | undefined, next: Line | undefined): boolean {
  if (DASHED_WROTE.test(text) || QUOTING.test(text)) return true
  const hasColon = /[:：]$/.test(text)
  const hasAddress = ADDRESS.test(text)
  if (!hasColon && !hasAddress) return false
  const isMarked = next !== undefined && next.mark !== 'none'
  const isEnd = hasColon || isMarked || below === undefined || below.text === ''
  const hasDay = DAY.test(text)
  const hasTime = TIME.test(text)
  const beginsWithDate = DATE_FIRST.test(text) && (hasTime || hasAddress || isMarked || /^\d/.test(text))
  const isDatedOrAddressed = hasDay || hasTime || hasAddress
  if (isEnd && isDatedOrAddressed && (beginsWithDate || OPENING.test(text)))
    if (WROTE_LAST.test(text) || WROTE_INSIDE.test(text)) return true
  if ((beginsWithDate || OPENING.test(text)) && hasDay && hasTime && ADDRESS_LAST.test(text)) return true
  if (beginsWithDate && hasDay && isMarked && ADDRESS_LAST_BARE.test(text)) return true
  if (isDatedOrAddressed && (WROTE_AFTER_NAME.test(text) || (isMarked && WROTE_INSIDE.test(text))))
    return true
  if (hasColon && hasDay && hasTime && (isMarked || WROTE_INSIDE.test(text))) return true
  if (hasColon && hasDay && hasAddress && isMarked) return true
  if (hasColon && hasDay && hasTime && ADDRESS_BRACKETED.test(text) && WROTE_ANYWHERE.test(text)) return true
  return next?.mark === 'quoted' && isBareAttribution(text)
}

/** "Bob wrote:", without a time: only what follows says whether it introduces a quotation. */
const isBareAttribution = (text: string) =>
  /[:：]$/.test(text) &&
  (ADDRESS.test(text) || text.split(' ').length <= SHORT_ATTRIBUTION_WORDS_MAX) &&
  WROTE_LAST.test(text)

/** Whether nothing but one quoted block follows, which is left out at the end of a mail. */
function quotesRest(lines: readonly Line[], from: number): boolean {
  let at = from
  while (lines[at]?.text === '') at++
  if (lines[at]?.mark !== 'block') return false
  at = blockEnd(lines, at)
  while (lines[at]?.text === '') at++
  return at === lines.length
}

/** Opening words within a line, before the name of a day or a number. */
const SHARED_OPENING =
  /(?<=[\s.!?])-*\s?(?:On|Am|Le|El|Il|Em|Op|Den|På)\s(?=\p{L}{2,12}[.,]?\s[^.!?]*\d|\d)|---\s?On\s(?=\p{L}{2,12}[.,]?\s|\d)/gu

/** Where an attribution begins that shares its line with text before it; 0: nowhere. */
export function sharedAttribution(line: string): number {
  if (line.length > PATTERN_TEXT_MAX || !/[:：]$/.test(line)) return 0
  const openings = [...line.matchAll(SHARED_OPENING)]
  const found = openings.find(({ index }) => isAttribution(line.slice(index).trim(), undefined, undefined))
  return found !== undefined && /\p{L}/u.test(line.slice(0, found.index)) ? found.index : 0
}

const LINK_ALONE = /^[(<]\s?https?:[^\s]*\s?[)>]?\s?>?$/i

/** A line without a mark that a program wrapped off the marked line before it. */
function continuesQuotation(lines: readonly Line[], index: number): boolean {
  const [before, line, after] = [lines[index - 1], lines[index] as Line, lines[index + 1]]
  if (line.text === '' || before?.mark !== 'quoted' || after?.mark !== 'quoted') return false
  if (LINK_ALONE.test(line.text)) return true
  if (before.text.length > PATTERN_TEXT_MAX || line.text.length > PATTERN_TEXT_MAX) return false
  if (/[(<]https?:[^)>]*$/i.test(before.text)) return true
  return before.text.length >= WRAPPED_LINE_MIN && /[^.!?:]$/.test(before.text) && /^\p{Ll}/u.test(line.text)
}
