/**
 * Bounces that are only text, by servers that give their own reason in their own words: nothing of them can be replaced,
 * so each is whole. Several of each kind: refused, unknown, full, given up, delayed.
 */
import { mail, multipart, original, plain, type Subject, text } from './mail.ts'

export interface WholeText {
  name: string
  raw(subject: Subject): string
  /** A bounce whose words say that the mailbox is gone or closed; a bounce for another reason; a warning. */
  says: 'gone' | 'other' | 'late'
  status: string | null
}

const dma = (
  name: string,
  says: WholeText['says'],
  status: string | null,
  reason: string,
  version = 'v0.13',
): WholeText => ({
  name: `dma, ${name}`,
  says,
  status,
  raw: (s) =>
    plain(
      ['From: MAILER-DAEMON <>', `To: ${s.returnPath}`, 'Subject: Mail delivery failed'],
      `This is the DragonFly Mail Agent ${version} at df.example.\n\nThere was an error delivering your mail to <${s.recipient}>.\n\n${reason.replaceAll('<R>', `<${s.recipient}>`)}\n\nMessage headers follow.\n\nReceived: from www (uid 80)\n\tid 7a1b2\n\tby df.example (DragonFly Mail Agent ${version});\n\tFri, 20 Nov 2026 10:00:00 +0000\n${s.header}\n`,
    ),
})

const DMA = [
  dma(
    'unknown',
    'gone',
    '5.1.1',
    'mx.there.example [192.0.2.25] did not like our RCPT TO:\n550 5.1.1 <R>: Recipient address rejected: User unknown',
  ),
  dma(
    'full',
    'other',
    '5.2.2',
    'mx.there.example [192.0.2.25] did not like our RCPT TO:\n552 5.2.2 <R>: Mailbox full',
  ),
  dma(
    'content, in several lines',
    'other',
    '5.7.1',
    'mx.there.example [2001:db8::25] did not like our final DATA:\n554-5.7.1 This message looks like spam.\n554-5.7.1 Do you think that it is none?\n554 5.7.1 Tell postmaster@there.example.',
    'v0.9',
  ),
  dma(
    'sender',
    'other',
    '5.1.8',
    'mx.there.example [192.0.2.25] did not like our MAIL FROM:\n553 5.1.8 Domain of sender address does not exist',
    'v0.11',
  ),
  dma('no such domain', 'other', null, 'DNS lookup failure: host there.example not found'),
  dma(
    'no server',
    'other',
    null,
    'There was no MX host reachable for there.example: Connection refused',
    'v0.11+',
  ),
  dma('too old', 'other', null, 'Could not deliver for the last 432000 seconds. Giving up.'),
  dma('local', 'other', null, 'can not open the mailbox: Permission denied'),
]

const imail = (name: string, says: WholeText['says'], reason: string): WholeText => ({
  name: `imail, ${name}`,
  says,
  status: null,
  raw: (s) =>
    plain(
      [
        'From: "Postmaster" <postmaster@imail.example>',
        'Sender: <postmaster@imail.example>',
        'Subject: Undeliverable Mail',
        'X-Mailer: <SMTP32 v8.15>',
      ],
      `${reason.replaceAll('<R>', s.recipient)}\n\n\nOriginal message follows.\n\n${s.header}\n\nUser mailbox exceeds nothing.\n`,
    ),
})

const IMAIL = [
  imail('unknown', 'gone', 'Unknown user: <R>'),
  imail('no final delivery', 'gone', 'Invalid final delivery userid: <R>'),
  imail('full', 'other', 'User mailbox exceeds allowed size: <R>'),
  imail('given up', 'other', 'Delivery failed 20 attempts: <R>'),
  imail('no host', 'other', 'undeliverable to <R>\nUnknown host: there.example'),
]

const transcript = (
  name: string,
  says: WholeText['says'],
  subject: string,
  lines: string,
  rule = 'Unsent message follows',
): WholeText => ({
  name: `old sendmail, ${name}`,
  says,
  status: null,
  raw: (s) =>
    plain(
      ['From: Mail Delivery Subsystem <MAILER-DAEMON@v5.example>', `Subject: Returned mail: ${subject}`],
      `   ----- Transcript of session follows -----\n${lines.replaceAll('<R>', `<${s.recipient}>`)}\n\n   ----- ${rule} -----\nReceived: by v5.example; (5.65/1.37) id AA0001;\n\tFri, 20 Nov 2026 10:00:00 +0000\n${s.header}\n`,
    ),
})

const SENDMAIL = [
  transcript(
    'unknown',
    'gone',
    'User unknown',
    'While talking to mx.there.example:\n>>> RCPT To:<R>\n<<< 550 No such user here.\n550 <R>... User unknown\n421 other.example (smtp)... Deferred: Connection timed out during user open with other.example',
  ),
  transcript(
    'host unknown',
    'other',
    'Host unknown',
    '550 there.example (smtp)... 550 Host unknown\n554 <R>... 550 Host unknown (Authoritative answer from name server)',
  ),
  transcript(
    'not sent for days',
    'other',
    'Cannot send message for 4 days',
    '421 there.example (smtp)... Deferred: Connection timed out during user open with there.example',
  ),
  transcript(
    'no relay',
    'other',
    'Remote protocol error',
    'While talking to mx.there.example:\n>>> MAIL From:<shop@sender.example>\n<<< 550 Insecure Mail Relay\n554 <R>... Remote protocol error',
    'Original message follows',
  ),
]

const notes = (name: string, says: WholeText['says'], charset: string, reason: Buffer): WholeText => ({
  name: `notes, ${name}`,
  says,
  status: null,
  raw: (s) =>
    mail(
      [
        'From: postmaster@notes4.example',
        'Subject: Undeliverable message',
        `Content-Type: text/plain; charset=${charset}`,
        'Content-Transfer-Encoding: base64',
      ],
      Buffer.concat([
        Buffer.from('------- Failure Reasons  --------\r\n\r\n'),
        reason,
        Buffer.from(`\r\n${s.recipient}\r\n\r\n------- Returned Message --------\r\n${s.header}\r\n`),
      ])
        .toString('base64')
        .replace(/.{76}/g, '$&\n'),
    ),
})

/** "ユーザーは見つかりません" ("the user is not found") in ISO-2022-JP, which has no encoder here. */
const NOT_FOUND_JP = Buffer.from('\x1b$B%f!<%6!<$O8+$D$+$j$^$;$s\x1b(B', 'latin1')

const NOTES = [
  notes('unknown', 'gone', 'us-ascii', Buffer.from('User not listed in public Name & Address Book')),
  notes('Japanese', 'gone', 'iso-2022-jp', NOT_FOUND_JP),
  notes('quota', 'other', 'us-ascii', Buffer.from('Mail file of the user has exceeded its quota')),
  notes(
    'a route that nobody knows',
    'other',
    'us-ascii',
    Buffer.from('Router: no route to the foreign domain'),
  ),
]

const kddi = (name: string, says: WholeText['says'], subject: string, reason: string): WholeText => ({
  name: `kddi, ${name}`,
  says,
  status: null,
  raw: (s) =>
    multipart(
      ['From: no-reply@mobile.example', 'Reply-To: no-reply@app.mobile.example', `Subject: ${subject}`],
      'multipart/mixed',
      [
        text(
          `Your mail sent on: Fri, 20 Nov 2026 10:00:00 +0900\n     Could not be delivered to: <${s.recipient}>\n     ${reason}\n`,
        ),
        original(s),
      ],
    ),
})

const KDDI = [
  kddi('full', 'other', 'Mail', 'As their mailbox is full.'),
  kddi('unknown', 'gone', '=?utf-8?B?44Oh44O844Or44Ko44Op44O86YCa55+l?=', 'As the user is unknown.'),
  kddi('refused', 'other', 'Mail', 'As they refuse mail of your domain.'),
]

const ezweb = (name: string, says: WholeText['says'], body: string): WholeText => ({
  name: `ezweb, ${name}`,
  says,
  status: null,
  raw: (s) =>
    plain(
      ['From: <Postmaster@ez.example>', 'Subject: Mail System Error - Returned Mail'],
      body.replaceAll('<R>', `<${s.recipient}>`).replaceAll('<H>', s.header),
    ),
})

const RULE = '-'.repeat(51)
const EZWEB = [
  ezweb(
    'filtered',
    'other',
    `<R>\n\nEach of the following recipients was rejected by a remote mail server.\n${RULE}\nReceived: from out.sender.example (host [198.51.100.3])\n        by ez.example (EZ Mail) with SMTP id 12AB;\n<H>\n`,
  ),
  ezweb(
    'unknown',
    'gone',
    `The following recipients did not receive this message:\n\n<R>\n\nThe reasons given by the server(s):\n\n    [transcript]\n    >>> RCPT TO:<R>\n    <<< 550 <R>: User unknown\n\n${RULE}\nReceived: from out.sender.example by ez.example;\n<H>\n`,
  ),
  ezweb(
    'not responding',
    'other',
    `Your message was not delivered within 0 days and 1 hours.\nRemote host is not responding.\n\nThe following recipients did not receive this message:\n\n<R>\n`,
  ),
  ezweb('closed', 'other', 'The user(s) account is disabled.\n\n<R>\n'),
]

const biglobe = (name: string, says: WholeText['says'], reason: string): WholeText => ({
  name: `biglobe, ${name}`,
  says,
  status: null,
  raw: (s) =>
    multipart(
      ['From: postmaster@big.example', 'Subject: Returned mail: Service unavailable'],
      'multipart/mixed',
      [
        text(
          `   ----- The following addresses had delivery problems -----\n${s.recipient}\n\n   ----- Non-delivered information -----\n${reason}\n`,
        ),
        original(s),
      ],
    ),
})

const BIGLOBE = [
  biglobe('too many', 'other', "The number of messages in recipient's mailbox exceeded the local limit."),
  biglobe('full', 'other', "Total size of messages in recipient's mailbox exceeded the local limit."),
  biglobe('unknown', 'gone', 'User unknown'),
]

const gateway = (
  name: string,
  says: WholeText['says'],
  status: string | null,
  from: string,
  subject: string,
  body: string,
): WholeText => ({
  name: `gateway, ${name}`,
  says,
  status,
  raw: (s) =>
    multipart([`From: ${from}`, `Subject: ${subject}`], 'multipart/mixed', [
      text(body.replaceAll('<R>', s.recipient)),
      original(s),
    ]),
})

const GATEWAYS = [
  gateway(
    'phones',
    'gone',
    null,
    'post_master@phone.example',
    'Re:Hello',
    'Error: Invalid user address\n\nError message below:\n550 - Requested action not taken: no such user here\n\nMessage details:\n  Subject: Hello\n  RCPT TO: <R>\n',
  ),
  gateway(
    'a filter that shows the session',
    'gone',
    '5.1.1',
    '"Mail Guard" <postmaster@guard.example>',
    'Mail could not be delivered',
    'Sent <<< RCPT TO:<<R>>\nReceived >>> 550 5.1.1 <<R>>... user unknown\n',
  ),
  gateway(
    'a filter with a problem and its explanation',
    'other',
    '5.4.1',
    '"postmaster" <postmaster@cloud.example>',
    '[Postmaster] Email Delivery Failure',
    'An email that you attempted to send to the following address could not be delivered:\n-- <R>\n\nThe problem appears to be :\n-- Recipient server unavailable\n\nAdditional information follows :\n-- 5.4.1 no answer from host\n',
  ),
  gateway(
    'recipients whose reasons follow',
    'other',
    '5.2.2',
    'Mailer-Daemon@two.example',
    'Mail delivery failed: returning message to sender',
    'The following addresses failed:\n\n  <R>\n    SMTP error from remote mail server after RCPT TO:<<R>>:\n    host mx.there.example [192.0.2.25]: 552 5.2.2 Mailbox full\n  another@there.example\n    SMTP error from remote mail server after RCPT TO:<another@there.example>:\n    host mx.there.example [192.0.2.25]: 550 5.1.1 User unknown\n',
  ),
  gateway(
    'recipients whose reasons follow, ours last',
    'gone',
    '5.1.1',
    'Mailer-Daemon@two.example',
    'Mail delivery failed: returning message to sender',
    'The following addresses failed:\n\n  another@there.example\n    host mx.there.example [192.0.2.25]: 552 5.2.2 Mailbox full\n  <R>\n    host mx.there.example [192.0.2.25]: 550 5.1.1 User unknown\n',
  ),
]

/** The copy of the message follows without a word; it mentions failures of its own. */
const unannounced: WholeText = {
  name: 'copy without a mark',
  says: 'other',
  status: null,
  raw: (s) =>
    plain(
      ['From: MAILER-DAEMON@plain.example', 'Subject: failure notice'],
      `Your message could not be delivered to ${s.recipient}.\nThe system is short of memory.\n\nFrom: shop@sender.example\nTo: ${s.recipient}\nSubject: Your parcel\n\n550 5.1.1 User unknown\nNo such user, mailbox closed.\n`,
    ),
}

const WARNINGS: WholeText[] = [
  {
    name: 'opensmtpd warning',
    says: 'late',
    status: null,
    raw: (s) =>
      plain(
        ['From: Mailer Daemon <MAILER-DAEMON@os.example>', 'Subject: Delivery status notification: warning'],
        `    Hi!\n\n    A message is delayed for more than 10 minutes for the following\n    list of recipients:\n\n${s.recipient}: 550 5.1.1 is not what this is about\n\n    Please note that this is only a temporary failure report.\n    The message is kept in the queue for up to 4 days.\n`,
      ),
  },
  {
    name: 'postfix warning',
    says: 'late',
    status: null,
    raw: (s) =>
      plain(
        ['From: MAILER-DAEMON (Mail Delivery System)', 'Subject: Delayed Mail (still being retried)'],
        `THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND YOUR MESSAGE.\n\nYour message could not be delivered for more than 4 hour(s).\nIt will be retried until it is 5 day(s) old.\n\n<${s.recipient}>: host mx.there.example[192.0.2.1] said: 451 4.3.0 later\n`,
      ),
  },
  {
    name: 'courier warning',
    says: 'late',
    status: null,
    raw: (s) =>
      plain(
        ['From: "Courier mail server" <postmaster@cour.example>', 'Subject: WARNING: delayed mail.'],
        `The attached message has not yet been delivered to:\n\n<${s.recipient}>:\n   Connection timed out.\n\nDelivery attempts will continue.\n`,
      ),
  },
]

export const WHOLE_TEXTS: readonly WholeText[] = [
  ...DMA,
  ...IMAIL,
  ...SENDMAIL,
  ...NOTES,
  ...KDDI,
  ...EZWEB,
  ...BIGLOBE,
  ...GATEWAYS,
  unannounced,
  ...WARNINGS,
]
