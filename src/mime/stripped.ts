/**
 * Takes quoted text and the signature off a reply, for stripped-text, stripped-signature, stripped-html.
 *
 * Text: lines that begin with ">" are removed, with the "On ... wrote:" before them. A separator that is not followed
 * by ">" lines (Outlook, or "wrote:" over unmarked text) takes all that follows, and so does the rule over a forwarded
 * message. What is left is searched from its end for a signature. If nothing is left, as of a forwarded message alone, the
 * whole text stays.
 *
 * These are habits of mail programs, not a standard (only "-- " is one, RFC 3676 §4.3): a guess that may
 * fail either way, so the whole text is always kept too.
 */
import { Parser } from 'htmlparser2'
import { isTooDeep } from './html-text.ts'

/** Longer lines are no separators: no regular expression sees them. */
const SEPARATOR_LINE_MAX = 300
/** Mail programs wrap "On ... wrote:" into at most three lines. */
const ATTRIBUTION_LINES_MAX = 3
/** Header lines after "From:" that are searched for the others. */
const QUOTED_HEADER_LINES = 6
/** Lines of a signature after each kind of mark. */
const MARKED_SIGNATURE_LINES_MAX = 15
const CLOSING_SIGNATURE_LINES_MAX = 5
const DEVICE_SIGNATURE_LINES_MAX = 3
/** Signature lines without a mark are short: names, numbers, links. */
const SIGNATURE_LINE_MAX = 60
/** Longer text, and longer HTML, is returned as it is: no reply is that long, and each line takes memory of its own. */
const TEXT_MAX = 1_000_000
const HTML_MAX = 1_000_000

/** "On <date>, <name> wrote:", beginning and end, by language. */
const ATTRIBUTIONS = [
  /^On\b.*\bwrote\s?:$/i,
  /^Am\b.*\bschrieb\b.*:$/i,
  /^Le\b.*\ba écrit\s?:$/i,
  /^El\b.*\bescribió\s?:$/i,
  /^(Il|Il giorno)\b.*\bha scritto\s?:$/i,
  /^(Em|A)\b.*\bescreveu\s?:$/i,
  /^Op\b.*\b(schreef|geschreven)\b.*:$/i,
  /^(Den|På|Fra|Le)\b.*\bskrev\b.*:$/i,
  /^(W dniu|Dnia)\b.*(napisał|pisze).*:$/i,
  /^(Dne|Dňa)\b.*napsal.*:$/i,
  /^Vào\b.*đã viết\s?:$/i,
]
/** Languages that put the verb last, or no fixed word first: on one line only. */
const ATTRIBUTION_ENDS =
  /(написал[аи]?|пишет|написав|kirjoitti|şunları yazdı|tarihinde yazdı|ezt írta.*|のメール|のメッセージ|は書きました|写道|寫道|님이 작성|작성했습니다?)\s?[:：]$/i

const ORIGINAL_MESSAGE =
  /^[-_*=]{2,}\s*(original message|reply message|ursprüngliche nachricht|originalnachricht|message d.origine|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht|original(t)? meddelelse|opprinnelig melding|ursprungligt meddelande|alkuperäinen viesti|wiadomość oryginalna|oryginalna wiadomość|původní zpráva|eredeti üzenet|исходное сообщение|原始邮件|原始郵件|元のメッセージ|원본 메시지)\s*[-_*=]{2,}$/i
const FORWARDED_MESSAGE =
  /^([-_*=]{5,}\s*(forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|пересланное сообщение|转发的邮件|転送メッセージ).{0,40}|begin forwarded message:|anfang der weitergeleiteten nachricht:|début du message réexpédié\s?:|inizio messaggio inoltrato:)$/i
const QUOTED_FROM =
  /^\*?(from|von|de|da|van|fra|från|od|от|lähettäjä|发件人|寄件者|差出人|보낸 사람)\s?[:：]\*?\s*\S/i
const QUOTED_FIELD =
  /^\*?(sent|date|to|cc|subject|gesendet|datum|an|betreff|envoyé|à|objet|enviado|para|asunto|inviato|data|a|oggetto|assunto|verzonden|aan|onderwerp|sendt|skickat|til|till|emne|ämne|wysłano|do|temat|отправлено|дата|кому|тема|发送时间|收件人|主题|送信日時|宛先|件名)\s?[:：]/i

const CLOSING =
  /^((many |with |thanks and )?(best|kind|warm|kindest|warmest)? ?(regards|wishes)|thanks( (again|so much|a lot|in advance))?|thank you|many thanks|best|cheers|sincerely( yours)?|yours (truly|sincerely|faithfully)|respectfully|mit freundlichen grüßen|(mit )?(besten|freundlichen|viele|liebe|herzliche|beste|freundliche)n? grüße?n?|mfg|vielen dank|danke|gruß|cordialement|bien (cordialement|à vous)|cdlt|merci|saludos( cordiales)?|un saludo|gracias|atentamente|cordiali saluti|distinti saluti|grazie|atenciosamente|obrigad[oa]|abraços|met vriendelijke groet(en)?|groeten|bedankt|med vänlig hälsning|mvh|med venlig hilsen|pozdrawiam|s pozdravem|с уважением|спасибо)[\s,.!-]{0,3}$/i
const SENT_FROM =
  /^(sent from (my |yahoo|outlook|mail for|mobile)|sent via |get outlook for|von meinem .{1,40} gesendet|gesendet (mit|von)|envoyé (de|depuis) mon|enviado (desde|do|de) (mi|meu)|inviato da|verzonden (vanaf|met) mijn|skickat från min|sendt fra min|wysłane z|отправлено с|从我的.{1,30}发送|我的.{1,30}から送信)/i

/**
 * Splits plain text into what was newly written and its signature, both trimmed, with LF line ends. The
 * signature includes its mark ("-- ", "Thanks,"); '' if there is none. Takes time in proportion to the text. Text of over a
 * million characters stays as it is.
 */
export function stripReply(text: string): { text: string; signature: string } {
  if (text.length > TEXT_MAX) return { text, signature: '' }
  const given = text.replace(/\r\n?/g, '\n').split('\n')
  const unquoted = withoutQuotes(given)
  const lines = unquoted.every(isBlank) ? given : unquoted
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

function isQuoted(line: string): boolean {
  return /^ {0,3}>/.test(line)
}

function withoutQuotes(lines: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as string
    if (isForwardMark(line)) return kept
    if (isQuoted(line)) continue
    const separatorLines = separatorAt(lines, index)
    if (separatorLines === 0) {
      kept.push(line)
      continue
    }
    if (!isQuoted(nextText(lines, index + separatorLines))) return kept
    index += separatorLines - 1
  }
  return kept
}

function isForwardMark(line: string): boolean {
  return line.length <= SEPARATOR_LINE_MAX && FORWARDED_MESSAGE.test(line.trim())
}

/** The next line with text, within the blank lines that mail programs leave. */
function nextText(lines: readonly string[], from: number): string {
  return lines.slice(from, from + ATTRIBUTION_LINES_MAX + 1).find((line) => !isBlank(line)) ?? ''
}

/** How many lines from `index` on make up a separator; 0 if none begins here. */
function separatorAt(lines: readonly string[], index: number): number {
  const line = lines[index] as string
  if (line.length > SEPARATOR_LINE_MAX || isBlank(line)) return 0
  const trimmed = line.trim()
  if (ORIGINAL_MESSAGE.test(trimmed)) return 1
  if (isQuotedHeader(lines, index)) return 1
  // Outlook draws a line above its header block.
  if (/^[_-]{10,}$/.test(trimmed) && isQuotedHeader(lines, index + 1)) return 2
  if (ATTRIBUTION_ENDS.test(trimmed) && /[\d@]/.test(trimmed)) return 1
  return attributionLines(lines, index)
}

function attributionLines(lines: readonly string[], index: number): number {
  let joined = ''
  for (let count = 1; count <= ATTRIBUTION_LINES_MAX; count++) {
    const line = lines[index + count - 1]
    if (line === undefined || isBlank(line) || isQuoted(line)) return 0
    joined = `${joined} ${line.trim()}`.trim()
    if (joined.length > SEPARATOR_LINE_MAX) return 0
    if (/[\d@]/.test(joined) && ATTRIBUTIONS.some((pattern) => pattern.test(joined))) return count
  }
  return 0
}

/** "From:" with two other header lines below it. */
function isQuotedHeader(lines: readonly string[], index: number): boolean {
  if (!isField(lines[index], QUOTED_FROM)) return false
  const below = lines.slice(index + 1, index + 1 + QUOTED_HEADER_LINES)
  return below.filter((line) => isField(line, QUOTED_FIELD)).length >= 2
}

function isField(line: string | undefined, pattern: RegExp): boolean {
  return line !== undefined && line.length <= SEPARATOR_LINE_MAX && pattern.test(line.trim())
}

/** Index of the first line of the signature; the number of lines if there is none. */
function signatureStart(lines: readonly string[]): number {
  const earliest = Math.max(1, lines.length - MARKED_SIGNATURE_LINES_MAX - 1)
  let start = lines.length
  for (let index = lines.length - 1; index >= earliest; index--) {
    const line = lines[index] as string
    if (line.length > SEPARATOR_LINE_MAX) break
    const after = lines.length - index - 1
    if (/^(-- ?|__+|—+|–+)$/.test(line)) return index
    if (SENT_FROM.test(line.trim()) && after <= DEVICE_SIGNATURE_LINES_MAX) start = index
    const isShort = lines.slice(index).every((below) => below.length <= SIGNATURE_LINE_MAX)
    if (CLOSING.test(line.trim()) && after <= CLOSING_SIGNATURE_LINES_MAX && isShort) start = index
  }
  return lines.slice(0, start).every(isBlank) ? lines.length : start
}

/** Elements of mail programs that hold a quotation. */
const QUOTE_CLASSES = new Set(
  'gmail_quote gmail_quote_container yahoo_quoted moz-cite-prefix protonmail_quote tutanota_quote zmail_extra'.split(
    ' ',
  ),
)
const QUOTE_IDS = new Set(['olk_src_body_section', 'mail-editor-reference-message-container', 'yahoo_quoted'])
/** Elements after which all is quoted. */
const TAIL_IDS = new Set(['divrplyfwdmsg', 'appendonsend', 'stopspelling'])
const OUTLOOK_RULE = /border-top:\s*solid\s+#(e1e1e1|b5c4df)/i
const VOID = new Set(['hr', 'br', 'img', 'input', 'meta', 'link', 'area', 'base', 'col', 'embed', 'wbr'])

/**
 * HTML without the quotations of mail programs; the rest stays as it is, character by character. If nothing readable would be left, or the HTML is too long or too deep: unchanged.
 */
export function stripReplyHtml(html: string): string {
  if (html.length > HTML_MAX || isTooDeep(html)) return html
  const cutter = new QuoteCutter(html)
  return cutter.run()
}

class QuoteCutter {
  readonly #html: string
  readonly #parser: Parser
  readonly #open: string[] = []
  #kept = ''
  /** Where the part that is to be kept next begins. */
  #from = 0
  /** The open cut: `depth` of its element, 0 if it extends to the end of the body. */
  #cut: { start: number; depth: number; closers: string } | null = null
  #ended = false
  #readable = false

  constructor(html: string) {
    this.#html = html
    this.#parser = new Parser({
      onopentag: (name, attributes) => this.#onOpen(name, attributes),
      ontext: (text) => this.#onText(text),
      onclosetag: (name, implied) => this.#onClose(name, implied),
    })
  }

  run(): string {
    this.#parser.write(this.#html)
    this.#ended = true
    this.#parser.end()
    if (this.#cut) this.#endCut(this.#html.length)
    this.#kept += this.#html.slice(this.#from)
    return this.#readable ? this.#kept : this.#html
  }

  #onOpen(name: string, attributes: Record<string, string>): void {
    this.#open.push(name)
    if (!this.#cut) {
      const kind = quoteKind(name, attributes)
      if (kind !== null) {
        const depth = kind === 'element' ? this.#open.length : 0
        const closers = kind === 'tail' ? closingTags(this.#open.slice(0, -1)) : ''
        this.#cut = { start: this.#parser.startIndex, depth, closers }
      }
    }
    if (name === 'img' && !this.#cut) this.#readable = true
  }

  #onText(text: string): void {
    if (text.trim() === '' || ['style', 'script', 'title'].includes(this.#open.at(-1) ?? '')) return
    if (!this.#cut) this.#readable = true
  }

  #onClose(name: string, implied: boolean): void {
    const depth = this.#open.length
    this.#open.pop()
    if (!this.#cut) return
    const start = this.#ended ? this.#html.length : this.#parser.startIndex
    if (depth === this.#cut.depth) {
      this.#endCut(implied || VOID.has(name) ? start : this.#parser.endIndex + 1)
    } else if (this.#cut.depth === 0 && (name === 'body' || name === 'html')) this.#endCut(start)
  }

  #endCut(end: number): void {
    if (!this.#cut) return
    this.#kept += this.#html.slice(this.#from, this.#cut.start) + this.#cut.closers
    this.#from = Math.max(end, this.#cut.start)
    this.#cut = null
  }
}

/** End tags for the elements that a cut to the end of the body leaves open. */
function closingTags(open: readonly string[]): string {
  return open
    .filter((name) => name !== 'html' && name !== 'body')
    .map((name) => `</${name}>`)
    .reverse()
    .join('')
}

/** Whether an element is a quotation, or the start of one that extends to the end; null for neither. */
function quoteKind(name: string, attributes: Record<string, string>): 'element' | 'tail' | null {
  // Outlook prefixes names with "x_" when it quotes them itself.
  const id = (attributes['id'] ?? '').toLowerCase().replace(/^(x_)+/, '')
  const style = attributes['style'] ?? ''
  if (TAIL_IDS.has(id) || (name === 'div' && OUTLOOK_RULE.test(style))) return 'tail'
  if (QUOTE_IDS.has(id)) return 'element'
  const classes = (attributes['class'] ?? '').toLowerCase().split(/\s+/)
  if (classes.some((given) => QUOTE_CLASSES.has(given))) return 'element'
  // A quotation without border is how web mail indents a paragraph.
  return name === 'blockquote' && !/border:\s*none/i.test(style) ? 'element' : null
}
