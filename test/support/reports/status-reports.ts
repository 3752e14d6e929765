/**
 * Bounces with a message/delivery-status part in the forms of known programs and providers. Written for
 * these tests after those formats, with fictitious names and addresses.
 */
import {
  type Fault,
  fields,
  mail,
  multipart,
  original,
  originalHeader,
  type Part,
  replyOf,
  type Subject,
  text,
  wordsOf,
} from './mail.ts'

type Format = (subject: Subject, fault: Fault) => string

const REPORT = 'multipart/report; report-type=delivery-status'
const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

const group = (s: Subject, f: Fault, more = '') =>
  `Final-Recipient: rfc822; ${s.recipient}\nAction: failed\nStatus: ${f.status}\n${more}`

const postfix: Format = (s, f) =>
  multipart(
    [
      'From: MAILER-DAEMON@mx.relay.example (Mail Delivery System)',
      'Subject: Undelivered Mail Returned to Sender',
      'Auto-Submitted: auto-replied',
      `To: ${s.returnPath}`,
    ],
    REPORT,
    [
      text(
        `This is the mail system at host mx.relay.example.\n\nI'm sorry to have to inform you that your message could not be delivered.\n\n<${s.recipient}>: host mx.${domainOf(s.recipient)}[192.0.2.7] said: ${replyOf(f, s)} (in reply to RCPT TO command)`,
      ),
      fields(
        `Reporting-MTA: dns; mx.relay.example\nX-Postfix-Queue-ID: 4Fx1\nX-Postfix-Sender: rfc822; ${s.returnPath}\nArrival-Date: Fri, 20 Nov 2026 09:59:00 +0000\n\n${group(s, f, `Original-Recipient: rfc822;${s.recipient}\nRemote-MTA: dns; mx.${domainOf(s.recipient)}\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n`)}`,
      ),
      original(s),
    ],
  )

const postfixLocal: Format = (s, f) =>
  multipart(
    [
      'From: <MAILER-DAEMON@box.example>',
      'Subject: Undelivered Mail Returned to Sender',
      `To: ${s.returnPath}`,
    ],
    REPORT,
    [
      text(`This is the mail system at host box.example.\n\n<${s.recipient}>: ${wordsOf(f, s)}`),
      fields(
        `Reporting-MTA: dns; box.example\n\n${group(s, f, `Diagnostic-Code: X-Postfix; ${wordsOf(f, s)}\n`)}`,
      ),
      originalHeader(s),
    ],
  )

const sendmail: Format = (s, f) =>
  multipart(
    [
      'From: Mail Delivery Subsystem <MAILER-DAEMON@mail.uni.example>',
      'Subject: Returned mail: see transcript for details',
      'Auto-Submitted: auto-generated (failure)',
    ],
    'multipart/report; report-type=delivery-status',
    [
      text(
        `The original message was received at Fri, 20 Nov 2026 09:59:00 GMT\nfrom out.sender.example [198.51.100.3]\n\n   ----- The following addresses had permanent fatal errors -----\n<${s.recipient}>\n    (reason: ${replyOf(f, s)})\n\n   ----- Transcript of session follows -----\n... while talking to mx.${domainOf(s.recipient)}.:\n>>> RCPT To:<${s.recipient}>\n<<< ${replyOf(f, s)}`,
      ),
      fields(
        `Reporting-MTA: dns; mail.uni.example\nReceived-From-MTA: DNS; out.sender.example\nArrival-Date: Fri, 20 Nov 2026 09:59:00 GMT\n\n${group(s, f, `Remote-MTA: DNS; mx.${domainOf(s.recipient)}\nDiagnostic-Code: SMTP; ${replyOf(f, s)}\nLast-Attempt-Date: Fri, 20 Nov 2026 10:00:00 GMT\n`)}`,
      ),
      original(s),
    ],
  )

const eximDsn: Format = (s, f) =>
  multipart(
    [
      'From: Mail Delivery System <Mailer-Daemon@exim.example>',
      'Subject: Mail delivery failed: returning message to sender',
      'Auto-Submitted: auto-replied',
      `X-Failed-Recipients: ${s.recipient}`,
    ],
    REPORT,
    [
      text(
        `This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n  ${s.recipient}\n    host mx.${domainOf(s.recipient)} [192.0.2.9]\n    SMTP error from remote mail server after RCPT TO:<${s.recipient}>:\n    ${replyOf(f, s)}`,
      ),
      fields(
        `Reporting-MTA: dns; exim.example\n\nAction: failed\nFinal-Recipient: rfc822;${s.recipient}\nStatus: ${f.status[0]}.0.0\nRemote-MTA: dns; mx.${domainOf(s.recipient)}\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n`,
      ),
      original(s),
    ],
  )

const exchange: Format = (s, f) =>
  multipart(
    [
      'From: <postmaster@corp.example>',
      'Subject: Undeliverable: Hello',
      'Content-Language: en-US',
      'Auto-Submitted: auto-replied',
      'X-MS-Exchange-Message-Is-Ndr:',
    ],
    REPORT,
    [
      {
        head: ['Content-Type: multipart/alternative; boundary="alt-1"'],
        body: `--alt-1\nContent-Type: text/plain; charset="us-ascii"\nContent-Transfer-Encoding: quoted-printable\n\nDelivery has failed to these recipients or groups:\n\n${s.recipient.replace('@', '=40')}\nThe message wasn't delivered.\n\nDiagnostic information for administrators:\n\nGenerating server: EX1.corp.example\n\n${s.recipient}\nRemote Server returned '${replyOf(f, s)}'\n\n--alt-1\nContent-Type: text/html; charset="us-ascii"\n\n<html><body><p>Delivery has failed to these recipients or groups</p></body></html>\n--alt-1--`,
      },
      fields(
        `Reporting-MTA: dns;EX1.corp.example\nReceived-From-MTA: dns;out.sender.example\nArrival-Date: Fri, 20 Nov 2026 09:59:00 +0000\n\nOriginal-Recipient: rfc822;${s.recipient}\n${group(s, f, `Diagnostic-Code: smtp;${replyOf(f, s)}\nX-Display-Name: Somebody\n`)}`,
      ),
      original(s),
    ],
  )

const exchangeOld: Format = (s, f) =>
  multipart(['From: postmaster@old.example', 'Subject: Delivery Status Notification (Failure)'], REPORT, [
    text(
      `This is an automatically generated Delivery Status Notification.\n\nDelivery to the following recipients failed.\n\n       ${s.recipient}\n`,
    ),
    fields(
      `Reporting-MTA: dns;old.example\nReceived-From-MTA: dns;out.sender.example\nArrival-Date: Fri, 20 Nov 2026 10:59:00 +0100\n\n${group(s, f)}`,
    ),
    original(s),
  ])

const gmail: Format = (s, f) =>
  multipart(
    [
      'From: Mail Delivery Subsystem <mailer-daemon@mail.example>',
      'Subject: Delivery Status Notification (Failure)',
      `X-Failed-Recipients: ${s.recipient}`,
      'Auto-Submitted: auto-replied',
      'In-Reply-To: <1@x>',
    ],
    'multipart/report; report-type=delivery-status',
    [
      {
        head: ['Content-Type: multipart/related; boundary="rel"'],
        body: `--rel\nContent-Type: text/html; charset="UTF-8"\n\n<html><h2>Address not found</h2><p>Your message wasn't delivered to <b>${s.recipient}</b>.</p></html>\n--rel\nContent-Type: image/png; name="icon.png"\nContent-Disposition: attachment; filename="icon.png"\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--rel--`,
      },
      fields(
        `Reporting-MTA: dns; mail.example\nReceived-From-MTA: dns; ${s.returnPath}\nArrival-Date: Fri, 20 Nov 2026 01:59:00 -0800 (PST)\nX-Original-Message-ID: <1@x>\n\n${group(s, f, `Remote-MTA: dns; mx.${domainOf(s.recipient)}. (192.0.2.9, the server for the domain.)\nDiagnostic-Code: smtp; ${f.reply}-${f.status} ${wordsOf(f, s)}\n ${f.reply}-${f.status} Please try another address, see\n ${f.reply} ${f.status}  https://support.mail.example/?p=NoSuchUser 4fb4d7f45d1cf-5 - gsmtp\nLast-Attempt-Date: Fri, 20 Nov 2026 02:00:00 -0800 (PST)\n`)}`,
      ),
      original(s),
    ],
  )

const yahoo: Format = (s, f) =>
  multipart(['From: MAILER-DAEMON@mta.example', 'Subject: Failure Notice'], REPORT, [
    text(
      `Sorry, we were unable to deliver your message to the following address.\n\n<${s.recipient}>:\n${replyOf(f, s)}\n\n--- Below this line is a copy of the message.\n`,
    ),
    fields(
      `Reporting-MTA: dns; mta.example\n\nFinal-Recipient: rfc822; ${s.recipient}\nOriginal-Recipient: rfc822; ${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n`,
    ),
    originalHeader(s),
  ])

const outlook: Format = (s, f) =>
  multipart(
    [
      'From: postmaster@cloud.example',
      'Subject: =?utf-8?B?VW56dXN0ZWxsYmFyOiBIYWxsbw==?=',
      'Auto-Submitted: auto-replied',
    ],
    REPORT,
    [
      {
        head: ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'],
        body: Buffer.from(`Ihre Nachricht an ${s.recipient} konnte nicht zugestellt werden.\n`).toString(
          'base64',
        ),
      },
      fields(
        `Reporting-MTA: dns;AM0PR01.eurprd01.prod.cloud.example\nReceived-From-MTA: dns;out.sender.example\n\nFinal-Recipient: rfc822;${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: smtp;${replyOf(f, s)} [AM0EUR01FT003.eop-EUR01.prod.cloud.example]\n`,
      ),
      original(s),
    ],
  )

const courier: Format = (s, f) =>
  multipart(
    ['From: "Courier mail server at cour.example" <@cour.example>', 'Subject: NOTICE: mail delivery status.'],
    REPORT,
    [
      text(
        `This is a delivery status notification from cour.example,\nrunning the Courier mail server.\n\nThe message could not be delivered to the following addresses:\n\n<${s.recipient}>:\n   mx.${domainOf(s.recipient)} [192.0.2.9]:\n<<< ${replyOf(f, s)}\n`,
      ),
      fields(
        `Reporting-MTA: dns; cour.example\nArrival-Date: Fri, 20 Nov 2026 09:59:00 +0000\n\n${group(s, f, `Remote-MTA: dns; mx.${domainOf(s.recipient)} [192.0.2.9]\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n`)}`,
      ),
      originalHeader(s),
    ],
  )

const messagingServer: Format = (s, f) =>
  multipart(
    [
      'From: Internet Mail Delivery <postmaster@ims.example>',
      'Subject: Delivery Notification: Delivery has failed',
    ],
    REPORT,
    [
      text(
        `This report relates to a message you sent with the following header fields:\n\n  Return-path: <${s.returnPath}>\n\nYour message cannot be delivered to the following recipients:\n\n  Recipient address: ${s.recipient}\n  Reason: ${wordsOf(f, s)}\n`,
      ),
      fields(
        `Original-envelope-id: 0ABC\nReporting-MTA: dns; ims.example\nArrival-date: Fri, 20 Nov 2026 09:59:00 +0000\n\nOriginal-recipient: rfc822;${s.recipient}\nFinal-recipient: rfc822;${s.recipient}\nAction: failed\nStatus: ${f.status} (${wordsOf(f, s).slice(0, 20)})\nDiagnostic-code: smtp;${replyOf(f, s)}\n`,
      ),
      original(s),
    ],
  )

const domino: Format = (s, f) =>
  multipart(
    ['From: Postmaster@notes.example', 'Subject: DELIVERY FAILURE: Delivery problem'],
    'multipart/report; Report-Type=Delivery-Status',
    [
      text(
        `Your message\n\n  Subject: Hello\n\nwas not delivered to:\n\n  ${s.recipient}\n\nbecause:\n\n  ${wordsOf(f, s)}\n`,
      ),
      fields(
        `Reporting-MTA: dns;notes.example\n\nFinal-Recipient: rfc822;${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: X-Notes; ${wordsOf(f, s)}\n`,
      ),
      original(s),
    ],
  )

const powerMta: Format = (s, f) =>
  multipart(['From: postmaster@bulk.example', 'Subject: Delivery report'], REPORT, [
    text(
      `Hello, this is the mail server on bulk.example.\n\nI am sending you this message to inform you on the delivery status of a\nmessage you previously sent.\n\n${s.recipient}; ${replyOf(f, s)}`,
    ),
    fields(
      `Reporting-MTA: dns;bulk.example\n\nOriginal-Recipient: rfc822;${s.recipient}\nFinal-Recipient: rfc822;${s.recipient}\nAction: failed\nStatus: ${f.status} (see below)\nRemote-MTA: dns;mx.${domainOf(s.recipient)} (192.0.2.9)\nDiagnostic-Code: smtp;${replyOf(f, s)}\nX-PowerMTA-BounceCategory: other\n`,
    ),
    originalHeader(s),
  ])

const haraka: Format = (s, f) =>
  multipart(
    [
      'From: MAILER-DAEMON <postmaster@har.example>',
      'Subject: failure notice',
      'Auto-Submitted: auto-replied',
    ],
    REPORT,
    [
      text(
        `Hi. This is the mail delivery program at har.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n${s.recipient}: ${replyOf(f, s)}`,
      ),
      fields(
        `Reporting-MTA: dns;har.example\nArrival-Date: Fri, 20 Nov 2026 09:59:00 +0000\n\nOriginal-Recipient: rfc822;${s.recipient}\nFinal-Recipient: rfc822;${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: SMTP;${replyOf(f, s)}\n`,
      ),
      original(s),
    ],
  )

/** The group of the message and that of the recipient are merged. */
const oneBlock: Format = (s, f) =>
  multipart(['From: postmaster@gw.example', 'Subject: Mail delivery failed'], REPORT, [
    text('The mail could not be delivered.'),
    fields(`Reporting-MTA: dns; gw.example\n${group(s, f, `Diagnostic-Code: smtp; ${replyOf(f, s)}\n`)}`),
  ])

/** Names in lower case, folded values, no Action. */
const lowerCase: Format = (s, f) =>
  multipart(['From: postmaster@lc.example', 'Subject: undeliverable'], REPORT, [
    text('see below'),
    fields(
      `reporting-mta: dns; lc.example\n\nfinal-recipient: rfc822;\n <${s.recipient}>\nstatus: ${f.status}\ndiagnostic-code: smtp;\n ${f.reply}\n ${f.status} ${wordsOf(f, s)}\n`,
    ),
    originalHeader(s),
  ])

/** RFC 6533. */
const global: Format = (s, f) =>
  multipart(
    ['From: MAILER-DAEMON@utf8.example', 'Subject: Undelivered Mail Returned to Sender'],
    'multipart/report; report-type=global-delivery-status',
    [
      text('Could not be delivered.'),
      fields(
        `Reporting-MTA: dns; utf8.example\n\nFinal-Recipient: utf-8; ${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n`,
        'message/global-delivery-status',
      ),
      { ...original(s), head: ['Content-Type: message/global'] },
    ],
  )

/** A gateway has changed everything to text. */
const flattened: Format = (s, f) =>
  mail(
    [
      'From: MAILER-DAEMON@flat.example',
      'Subject: Undelivered Mail Returned to Sender',
      'Content-Type: text/plain',
    ],
    `This is the mail system at host flat.example.\n\nReporting-MTA: dns; flat.example\n\nFinal-Recipient: rfc822; ${s.recipient}\nAction: failed\nStatus: ${f.status}\nDiagnostic-Code: smtp; ${replyOf(f, s)}\n\n${s.header}\n`,
  )

const encoded: Format = (s, f) =>
  multipart(['From: MAILER-DAEMON@enc.example', 'Subject: Delivery failure'], REPORT, [
    text('Delivery failed.'),
    {
      head: ['Content-Type: message/delivery-status', 'Content-Transfer-Encoding: base64'],
      body: Buffer.from(
        `Reporting-MTA: dns; enc.example\r\n\r\n${group(s, f, `Diagnostic-Code: smtp; ${replyOf(f, s)}`)}`,
      ).toString('base64'),
    } satisfies Part,
    original(s),
  ])

/** A filter has added its own text around the report. */
const forwarded: Format = (s, f) =>
  multipart(
    ['From: Gateway <gateway@filter.example>', 'Subject: [EXTERNAL] Undelivered Mail Returned to Sender'],
    'multipart/mixed',
    [
      text('CAUTION: This mail comes from outside.'),
      { head: ['Content-Type: message/rfc822'], body: postfix(s, f) },
    ],
  )

/** A filter that repeats only the beginning of the text. */
const wrapped: Format = (s, f) =>
  multipart(
    ['From: MAILER-DAEMON@filter.example', 'Subject: Returned mail: see transcript for details'],
    'multipart/mixed',
    [
      text('   ----- The following addresses had permanent delivery errors -----\n'),
      { head: ['Content-Type: message/rfc822'], body: sendmail(s, f) },
    ],
  )

export const STATUS_FORMATS: Readonly<Record<string, Format>> = {
  postfix,
  'postfix local': postfixLocal,
  sendmail,
  exim: eximDsn,
  exchange,
  'exchange of old': exchangeOld,
  gmail,
  yahoo,
  outlook,
  courier,
  'messaging server': messagingServer,
  domino,
  powermta: powerMta,
  haraka,
  'one block of fields': oneBlock,
  'lower case': lowerCase,
  'RFC 6533': global,
  'made text': flattened,
  'encoded status': encoded,
  forwarded,
  wrapped,
}
