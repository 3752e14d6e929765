/**
 * Bounces that are only text, in the forms of programs and providers that write no status part, in several languages.
 * `says` replaces the server's words, with or without codes.
 */
import { fields, mail, multipart, original, originalHeader, plain, type Subject, text } from './mail.ts'

type Format = (subject: Subject, says: string) => string

const daemon = (host: string, subject: string) => [`From: MAILER-DAEMON@${host}`, `Subject: ${subject}`]

const qmail: Format = (s, says) =>
  plain(
    daemon('qmail.example', 'failure notice'),
    `Hi. This is the qmail-send program at qmail.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n<${s.recipient}>:\n${says}\n\n--- Below this line is a copy of the message.\n\nReturn-Path: <${s.returnPath}>\n${s.header}\n\nUser unknown 550 5.1.1 in the copy.\n`,
  )

const exim: Format = (s, says) =>
  plain(
    [
      'From: Mail Delivery System <Mailer-Daemon@exim4.example>',
      'Subject: Mail delivery failed: returning message to sender',
      `X-Failed-Recipients: ${s.recipient}`,
    ],
    `This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n  ${s.recipient}\n    SMTP error from remote mail server after RCPT TO:<${s.recipient}>:\n    host mx.there.example [192.0.2.25]: ${says}\n\n------ This is a copy of the message, including all the headers. ------\n\n${s.header}\n\nBody.\n`,
  )

const postfixText: Format = (s, says) =>
  plain(
    ['From: MAILER-DAEMON (Mail Delivery System)', 'Subject: Undelivered Mail Returned to Sender'],
    `This is the Postfix program at host pf.example.\n\nI'm sorry to have to inform you that your message could not be\nbe delivered to one or more recipients. It's attached below.\n\n                        The Postfix program\n\n<${s.recipient}>: host mx.there.example[192.0.2.1] said: ${says} (in reply to\n    RCPT TO command)\n`,
  )

const sendmailText: Format = (s, says) =>
  plain(
    ['From: Mail Delivery Subsystem <MAILER-DAEMON@sm.example>', 'Subject: Returned mail: User unknown'],
    `The original message was received at Fri, 20 Nov 2026 09:59:00 GMT\n\n   ----- The following addresses had permanent fatal errors -----\n<${s.recipient}>\n\n   ----- Transcript of session follows -----\n... while talking to mx.there.example.:\n>>> RCPT To:<${s.recipient}>\n<<< ${says}\n\n   ----- Original message follows -----\n\n${s.header}\n`,
  )

const exchange5: Format = (s, says) =>
  multipart(
    ['From: System Administrator <postmaster@ex55.example>', 'Subject: Undeliverable: Hello'],
    'multipart/mixed',
    [
      text(
        `Your message\n\n  To:      ${s.recipient}\n  Subject: Hello\n  Sent:    Fri, 20 Nov 2026 10:00:00 +0100\n\ndid not reach the following recipient(s):\n\n${s.recipient} on Fri, 20 Nov 2026 10:00:05 +0100\n    ${says}\n`,
      ),
      original(s),
    ],
  )

const exchangeHtml: Format = (s, says) =>
  mail(
    [
      'From: Microsoft Exchange <postmaster@exh.example>',
      'Subject: Undeliverable: Hello',
      'Content-Type: text/html; charset=utf-8',
    ],
    `<html><body><p><b>Delivery has failed to these recipients or groups:</b></p><p><a href="mailto:${s.recipient}">${s.recipient}</a></p><p>#${says.replaceAll('<', '&lt;').replaceAll('>', '&gt;')} ##</p></body></html>`,
  )

const notes: Format = (s, says) =>
  plain(
    ['From: "Postmaster" <postmaster@notes5.example>', 'Subject: DELIVERY FAILURE: User not listed'],
    `Your message\n\n  Subject: Hello\n\nwas not delivered to:\n\n  ${s.recipient}\n\nbecause:\n\n  ${says}\n`,
  )

const groupwise: Format = (s, says) =>
  multipart(
    ['From: Mail Administrator <postmaster@gwise.example>', 'Subject: Message status - undeliverable'],
    'multipart/mixed',
    [
      text(
        `The message that you sent was undeliverable to the following:\n\t${s.recipient} (${says})\n\nPossibly truncated original message follows:\n`,
      ),
      original(s),
    ],
  )

const smail: Format = (s, says) =>
  plain(
    ['From: <MAILER-DAEMON@smail.example>', 'Subject: mail failed, returning to sender'],
    `|------------------------- Message log follows: -------------------------|\n no valid recipients were found for this message\n|------------------------- Failed addresses follow: ---------------------|\n <${s.recipient}> ... ${says}\n|------------------------- Message text follows: ------------------------|\n${s.header}\n`,
  )

const hmail: Format = (s, says) =>
  plain(
    ['From: mailer-daemon@hm.example', 'Subject: Message undeliverable: Hello'],
    `Your message did not reach some or all of the intended recipients.\n\n   Sent: Fri, 20 Nov 2026 10:00:00 +0100\n   Subject: Hello\n\nThe following recipient(s) could not be reached:\n\n${s.recipient}\n   Error Type: SMTP\n   Remote server (192.0.2.4) issued an error.\n   hMailServer sent: RCPT TO:<${s.recipient}>\n   Remote server replied: ${says}\n\nhMailServer\n`,
  )

const mdaemon: Format = (s, says) =>
  multipart(
    ['From: "MDaemon at md.example" <MDaemon@md.example>', 'Subject: Permanent Delivery Failure'],
    'multipart/mixed',
    [
      text(
        `The attached message had PERMANENT fatal delivery errors!\n\nAfter one or more unsuccessful delivery attempts the attached message has\nbeen removed from the mail queue on this server.\n\nYOUR MESSAGE WAS NOT DELIVERED TO ONE OR MORE RECIPIENTS!\n\nFailed address: ${s.recipient}\n\n--- Session Transcript ---\n --> RCPT To:<${s.recipient}>\n <-- ${says}\n`,
      ),
      original(s),
    ],
  )

const imail: Format = (s, says) =>
  plain(
    ['From: postmaster@imail.example (Mail Server)', 'Subject: Undeliverable Mail'],
    `Undeliverable to ${s.recipient}\n${says}\n\nOriginal message follows.\n\n${s.header}\n`,
  )

const openSmtpd: Format = (s, says) =>
  multipart(
    ['From: Mailer Daemon <MAILER-DAEMON@os.example>', 'Subject: Delivery status notification: error'],
    'multipart/mixed',
    [
      text(
        `    Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this email.\n\n    An error has occurred while attempting to deliver a message for\n    the following list of recipients:\n\n${s.recipient}: ${says}\n\n    Below is a copy of the original message:\n`,
      ),
      originalHeader(s),
    ],
  )

const mercury: Format = (s, says) =>
  plain(
    [
      'From: Electronic Postmaster <postmaster@merc.example>',
      'Subject: Postmaster notify: delivery failure.',
    ],
    `Your message could not be delivered to the following addresses:\n\n   ${s.recipient}   (${says})\n\nThe text of your message follows.\n`,
  )

const gmailText: Format = (s, says) =>
  plain(
    [
      'From: Mail Delivery Subsystem <mailer-daemon@gm.example>',
      'Subject: Delivery Status Notification (Failure)',
      `X-Failed-Recipients: ${s.recipient}`,
    ],
    `Delivery to the following recipient failed permanently:\n\n     ${s.recipient}\n\nTechnical details of permanent failure:\nThe error that the other server returned was:\n${says}\n\n----- Original message -----\n\n${s.header}\n`,
  )

const yahooText: Format = (s, says) =>
  plain(
    ['From: MAILER-DAEMON@yh.example', 'Subject: Failure Notice'],
    `Sorry, we were unable to deliver your message to the following address.\n\n<${s.recipient}>:\nRemote host said: ${says} [RCPT_TO]\n\n--- Below this line is a copy of the message.\n\n${s.header}\n`,
  )

const webDe: Format = (s, says) =>
  plain(
    ['From: mailer-daemon@wd.example', 'Subject: Mail delivery failed: returning message to sender'],
    `This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of\nits recipients. This is a permanent error.\n\nThe following address failed:\n\n    "${s.recipient}":\n    SMTP error from remote server for RCPT TO command, host: mx.there.example\n    reason: ${says}\n\n\n--- The header of the original message is following. ---\n\n${s.header}\n`,
  )

/** A mail in that language; bodies in UTF-8. */
const inWords =
  (from: string, subject: string, words: (recipient: string, says: string) => string): Format =>
  (s, says) =>
    mail(
      [
        `From: ${from}`,
        `Subject: =?utf-8?B?${Buffer.from(subject).toString('base64')}?=`,
        'Content-Type: text/plain; charset=utf-8',
        'Content-Transfer-Encoding: base64',
      ],
      Buffer.from(words(s.recipient, says)).toString('base64').replace(/.{76}/g, '$&\n'),
    )

const german = inWords(
  'Mail-System <postmaster@de.example>',
  'Unzustellbar: Hallo',
  (r, says) => `Ihre Nachricht an den folgenden Empfänger konnte nicht zugestellt werden:\n\n${r}\n${says}\n`,
)
const french = inWords(
  'postmaster@fr.example',
  'Message non remis',
  (r, says) => `Votre message n'a pas pu être remis au destinataire suivant :\n\n<${r}>\n${says}\n`,
)
const spanish = inWords(
  'postmaster@es.example',
  'Mensaje no entregado',
  (r, says) => `Su mensaje no se pudo entregar a la siguiente dirección:\n\n${r}: ${says}\n`,
)
const italian = inWords(
  'postmaster@it.example',
  'Mancata consegna del messaggio',
  (r, says) => `Non è stato possibile recapitare il messaggio a:\n\n${r}\n${says}\n`,
)
const dutch = inWords(
  'postmaster@nl.example',
  'Onbestelbaar bericht',
  (r, says) => `Uw bericht kon niet worden bezorgd bij:\n\n${r}\n${says}\n`,
)
const portuguese = inWords(
  'postmaster@pt.example',
  'Mensagem não entregue',
  (r, says) => `A sua mensagem não pôde ser entregue a:\n\n${r}\n${says}\n`,
)
const polish = inWords(
  'postmaster@pl.example',
  'Wiadomość niedostarczona',
  (r, says) => `Wiadomość nie mogła zostać dostarczona do:\n\n${r}\n${says}\n`,
)
const russian = inWords(
  'mailer-daemon@ru.example',
  'Недоставленное сообщение',
  (r, says) =>
    `Это письмо создано автоматически сервером.\n\nК сожалению, Ваше письмо не может быть доставлено одному или нескольким получателям:\n\n${r}\n${says}\n`,
)
const chinese = inWords(
  'PostMaster@cn.example',
  '系统退信',
  (r, says) => `抱歉,您的邮件被退回来了……\n\n收件人：${r}\n退信原因：\n${says}\n`,
)
const japanese = inWords(
  'MAILER-DAEMON@jp.example',
  '配信エラーのお知らせ',
  (r, says) => `次の宛先にメールを配信できませんでした。\n\n<${r}>\n${says}\n`,
)

const james: Format = (s, says) =>
  plain(
    ['From: <postmaster@james.example>', 'Subject: Re: Hello'],
    `Hi. This is the James mail server at james.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\nFailed recipient(s):\n${s.recipient}\n\nError message:\n${says}\n\nMessage details:\n  Subject: Hello\n  RCPT TO: ${s.recipient}\n`,
  )

const marshal: Format = (s, says) =>
  plain(
    ['From: "Mail Marshal" <postmaster@marshal.example>', 'Subject: Undeliverable: Hello'],
    `Your message:\n   From:    shop@sender.example\n   Subject: Hello\n\nCould not be delivered because of\n\n   ${says}\n\nThe following recipients were affected:\n   ${s.recipient}\n\nAdditional Information\n======================\nOriginal Sender:    <shop@sender.example>\n`,
  )

const parenthesised: Format = (s, says) =>
  plain(
    daemon('v8.example', 'Returned mail: see transcript for details'),
    `   ----- The following addresses had permanent fatal errors -----\n<${s.recipient}>\n    (reason: ${says})\n    (expanded from: <${s.recipient}>)\n`,
  )

/** The status part has the type text, in a mixed mail. */
const misnamed: Format = (s, says) =>
  multipart(daemon('mis.example', 'Undelivered Mail Returned to Sender'), 'multipart/mixed', [
    text('Your message could not be delivered.'),
    fields(
      `Reporting-MTA: dns; mis.example\n\nFinal-Recipient: rfc822; ${s.recipient}\nAction: failed\nDiagnostic-Code: smtp; ${says}\n`,
      'text/plain; name="details.txt"',
    ),
    original(s),
  ])

export const TEXT_FORMATS: Readonly<Record<string, Format>> = {
  qmail,
  exim,
  'postfix text': postfixText,
  'sendmail text': sendmailText,
  'exchange 5': exchange5,
  'exchange html': exchangeHtml,
  notes,
  groupwise,
  smail,
  hmail,
  mdaemon,
  imail,
  opensmtpd: openSmtpd,
  mercury,
  'gmail text': gmailText,
  'yahoo text': yahooText,
  'web.de': webDe,
  german,
  french,
  spanish,
  italian,
  dutch,
  portuguese,
  polish,
  russian,
  chinese,
  japanese,
  misnamed,
  james,
  marshal,
  'in parentheses': parenthesised,
}
