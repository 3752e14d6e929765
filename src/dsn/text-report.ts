/**
 * Bounces without fields: texts for people, by servers that do not follow RFC 3464.
 *
 * 1. A vacation notice is not a bounce, whatever it quotes.
 * 2. The sender (mailer-daemon, postmaster), the subject or X-Failed-Recipients must indicate a bounce.
 * 3. A phrase in the text, before the copy of the returned message, decides whether it failed or is delayed.
 * 4. Codes and the server's words are taken from the lines around it.
 *
 * Left out: any guess. A mail that no rule matches is not a bounce, because the return path also gets vacation notices,
 * challenges and people's replies.
 */
import { fieldOf, type ReportMail } from '../base/report-mail.ts'
import { type Codes, codesIn } from './codes.ts'
import { type DsnAction, type DsnRecipient, tidy } from './recipient.ts'

/** The part of a text that is read; reasons come before the copy of the message. */
const TEXT_CHARS_MAX = 20_000
const LINES_MAX = 400
/** Of header fields. */
const FIELD_CHARS_MAX = 1_000
/** Lines that follow an address or a reason and belong to it. */
const LINES_AROUND = 6

/** One recipient: reports without fields seldom have more, and our deliveries never do. Null: not a bounce. */
export function readTextReport(mail: ReportMail): DsnRecipient[] | null {
  if (isAutomaticReply(mail)) return null
  const failedField = fieldOf(mail.headers, 'x-failed-recipients')
  if (failedField === '' && !isFromServer(mail) && !hasSubject(mail)) return null
  const text = withoutCopy(mail.text.slice(0, TEXT_CHARS_MAX).replaceAll('\r\n', '\n'))
  const flowing = tidyAll(text)
  const action = actionOf(flowing) ?? (failedField === '' ? null : 'failed')
  if (action === null) return null
  const lines = text.split('\n', LINES_MAX).map((line) => line.replace(/^[ \t>*|]+/, '').trim())
  const address = firstAddress(failedField) ?? recipientIn(lines, ownAddresses(mail))
  const diagnostic = diagnosticIn(lines, address)
  const codes = action === 'failed' ? codesIn(diagnostic) : NO_CODES
  return [
    {
      action,
      recipient: address,
      originalRecipient: null,
      status: codes.status,
      replyCode: codes.reply,
      replyStatus: codes.status,
      diagnostic,
      remoteMta: hostIn(diagnostic),
    },
  ]
}

const NO_CODES: Codes = { status: null, reply: null }

/** RFC 3834 §5, and older conventions. Servers mark bounces as automatic too, so the sender is checked first. */
function isAutomaticReply(mail: ReportMail): boolean {
  if (AWAY.test(fieldOf(mail.headers, 'subject').slice(0, FIELD_CHARS_MAX))) return true
  const marked = ['x-autoreply', 'x-autorespond', 'x-vacation', 'x-auto-response-suppress-reply']
  if (marked.some((name) => fieldOf(mail.headers, name) !== '')) return true
  const precedence = fieldOf(mail.headers, 'precedence').toLowerCase()
  return (
    !isFromServer(mail) &&
    (/^auto-(?:replied|notified)/i.test(fieldOf(mail.headers, 'auto-submitted')) ||
      precedence === 'auto_reply')
  )
}

const AWAY =
  /out of (?:the )?office|auto(?:matic)?[ -]?(?:reply|response|antwort)|away from my|on vacation|abwesenheit|automatische antwort|absence du bureau|réponse automatique|respuesta automática|fuera de (?:la )?oficina|risposta automatica|fuori sede|afwezig|автоответ|自动回复|自動回覆|自動応答/iu

const SERVERS =
  /mailer-?daemon|postmaster|mail[ -]?delivery|delivery (?:sub)?system|mdaemon|mail administrator|mail(?:er)? system|internet mail delivery|microsoft ?exchange|symantec|no-?reply@.*(?:bounce|delivery)|postoffice|majordomo|邮件系统|系统管理员/iu

const isFromServer = (mail: ReportMail) =>
  SERVERS.test(fieldOf(mail.headers, 'from').slice(0, FIELD_CHARS_MAX))

const SUBJECTS =
  /undeliver|not deliver|non[- ]?deliver|delivery (?:status )?(?:notification|failure|failed|report|problem|error|has failed|delayed)|fail(?:ure|ed) (?:notice|mail|delivery)|returned (?:mail|to sender|message)|mail (?:delivery|system error|could not)|message (?:delayed|you sent blocked)|could not (?:be delivered|send)|warning: (?:message|could not)|delayed mail|permanent(?:ly)? (?:error|fail)|mail failure|nondeliverable|unzustellbar|nicht zugestellt|zustellung fehlgeschlagen|non remis|échec|no se pudo entregar|no entregado|mancata consegna|niet (?:worden )?(?:afgeleverd|bezorgd)|onbestelbaar|не ?доставлен|недостав|退信|投递失败|配信(?:不能|エラー)|送信できません|niedostarcz|não (?:entregue|pôde ser entregue)/iu

const hasSubject = (mail: ReportMail) =>
  SUBJECTS.test(fieldOf(mail.headers, 'subject').slice(0, FIELD_CHARS_MAX))

/** Checked before the failures: texts of delays say that delivery "failed so far" and that nothing need be done. */
const LATE =
  /warning message only|do(?:es)? not need to resend|no action is required (?:on your part|by you)|not yet been delivered|delivery (?:to the following recipients? )?has been delayed|will (?:keep trying|be retried|continue to (?:try|be attempted)|retry)|could not be delivered (?:for|within) (?:the last )?\d+ (?:more )?(?:hours?|minutes?)|delivery attempts will continue|(?:message|mail) (?:is )?still undelivered|still (?:be )?trying to deliver|delivery incomplete|temporary (?:problem|error|failure) delivering|transient non-fatal|has been delayed|noch nicht zugestellt|n'a pas encore été remis/iu
/** A server that has given up may mention its earlier tries. */
const GIVEN_UP =
  /permanent(?:ly)? (?:error|fail|fatal)|giv(?:ing|en) up|i'?m not going to try again|failed permanently|could not be delivered for too long|retry time(?:out)? (?:not reached for any host after a long|exceeded)|has (?:been )?(?:expired|given up)|undeliverable after|will not be retried|stopped trying/iu

const FAILED = new RegExp(
  [
    'hi\\. this is the',
    'permanent(?:ly)? (?:error|fail|fatal)',
    'i.?m not going to try again',
    "(?:could|can|was|were|is|has|have|did|does|has been)(?: ?not|n't|n’t) (?:be |been |able to |yet be )?(?:be |reach|deliver|sent|send|transmitted|completed|accept)",
    '(?:unable|failed) to (?:deliver|send|relay)',
    '(?:couldn.t|cannot|can not|could not) (?:be )?(?:reach|deliver|find|sent)',
    'undeliver(?:ed|able)',
    'non-?deliver(?:y|able)',
    'delivery (?:to the following (?:recipients?|address(?:es)?) )?(?:has )?(?:failed|failure|error)',
    'address (?:not found|was not found)',
    'wasn.t delivered|wasn.t able to deliver|didn.t reach|not reach some',
    'your (?:message|mail|e-?mail) (?:was|has been) (?:blocked|rejected|returned|bounced)',
    '(?:message|mail) (?:was|has been) (?:rejected|refused|returned) ',
    'returned (?:mail|to (?:the )?sender)',
    'failed addresses follow',
    'error (?:has )?occurred while (?:attempting|trying) to deliver',
    'mailbox (?:unavailable|not found|does not exist|is full)',
    '(?:user|recipient|address) (?:unknown|does not exist|not (?:found|listed))',
    'unknown user|no such user|invalid recipient',
    '(?:konnte|kann|wurde)[^.]{0,80} nicht (?:zugestellt|ausgeliefert|übermittelt)|nicht zustellbar|unzustellbar',
    'n.a pas pu être (?:remis|délivré|livré|envoyé)|échec de (?:la )?(?:remise|livraison|distribution)',
    'no (?:se )?(?:pudo|ha podido|se ha podido)[^.]{0,40} entrega|no (?:ha sido|fue) entregado',
    'non (?:è stato possibile|può essere|ha potuto)[^.]{0,40} (?:recapita|consegna)|mancata consegna',
    'kon niet worden (?:bezorgd|afgeleverd)|niet (?:worden )?(?:bezorgd|afgeleverd)',
    'não (?:pôde|pode|foi)[^.]{0,40} entregue',
    'не (?:может быть|удалось|было|было доставлено)[^.]{0,40}достав|не доставлено',
    'nie (?:mogła|można|została)[^.]{0,60} dostarcz',
    '退信|投递失败|无法(?:投递|送达|发送)|被退回|配信できません|配信できなかった|送信できません',
  ].join('|'),
  'iu',
)

function actionOf(flowing: string): DsnAction | null {
  if (LATE.test(flowing) && !GIVEN_UP.test(flowing)) return 'delayed'
  return FAILED.test(flowing) ? 'failed' : null
}

const COPY_RULE = `-{2,80}[ \\t]{0,5}(?:${[
  'below this line is a copy',
  '(?:this is|here is|enclosed is|begin) (?:a )?copy',
  'the header',
  '(?:begin|original|forwarded|returned|unsent|undelivered) (?:message|mail)',
  'message header',
  "ursprüngliche|message d'origine|mensaje original",
].join('|')})`
const COPY_LINE = `(?:${[
  '(?:original )?message headers?',
  'full headers',
  'header of the (?:original|message)',
  'your (?:original )?message (?:follows|reads)',
  '(?:the )?(?:original|returned) message (?:follows|is below)',
].join('|')})[ \\t]{0,5}[:.]?[ \\t]{0,5}$`
/** Where a report begins to quote what it returns. Every repetition is bounded: lines may be as long as the text. */
const COPIES = new RegExp(`^[ \\t>]{0,20}(?:${COPY_RULE}|${COPY_LINE}|return-path: ?<|received: from )`, 'im')

/** The text before the copy of the returned message, whose words are not the server's. */
function withoutCopy(text: string): string {
  const start = text.search(COPIES)
  return start > 0 ? text.slice(0, start) : text
}

const ADDRESS = /[^\s<>()[\]{},;:"'|=]{1,64}@[\w.-]{1,255}[\w]/u

const firstAddress = (text: string) => ADDRESS.exec(text.slice(0, 2_000))?.[0] ?? null

/** Addresses that a report may name without being about them: its own, and the one it answers. */
function ownAddresses(mail: ReportMail): Set<string> {
  const fields = ['from', 'to', 'reply-to', 'sender'].map((name) => fieldOf(mail.headers, name))
  return new Set(fields.flatMap((value) => firstAddress(value)?.toLowerCase() ?? []))
}

/** An address at the start of a line is preferred to one within a sentence. */
function recipientIn(lines: readonly string[], others: ReadonlySet<string>): string | null {
  const candidates: string[] = []
  for (const line of lines) {
    const [address] = ADDRESS.exec(line) ?? []
    if (address === undefined || others.has(address.toLowerCase())) continue
    if (/^(?:mailer-?daemon|postmaster|abuse|support|help)@|bounce\+/i.test(address)) continue
    if (line.replace(/^(?:<|smtp:|to:|recipient:|email:|rcpt to:)+/i, '').startsWith(address)) return address
    candidates.push(address)
  }
  return candidates[0] ?? null
}

/** A code, three digits followed by words or an enhanced one: of a failure, or of the last try before it. */
const CODED = [
  /(?<![\d.:#/-])5\d\d(?=[ \-:,;)]+[^\d\s])|(?<![\d.])5\.\d{1,3}\.\d{1,3}(?!\.?\d)/,
  /(?<![\d.:#/-])4\d\d(?=[ \-:,;)]+[^\d\s])|(?<![\d.])4\.\d{1,3}\.\d{1,3}(?!\.?\d)/,
]
/** Words for a failure, then words for its subject. */
const WORDS = [
  /unknown|no such|not (?:found|listed|exist)|n.t exist|unavailable|disabled|closed|inactive|quota|full|spam|virus|block|reject|refus|denied|policy|invalid|too (?:large|big)|timed? ?out|unbekannt|gesperrt|inconnu|inexist|desconocid|sconosciut|onbekend|desconhecid|nieznan|неизвест|не существует|不存在|存在しない/iu,
  /user|mailbox|account|recipient|host|domain|postfach|destinataire/iu,
]

/** The server's words: the line with a code and its continuation, else the lines after the address, else a line with such words. */
function diagnosticIn(lines: readonly string[], address: string | null): string {
  for (const code of CODED) {
    const coded = lines.findIndex((line) => code.test(line))
    if (coded >= 0) return paragraph(lines, coded)
  }
  const named = address === null ? -1 : lines.findIndex((line) => line.includes(address))
  for (const words of WORDS) {
    if (named >= 0) {
      const own = tidy(
        paragraph(lines, named)
          .replaceAll(address as string, ' ')
          .replace(/[<>:]+ /g, ' '),
      )
      if (words.test(own)) return own
      const next = lines.findIndex((line, at) => at > named && line !== '')
      if (next > 0 && words.test(paragraph(lines, next))) return paragraph(lines, next)
    }
    const telling = lines.findIndex((line) => words.test(line))
    if (telling >= 0) return paragraph(lines, telling)
  }
  return ''
}

function paragraph(lines: readonly string[], from: number): string {
  const end = lines.findIndex((line, at) => at > from && line === '')
  return tidy(lines.slice(from, Math.min(end < 0 ? lines.length : end, from + LINES_AROUND)).join(' '))
}

/** `host mx.example.net[192.0.2.1] said:`, `remote server: mx.example.net`. */
function hostIn(diagnostic: string): string | null {
  const [, host] =
    /\b(?:host|server|remote host|remote server|mx)[ :]+([a-z0-9-]+(?:\.[a-z0-9-]+)+)/i.exec(diagnostic) ?? []
  return host ?? null
}

const tidyAll = (text: string) => text.replace(/\s+/gu, ' ')
