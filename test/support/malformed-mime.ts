/** Broken and hostile messages, the same ones for the same seed. All line ends are CRLF. */
import { seededNumbers } from './random.ts'

const BASES = [
  'From: a@example.com\r\nTo: b@example.org\r\nSubject: =?utf-8?q?gr=C3=BC=C3=9Fe?= =?iso-8859-1?B?/A==?=\r\n\r\nText\r\n',
  [
    'From: "A, B" <a@example.com>',
    'To: Team: b@example.org, c@example.net;',
    'X-Service-Tag: one',
    'X-Mailgun-Variables: {"a": 1}',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary="outer"',
    '',
    'preamble',
    '--outer',
    'Content-Type: multipart/alternative; boundary=inner',
    '',
    '--inner',
    'Content-Type: text/plain; charset=iso-8859-1',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    'caf=E9 =',
    'soft',
    '--inner',
    'Content-Type: text/html; charset="utf-8"',
    'Content-Transfer-Encoding: base64',
    '',
    'PGI+aGk8L2I+',
    '--inner--',
    '--outer',
    'Content-Type: message/rfc822',
    '',
    'From: c@example.net',
    'Content-Type: multipart/mixed; boundary=deep',
    '',
    '--deep',
    'Content-Disposition: attachment; filename*0*=utf-8\'\'a%20; filename*1="b.txt"',
    '',
    'x',
    '--deep--',
    '--outer--',
    '',
  ].join('\r\n'),
  [
    'Content-Type: multipart/mailgun-variables; boundary="b1"',
    '',
    '--b1',
    'Content-Type: application/json',
    'Content-Transfer-Encoding: base64',
    '',
    'eyJhbGljZUBleGFtcGxlLm9yZyI6eyJuYW1lIjoiQWxpY2UifX0=',
    '--b1',
    'Content-Type: message/rfc822',
    '',
    'From: shop@example.com',
    'To: %recipient%',
    'Subject: Hello %recipient.name%',
    '',
    'Your news.',
    '--b1--',
    '',
  ].join('\r\n'),
  [
    'From: A <a@example.com>',
    'To: b@example.org',
    'Subject: =?utf-8?q?H=C3=A4llo?= %recipient.x%',
    'MIME-Version: 1.0',
    'X-Service-Tag: t',
    'Content-Type: multipart/mixed; boundary="outer"',
    '',
    'preamble',
    '--outer',
    'Content-Type: multipart/alternative; boundary=inner',
    '',
    '--inner',
    'Content-Type: text/plain; charset=iso-8859-1',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    'Dear %recipient.x% =E4=20',
    '--inner',
    'Content-Type: text/html; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    'PHA+JXJlY2lwaWVudC54JTwvcD4=',
    '--inner--',
    '--outer',
    'Content-Type: message/rfc822',
    '',
    'From: x@example.com',
    '',
    'nested',
    '--outer',
    `Content-Disposition: attachment; filename*=utf-8''%C3%A4.txt`,
    '',
    'file',
    '--outer--',
    'epilogue',
    '',
  ].join('\r\n'),
]

const SPLINTERS = [
  ...[
    '\r\n',
    '\r\n\r\n',
    '\r\n\t',
    ':',
    ';',
    '"',
    '\\',
    '(',
    '<',
    '>',
    '@',
    ',',
    '=?',
    '?=',
    '=',
    '--',
    '--outer',
  ],
  ...[
    'Content-Type: ',
    'boundary=',
    'charset=x',
    'base64',
    'From: ',
    '%recipient%',
    '\0',
    '\xff\xfe',
    '\u2028',
  ],
  ...['=?utf-8?q?', '=?utf-16?b?//8=?=', '{{#each x}}', '{"a":', 'X-Service-Recipient-Variables: {}\r\n'],
]

/** `count` messages mutated from a few by cutting, doubling, swapping and inserting. */
export function* malformedMessages(count: number, seed: number): Generator<Buffer> {
  const random = seededNumbers(seed)
  for (let made = 0; made < count; made++) {
    let text = BASES[Math.floor(random() * BASES.length)] as string
    const changes = 1 + Math.floor(random() * 8)
    for (let change = 0; change < changes; change++) text = changed(text, random)
    yield withCrlf(text)
  }
}

/** Messages built to overload a parser: a hundred thousand parts, ten thousand levels, a million repeated bytes. */
export function* monstrousMessages(): Generator<Buffer> {
  for (const monster of MONSTERS) yield withCrlf(monster())
}

function changed(text: string, random: () => number): string {
  const from = Math.floor(random() * text.length)
  const to = Math.min(text.length, from + 1 + Math.floor(random() * 60))
  const splinter = SPLINTERS[Math.floor(random() * SPLINTERS.length)] as string
  switch (Math.floor(random() * 6)) {
    case 0:
      return text.slice(0, from) + text.slice(to)
    case 1:
      return text.slice(0, to) + text.slice(from)
    case 2:
      return text.slice(0, from) + splinter + text.slice(from)
    case 3:
      return text.slice(0, from) + splinter + text.slice(to)
    case 4:
      return text.slice(0, from) + String.fromCharCode(Math.floor(random() * 256)) + text.slice(from + 1)
    default:
      return text.slice(0, from) + splinter.repeat(1 + Math.floor(random() * 200)) + text.slice(from)
  }
}

const HEAD = 'From: a@example.com\r\n'

const MONSTERS: (() => string)[] = [
  () =>
    `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\n\r\n'.repeat(100_000)}--b--\r\n`,
  () => {
    const open = (depth: number) => `Content-Type: multipart/mixed; boundary=b${depth}\r\n\r\n--b${depth}\r\n`
    return HEAD + Array.from({ length: 10_000 }, (_, depth) => open(depth)).join('')
  },
  () => HEAD + 'Content-Type: message/rfc822\r\n\r\n'.repeat(10_000),
  () => `${HEAD}X: ${`${'x'.repeat(900)}\r\n `.repeat(1_200)}\r\n\r\n`,
  () => `${HEAD}${'X: y\r\n'.repeat(50_000)}\r\n`,
  () => `${HEAD}To: ${'a@b.example,\r\n '.repeat(60_000)}c@d.example\r\n\r\n`,
  () => `From: ${'a@b.example,\r\n '.repeat(60_000)}c@d.example\r\n\r\n`,
  () => `From: ${'('.repeat(100_000)}\r\n\r\n`,
  () => `${HEAD}Subject: ${'=?utf-8?q?=C3?=\r\n '.repeat(40_000)}\r\n\r\n`,
  () => `${HEAD}Subject: ${'=?'.repeat(400_000)}\r\n\r\n`,
  () => `${HEAD}Content-Type: text/plain; ${'a*0*=x;'.repeat(60_000)}\r\n\r\n`,
  () => `${HEAD}Content-Transfer-Encoding: base64\r\n\r\n${'='.repeat(2_000_000)}\r\n`,
  () => `${HEAD}Content-Transfer-Encoding: quoted-printable\r\n\r\n${'=\r\n'.repeat(700_000)}`,
  () => `${HEAD}\r\n${'\r\n'.repeat(1_000_000)}`,
  () => `${HEAD}X-Service-Recipient-Variables: ${'['.repeat(500_000)}\r\n\r\n%recipient.a%\r\n`,
  () => `${HEAD}X-Service-Recipient-Variables: {}\r\n\r\n${'%recipient'.repeat(200_000)}\r\n`,
  () => `${HEAD}X-Service-Variables: {"a":"${'x'.repeat(20_000)}"}\r\n\r\n`,
  () => '',
  () => '\r\n',
]

/** Bytes with every bare CR and LF changed to CRLF, and the last line terminated. */
function withCrlf(text: string): Buffer {
  const whole = text.replace(/\r\n|\r|\n/g, '\r\n')
  return Buffer.from(whole.endsWith('\r\n') ? whole : `${whole}\r\n`, 'latin1')
}
