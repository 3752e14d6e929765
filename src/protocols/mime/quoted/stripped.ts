/**
 * Takes quoted text and the signature off a reply in plain text, for stripped-text and stripped-signature.
 *
 * `quotations.ts` says which lines are quoted. What is left is searched from its end for a signature: below a mark (only
 * "-- " is a standard, RFC 3676 §4.3), or short lines that begin with closing words or name a device.
 */
import { isDeviceLine } from './device-line.ts'
import { BLANK, findQuotations, isMarked, type Line, sharedAttribution, visibleText } from './quotations.ts'

/** Longer lines are no part of a signature: no regular expression sees them. */
const MARK_LINE_MAX = 300
/** Lines of a signature after each kind of mark. */
const MARKED_SIGNATURE_LINES_MAX = 15
const CLOSING_SIGNATURE_LINES_MAX = 5
const DEVICE_SIGNATURE_LINES_MAX = 3
/** Signature lines without a mark are short: names, numbers, links. */
const SIGNATURE_LINE_MAX = 60
/** Longer text is returned as it is: no reply is that long, and each line takes memory of its own. */
const TEXT_MAX = 1_000_000

const CLOSING =
  /^((many |with |thanks and )?(best|kind|warm|kindest|warmest)? ?(regards|wishes)|thanks( (again|so much|a lot|in advance))?|thank you|many thanks|best|cheers|sincerely( yours)?|yours (truly|sincerely|faithfully)|respectfully|mit freundlichen grüßen|(mit )?(besten|freundlichen|viele|liebe|herzliche|beste|freundliche)n? grüße?n?|mfg|vielen dank|danke|gruß|cordialement|bien (cordialement|à vous)|cdlt|merci|saludos( cordiales)?|un saludo|gracias|atentamente|cordiali saluti|distinti saluti|grazie|atenciosamente|obrigad[oa]|abraços|met vriendelijke groet(en)?|groeten|bedankt|med vänlig hälsning|mvh|med venlig hilsen|pozdrawiam|s pozdravem|с уважением|спасибо)[\s,.!-]{0,3}$/i

interface StrippedText {
  /** What was newly written. */
  text: string
  /** With its mark ("-- ", "Thanks,"); '' if there is none. */
  signature: string
}

/**
 * Splits plain text into what was newly written and its signature, both trimmed, with LF line ends. Takes time in
 * proportion to the text. Text of over a million characters stays as it is.
 */
export function stripReply(text: string): StrippedText {
  if (text.length > TEXT_MAX) return { text, signature: '' }
  const given = linesOf(text)
  const quoted = findQuotations(given.map(readLine))
  return signatureApart(given.filter((_line, index) => !quoted[index]))
}

/** As `stripReply`, of text without quotations. */
export function splitSignature(text: string): StrippedText {
  return text.length > TEXT_MAX ? { text, signature: '' } : signatureApart(linesOf(text))
}

/** A line that ends in an attribution over marked lines becomes two. */
function linesOf(text: string): string[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  return lines.flatMap((line, index) => {
    if (!isMarked(lines[index + 1] ?? '')) return line
    const at = sharedAttribution(line)
    return at === 0 ? line : [line.slice(0, at), line.slice(at)]
  })
}

const MARKED_BLANK: Line = { ...BLANK, mark: 'quoted' }

function readLine(line: string): Line {
  const text = visibleText(line)
  if (isMarked(line)) return text === '>' ? MARKED_BLANK : { text, mark: 'quoted', begins: 'nothing' }
  return text === '' ? BLANK : { text, mark: 'none', begins: 'nothing' }
}

function signatureApart(lines: string[]): StrippedText {
  while (lines.length > 0 && isBlank(lines.at(-1) as string)) lines.pop()
  const start = signatureStart(lines)
  return { text: trimLines(lines.slice(0, start)), signature: trimLines(lines.slice(start)) }
}

function trimLines(lines: readonly string[]): string {
  return lines.join('\n').trim()
}

function isBlank(line: string): boolean {
  return line.trim() === ''
}

/** Index of the first line of the signature; the number of lines if there is none. */
function signatureStart(lines: readonly string[]): number {
  const earliest = Math.max(1, lines.length - MARKED_SIGNATURE_LINES_MAX - 1)
  let start = lines.length
  for (let index = lines.length - 1; index >= earliest; index--) {
    const line = lines[index] as string
    if (line.length > MARK_LINE_MAX) break
    const after = lines.length - index - 1
    if (/^(-- ?|__+|—+|–+)$/.test(line)) return index
    if (after <= DEVICE_SIGNATURE_LINES_MAX && isDeviceLine(line.trim())) start = index
    const isShort = lines.slice(index).every((below) => below.length <= SIGNATURE_LINE_MAX)
    if (CLOSING.test(line.trim()) && after <= CLOSING_SIGNATURE_LINES_MAX && isShort) start = index
  }
  return lines.slice(0, start).every(isBlank) ? lines.length : start
}
