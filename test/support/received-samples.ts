/** Mail as it is received, good and broken, the same for the same seed. All line ends are CRLF. */
import { seededNumbers } from './random.ts'

export interface ReceivedSample {
  /** What it is about. */
  kind: string
  raw: Buffer
}

type Random = () => number
/** Bytes of a text: a character for each. */
type Bytes = string

/** As many samples of each kind as of any other, give or take one. */
export function receivedSamples(count: number, seed: number): ReceivedSample[] {
  const random = seededNumbers(seed)
  const kinds = Object.entries(KINDS)
  return Array.from({ length: count }, (_, at) => {
    const [kind, make] = kinds[at % kinds.length] as (typeof kinds)[number]
    return { kind, raw: Buffer.from(make(random).replaceAll(/\r?\n/g, '\r\n'), 'latin1') }
  })
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
const chance = (random: Random, share: number) => random() < share
const times = (random: Random, least: number, most: number) =>
  least + Math.floor(random() * (most - least + 1))
const utf8 = (text: string): Bytes => Buffer.from(text).toString('latin1')

/** Words by script, and the character sets that have them. */
const SCRIPTS: { words: string[]; charsets: string[] }[] = [
  {
    words: ['plain', 'words', 'of', 'ASCII', 'x=y', '100%', 'a?b', '_under_'],
    charsets: ['us-ascii', 'utf-8', 'ISO-8859-1'],
  },
  {
    words: ['Grüße', 'café', 'señor', 'naïve', 'Ålesund'],
    charsets: ['utf-8', 'iso-8859-1', 'windows-1252', 'ISO-8859-15'],
  },
  { words: ['preis', '5€', 'œuvre', '–'], charsets: ['utf-8', 'windows-1252'] },
  { words: ['Łódź', 'žluťoučký', 'kůň', 'gęś'], charsets: ['utf-8', 'iso-8859-2', 'windows-1250'] },
  { words: ['привет', 'мир', 'ёлка'], charsets: ['utf-8', 'koi8-r', 'windows-1251', 'iso-8859-5'] },
  { words: ['日本語', 'テスト', 'です', '漢字'], charsets: ['utf-8', 'shift_jis', 'euc-jp', 'iso-2022-jp'] },
  { words: ['中文', '测试', '汉字'], charsets: ['utf-8', 'gb2312', 'gbk', 'GB18030'] },
  { words: ['繁體', '測試'], charsets: ['utf-8', 'big5'] },
  { words: ['한국어', '시험'], charsets: ['utf-8', 'euc-kr'] },
  { words: ['🎉', '👩‍💻', 'ok'], charsets: ['utf-8'] },
  { words: ['שלום', 'עולם'], charsets: ['utf-8', 'windows-1255'] },
  { words: ['γειά', 'κόσμε'], charsets: ['utf-8', 'iso-8859-7'] },
]

interface Text {
  charset: string
  bytes: Bytes
}

function textIn(random: Random, words = times(random, 1, 12), charset?: string): Text {
  const script = pick(
    random,
    SCRIPTS.filter(({ charsets }) => charset === undefined || charsets.includes(charset)),
  )
  const chosen = charset ?? pick(random, script.charsets)
  const text = Array.from({ length: words }, () => pick(random, script.words)).join(' ')
  return { charset: chosen, bytes: encoded(text, chosen) }
}

function linesIn(random: Random): Text {
  const first = textIn(random)
  const lines = Array.from({ length: times(random, 0, 6) }, () =>
    chance(random, 0.15) ? '' : textIn(random, undefined, first.charset).bytes,
  )
  return { charset: first.charset, bytes: [first.bytes, ...lines].join('\r\n') }
}

const tables = new Map<string, Map<string, Bytes>>()

/** The reverse of Node's decoder. */
function encoded(text: string, charset: string): Bytes {
  const label = charset.toLowerCase()
  if (label === 'utf-8' || label === 'us-ascii') return utf8(text)
  if (label === 'iso-2022-jp') return encodedJis(text)
  const table = tables.get(label) ?? tableOf(label)
  tables.set(label, table)
  return [...text].map((character) => table.get(character) as Bytes).join('')
}

function tableOf(label: string): Map<string, Bytes> {
  const decoder = new TextDecoder(label, { fatal: true })
  const table = new Map<string, Bytes>()
  const add = (...bytes: number[]) => {
    try {
      const text = decoder.decode(Uint8Array.from(bytes))
      if ([...text].length === 1 && !table.has(text)) table.set(text, String.fromCharCode(...bytes))
    } catch {}
  }
  for (let byte = 0; byte < 256; byte++) add(byte)
  for (let lead = 0x81; lead < 0xff; lead++) for (let trail = 0x40; trail < 0xff; trail++) add(lead, trail)
  return table
}

/** Escapes as in RFC 1468. */
function encodedJis(text: string): Bytes {
  return text
    .split(' ')
    .map((word) => {
      const pairs = [...encoded(word, 'euc-jp')].map((byte) => String.fromCharCode(byte.charCodeAt(0) & 0x7f))
      return `\x1b$B${pairs.join('')}\x1b(B`
    })
    .join(' ')
}

const isPlain = (bytes: Bytes) => /^[\x09\x0a\x0d\x20-\x7e]*$/.test(bytes)

function quotedPrintable(bytes: Bytes): Bytes {
  const lines = bytes.split('\r\n').map((line) => {
    const units = [...line].map((byte, at) =>
      /[!-<>-~]/.test(byte) || (byte === ' ' && at < line.length - 1) ? byte : `=${hex(byte)}`,
    )
    const rows = ['']
    for (const unit of units) {
      if ((rows.at(-1) as string).length + unit.length > 75) rows.push('')
      rows[rows.length - 1] += unit
    }
    return rows.join('=\r\n')
  })
  return lines.join('\r\n')
}

const hex = (byte: string) => byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')

const base64 = (bytes: Bytes, width = 76): Bytes =>
  (
    Buffer.from(bytes, 'latin1')
      .toString('base64')
      .match(new RegExp(`.{1,${width}}`, 'g')) ?? []
  ).join('\r\n')

/** Content under a transfer encoding that it may have. */
function transferred(random: Random, bytes: Bytes): { encoding: string; content: Bytes } {
  const encoding = pick(random, [
    'quoted-printable',
    'base64',
    isPlain(bytes) ? '7bit' : '8bit',
    'QUOTED-Printable',
  ])
  if (encoding === 'base64') return { encoding, content: base64(bytes, pick(random, [76, 60, 72])) }
  return { encoding, content: /quoted/i.test(encoding) ? quotedPrintable(bytes) : bytes }
}

/** One encoded word. */
function word(random: Random, { charset, bytes }: Text): Bytes {
  if (chance(random, 0.5)) return `=?${charset}?B?${Buffer.from(bytes, 'latin1').toString('base64')}?=`
  const content = [...bytes].map((byte) =>
    /[A-Za-z0-9]/.test(byte) ? byte : byte === ' ' ? '_' : `=${hex(byte)}`,
  )
  return `=?${charset}?q?${content.join('')}?=`
}

const words = (random: Random, count = times(random, 1, 4)): Bytes =>
  Array.from({ length: count }, () => word(random, textIn(random, 2))).join(
    pick(random, [' ', '\r\n ', '\r\n\t']),
  )

const asciiText = (random: Random) => textIn(random, undefined, 'us-ascii').bytes

const RANDOM_NAMES = ['X-Custom', 'x-lower-case', 'X-UPPER', 'List-Id', 'X-A.B', 'Reply-To', 'X--Two']

function someFields(random: Random): Bytes[] {
  const makers = [
    () => asciiText(random),
    () => words(random),
    () => `${asciiText(random)} ${words(random)} ${asciiText(random)}`,
    () => `${asciiText(random)}\r\n ${asciiText(random)}\r\n\t ${asciiText(random)}`,
    () => '',
    () => `"${words(random, 1)}" <a@example.org>`,
    () => `  ${asciiText(random)}  `,
  ]
  return Array.from(
    { length: times(random, 0, 5) },
    () => `${pick(random, RANDOM_NAMES)}: ${pick(random, makers)()}`,
  )
}

function head(random: Random, ...more: Bytes[]): Bytes[] {
  const subject = chance(random, 0.5) ? words(random) : asciiText(random)
  const fields = [
    'Date: Mon, 02 Mar 2026 10:00:00 +0100',
    `From: ${word(random, textIn(random, 2))} <anne@example.org>`,
    `To: in@example.com,\r\n "B, A" <b@example.com>`,
    `Subject: ${subject}`,
    `Message-ID: <${Math.floor(random() * 1e9)}@example.org>`,
    'MIME-Version: 1.0',
    ...someFields(random),
  ]
  return [...fields, ...more]
}

const mail = (fields: Bytes[], body: Bytes): Bytes => `${fields.join('\r\n')}\r\n\r\n${body}\r\n`

/** A part, or a whole mail below its other fields. */
interface Part {
  fields: Bytes[]
  content: Bytes
}

const partOf = ({ fields, content }: Part): Bytes =>
  `${fields.map((field) => `${field}\r\n`).join('')}\r\n${content}`

function textPart(random: Random, type = pick(random, ['plain', 'html'])): Part {
  const { charset, bytes } = linesIn(random)
  const text = type === 'html' ? `<p>${bytes}</p>` : bytes
  const { encoding, content } = transferred(random, text)
  const label = chance(random, 0.5) ? charset : `"${charset}"`
  const parameters = chance(random, 0.2) ? '; format=flowed' : ''
  return {
    fields: [
      `${pick(random, ['Content-Type', 'content-type'])}: text/${type}${parameters};${pick(random, ['', '\r\n\t'])} charset=${label}`,
      `Content-Transfer-Encoding: ${encoding}`,
      ...(chance(random, 0.1) ? ['Content-Disposition: inline'] : []),
    ],
    content,
  }
}

const randomBytes = (random: Random, count: number): Bytes =>
  Array.from({ length: count }, () => String.fromCharCode(Math.floor(random() * 256))).join('')

/** A file name in one of the ways that mail programs write it. */
function named(random: Random, parameter: string): Bytes {
  const text = textIn(random, times(random, 1, 3))
  const percent = [...text.bytes].map((byte) => (/[A-Za-z0-9]/.test(byte) ? byte : `%${hex(byte)}`))
  const cut = Math.floor(percent.length / 2)
  return pick(random, [
    () => `${parameter}=report-${times(random, 1, 99)}.pdf`,
    () => `${parameter}="with blanks; and (more).txt"`,
    () => `${parameter}="a \\"quoted\\" name.doc"`,
    () => `${parameter}*=${text.charset}''${percent.join('')}.txt`,
    () => `${parameter}*=${text.charset}'en'${percent.join('')}`,
    () =>
      `${parameter}*0*=${text.charset}''${percent.slice(0, cut).join('')};\r\n ${parameter}*1*=${percent.slice(cut).join('')};\r\n ${parameter}*2=".txt"`,
    () => `${parameter}*0="long name ";\r\n ${parameter}*1="in two.txt"`,
    () => `${parameter}="${word(random, textIn(random, 1))}"`,
    () => `${parameter}="${utf8('Übersicht – März.pdf')}"`,
  ])()
}

const FILE_TYPES = [
  ...['application/pdf', 'application/octet-stream', 'image/png', 'IMAGE/JPEG', 'application/x-zip'],
  ...['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'audio/mpeg', 'text/csv'],
]

function filePart(random: Random): Part {
  const bytes = randomBytes(random, times(random, 0, 300))
  const inType = chance(random, 0.3)
  const type = `Content-Type: ${pick(random, FILE_TYPES)}${inType ? `; ${named(random, 'name')}` : ''}`
  const disposition = `Content-Disposition: ${pick(random, ['attachment', 'ATTACHMENT', 'inline'])}`
  const hasName = !inType && chance(random, 0.8)
  return {
    fields: [
      type,
      ...(inType && chance(random, 0.5)
        ? []
        : [disposition + (hasName ? `;\r\n ${named(random, 'filename')}` : '')]),
      'Content-Transfer-Encoding: base64',
      ...(chance(random, 0.3) ? [`Content-ID: <${times(random, 1, 1e6)}@example.org>`] : []),
    ],
    content: base64(bytes),
  }
}

/** What Outlook makes of formatted mail: TNEF begins with this signature. */
const winmail = (random: Random): Part => ({
  fields: [
    'Content-Type: application/ms-tnef; name="winmail.dat"',
    'Content-Disposition: attachment; filename="winmail.dat"',
    'Content-Transfer-Encoding: base64',
  ],
  content: base64(`\x78\x9f\x3e\x22${randomBytes(random, 120)}`),
})

const invitation = (random: Random, asFile = false): Part => {
  const calendar = `BEGIN:VCALENDAR\r\nSUMMARY:${utf8('Besprechung – Ä')}\r\nEND:VCALENDAR`
  const { encoding, content } = transferred(random, calendar)
  return {
    fields: [
      `Content-Type: text/calendar; charset=utf-8; method=REQUEST${asFile ? '; name="invite.ics"' : ''}`,
      ...(asFile ? ['Content-Disposition: attachment; filename="invite.ics"'] : []),
      `Content-Transfer-Encoding: ${encoding}`,
    ],
    content,
  }
}

const picture = (random: Random, cid: string): Part => ({
  fields: [
    `Content-Type: image/png; name="${cid}.png"`,
    `Content-ID: <${cid}@example.org>`,
    'Content-Disposition: inline',
    'Content-Transfer-Encoding: base64',
  ],
  content: base64(`\x89PNG\r\n\x1a\n${randomBytes(random, 60)}`),
})

const enclosed = (random: Random): Part => ({
  fields: [
    'Content-Type: message/rfc822',
    ...(chance(random, 0.5) ? ['Content-Disposition: attachment; filename="mail.eml"'] : []),
  ],
  content: mail(
    head(random, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'),
    utf8('Inside: ä'),
  ).slice(0, -2),
})

const BOUNDARY_ENDS = ['', "'()+_,-./:=?", ' with blanks x', '____', '=_Part.1']

function multipart(random: Random, subtype: string, parts: readonly Part[], parameters = ''): Part {
  const boundary = `b${Math.floor(random() * 1e9)}${pick(random, BOUNDARY_ENDS)}`
  const preamble = chance(random, 0.3) ? 'This is a message in MIME format.\r\n' : ''
  const epilogue = chance(random, 0.2) ? '\r\nThe end' : ''
  const body = parts
    .map((part) => `--${boundary}${pick(random, ['', '', ' '])}\r\n${partOf(part)}\r\n`)
    .join('')
  const fold = pick(random, [' ', '\r\n ', '\r\n\t'])
  return {
    fields: [`Content-Type: multipart/${subtype}${parameters};${fold}boundary="${boundary}"`],
    content: `${preamble}${body}--${boundary}--${epilogue}`,
  }
}

const whole = (random: Random, { fields, content }: Part): Bytes => mail(head(random, ...fields), content)

function tree(random: Random, depth: number): Part {
  if (depth === 0 || chance(random, 0.3))
    return pick(random, [
      () => textPart(random),
      () => textPart(random),
      () => filePart(random),
      () => invitation(random),
      () => enclosed(random),
      (): Part => ({ fields: [], content: asciiText(random) }),
    ])()
  const subtype = pick(random, ['mixed', 'alternative', 'related', 'x-other', 'parallel'])
  return multipart(
    random,
    subtype,
    Array.from({ length: times(random, 1, 4) }, () => tree(random, depth - 1)),
  )
}

const alternative = (random: Random): Part =>
  multipart(random, 'alternative', [textPart(random, 'plain'), textPart(random, 'html')])

const KINDS: Record<string, (random: Random) => Bytes> = {
  charset: (random) => whole(random, textPart(random)),
  alternative: (random) => whole(random, alternative(random)),
  files: (random) =>
    whole(
      random,
      multipart(random, 'mixed', [
        alternative(random),
        ...Array.from({ length: times(random, 1, 4) }, () => filePart(random)),
      ]),
    ),
  nested: (random) => whole(random, multipart(random, 'mixed', [tree(random, 4), tree(random, 3)])),
  winmail: (random) =>
    whole(random, multipart(random, 'mixed', [textPart(random, 'plain'), winmail(random)])),
  calendar: (random) => {
    const inline = multipart(random, 'alternative', [textPart(random, 'plain'), invitation(random)])
    return whole(
      random,
      multipart(random, 'mixed', chance(random, 0.5) ? [inline, invitation(random, true)] : [inline]),
    )
  },
  'inline images': (random) => {
    const html = textPart(random, 'html')
    return whole(
      random,
      multipart(random, 'related', [html, picture(random, 'a'), picture(random, 'b')], '; type="text/html"'),
    )
  },
  enclosed: (random) =>
    whole(random, multipart(random, 'mixed', [textPart(random), enclosed(random), enclosed(random)])),
  'no body': (random) =>
    pick(random, [
      () => `${head(random).join('\r\n')}\r\n\r\n`,
      () => `${head(random).join('\r\n')}\r\n`,
      () => `${head(random, 'Content-Type: text/html').join('\r\n')}\r\n\r\n`,
      () =>
        `${head(random, 'Content-Type: application/pdf', 'Content-Transfer-Encoding: base64').join('\r\n')}\r\n\r\n`,
      () => mail(['Subject: only'], ''),
      () => '\r\nOnly a body\r\n',
    ])(),
  '8-bit headers': (random) => {
    const fields = [
      `Subject: ${utf8('Grüße – 5 €')}`,
      `Subject: Gr\xfc\xdfe`,
      `X-Mixed: ${utf8('ä')} ${words(random, 2)}`,
      `X-Mixed: \xe4 ${words(random, 1)} \xf6`,
      `From: ${utf8('Jürgen')} <j@example.org>`,
      `X-Folded: ${utf8('日本')}\r\n ${utf8('語')}`,
    ]
    const own = fields.filter(() => chance(random, 0.6))
    return mail([...own, 'To: in@example.com', 'Content-Type: text/plain; charset=utf-8'], utf8('Text: ä'))
  },
  report: (random) => {
    const status: Part = {
      fields: ['Content-Type: message/delivery-status'],
      content:
        'Reporting-MTA: dns; mx.example.org\r\n\r\nFinal-Recipient: rfc822; a@example.org\r\nAction: failed\r\nStatus: 5.1.1',
    }
    return whole(
      random,
      multipart(
        random,
        'report',
        [textPart(random, 'plain'), status, enclosed(random)],
        '; report-type=delivery-status',
      ),
    )
  },
  signed: (random) => {
    const signature: Part = {
      fields: ['Content-Type: application/pgp-signature; name="signature.asc"'],
      content: '-----BEGIN PGP SIGNATURE-----\r\n\r\nabc=\r\n-----END PGP SIGNATURE-----',
    }
    return whole(
      random,
      multipart(
        random,
        'signed',
        [tree(random, 2), signature],
        '; micalg=pgp-sha256; protocol="application/pgp-signature"',
      ),
    )
  },
  'broken structure': (random) =>
    pick(random, [
      // The last delimiter is missing, or more.
      () =>
        whole(random, multipart(random, 'mixed', [textPart(random), filePart(random)])).replace(
          /\r\n--b[^\r\n]*--(?:\r\n)?(?:The end\r\n)?$/,
          '\r\n',
        ),
      () => mail(head(random, 'Content-Type: multipart/mixed'), 'No boundary is given'),
      () => mail(head(random, 'Content-Type: multipart/mixed; boundary=never'), 'It never occurs'),
      () => mail(head(random, 'Content-Type: nonsense'), 'Text all the same'),
      () => mail(head(random, 'Content-Type: text/plain; charset='), 'Text all the same'),
      () =>
        mail(
          head(random, 'Content-Type: multipart/mixed; boundary=b'),
          '--b\r\nContent-Type: text/plain\r\n',
        ),
      () =>
        mail(
          head(random, 'Content-Type: multipart/mixed; boundary=b'),
          '--b\r\n\r\nfirst\r\n--bb\r\nstill first\r\n--b\r\n\r\nsecond\r\n--b--',
        ),
      // An outer delimiter ends what is open within.
      () =>
        mail(
          head(random, 'Content-Type: multipart/mixed; boundary=outer'),
          '--outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n--inner\r\n\r\nfirst\r\n--outer\r\n\r\nsecond\r\n--outer--',
        ),
    ])(),
  'broken content': (random) =>
    pick(random, [
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=x-no-such-set', 'Content-Transfer-Encoding: 8bit'),
          utf8('Wörter'),
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=x-no-such-set', 'Content-Transfer-Encoding: 8bit'),
          'W\xf6rter',
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain', 'Content-Transfer-Encoding: 8bit'),
          'W\xf6rter, \x80 5',
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'),
          'W\xf6rter',
        ),
      () =>
        mail(
          head(
            random,
            'Content-Type: text/plain; charset=utf-8',
            'Content-Transfer-Encoding: quoted-printable',
          ),
          'a =XY b =C3=A4 = c =\r\n d=\r\ne=F6=',
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'),
          'SGVsbG8s!!IHdv\r\n*cmxk',
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'),
          'SGVsbG8gd29ybGQ',
        ),
      () =>
        mail(
          head(random, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: x-unknown'),
          'as it is',
        ),
      () =>
        mail(
          head(
            random,
            'Subject: =?utf-8?q?unclosed',
            'X-Word: =?x-none?q?a?= =?utf-8?b?!!!?= =?utf-8?q?=ZZ?=',
          ),
          'Text',
        ),
      () =>
        `From: a@example.org\r\nSubject: before\r\nthis line is no field\r\nTo: b@example.org\r\n\r\nText\r\n`,
    ])(),
}
