/**
 * Bounces without fields: texts for people, by servers that do not follow RFC 3464.
 *
 * 1. A vacation notice, a receipt or a challenge is not a bounce, whatever it quotes.
 * 2. The report is what stands before the copy of the returned message.
 * 3. Who sends it, its subject, its sentences, the reply of a server in it and what it returns decide together whether
 *    it is a bounce, and whether delivery has failed or is delayed.
 * 4. A line that begins with an address begins the block of a recipient. The reply, or the words in place of one, are
 *    sought in that block first, then in the lines that are about no other recipient.
 *
 * Left out: any guess. A mail that no rule matches is not a bounce, because the return path also gets vacation notices,
 * challenges and people's replies.
 */
import { fieldOf, type ReportMail } from '../../message/report-mail.ts'
import { type Codes, codesIn } from './codes.ts'
import {
  ANSWERS,
  AWAY,
  CHALLENGES,
  COPIES,
  FAILED,
  FAILED_SUBJECTS,
  GIVEN_UP,
  LATE,
  LATE_SUBJECTS,
  REPORT_SUBJECTS,
  SERVERS,
  SUCCEEDED,
} from './phrases.ts'
import { type DsnAction, type DsnRecipient, type RefusedCommand, tidy } from './recipient.ts'

/** The part of a text that is read; reasons come before the copy of the message. */
const TEXT_CHARS_MAX = 20_000
const LINES_MAX = 400
/** Characters of a header field. */
const FIELD_CHARS_MAX = 1_000
/** Lines of one reply, or of the words in place of one. */
const REPLY_LINES_MAX = 12
/** Lines before a reply that may name the server. */
const LINES_BEFORE = 3
/** Lines after an address that may have the reason. */
const LINES_BESIDE = 4
/** Recipients of one report; our deliveries have one. */
const BLOCKS_MAX = 20

/** One result per recipient whose block is found; null: not a bounce. */
export function readTextReport(mail: ReportMail): DsnRecipient[] | null {
  const signs = signsOf(mail)
  if (signs === null) return null
  const { lines, blocks } = readLines(mail)
  const action = actionOf(lines, blocks, signs)
  if (action === null) return null
  const named = firstAddress(fieldOf(mail.headers, 'x-failed-recipients'))
  const isOwn = ({ address }: Block) => address !== null && isSame(address, named ?? '')
  const whole: Block = { ...NO_BLOCK, address: named, to: lines.length }
  const own = blocks.find(isOwn) ?? (named === null && blocks.length > 0 ? [] : whole)
  return [own, blocks.filter((one) => one !== own)].flat().map((block) => {
    const { diagnostic, remoteMta } = saidIn(lines, block, blocks)
    const command = commandIn(flow(lines.slice(block.from, block.to)))
    const codes = action === 'failed' ? codesIn(diagnostic) : NO_CODES
    return {
      action,
      recipient: block.address,
      originalRecipient: null,
      status: codes.status,
      replyCode: codes.reply,
      replyStatus: codes.status,
      command,
      diagnostic,
      remoteMta,
    }
  })
}

/** What the text of a report knows besides its fields. */
export type ReportText = ReturnType<typeof readReportText>

/** Reads the text once, for all groups of fields. */
export function readReportText(mail: ReportMail) {
  const { lines, blocks } = readLines(mail)
  const blockOf = (recipient: string | null) =>
    blocks.find(({ address }) => address !== null && isSame(address, recipient ?? ''))
  return {
    about(recipient: string | null): Said {
      const own = blockOf(recipient)
      return saidIn(lines, own ?? { ...NO_BLOCK, address: recipient, to: lines.length }, own ? blocks : [])
    },
    /** What the server refused; null: not said. */
    command(recipient: string | null): RefusedCommand | null {
      const { from, to } = blockOf(recipient) ?? { from: 0, to: blocks.length > 1 ? 0 : lines.length }
      return commandIn(flow(lines.slice(from, to)))
    },
    /** The whole reply whose first line ends as if more followed; null: the text has no more of it. */
    whole(firstLine: string): string | null {
      const found = lines
        .flatMap((line, at) => (line.includes(firstLine) ? [replyAt(lines, at, lines.length)] : []))
        .find((text) => LAST_LINE.test(text))
      return found?.slice(found.indexOf(firstLine)) ?? null
    },
  }
}

const NO_CODES: Codes = { status: null, reply: null }

interface Signs {
  /** The sender is a mail system. */
  isServer: boolean
  subject: 'failed' | 'report' | null
  isLateSubject: boolean
  hasFailedField: boolean
  /** A copy of the message, or of its header, is attached. */
  returns: boolean
}

/** Null: it is certainly no bounce. RFC 3834 §5, RFC 8098, and older conventions. */
function signsOf(mail: ReportMail): Signs | null {
  const field = (name: string) => fieldOf(mail.headers, name).slice(0, FIELD_CHARS_MAX)
  const subject = field('subject')
  const isServer = SERVERS.test(field('from'))
  const hasFailedSubject = !ANSWERS.test(subject) && FAILED_SUBJECTS.test(subject)
  const away = subject.search(AWAY)
  // "Undeliverable: Out of office" returns a mail of that subject.
  if (away >= 0 && !(isServer && hasFailedSubject && subject.search(FAILED_SUBJECTS) < away)) return null
  if (AUTOMATIC_FIELDS.some((name) => field(name) !== '')) return null
  const isMarked =
    /^auto-(?:replied|notified)/i.test(field('auto-submitted')) ||
    field('precedence').toLowerCase() === 'auto_reply'
  // Servers mark bounces as automatic too.
  if (isMarked && !isServer) return null
  if (mail.parts.some(({ type }) => type === 'message/disposition-notification')) return null
  const isReport = !ANSWERS.test(subject) && REPORT_SUBJECTS.test(subject)
  return {
    isServer,
    subject: hasFailedSubject ? 'failed' : isReport ? 'report' : null,
    isLateSubject: !hasFailedSubject && LATE_SUBJECTS.test(subject),
    hasFailedField: field('x-failed-recipients') !== '',
    returns: mail.parts.some(({ type }) => RETURNED_TYPES.test(type)),
  }
}

const AUTOMATIC_FIELDS = ['x-autoreply', 'x-autorespond', 'x-vacation', 'x-auto-response-suppress-reply']
const RETURNED_TYPES = /^(?:message\/rfc822|text\/rfc822-headers|message\/rfc822-headers|message\/global)/

function actionOf(lines: readonly string[], blocks: readonly Block[], signs: Signs): DsnAction | null {
  const { isServer, subject, hasFailedField } = signs
  const isSuspect = isServer || subject !== null || hasFailedField
  const flowing = flow(lines)
  if (!isSuspect && !(signs.returns && isAboutAddress(flowing))) return null
  // The reply of a server may say that it is only busy, in a report of the final failure.
  const prose = flow(lines.filter((line) => !REPLY_LINE.test(line) && !/: ?[45]\d\d[ -]/.test(line)))
  if ((signs.isLateSubject || LATE.test(prose)) && !GIVEN_UP.test(flowing)) return 'delayed'
  if (hasFailedField || !isSuspect) return 'failed'
  if (SUCCEEDED.test(prose)) return null
  const hasFacts = blocks.length > 0 || signs.returns || lines.some((line) => REPLY_LINE.test(line))
  const saysFailed = FAILED.test(flowing) || (isServer && lines.some((line) => FAILED_REPLY_LINE.test(line)))
  if (isServer) return saysFailed || (subject === 'failed' && hasFacts) ? 'failed' : null
  // Anybody may write such a subject.
  return saysFailed && hasFacts && !CHALLENGES.test(flowing) ? 'failed' : null
}

const flow = (lines: readonly string[]) => lines.join(' ').replace(/\s+/gu, ' ')

/** A sentence of failure that ends with the address that it is about. */
function isAboutAddress(flowing: string): boolean {
  const found = FAILED.exec(flowing)
  if (found === null) return false
  const after = flowing.slice(found.index, found.index + found[0].length + SENTENCE_CHARS_MAX)
  return ADDRESS.test(after) && !CHALLENGES.test(flowing)
}
/** From the words of failure to the address that they are about. */
const SENTENCE_CHARS_MAX = 200

/** The text before the copy of the returned message, whose words are not the server's, and its recipients. */
function readLines(mail: ReportMail): { lines: string[]; blocks: Block[] } {
  const text = mail.text.slice(0, TEXT_CHARS_MAX).replaceAll('\r\n', '\n')
  const copy = text.search(COPIES)
  const lines = (copy > 0 ? text.slice(0, copy) : text).split('\n', LINES_MAX).map(bare)
  const end = headerIn(lines)
  const report = end < 0 ? lines : lines.slice(0, end)
  return { lines: report, blocks: blocksIn(report, ownAddresses(mail)) }
}

/** Without marks of quotation and of lists, but with the arrows of a transcript. */
const bare = (line: string) => line.replace(/^(?!\s{0,20}>>>)[ \t>*|]+/, '').trim()

const FIELD = /^(?:from|to|subject|date|message-id|mime-version|content-type|reply-to|sender|x-mailer): ?\S/i
/** Fields in a row that are a header. */
const HEADER_FIELDS_MIN = 3

/** Where a header begins that no words announce, after the report has said something; -1: nowhere. */
function headerIn(lines: readonly string[]): number {
  const said = lines.findIndex((line, at) => FAILED.test(`${lines[at - 1] ?? ''} ${line}`))
  if (said < 0) return -1
  let fields = 0
  for (let at = said + 1; at < lines.length; at++) {
    fields = FIELD.test(lines[at] as string) ? fields + 1 : 0
    if (fields >= HEADER_FIELDS_MIN) return at - fields + 1
  }
  return -1
}

const ADDRESS = /[^\s<>()[\]{},;:"'|=：（）＜＞，、。]{1,64}@[\w.-]{1,255}[\w]/u

const firstAddress = (text: string) => ADDRESS.exec(text.slice(0, 2_000))?.[0] ?? null

/** Addresses that a report may name without being about them: its own, and the one it answers. */
function ownAddresses(mail: ReportMail): Set<string> {
  const fields = ['from', 'to', 'reply-to', 'sender'].map((name) => fieldOf(mail.headers, name))
  return new Set(fields.flatMap((value) => firstAddress(value)?.toLowerCase() ?? []))
}

/** The lines about one recipient. */
interface Block {
  address: string | null
  /** The line that names the address; -1: none does. */
  at: number
  from: number
  /** After the last one. */
  to: number
}

const NO_BLOCK = { address: null, at: -1, from: 0 }

const isSame = (address: string, other: string) => address.toLowerCase() === other.toLowerCase()

/** What may stand before an address that begins a line. */
const LABEL =
  /^(?:[<"'(*•\s-]|smtp:|to:|recipients?:|recipient address:|e-?mail:|rcpt to:|(?:failed|target mail) address:){1,20}/i

/** The blocks that lines beginning with an address begin; without any, that of the first address in a sentence. */
function blocksIn(lines: readonly string[], others: ReadonlySet<string>): Block[] {
  const blocks: Block[] = []
  let inSentence: Block | null = null
  for (const [at, line] of lines.entries()) {
    const [address] = ADDRESS.exec(line) ?? []
    if (address === undefined || others.has(address.toLowerCase())) continue
    if (/^(?:mailer-?daemon|postmaster|abuse|support|help)@|bounce\+/i.test(address)) continue
    if (/\bmail from\b/i.test(line.slice(0, line.indexOf(address)))) continue
    const isQuoted = isField(lines, at)
    if (!beginsWith(line, address) || isQuoted) {
      const isBetter = inSentence === null || (!isQuoted && isField(lines, inSentence.at))
      if (isBetter) inSentence = { address, at, from: 0, to: lines.length }
    } else if (!blocks.some((block) => isSame(address, block.address as string))) {
      const last = blocks.at(-1)
      if (last) last.to = at
      if (blocks.length < BLOCKS_MAX) blocks.push({ address, at, from: at, to: lines.length })
    }
  }
  return blocks.length > 0 || inSentence === null ? blocks : [inSentence]
}

const beginsWith = (line: string, address: string) => line.replace(LABEL, '').startsWith(address)
/** A report may repeat the fields of the message before it names the recipients. */
const isField = (lines: readonly string[], at: number) =>
  /^(?:to|cc) ?:/i.test(lines[at] as string) &&
  lines.slice(Math.max(0, at - 2), at + 3).some((line) => /^(?:subject|sent|date|from) ?:/i.test(line))

interface Said {
  /** '' if nothing is found. */
  diagnostic: string
  /** Host that said it; null: not named. */
  remoteMta: string | null
}

/** Three digits followed by words, then an enhanced code: of a failure, then of the last try before it. */
const CODED = [
  /(?:(?<=code ?[:=] ?)|(?<![\d.:#/-]))5\d\d(?=[ \-:,;)]+[^\d\s]|[ -]{1,3}5\.\d{1,3}\.\d)/i,
  /(?<![\d.])5\.\d{1,3}\.\d{1,3}(?!\.?\d)/,
  /(?:(?<=code ?[:=] ?)|(?<![\d.:#/-]))4\d\d(?=[ \-:,;)]+[^\d\s]|[ -]{1,3}4\.\d{1,3}\.\d)/i,
  /(?<![\d.])4\.\d{1,3}\.\d{1,3}(?!\.?\d)/,
]
/** A line with a reason after that word. */
const REASONS = /(?:reasons?|because|cause|grund|motif|原因|理由) ?[:：] {0,3}[^\s)]/i
/** Words for a failure. */
const FAULTS =
  /unknown|no such|not (?:found|listed|exist|accept|recogni)|n.t exist|unavailable|disabled|closed|inactive|frozen|suspended|quota|full|exceed|spam|virus|block|blacklist|reject|refus|denied|policy|invalid|illegal|too (?:large|big)|expired|timed? ?out|timeout|deferred|giving up|not respond|could not find|no smtp service|unbekannt|gesperrt|inconnu|inexist|desconocid|sconosciut|onbekend|desconhecid|nieznan|неизвест|не существует|不存在|存在し|見つかり|一杯|エラー/iu
/** Words for what has failed. */
const SUBJECTS = /user|mailbox|account|recipient|host|domain|postfach|destinataire/iu

/** Lines that only introduce a recipient or a reason, and rules. */
const INTRODUCES = /^.{0,100}[:：]$|^[-=*_#]{2}|permanent error/i

/** The server's words about a recipient: the reply with a code, else the words in place of one. */
function saidIn(lines: readonly string[], block: Block, blocks: readonly Block[]): Said {
  const { address, from, to } = block
  const others = blocks.filter((other) => other !== block)
  const isOthers = (line: string, at: number) =>
    others.some((other) => (at >= other.from && at < other.to) || line.includes(other.address as string))
  const isInBlock = (_: string, at: number) => at >= from && at < to
  const scopes: ((line: string, at: number) => boolean)[] = [
    isInBlock,
    (line) => address !== null && line.includes(address),
    (line, at) => !isOthers(line, at),
  ]
  const whole = { from: 0, to: lines.length }
  const endOf = (at: number) => (isInBlock('', at) ? to : lines.length)
  for (const code of CODED) {
    for (const isIn of scopes) {
      const at = lines.findIndex((line, index) => isIn(line, index) && code.test(line))
      if (at >= 0) return fromReply(lines, at, isInBlock('', at) ? block : whole, code)
    }
  }
  const withWords = (words: RegExp): string => {
    const isTelling = (line: string) => words.test(withoutAddress(line, address)) && !INTRODUCES.test(line)
    for (const isIn of scopes) {
      const at = lines.findIndex((line, index) => isIn(line, index) && isTelling(line))
      if (at >= 0) return withoutAddress(replyAt(lines, at, endOf(at)), address)
    }
    return ''
  }
  return inWords(
    withWords(REASONS) || withWords(FAULTS) || besideAddress(lines, block) || withWords(SUBJECTS),
  )
}

const inWords = (text: string): Said => ({ diagnostic: text, remoteMta: hostIn(text) })

const withoutAddress = (line: string, address: string | null) =>
  address === null || !beginsWith(line, address)
    ? line
    : tidy(
        line
          .replace(LABEL, '')
          .slice(address.length)
          .replace(/^[\s<>:"').-]{1,20}/, ''),
      )

/** Words that no list has: in the line of the address, in one of the next lines, in the line before it. */
function besideAddress(lines: readonly string[], { address, at, to }: Block): string {
  if (at < 0) return ''
  const isTelling = (line: string) =>
    /\p{L}{2}/u.test(line) && !INTRODUCES.test(line) && !/[-=*_#]{3}/.test(line)
  const line = replyAt(lines, at, to)
  const isOwn = beginsWith(line, address as string)
  const own = withoutAddress(line, address).replace(/^\([^)]{0,200}\) ?:? ?/, '')
  if (isOwn && isTelling(own)) return own
  const end = Math.min(to, at + 1 + LINES_BESIDE)
  const next = lines.findIndex((other, index) => index > at && index < end && isTelling(other))
  if (next >= 0) return replyAt(lines, next, to)
  const before = lines[at - 1] ?? ''
  return isTelling(before) ? before : isOwn ? '' : own
}

/** The reply from its code on; what stands before it is the reporter's. */
function fromReply(
  lines: readonly string[],
  at: number,
  { from, to }: Pick<Block, 'from' | 'to'>,
  code: RegExp,
): Said {
  const text = replyAt(lines, at, to)
  const start = code === CODED[0] || code === CODED[2] ? Math.max(0, text.search(code)) : 0
  const before = tidy(lines.slice(Math.max(from, at - LINES_BEFORE), at).join(' '))
  const diagnostic = text.slice(start)
  return {
    diagnostic: withoutClosing(diagnostic, text[start - 1] ?? ''),
    remoteMta: hostIn(text.slice(0, start)) ?? hostIn(before) ?? hostIn(diagnostic),
  }
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', "'": "'", '"': '"' }

/** Without the end of the reporter's brackets or quotation marks around the reply. */
function withoutClosing(reply: string, opening: string): string {
  const last = reply.at(-1)
  const isUnopened = last === ')' && !reply.includes('(')
  return isUnopened || (last !== undefined && CLOSING[opening] === last) ? reply.slice(0, -1) : reply
}

/** A line that is the reply of a server, or quotes it after an arrow. */
const REPLY_LINE = /^(?:[^\d\s]{0,20} ?[<>-]{2,3} ?)?[("'[]?[245]\d\d[ -]/
const FAILED_REPLY_LINE =
  /^(?:[^\d\s]{0,20} ?[<>-]{2,3} ?)?[("'[]?5\d\d[ -]{1,3}\S|(?<!\d): ?5\d\d[ -]{1,3}\S|(?<![\d.])5\d\d[ -]5\.\d{1,3}\.\d/i
/** More lines of the reply follow (RFC 5321 §4.2.1), or none. */
const OPEN_LINE = /(?<!\d)[245]\d\d-/
const LAST_LINE = /(?<!\d)[245]\d\d /
/** A command in the transcript of a session. */
const COMMAND =
  /^[^\d\s]{0,20} ?[<>-]{2,3} ?(?:rcpt|mail|data|quit|ehlo|helo|rset)\b|^(?:rcpt to|mail from):/i

/** The line and those that continue it: not an empty one, a rule, a command, or the reply after it. */
function replyAt(lines: readonly string[], at: number, end: number): string {
  const joined = [lines[at] as string]
  let isOpen = OPEN_LINE.test(joined[0] as string)
  for (let next = at + 1; next < Math.min(end, at + REPLY_LINES_MAX); next++) {
    const line = lines[next] as string
    // Line ends that were doubled in transit leave empty lines between those of one reply.
    if (line === '' && isOpen && REPLY_LINE.test(lines[next + 1] ?? '')) continue
    if (line === '' || /^[-=*_]{3}/.test(line) || COMMAND.test(line)) break
    if (REPLY_LINE.test(line)) {
      if (!isOpen) break
      isOpen = OPEN_LINE.test(line)
    }
    joined.push(line.replace(/^<<< ?/, ''))
  }
  return tidy(joined.join(' '))
}

/** `in reply to RCPT TO command`, `after end of data`, `did not like our final DATA`, `[RCPT_TO]`. */
const REFUSED =
  /(?:in reply to|after|like our|following|for|\[)(?: (?:the|final|pipelined|end of)){0,3} ?(mail[ _]from|mail(?= command)|rcpt|data(?= command|[\]:,.)]| ?\d|$)|text(?= command))(?![a-z])/i

function commandIn(text: string): RefusedCommand | null {
  const word = REFUSED.exec(text)?.[1]?.toLowerCase()
  return word === undefined ? null : word.startsWith('mail') ? 'mail' : word === 'rcpt' ? 'rcpt' : 'data'
}

/** `host mx.example.net[192.0.2.1] said:`, `talking to mx.example.net.:`, `mx.example.net [192.0.2.1] did not like`: the last one. */
const HOSTS =
  /\b(?:host|server|talking to|mx)[ :]{1,3}<?([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,10})|(?<![\w.-])([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,10}) ?\[[\da-f.:]{3,45}\]/gi

function hostIn(text: string): string | null {
  const [, named, beforeIp] = [...text.matchAll(HOSTS)].at(-1) ?? []
  return named ?? beforeIp ?? null
}
