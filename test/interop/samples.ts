/** The mails of the interop runs: what programs write, and what has made parsers differ. */

export interface Sample {
  name: string
  /** Local part of the recipient; it chooses the route. */
  to: 'parsed' | 'raw' | 'notice'
  /** Envelope sender. */
  from: string
  /** A character for each byte; line ends are CRLF. */
  raw: string
  /** What a reader of the post must find; null where the mail has none. */
  expected: Expected
}

export interface Expected {
  subject: string | null
  text: string | null
  html: string | null
  files: { name: string; type: string; content: string }[]
  /** The service holds it for spam. */
  spam?: true
  inline?: { cid: string; type: string; content: string }[]
}

const HEAD = [
  'Date: Mon, 02 Mar 2026 10:00:00 +0100',
  'From: =?utf-8?q?=C3=84nne_Gro=C3=9F?= <anne@example.org>',
  'To: "Shop, the" <shop@example.com>, other@example.com',
]
const mail = (...lines: string[]) => `${lines.join('\r\n')}\r\n`
const utf8 = (text: string) => Buffer.from(text).toString('latin1')
const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64')

const REPLY = mail(
  ...HEAD,
  'Message-ID: <reply@example.org>',
  'Subject: =?iso-8859-1?Q?Gr=FC=DFe?= =?utf-8?B?IOKCrA==?=',
  'X-Custom: one',
  'X-Custom: two',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: 8bit',
  '',
  utf8('Ja, am Montag – für 5 €.'),
  '',
  'On Tue, 2 Jun 2026 at 10:00, Shop <shop@example.com> wrote:',
  '> Shall we?',
  '-- ',
  utf8('Änne'),
)
const REPLY_TEXT =
  'Ja, am Montag – für 5 €.\n\nOn Tue, 2 Jun 2026 at 10:00, Shop <shop@example.com> wrote:\n> Shall we?\n-- \nÄnne\n'

const MIXED = mail(
  ...HEAD,
  'Message-ID: <mixed@example.org>',
  'Subject: Files',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=outer',
  '',
  'A preamble',
  '--outer',
  'Content-Type: multipart/related; boundary=related',
  '',
  '--related',
  'Content-Type: multipart/alternative; boundary=inner',
  '',
  '--inner',
  'Content-Type: text/plain; charset=iso-8859-15',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'Preis: 5 =A4',
  '--inner',
  'Content-Type: text/html; charset=utf-8',
  'Content-Transfer-Encoding: base64',
  '',
  base64(utf8('<p>Preis: 5 €</p><img src="cid:logo@example.org">')),
  '--inner--',
  '--related',
  'Content-Type: image/png; name=logo.png',
  'Content-Disposition: inline; filename=logo.png',
  'Content-ID: <logo@example.org>',
  'Content-Transfer-Encoding: base64',
  '',
  base64('\x89PNG\r\n\x1a\n'),
  '--related--',
  '--outer',
  'Content-Type: application/pdf',
  "Content-Disposition: attachment; filename*=utf-8''%C3%9Cbersicht%20M%C3%A4rz.pdf",
  'Content-Transfer-Encoding: base64',
  '',
  base64('%PDF-\x00\xff'),
  '--outer',
  'Content-Type: text/csv; charset=utf-8; name="list.csv"',
  'Content-Disposition: attachment; filename="list.csv"',
  '',
  'a,b',
  '--outer--',
  'An epilogue',
)
const MIXED_EXPECTED: Expected = {
  subject: 'Files',
  text: 'Preis: 5 €',
  html: '<p>Preis: 5 €</p><img src="cid:logo@example.org">',
  files: [
    { name: 'Übersicht März.pdf', type: 'application/pdf', content: '%PDF-\x00\xff' },
    { name: 'list.csv', type: 'text/csv', content: 'a,b' },
  ],
  inline: [{ cid: 'logo@example.org', type: 'image/png', content: '\x89PNG\r\n\x1a\n' }],
}

/** The fields of a form that a header of the mail imitates. */
const FORGED = mail(
  ...HEAD,
  'Message-ID: <forged@example.org>',
  'Subject: Forged fields',
  'timestamp: 1',
  'token: forged',
  'signature: forged',
  'event: opened',
  'attachments: []',
  'attachment-count: 7',
  'body-mime: forged',
  'sender: forged@example.org',
  'recipient: forged@example.org',
  'X-Mailgun-Sflag: Yes',
  'X-Mailgun-Sscore: 99',
  '',
  'Text',
)

const ENCLOSED = mail(
  ...HEAD,
  'Message-ID: <enclosed@example.org>',
  'Subject: Fwd: a mail',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  '',
  'See below.',
  '--b',
  'Content-Type: message/rfc822',
  'Content-Disposition: attachment; filename="a mail.eml"',
  '',
  'From: c@example.net',
  'Subject: inside',
  '',
  'Inside',
  '--b--',
)

const HTML_ONLY = mail(
  ...HEAD,
  'Message-ID: <html@example.org>',
  'Subject: HTML only',
  'MIME-Version: 1.0',
  'Content-Type: text/html; charset=windows-1252',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  '<p>Sch=F6n</p>',
)

const CALENDAR = mail(
  ...HEAD,
  'Message-ID: <calendar@example.org>',
  'Subject: Invitation',
  'MIME-Version: 1.0',
  'Content-Type: multipart/alternative; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain',
  '',
  'Come',
  '--b',
  'Content-Type: text/calendar; method=REQUEST; charset=utf-8',
  '',
  'BEGIN:VCALENDAR',
  'END:VCALENDAR',
  '--b--',
)

const EMPTY = mail(...HEAD, 'Message-ID: <empty@example.org>', '')

const LATIN = mail(
  ...HEAD,
  'Message-ID: <latin@example.org>',
  'Subject: Gr\xfc\xdfe',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: 8bit',
  '',
  'Sch\xf6n',
)

const BROKEN = mail(
  ...HEAD,
  'Message-ID: <broken@example.org>',
  'Subject: =?utf-8?q?=C3?= broken',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Never ends',
)

/** SPF fails, and it lacks From, Date and Message-ID. */
const SPAM = mail('Subject: Win', '', 'Now')

export const SAMPLES: Sample[] = [
  {
    name: 'reply',
    to: 'parsed',
    from: 'bounces@example.org',
    raw: REPLY,
    expected: { subject: 'Grüße €', text: REPLY_TEXT, html: null, files: [] },
  },
  { name: 'files', to: 'parsed', from: 'anne@example.org', raw: MIXED, expected: MIXED_EXPECTED },
  {
    name: 'forged fields',
    to: 'parsed',
    from: 'anne@example.org',
    raw: FORGED,
    expected: { subject: 'Forged fields', text: 'Text\n', html: null, files: [] },
  },
  {
    name: 'enclosed mail',
    to: 'parsed',
    from: 'anne@example.org',
    raw: ENCLOSED,
    expected: {
      subject: 'Fwd: a mail',
      text: 'See below.',
      html: null,
      files: [
        {
          name: 'a mail.eml',
          type: 'message/rfc822',
          content: 'From: c@example.net\nSubject: inside\n\nInside',
        },
      ],
    },
  },
  {
    name: 'HTML only',
    to: 'parsed',
    from: 'anne@example.org',
    raw: HTML_ONLY,
    expected: { subject: 'HTML only', text: 'Schön', html: '<p>Schön</p>\n', files: [] },
  },
  {
    name: 'invitation',
    to: 'parsed',
    from: 'anne@example.org',
    raw: CALENDAR,
    expected: { subject: 'Invitation', text: 'Come', html: null, files: [] },
  },
  {
    name: 'no text',
    to: 'parsed',
    from: '',
    raw: EMPTY,
    expected: { subject: null, text: '', html: null, files: [] },
  },
  {
    name: 'Latin-1',
    to: 'parsed',
    from: 'anne@example.org',
    raw: LATIN,
    expected: { subject: 'Grüße', text: 'Schön\n', html: null, files: [] },
  },
  {
    name: 'no end',
    to: 'parsed',
    from: 'anne@example.org',
    raw: BROKEN,
    expected: { subject: '\ufffd broken', text: 'Never ends\n', html: null, files: [] },
  },
  {
    name: 'spam',
    to: 'parsed',
    from: 'a@spam.example',
    raw: SPAM,
    expected: { subject: 'Win', text: 'Now\n', html: null, files: [], spam: true },
  },
  {
    name: 'raw reply',
    to: 'raw',
    from: 'bounces@example.org',
    raw: REPLY,
    expected: { subject: 'Grüße €', text: REPLY_TEXT, html: null, files: [] },
  },
  { name: 'raw files', to: 'raw', from: 'anne@example.org', raw: MIXED, expected: MIXED_EXPECTED },
  {
    name: 'raw forged fields',
    to: 'raw',
    from: '',
    raw: FORGED,
    expected: { subject: 'Forged fields', text: 'Text\n', html: null, files: [] },
  },
  {
    name: 'raw Latin-1',
    to: 'raw',
    from: 'anne@example.org',
    raw: LATIN,
    expected: { subject: 'Grüße', text: 'Schön\n', html: null, files: [] },
  },
  {
    name: 'notice',
    to: 'notice',
    from: 'bounces@example.org',
    raw: REPLY,
    expected: { subject: 'Grüße €', text: REPLY_TEXT, html: null, files: [] },
  },
]
