/**
 * Files as client libraries write them into a form, followed to the mail that a server receives: types with parameters, names,
 * and pictures that the html shows.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ParsedMail, simpleParser } from 'mailparser'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const BOUNDARY = 'b7e1c0ffee'
const FORM = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
const INVITE = 'BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n'
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** A part with exactly these header lines. */
const part = (head: string, content: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')])
const field = (name: string, value: string) => part(`Content-Disposition: form-data; name="${name}"`, value)
const multipart = (parts: readonly Buffer[]) => Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)])

interface Rig {
  service: TestService
  /** Sends these parts with what a message needs; the mail that the recipient got. */
  send(to: string, ...parts: Buffer[]): Promise<{ raw: string; mail: ParsedMail }>
  mail(to: string): Promise<{ raw: string; mail: ParsedMail }>
  /** The stored message of the recipient. */
  stored(to: string): Promise<{ path: string; body: Json }>
}

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = Record<string, any>

async function start(t: TestContext): Promise<Rig> {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` })
  const mail = async (to: string) => {
    const found = () => sink.messages.find(({ envelope }) => envelope.to.includes(to))
    const { raw } = await eventually(`mail for ${to}`, async () => found() ?? false)
    return { raw: raw.toString('latin1'), mail: await simpleParser(raw, { keepCidLinks: true }) }
  }
  return {
    service,
    mail,
    async send(to, ...parts) {
      const body = multipart([
        field('from', `a@${service.domain}`),
        field('to', to),
        field('subject', 's'),
        ...parts,
      ])
      const answer = await service.call('POST', `/v3/${service.domain}/messages`, { body, headers: FORM })
      assert.equal(answer.status, 200, answer.text)
      return mail(to)
    },
    async stored(to) {
      const [event] = await eventually('accepted', async () => {
        const events = (await service.events(`?event=accepted&recipient=${to}`)) as Json[]
        return events.length > 0 && events
      })
      const path = new URL(event?.['storage'].url).pathname
      return { path, body: (await service.call('GET', path)).body as Json }
    },
  }
}

/** The Content-Type of each part, unfolded. */
const typesOf = (raw: string) =>
  [...raw.replaceAll(/\r\n[ \t]+/g, ' ').matchAll(/^Content-Type: (.*)\r$/gim)].map(([, type]) => type)

test('the parameters of a file arrive: calendars, charsets, attached and inline, sent again, and as MIME', async (t) => {
  const { service, send, mail, stored } = await start(t)
  const { raw } = await send(
    'cal@example.org',
    field('text', 'Come.'),
    field('html', '<img src="cid:a.svg">'),
    // curl -F 'attachment=@invite.ics;type=text/calendar; method=REQUEST; charset=utf-8'
    part(
      'Content-Disposition: form-data; name="attachment"; filename="invite.ics"\r\nContent-Type: text/calendar; method=REQUEST; charset=utf-8',
      INVITE,
    ),
    part(
      'Content-Disposition: form-data; name="attachment"; filename="a.csv"\r\nContent-Type: Text/CSV; Charset="windows-1252"; header=present; name="x.csv"; boundary=q',
      Buffer.from('caf\xe9', 'latin1'),
    ),
    part(
      'Content-Disposition: form-data; name="inline"; filename="a.svg"\r\nContent-Type: image/svg+xml; charset=us-ascii',
      '<svg/>',
    ),
    part(
      'Content-Disposition: form-data; name="attachment"; filename="b.pdf"\r\nContent-Type: no type',
      '%PDF-',
    ),
    part(
      'Content-Disposition: form-data; name="attachment"; filename="c.txt"\r\nContent-Type: application/octet-stream; charset=binary',
      'x',
    ),
  )
  const expected = [
    'text/calendar; method=REQUEST; charset=utf-8; name=invite.ics',
    'text/csv; charset=windows-1252; header=present; name=a.csv',
    'image/svg+xml; charset=us-ascii; name=a.svg',
    'application/pdf; name=b.pdf',
    'text/plain; name=c.txt',
  ]
  for (const type of expected) assert.ok(typesOf(raw).includes(type), `${type}: ${typesOf(raw).join('\n')}`)
  const { path, body } = await stored('cal@example.org')
  assert.deepEqual(
    body['attachments'].map((file: Json) => file['content-type']),
    ['text/calendar', 'text/csv', 'application/pdf', 'text/plain'],
  )
  const file = await service.call('GET', `${path}/attachments/0`)
  assert.equal(file.headers.get('content-type'), 'text/calendar; method=REQUEST; charset=utf-8')

  const again = await service.call('POST', path, { form: { to: 'again@example.org' } })
  assert.equal(again.status, 200, again.text)
  const sentAgain = typesOf((await mail('again@example.org')).raw)
  for (const type of expected) assert.ok(sentAgain.includes(type), type)

  const mime = [
    `From: a@${service.domain}`,
    'To: mime@example.org',
    'Subject: s',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=m',
    '',
    '--m',
    'Content-Type: text/calendar; charset=utf-8;',
    '\tmethod=REQUEST; name="i.ics"',
    'Content-Disposition: attachment; filename="i.ics"',
    '',
    INVITE,
    '--m--',
    '',
  ].join('\r\n')
  const form = { to: 'mime@example.org', message: new File([mime], 'm.eml') }
  const answer = await service.call('POST', `/v3/${service.domain}/messages.mime`, { form })
  assert.equal(answer.status, 200, answer.text)
  assert.match(
    (await mail('mime@example.org')).raw,
    /Content-Type: text\/calendar; charset=utf-8;\r\n\tmethod=REQUEST;/,
  )
  const part0 = await service.call('GET', `${(await stored('mime@example.org')).path}/attachments/0`)
  assert.equal(part0.headers.get('content-type'), 'text/calendar; charset=utf-8; method=REQUEST')
})

test('names of files as .NET, Python and JavaScript write them', async (t) => {
  const { send, mail, stored } = await start(t)
  const file = (disposition: string, type = '') =>
    part(`${type}Content-Disposition: form-data; ${disposition}`, '%PDF-')
  const word = Buffer.from('Übersicht für Ann.pdf').toString('base64')
  await send(
    'names@example.org',
    // .NET writes the type first, and names without quotes.
    part('Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=text', 'Files.'),
    file(`name=attachment; filename="=?utf-8?B?${word}?="`, 'Content-Type: application/octet-stream\r\n'),
    file(
      `name=attachment; filename="=?utf-8?B?${word}?="; filename*=utf-8''%C3%9Cbersicht%20f%C3%BCr%20Ann.pdf`,
    ),
    file('name=attachment; filename="=?utf-8?Q?=C3=9Cbersicht_f=C3=BCr_Ann=2Epdf?="'),
    // Python requests: older and newer urllib3. JavaScript: form-data, raw.
    file(`name="attachment"; filename*=utf-8''%C3%9Cbersicht%20f%C3%BCr%20Ann.pdf`),
    file('name="attachment"; filename="Übersicht für Ann.pdf"'),
    // No encoded word at all.
    file('name="attachment"; filename="1=?2.pdf"'),
  )
  const expected = [
    ...Array(5).fill(['Übersicht für Ann.pdf', 'application/pdf']),
    ['1=?2.pdf', 'application/pdf'],
  ]
  const got = await mail('names@example.org')
  assert.deepEqual(
    got.mail.attachments.map(({ filename, contentType }) => [filename, contentType]),
    expected,
  )
  // Readers decode encoded words here too; RFC 2231 is what they should get.
  assert.doesNotMatch(got.raw, /name\*?="?=\?utf-8/)
  const { body } = await stored('names@example.org')
  assert.deepEqual(
    body['attachments'].map((file: Json) => [file['name'], file['content-type']]),
    expected,
  )
})

/** Names, and how the html writes them. */
const SHOWN: [filename: string, references: string[]][] = [
  ['logo.png', ['src="cid:logo.png"', "src='CID:logo.png'"]],
  [
    'my logo.png',
    [
      'src="cid:my logo.png"',
      'src="cid:my%20logo.png"',
      'src=cid:my%20logo.png',
      'style="background: url(\'cid:my logo.png\')"',
    ],
  ],
  [
    'größe.png',
    [
      'src="cid:größe.png"',
      'src="cid:gr%C3%B6%C3%9Fe.png"',
      'src="cid:gr&ouml;&szlig;e.png"',
      'src="cid:gr&#246;&#xdf;e.png"',
    ],
  ],
  ['a&b.png', ['src="cid:a&amp;b.png"', 'src="cid:a&b.png"', 'src="cid:a%26b.png"']],
  ['50%.png', ['src="cid:50%.png"', 'src="cid:50%25.png"']],
  [
    "o'k (1).png",
    [
      'src="cid:o\'k (1).png"',
      "src='cid:o&#39;k (1).png'",
      'style="background:url(&quot;cid:o\'k (1).png&quot;)"',
    ],
  ],
  ['a#b?.png', ['src="cid:a#b?.png"', 'src="cid:a%23b%3F.png"']],
]

const inline = (filename: string, content: Buffer = PNG) =>
  part(
    `Content-Disposition: form-data; name="inline"; filename="${filename.replaceAll('"', '%22')}"\r\nContent-Type: image/png`,
    content,
  )

/** The Content-Ids that the html names. */
const namedIn = (html: string) => [...html.matchAll(/cid:([^"'&)> ]+)/gi)].map(([, id]) => id as string)

test('pictures are found by their names, however the html writes them', async (t) => {
  const { service, send, mail, stored } = await start(t)
  const html = SHOWN.flatMap(([, references]) => references.map((text) => `<img ${text}>`)).join('\n')
  const files = SHOWN.map(([filename]) => inline(filename, Buffer.concat([PNG, Buffer.from(filename)])))
  const check = ({ mail: got }: { mail: ParsedMail }) => {
    const names = namedIn(String(got.html)).map(
      (id) =>
        got.attachments
          .find(({ cid }) => cid === id)
          ?.content.subarray(PNG.length)
          .toString() ?? id,
    )
    assert.deepEqual(
      names,
      SHOWN.flatMap(([filename, references]) => references.map(() => filename)),
    )
    for (const { contentId = '' } of got.attachments) assert.match(contentId, /^<[\w.@=-]+>$/)
  }
  const first = await send('all@example.org', field('html', html), ...files)
  check(first)
  assert.ok(first.mail.attachments.some(({ cid }) => cid === 'logo.png'))
  const { path, body } = await stored('all@example.org')
  assert.deepEqual(
    Object.keys(body['content-id-map']),
    first.mail.attachments.map(({ contentId }) => contentId),
  )
  await service.call('POST', path, { form: { to: 'again@example.org' } })
  check(await mail('again@example.org'))
  // A batch, whose copies are filled in, and a template.
  const ann = (at: number) => `ann${at}@example.org`
  const batch = Array.from({ length: 4 }, (_, at) => ann(at))
  const variables = JSON.stringify(Object.fromEntries(batch.map((to) => [to, { n: to }])))
  const personal = field('html', `${html}<p>%recipient.n%</p>`)
  await send(
    ann(0),
    ...batch.slice(1).map((to) => field('to', to)),
    field('recipient-variables', variables),
    personal,
    ...files,
  )
  for (const to of batch) check(await mail(to))
  await service.call('POST', `/v3/${service.domain}/templates`, {
    form: { name: 'pictures', template: `<p>{{x}}</p>${html.replace('{', '')}` },
  })
  check(await send('template@example.org', field('template', 'pictures'), ...files))
})

test('of two pictures of one name the first has the name, and each a Content-Id of its own', async (t) => {
  const { send } = await start(t)
  const { mail } = await send(
    'twins@example.org',
    field('html', '<img src="cid:a.png"><img src="cid:b c.png">'),
    ...['a.png', 'a.png', 'b c.png', 'b c.png'].map((name, at) => inline(name, Buffer.from([at]))),
  )
  const ids = mail.attachments.map(({ cid }) => cid)
  assert.equal(new Set(ids).size, 4)
  assert.equal(ids[0], 'a.png')
  const shown = namedIn(String(mail.html)).map(
    (id) => mail.attachments.find(({ cid }) => cid === id)?.content[0],
  )
  assert.deepEqual(shown, [0, 2])
})

test('a field that a message has once is joined, or refused when it is given twice', async (t) => {
  const { service, send } = await start(t)
  const { mail } = await send(
    'twice@example.org',
    field('text', 't'),
    field('h:Reply-To', 'Ann <ann@example.com>'),
    field('h:reply-to', 'ben@example.com'),
    field('h:References', '<1@x>'),
    field('h:References', '<2@x>'),
    field('h:Subject', 'same'),
    field('h:Subject', 'same'),
    field('h:X-Any', '1'),
    field('h:X-Any', '2'),
    field('v:n', '1'),
    field('v:n', '1'),
  )
  assert.deepEqual(
    mail.replyTo?.value.map(({ address }) => address),
    ['ann@example.com', 'ben@example.com'],
  )
  assert.deepEqual(mail.references, ['<1@x>', '<2@x>'])
  assert.equal(mail.subject, 'same')
  assert.deepEqual(mail.headers.get('x-any'), ['1', '2'])
  for (const [name, why] of [
    ['h:Subject', 'h:Subject may be given only once'],
    ['h:from', 'h:from may be given only once'],
    ['v:n', 'v:n may be given only once'],
  ] as const) {
    for (const send of ['messages', 'messages.mime']) {
      const mime = part(
        'Content-Disposition: form-data; name="message"; filename="m.eml"',
        `From: a@${service.domain}\r\n\r\nt`,
      )
      const own =
        send === 'messages'
          ? [field('from', `a@${service.domain}`), field('subject', 's'), field('text', 't')]
          : [mime]
      const body = multipart([field('to', 'x@example.org'), ...own, field(name, 'a'), field(name, 'b')])
      const answer = await service.call('POST', `/v3/${service.domain}/${send}`, { body, headers: FORM })
      assert.deepEqual([answer.status, answer.body.message], [400, why])
    }
  }
})
