/** Reports of delays and successes, complaints, and other mail to a return path. */
import { fields, mail, multipart, original, originalHeader, plain, type Subject, text } from './mail.ts'

type Format = (subject: Subject) => string

const REPORT = 'multipart/report; report-type=delivery-status'
const status =
  (action: string, code: string, more = ''): Format =>
  (s) =>
    multipart(
      [
        `From: MAILER-DAEMON@mta.example`,
        `Subject: Delivery Status Notification (${action})`,
        'Auto-Submitted: auto-replied',
      ],
      REPORT,
      [
        text(`About your message to ${s.recipient}: 550 User unknown is not what this says.`),
        fields(
          `Reporting-MTA: dns; mta.example\n\nFinal-Recipient: rfc822; ${s.recipient}\nAction: ${action}\nStatus: ${code}\n${more}`,
        ),
        originalHeader(s),
      ],
    )

/** These must have no effect: a retry, or a success. */
export const HARMLESS: Readonly<Record<string, Format>> = {
  delayed: status(
    'delayed',
    '4.4.1',
    'Will-Retry-Until: Tue, 24 Nov 2026 10:00:00 +0000\nDiagnostic-Code: smtp; 451 4.4.1 Connection timed out\n',
  ),
  'delayed with the code of a failure': status(
    'delayed',
    '5.1.1',
    'Diagnostic-Code: smtp; 550 5.1.1 User unknown\n',
  ),
  delivered: status('delivered', '2.1.5'),
  relayed: status('relayed', '2.0.0'),
  expanded: status('expanded', '2.1.5'),
  'no action, temporary': status('', '4.2.2'),
  'no action, success': status('', '2.1.5'),
  'list of ours expanded, a member failed': (s) =>
    multipart(['From: MAILER-DAEMON@mta.example', 'Subject: Undelivered Mail Returned to Sender'], REPORT, [
      text('One member could not be reached.'),
      fields(
        `Reporting-MTA: dns; mta.example\n\nFinal-Recipient: rfc822; ${s.recipient}\nAction: expanded\nStatus: 2.1.5\n\nFinal-Recipient: rfc822; member@elsewhere.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\n`,
      ),
    ]),
  'exim warning': (s) =>
    plain(
      [
        'From: Mail Delivery System <Mailer-Daemon@exim4.example>',
        'Subject: Warning: message 1abC-0001 delayed 24 hours',
      ],
      `This message was created automatically by mail delivery software.\nA message that you sent has not yet been delivered to one or more of its\nrecipients after more than 24 hours on the queue on exim4.example.\n\nThe address to which the message has not yet been delivered is:\n\n  ${s.recipient}\n    Delay reason: Connection timed out\n\nNo action is required on your part. Delivery attempts will continue for\nsome time, and this warning may be repeated at intervals if the message\nremains undelivered.\n`,
    ),
  'sendmail warning': (s) =>
    plain(
      [
        'From: Mail Delivery Subsystem <MAILER-DAEMON@sm.example>',
        'Subject: Warning: could not send message for past 4 hours',
      ],
      `    **********************************************\n    **      THIS IS A WARNING MESSAGE ONLY      **\n    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **\n    **********************************************\n\n   ----- The following addresses had transient non-fatal errors -----\n<${s.recipient}>\n\n   ----- Transcript of session follows -----\n451 4.4.1 reply: read error from mx.there.example.\nWarning: message still undelivered after 4 hours\nWill keep trying until message is 5 days old\n`,
    ),
  'google delay': (s) =>
    plain(
      [
        'From: Mail Delivery Subsystem <mailer-daemon@gm.example>',
        'Subject: Delivery Status Notification (Delay)',
      ],
      `This is an automatically generated Delivery Status Notification\n\nTHIS IS A WARNING MESSAGE ONLY.\n\nYOU DO NOT NEED TO RESEND YOUR MESSAGE.\n\nDelivery to the following recipient has been delayed:\n\n     ${s.recipient}\n\nMessage will be retried for 2 more day(s)\n`,
    ),
}

const said =
  (from: string, subject: string, body: string, more: readonly string[] = []): Format =>
  (s) =>
    plain(
      [`From: ${from.replace('<R>', `<${s.recipient}>`)}`, `Subject: ${subject}`, ...more],
      body.replaceAll('<R>', s.recipient),
    )

/** Not reports at all, though some mention deliveries and codes. */
export const NO_REPORTS: Readonly<Record<string, Format>> = {
  vacation: said(
    'Bob <R>',
    'Out of office: Hello',
    'I am away until Monday. Mail to my old address could not be delivered.',
    ['Auto-Submitted: auto-replied'],
  ),
  'vacation of old': said('Bob <R>', 'away from my mail', 'User unknown until Monday.', ['Precedence: bulk']),
  'vacation with a null sender': said('Bob <R>', 'Automatic reply: Hello', 'I am out. 550 5.1.1', [
    'X-Auto-Response-Suppress: All',
  ]),
  'vacation in German': said(
    'Bob <R>',
    'Abwesenheitsnotiz',
    'Ich bin nicht da. Post kann nicht zugestellt werden.',
  ),
  'vacation with the mail attached': (s) =>
    multipart(
      [`From: Bob <${s.recipient}>`, 'Subject: Re: Hello', 'Auto-Submitted: auto-replied'],
      'multipart/mixed',
      [text('I am away.'), original(s)],
    ),
  'vacation that a postmaster sends': said(
    'postmaster@there.example',
    'Auto: Out of office',
    'Bob is away, your message was not delivered to him but to Ann.',
  ),
  reply: said(
    'Bob <R>',
    'Re: Hello',
    'Thanks! My last parcel could not be delivered: address not found, 550 Main Street.',
  ),
  'reply that quotes a bounce': said(
    'Bob <R>',
    'Re: my mail',
    'I got this:\n\n> Final-Recipient: rfc822; x@y.example\n> Action: failed\n> Status: 5.1.1\n\nwhat now?',
  ),
  challenge: said(
    'Guard <guard@there.example>',
    'Please confirm your mail',
    'To deliver your message to <R>, click on this link. It has not been rejected.',
  ),
  'changed address': said(
    'Bob <R>',
    'My address has changed',
    'Write to new@there.example, this mailbox is not read.',
    ['Auto-Submitted: auto-replied'],
  ),
  'read receipt': (s) =>
    multipart(
      [`From: Bob <${s.recipient}>`, 'Subject: Read: Hello'],
      'multipart/report; report-type=disposition-notification',
      [
        text('Your message was displayed.'),
        fields(
          `Final-Recipient: rfc822; ${s.recipient}\nDisposition: manual-action/MDN-sent-manually; displayed\n`,
          'message/disposition-notification',
        ),
      ],
    ),
  'read receipt of a mail deleted unread': (s) =>
    multipart(
      ['From: Postmaster <postmaster@there.example>', 'Subject: Not read: Undeliverable'],
      'multipart/report; report-type=disposition-notification',
      [
        text(`Your message to ${s.recipient} was deleted without being read. It could not be delivered.`),
        fields(
          `Final-Recipient: rfc822; ${s.recipient}\nDisposition: automatic-action/MDN-sent-automatically; deleted\n`,
          'message/disposition-notification',
        ),
      ],
    ),
  'reply to a bounce': said(
    'Bob <R>',
    'Re: Undelivered Mail Returned to Sender',
    'Do you know why?\n\nOn Friday, Mail Delivery System wrote:\n> <x@y.example>: host mx.y.example said: 550 5.1.1 User unknown\n> could not be delivered\n',
  ),
  'bounce that a person forwards': said(
    'Bob <R>',
    'Fwd: Returned mail: see transcript for details',
    'Begin forwarded message:\n\n> From: MAILER-DAEMON@y.example\n> Subject: Returned mail\n>\n>    ----- The following addresses had permanent fatal errors -----\n> <x@y.example>\n>     (reason: 550 5.1.1 User unknown)\n',
  ),
  'vacation with the mail attached, of an old mailbox': (s) =>
    multipart([`From: Bob <${s.recipient}>`, 'Subject: Undeliverable? No: auto reply'], 'multipart/mixed', [
      text(`Mail could not be delivered to <${s.recipient}> this week, I am back on Monday.`),
      original(s),
    ]),
  'automatic reply, with the prefix of RFC 3834': said(
    'Bob <R>',
    'Auto: Mail delivery failed?',
    'The account <R> is disabled until Monday.',
  ),
  'challenge that calls itself undelivered': (s) =>
    multipart(
      ['From: Guard <guard@there.example>', 'Subject: Undelivered: please confirm'],
      'multipart/mixed',
      [
        text(`Your message could not be delivered to ${s.recipient} yet. Confirm that you are a person.`),
        original(s),
      ],
    ),
  'report of a success in text': said(
    'Mail Delivery System <mailer-daemon@there.example>',
    'Delivery Status Notification (Success)',
    'Your message was successfully delivered to the following recipients:\n\n<R>\n',
  ),
  'report of a success that explains errors': said(
    'Mail Delivery System <MAILER-DAEMON@there.example>',
    'Successful Mail Delivery Report',
    'Your message was successfully delivered to the destination(s) listed below. You may still receive\nnotifications of mail delivery errors from other systems.\n\n<<R>>: delivery via mx.there.example[192.0.2.1]: 250 2.0.0 Ok\n',
  ),
  'person with such a subject': said(
    'Ann <ann@there.example>',
    'Undeliverable',
    'Is this the subject of your mail?',
  ),
  'postmaster who is a person': said(
    'Postmaster <postmaster@there.example>',
    'Your question',
    'We have moved to 500 users. Ask <R> about the rest, at 550 Main Street.',
  ),
  'list that only members write to': said(
    'news-admin <news-admin@there.example>',
    'You are not a member (news list)',
    'You are not a member of this list <news@there.example>. Send the line "guide" to <R>.',
  ),
  'mail with a mail attached': (s) =>
    multipart([`From: Bob <${s.recipient}>`, 'Subject: original as attachment'], 'multipart/mixed', [
      text('Here it is, I could not send it earlier.'),
      original(s),
    ]),
  spam: said(
    'Prince <p@spam.example>',
    'Your parcel',
    'Failed to deliver your parcel, click here. Address unknown.',
  ),
  ticket: said(
    'Support <help@there.example>',
    '[Ticket 550] We received your request',
    'Ticket 5.1.1 was opened for <R>.',
    ['Auto-Submitted: auto-generated'],
  ),
  empty: () => '\r\n',
}

const feedback =
  (type: string, more: string, about: Format): Format =>
  (s) =>
    multipart(
      ['From: Feedback Loop <fbl@provider.example>', 'Subject: FW: Hello'],
      'multipart/report; report-type=feedback-report',
      [
        text('This is an email abuse report for an email message received from IP 198.51.100.3.'),
        fields(
          `Feedback-Type: ${type}\nUser-Agent: Loop/1.0\nVersion: 1\n${more}`,
          'message/feedback-report',
        ),
        { head: ['Content-Type: message/rfc822', 'Content-Disposition: inline'], body: about(s) },
      ],
    )
const whole: Format = (s) => `Return-Path: <${s.returnPath}>\n${s.header}\n\nBody.\n`
/** As it was signed: without the envelope. */
const bare: Format = (s) => `${s.header}\n\nBody.\n`
const blackened: Format = (s) => bare(s).replaceAll(s.recipient, 'redacted@provider.example')
/** The sender's fields are removed too; only the envelope names the delivery. */
const envelopeOnly: Format = (s) => `Return-Path: <${s.returnPath}>\nSubject: Hello\n\nBody.\n`

export const COMPLAINTS: Readonly<Record<string, Format>> = {
  'RFC 5965': feedback(
    'abuse',
    'Original-Mail-From: <x@y.example>\nArrival-Date: Fri, 20 Nov 2026 10:00:00 +0000\nSource-IP: 198.51.100.3\nReported-Domain: y.example\n',
    whole,
  ),
  minimal: feedback('abuse', '', bare),
  'recipient blackened': feedback('abuse', 'Original-Rcpt-To: redacted@provider.example\n', blackened),
  'token in the envelope only': feedback('abuse', '', envelopeOnly),
  fraud: feedback('fraud', 'Reported-URI: http://example.com/\n', whole),
  'opt-out': feedback('opt-out', 'Removal-Recipient: redacted@provider.example\n', bare),
  aol: feedback('abuse', 'Redacted-Address: redacted\nRedacted-Address: redacted@\n', blackened),
  'word in capitals': feedback('ABUSE', 'Received-Date: Fri, 20 Nov 2026 10:00:00 +0000\n', whole),
  'header only': (s) =>
    multipart(
      ['From: <staff@provider.example>', 'Subject: Email Feedback Report'],
      'multipart/report; report-type=feedback-report',
      [
        text('A complaint.'),
        fields('Feedback-Type: abuse\nUser-Agent: Y/2\nVersion: 0.1\n', 'message/feedback-report'),
        originalHeader(s),
      ],
    ),
  'only the field of the report': (s) =>
    multipart(
      ['From: fbl@provider.example', 'Subject: complaint'],
      'multipart/report; report-type=feedback-report',
      [
        text('A complaint.'),
        fields(
          `Feedback-Type: abuse\nUser-Agent: Z/1\nVersion: 1\nOriginal-Mail-From: <${s.returnPath}>\n`,
          'message/feedback-report',
        ),
      ],
    ),
  jmrp: (s) =>
    multipart(
      ['From: staff@cloud.example', 'Subject: complaint about message from 198.51.100.3'],
      'multipart/mixed',
      [
        {
          head: ['Content-Type: message/rfc822', 'Content-Disposition: attachment'],
          body: `X-HmXmrOriginalRecipient: <redacted>\nX-Sender-IP: 198.51.100.3\n${s.header}\n\nBody.\n`,
        },
      ],
    ),
  'jmrp marked in the mail only': (s) =>
    multipart(['From: staff@cloud.example', 'Subject: FW'], 'multipart/mixed', [
      {
        head: ['Content-Type: message/rfc822'],
        body: `X-HmXmrOriginalRecipient: <redacted>\n${s.header}\n\nBody.\n`,
      },
    ]),
  forwarded: (s) =>
    multipart(['From: abuse@host.example', 'Subject: Fwd: report'], 'multipart/mixed', [
      text('for you'),
      { head: ['Content-Type: message/rfc822'], body: feedback('abuse', '', whole)(s) },
    ]),
}

/** Reports that are not complaints. */
export const NO_COMPLAINTS: Readonly<Record<string, Format>> = {
  'not spam': feedback('not-spam', '', whole),
  'authentication failure': feedback('auth-failure', 'Auth-Failure: dmarc\n', whole),
  virus: feedback('virus', '', whole),
  other: feedback('other', '', whole),
}

/** The delivery's recipient forwards mail, so the report names another address. */
export const FORWARDED: Readonly<Record<string, Format>> = {
  'other final recipient': () =>
    multipart(['From: MAILER-DAEMON@fwd.example', 'Subject: Undelivered Mail Returned to Sender'], REPORT, [
      text('<target@elsewhere.example>: 550 5.1.1 User unknown'),
      fields(
        'Reporting-MTA: dns; fwd.example\n\nFinal-Recipient: rfc822; target@elsewhere.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\n',
      ),
    ]),
  'original recipient is ours': (s) =>
    multipart(['From: MAILER-DAEMON@fwd.example', 'Subject: Undelivered Mail Returned to Sender'], REPORT, [
      fields(
        `Reporting-MTA: dns; fwd.example\n\nFinal-Recipient: rfc822; other@elsewhere.example\nAction: delivered\nStatus: 2.0.0\n\nOriginal-Recipient: rfc822; ${s.recipient}\nFinal-Recipient: rfc822; target@elsewhere.example\nAction: failed\nStatus: 5.1.1\n`,
      ),
    ]),
  'in text': (s) =>
    plain(
      ['From: MAILER-DAEMON@fwd.example', 'Subject: failure notice'],
      `Hi. This is the qmail-send program at fwd.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up.\n\n<target@elsewhere.example>:\nSorry, no mailbox here by that name. (#5.1.1)\n\n--- Below this line is a copy of the message.\n\n${s.header}\n`,
    ),
  'no recipient at all': () =>
    plain(
      ['From: MAILER-DAEMON@fwd.example', 'Subject: Undeliverable'],
      'Your message could not be delivered.\n\n550 5.1.1 User unknown\n',
    ),
}

/** Bytes that stress a parser; they must cause nothing but a reply. */
export const HOSTILE: Readonly<Record<string, Format>> = {
  'a million boundary lines': () =>
    mail(['From: MAILER-DAEMON@x', 'Content-Type: multipart/report; boundary=b'], '--b\n'.repeat(200_000)),
  'deep nesting': () => {
    const level = (n: number) => `Content-Type: multipart/mixed; boundary=b${n}\n\n--b${n}\n`
    return mail(['From: MAILER-DAEMON@x'], Array.from({ length: 2_000 }, (_, n) => level(n)).join(''))
  },
  'status fields without end': () =>
    multipart(['From: MAILER-DAEMON@x'], REPORT, [fields('Final-Recipient: rfc822; a@b\n\n'.repeat(20_000))]),
  'one field without end': () =>
    multipart(['From: MAILER-DAEMON@x'], REPORT, [
      fields(`Diagnostic-Code: smtp; ${'5.1.1 '.repeat(100_000)}`),
    ]),
  'blanks without end': () =>
    plain(
      ['From: MAILER-DAEMON@x', 'Subject: Undeliverable'],
      `Message headers${' '.repeat(19_000)}x\n${'> '.repeat(9_000)}-${'-'.repeat(9_000)}`,
    ),
  'dots and numbers': () =>
    plain(['From: MAILER-DAEMON@x', 'Subject: Undeliverable'], '5.1.'.repeat(100_000)),
  'nested mails': () => `${'Content-Type: message/rfc822\r\n\r\n'.repeat(5_000)}x`,
}
