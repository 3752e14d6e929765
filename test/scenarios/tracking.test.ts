/** Tracking from the outside: the received mail, with each link's token decoded. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import Mailgun from 'mailgun.js'
import { type ParsedMail, simpleParser } from 'mailparser'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { createTokens } from '../../src/sending/tracking/links/tokens.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'

type Form = Parameters<TestService['send']>[0]

const SECRET = 'a secret for tests, of 32 letters'.replaceAll(' ', '-')
const tokens = createTokens(createSealer(SECRET))
const ALL_OFF = { open: 'no', click: 'no', unsubscribe: 'no' }

let sink: Sink
let service: TestService
let count = 0
const ends: (() => Promise<void> | void)[] = []

before(async (t) => {
  sink = await createSink()
  ends.push(() => sink.close())
  const context = Object.assign(Object.create(t as object), {
    after: (end: () => Promise<void>) => ends.unshift(end),
  })
  service = await startTestService(context, {
    SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_TRACKING_URL: 'https://t.example',
    SENDWRIGHT_RETRY_SCHEDULE: '1s,1s',
  })
})

after(async () => {
  for (const end of ends) await end()
})

/** Sets the domain's tracking; the settings are in force when this resolves. */
async function domainTracks(
  settings: Partial<typeof ALL_OFF> & { top?: string; html?: string; text?: string },
) {
  const { open, click, unsubscribe, top = 'no', html, text } = { ...ALL_OFF, ...settings }
  const put = async (what: string, form: Record<string, string>) => {
    const answer = await service.call('PUT', `/v3/domains/${service.domain}/tracking/${what}`, { form })
    assert.equal(answer.status, 200, answer.text)
  }
  await put('open', { active: open, place_at_the_top: top })
  await put('click', { active: click })
  const footers = {
    ...(html !== undefined && { html_footer: html }),
    ...(text !== undefined && { text_footer: text }),
  }
  await put('unsubscribe', { active: unsubscribe, ...footers })
}

/** A text with each of our links replaced by the contents of its token. */
function read(text: string): string {
  const links = text.replaceAll(
    /https:\/\/t\.example\/([ocu])\/([\w-]+)/g,
    (whole, kind: string, token: string) => {
      assert.ok(whole.length <= 512)
      const target = kind === 'c' ? tokens.readClick(token)?.target : null
      if (target) return `CLICK(${'url' in target ? target.url : 'stored'})`
      if (kind === 'o') return tokens.readOpen(token) === null ? 'BAD' : 'OPEN'
      const leave = tokens.readUnsubscribe(token)
      return leave ? `LEAVE(${[leave.scope, leave.recipient, ...leave.tags].join(' ')})` : 'BAD'
    },
  )
  return links.replaceAll(/unsub\+([a-z2-7]+)@[\w.-]+/g, (_, token: string) => {
    const leave = tokens.readUnsubscribeAddress(token)
    return leave ? `ADDRESS(${leave.scope})` : 'BAD'
  })
}

interface Got {
  raw: string
  mail: ParsedMail
  html: string
  text: string
  field(name: string): string | undefined
}

async function arrival(recipient: string): Promise<SinkMessage> {
  return eventually(`mail to ${recipient}`, async () =>
    sink.messages.find((message) => message.envelope.to.includes(recipient)),
  )
}

async function received(recipient: string): Promise<Got> {
  const message = await arrival(recipient)
  const mail = await simpleParser(message.raw)
  const field = (name: string) =>
    splitMessage(message.raw).headers.find((header) => header.name.toLowerCase() === name.toLowerCase())
      ?.value
  return {
    raw: message.raw.toString(),
    mail,
    // As sent: the parser changes line ends of a decoded part to LF.
    html: mail.html === false ? '' : read(mail.html).replace(/\n$/, ''),
    text: read(mail.text ?? '').replace(/\n$/, ''),
    field: (name) => {
      const value = field(name)
      return value === undefined ? undefined : read(value.replaceAll(/>, *\s*</g, '>, <'))
    },
  }
}

const newAddress = () => `reader-${++count}@example.org`

async function sent(form: Form, path: 'messages' | 'messages.mime' = 'messages'): Promise<Got> {
  const to = newAddress()
  const basics = { to, from: `s@${service.domain}`, subject: 'S' }
  const all = path === 'messages' ? { ...basics, ...form } : { to, ...form }
  const answer = await service.call('POST', `/v3/${service.domain}/${path}`, { form: all })
  assert.equal(answer.status, 200, answer.text)
  return received(to)
}

const PIXEL = '<img src="OPEN" width="1" height="1" alt="">'
const LINK = '<p><a href="https://a.example/?b=1&amp;c=2">link</a></p>'
const TRACKED = '<p><a href="CLICK(https://a.example/?b=1&c=2)">link</a></p>'
const TEXT = 'See https://a.example/x.'

test('with everything off a message is as its sender wrote it, without any tracking', async () => {
  await domainTracks({})
  const { raw, html, text, field } = await sent({ html: LINK, text: TEXT })
  assert.equal(html, LINK)
  assert.equal(text, TEXT)
  assert.doesNotMatch(raw, /t\.example/)
  assert.equal(field('List-Unsubscribe'), undefined)
})

test('html, text, or both: links and pixel are in the right places', async () => {
  await domainTracks({ open: 'yes', click: 'yes' })
  const both = await sent({ html: `<body>${LINK}</body>`, text: TEXT })
  assert.equal(both.html, `<body>${TRACKED}${PIXEL}</body>`)
  assert.equal(both.text, 'See CLICK(https://a.example/x).')
  assert.equal((await sent({ html: LINK })).html, TRACKED + PIXEL)
  const text = await sent({ text: TEXT })
  assert.equal(text.text, 'See CLICK(https://a.example/x).')
  assert.doesNotMatch(text.raw, /t\.example\/o\//)
})

test('a message switches tracking on that the domain has off, and the reverse', async () => {
  await domainTracks({})
  const on = await sent({ html: LINK, text: TEXT, 'o:tracking': 'yes' })
  assert.equal(on.html, TRACKED + PIXEL)
  assert.equal(on.text, 'See CLICK(https://a.example/x).')
  const htmlOnly = await sent({ html: LINK, text: TEXT, 'o:tracking': 'htmlonly' })
  assert.equal(htmlOnly.html, TRACKED + PIXEL)
  assert.equal(htmlOnly.text, TEXT)
  assert.equal((await sent({ html: LINK, 'o:tracking-clicks': 'true' })).html, TRACKED)
  const top = { html: `<body>${LINK}`, 'o:tracking-opens': 'true', 'o:tracking-pixel-location-top': 'yes' }
  assert.equal((await sent(top)).html, `<body>${PIXEL}${LINK}`)
  assert.equal((await sent({ html: LINK, 'h:X-Service-Track-Opens': 'yes' })).html, LINK + PIXEL)

  await domainTracks({ open: 'yes', click: 'htmlonly', top: 'yes' })
  assert.equal((await sent({ html: LINK, text: TEXT })).html, PIXEL + TRACKED)
  const off = await sent({ html: LINK, text: TEXT, 'o:tracking': 'no' })
  assert.deepEqual([off.html, off.text], [LINK, TEXT])
  const mixed = { html: LINK, 'o:tracking-clicks': 'no', 'o:tracking-pixel-location-top': 'no' }
  assert.equal((await sent(mixed)).html, LINK + PIXEL)
})

test('a MIME message: only the changed parts are rewritten', async () => {
  await domainTracks({ open: 'yes', click: 'yes' })
  const part = (type: string, body: string, ...fields: string[]) =>
    ['--b', `Content-Type: ${type}`, ...fields, '', body].join('\r\n')
  const attached = part('text/html; name=a.html', LINK, 'Content-Disposition: attachment; filename=a.html')
  const note = part('text/x-note; charset=iso-8859-1', 'https://a.example/', 'X-Mine:  as   it is')
  const lines = [
    'From: a@example.com',
    'To: b@example.org',
    'Subject: S',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    'prologue https://a.example/',
    part('text/plain', TEXT),
    part('text/html', LINK, 'Content-Id: <html@x>'),
    attached,
    note,
    '--b--',
    '',
  ]
  const message = new File([lines.join('\r\n')], 'm.mime')
  const { raw, html, text, mail } = await sent({ message }, 'messages.mime')
  // The parser shows all parts as one.
  assert.ok(html.endsWith(`\n${TRACKED}${PIXEL}`), html)
  assert.ok(text.startsWith('See CLICK(https://a.example/x).'), text)
  assert.ok(raw.includes(`\r\n${attached}\r\n${note}\r\n--b--`), raw)
  assert.ok(raw.includes('\r\nprologue https://a.example/\r\n'))
  assert.match(raw, /Content-Id: <html@x>/)
  assert.equal(mail.attachments[0]?.content.toString(), LINK)

  const plain = await sent({ message, 'o:tracking': 'no' }, 'messages.mime')
  assert.ok(plain.raw.includes(lines.slice(5).join('\r\n')), plain.raw)
})

test('an attached html file and AMP html are unchanged', async () => {
  await domainTracks({ open: 'yes', click: 'yes', unsubscribe: 'yes' })
  const attachment = new File([LINK], 'page.html', { type: 'text/html' })
  const { mail, raw } = await sent({ html: LINK, 'amp-html': `<html amp4email>${LINK}</html>`, attachment })
  assert.equal(mail.attachments.find(({ filename }) => filename === 'page.html')?.content.toString(), LINK)
  assert.ok(raw.includes(`\r\n<html amp4email>${LINK}</html>\r\n`), raw)
})

test('in a batch each link contains the URL of its recipient', async () => {
  await domainTracks({ click: 'yes' })
  const [ann, ben] = [newAddress(), newAddress()]
  const answer = await service.send({
    to: [ann, ben],
    html: '<a href="https://a.example/?u=%recipient.id%&amp;m=%recipient_email%">x</a> %recipient.id%',
    text: 'https://a.example/%recipient.id%',
    'recipient-variables': JSON.stringify({ [ann]: { id: 'A' }, [ben]: { id: 'B' } }),
  })
  assert.equal(answer.status, 200, answer.text)
  for (const [address, id] of [
    [ann, 'A'],
    [ben, 'B'],
  ] as const) {
    const { html, text } = await received(address)
    assert.equal(html, `<a href="CLICK(https://a.example/?u=${id}&m=${address})">x</a> ${id}`)
    assert.equal(text, `CLICK(https://a.example/${id})`)
  }
})

test('bulk can be unsubscribed from with one click, and both fields are signed', async () => {
  await domainTracks({})
  const send = async (count: number, form: Record<string, string>) => {
    const to = Array.from({ length: count }, newAddress)
    const answer = await service.send({ to, text: TEXT, ...form })
    assert.equal(answer.status, 200, answer.text)
    return received(to[0] as string)
  }
  const batch = { 'recipient-variables': '{"nobody@example.org": {"id": 1}}' }
  const bulk = await send(2, batch)
  const to = bulk.mail.to && 'text' in bulk.mail.to ? bulk.mail.to.text : ''
  assert.equal(bulk.field('List-Unsubscribe'), `<LEAVE(domain ${to})>`)
  assert.equal(bulk.field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  assert.equal(bulk.text, TEXT)
  const signed = / h=([^;]+);/.exec(bulk.field('DKIM-Signature')?.replaceAll(/\s+/g, ' ') ?? '')?.[1] ?? ''
  const names = signed.toLowerCase().split(/[: ]+/)
  assert.ok(names.includes('list-unsubscribe') && names.includes('list-unsubscribe-post'), signed)
  assert.match((await send(11, {})).field('List-Unsubscribe') ?? '', /^<LEAVE/)
  assert.match((await send(1, { 'o:list-unsubscribe': 'yes' })).field('List-Unsubscribe') ?? '', /^<LEAVE/)

  const own = await send(2, { ...batch, 'h:List-Unsubscribe': '<https://own.example/>' })
  assert.equal(own.field('List-Unsubscribe'), '<https://own.example/>')
  const none = async (count: number, form: Record<string, string>) =>
    assert.equal((await send(count, form)).field('List-Unsubscribe'), undefined)
  await none(1, batch)
  await none(10, {})
  await none(2, { ...batch, 'o:list-unsubscribe': 'no' })
  const path = `/v3/domains/${service.domain}/tracking/unsubscribe`
  for (const on of ['no', 'yes']) {
    const set = await service.call('PUT', path, { form: { on_bulk: on } })
    assert.equal(set.body.unsubscribe.on_bulk, on === 'yes' ? undefined : false)
    if (on === 'no') await none(2, batch)
  }
})

test('links of a rendered template are tracked, and its variables work', async () => {
  await domainTracks({ open: 'yes', click: 'yes' })
  const made = await service.call('POST', `/v3/${service.domain}/templates`, {
    form: {
      name: 'shop',
      template: '<a href="https://a.example/{{id}}">x</a> <a href="%unsubscribe_url%">u</a>',
    },
  })
  assert.equal(made.status, 200, made.text)
  const to = newAddress()
  const form = { to, text: '', template: 'shop', 't:variables': '{"id": 7}', 't:text': 'yes' }
  const answer = await service.send(form)
  assert.equal(answer.status, 200, answer.text)
  const { html, field } = await received(to)
  assert.equal(html, `<a href="CLICK(https://a.example/7)">x</a> <a href="LEAVE(domain ${to})">u</a>${PIXEL}`)
  assert.equal(field('List-Unsubscribe'), `<LEAVE(domain ${to})>, <mailto:ADDRESS(domain)>`)
})

const NAMES = [
  'unsubscribe_url',
  'tag_unsubscribe_url',
  'mailing_list_unsubscribe_url',
  'unsubscribe_email',
  'tag_unsubscribe_email',
]

test('each variable has its value in text, html, AMP, header fields and subject, with tracking off too', async () => {
  await domainTracks({})
  const to = newAddress()
  const all = NAMES.map((name) => `%${name}%`).join(' ')
  const values = [
    `LEAVE(domain ${to})`,
    `LEAVE(tags ${to} a b)`,
    `LEAVE(domain ${to})`,
    'mailto:ADDRESS(domain)',
    'mailto:ADDRESS(tags)',
  ]
  const answer = await service.send({
    to,
    subject: '%unsubscribe_email%',
    text: all,
    html: `<p>${all}</p>`,
    'amp-html': `<html amp4email>${all}</html>`,
    'h:X-Leave': all,
    'o:tag': ['a', 'b'],
  })
  assert.equal(answer.status, 200, answer.text)
  const { raw, text, html, field, mail } = await received(to)
  assert.equal(text.replaceAll(/\s+/g, ' '), values.join(' '))
  assert.equal(html, `<p>${values.join(' ')}</p>`)
  assert.equal(field('X-Leave')?.replaceAll(/\s+/g, ' '), values.join(' '))
  assert.equal(read(mail.subject ?? ''), 'mailto:ADDRESS(domain)')
  const amp = await simpleParser(raw.slice(raw.indexOf('Content-Type: text/x-amp-html')))
  assert.ok(read(amp.attachments[0]?.content.toString() ?? '').includes(values.join(' ')))
  // The body has a variable, so the fields of one-click unsubscription are added, and signed.
  assert.equal(field('List-Unsubscribe'), `<LEAVE(domain ${to})>, <mailto:ADDRESS(domain)>`)
  assert.equal(field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  const signed = field('DKIM-Signature')?.replaceAll(/\s/g, '') ?? ''
  assert.match(signed, /h=[^;]*list-unsubscribe[:;]/i)
  assert.match(signed, /h=[^;]*list-unsubscribe-post/i)
})

test('unsubscribe tracking adds footers and header fields; a footer may be empty', async () => {
  await domainTracks({ unsubscribe: 'yes' })
  const to = newAddress()
  assert.equal((await service.send({ to, text: 'Hi', html: '<body>Hi</body>' })).status, 200)
  const { html, text, field } = await received(to)
  assert.equal(html, `<body>Hi\n<br>\n<p><a href="LEAVE(domain ${to})">unsubscribe</a></p>\n</body>`)
  assert.equal(text.trim(), `Hi\n\nTo unsubscribe click: <LEAVE(domain ${to})>`)
  assert.equal(field('List-Unsubscribe'), `<LEAVE(domain ${to})>, <mailto:ADDRESS(domain)>`)

  await domainTracks({ unsubscribe: 'yes', html: '', text: '' })
  const own = await sent({ text: 'Hi', html: 'Hi' })
  assert.deepEqual([own.text, own.html], ['Hi', 'Hi'])
  assert.equal(own.field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  const given = { text: 'Hi', 'h:List-Unsubscribe': '<https://shop.example/u>' }
  const kept = await sent(given)
  assert.equal(kept.field('List-Unsubscribe'), '<https://shop.example/u>')
  assert.equal(kept.field('List-Unsubscribe-Post'), undefined)
  await domainTracks({ html: '\n', text: '\n' })
})

test('copies of a list have the links of the list, in their fields and for the variable', async () => {
  await domainTracks({ open: 'yes', click: 'yes' })
  const list = `friends@${service.domain}`
  assert.equal((await service.call('POST', '/v3/lists', { form: { address: list } })).status, 200)
  const member = newAddress()
  const form = { address: member, name: 'Ann' }
  assert.equal((await service.call('POST', `/v3/lists/${list}/members`, { form })).status, 200)
  const posted = await service.send({
    to: list,
    text: 'Hi %recipient_fname%',
    html: `${LINK}<a href="%mailing_list_unsubscribe_url%">l</a><a href="%unsubscribe_url%">d</a>`,
  })
  assert.equal(posted.status, 200, posted.text)
  const { html, text, field, raw } = await received(member)
  assert.equal(
    html,
    `${TRACKED}<a href="LEAVE(list ${member})">l</a><a href="LEAVE(domain ${member})">d</a>${PIXEL}`,
  )
  assert.equal(text, 'Hi Ann')
  assert.equal(field('List-Unsubscribe'), `<LEAVE(list ${member})>, <mailto:ADDRESS(list)>`)
  assert.equal(field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  assert.doesNotMatch(raw, /%[a-z_]*unsubscribe/)

  const off = newAddress()
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: off } })
  await service.call('DELETE', `/v3/lists/${list}/members/${member}`)
  assert.equal((await service.send({ to: list, html: LINK, 'o:tracking': 'no' })).status, 200)
  const plain = await received(off)
  assert.equal(plain.html, LINK)
  assert.equal(plain.field('List-Unsubscribe'), `<LEAVE(list ${off})>, <mailto:ADDRESS(list)>`)
})

test('a newsletter of a publishing product, sent with the public JavaScript client', async () => {
  await domainTracks({})
  const [ann, ben] = [newAddress(), newAddress()]
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const variables = (id: string) => ({
    name: id,
    list_unsubscribe: `https://blog.example/unsubscribe/?uuid=${id}`,
  })
  const answer = await client.messages.create(service.domain, {
    to: [ann, ben],
    from: `"Daily" <news@${service.domain}>`,
    subject: 'Issue 12',
    html: '<body>Hey %recipient.name%, <a href="https://blog.example/?r=%recipient.name%">read</a></body>',
    text: 'Hey %recipient.name%',
    'recipient-variables': JSON.stringify({ [ann]: variables('A'), [ben]: variables('B') }),
    'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
    'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    'o:tag': ['bulk-email', 'blog'],
    'o:tracking-opens': true,
  })
  assert.equal(answer.status, 200)
  for (const [address, id] of [
    [ann, 'A'],
    [ben, 'B'],
  ] as const) {
    const { html, text, field } = await received(address)
    assert.equal(html, `<body>Hey ${id}, <a href="https://blog.example/?r=${id}">read</a>${PIXEL}</body>`)
    assert.equal(text, `Hey ${id}`)
    assert.equal(
      field('List-Unsubscribe'),
      `<https://blog.example/unsubscribe/?uuid=${id}>, <mailto:ADDRESS(tags)>`,
    )
    assert.equal(field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  }
})

test('a retry sends the same bytes, even with stored targets', async () => {
  await domainTracks({ open: 'yes', click: 'yes', unsubscribe: 'yes' })
  const to = newAddress()
  const seen: Buffer[] = []
  sink.on(
    'DATA-DOT',
    (session) => {
      session.accept()
      return '451 4.3.0 later'
    },
    { times: 1 },
  )
  const html = `<body>${LINK}<a href="https://a.example/${'x'.repeat(600)}">long</a></body>`
  assert.equal((await service.send({ to, html, text: TEXT })).status, 200)
  await eventually('the second attempt', async () => {
    const all = sink.messages.filter(({ envelope }) => envelope.to.includes(to))
    seen.splice(0, seen.length, ...all.map(({ raw }) => raw))
    return all.length === 2
  })
  const withoutSource = seen.map((raw) => raw.toString())
  assert.equal(withoutSource[0], withoutSource[1])
  assert.match(
    read(withoutSource[0]?.replaceAll(/=\r\n/g, '').replaceAll('=3D', '=') ?? ''),
    /CLICK\(stored\)/,
  )
})

test('on PostgreSQL too, a target that is too long for a link is stored before the mail is sent', async (t) => {
  const settings = {
    SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_TRACKING_URL: 'https://t.example',
  }
  const other = await startTestService(t, settings, { database: 'postgres' })
  const to = newAddress()
  const url = `https://a.example/${'x'.repeat(600)}`
  const sentTwice = { to: [to, newAddress()], text: `<${url}>`, 'o:tracking': 'yes' }
  assert.equal((await other.send(sentTwice)).status, 200)
  const { mail } = await received(to)
  const token = /https:\/\/t\.example\/c\/([\w-]+)/.exec(mail.text ?? '')?.[1] ?? ''
  const target = tokens.readClick(token)?.target ?? { url: '' }
  const store = await openPostgres(String(other.config.databaseUrl))
  t.after(() => store.close())
  const { rows } = await sql`SELECT id, url FROM tracking_links`.execute(store.db)
  assert.deepEqual(rows, [{ id: 'linkId' in target && target.linkId, url }])
})

test('without a base for links mail has none, and a variable works by mail', async (t) => {
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_TRACKING_URL: '',
  })
  const to = newAddress()
  const form = { to, html: LINK, text: '%unsubscribe_url%', 'o:tracking': 'yes' }
  assert.equal((await service.send(form)).status, 200)
  const { html, text, raw } = await received(to)
  assert.equal(html, LINK)
  assert.equal(text, 'mailto:ADDRESS(domain)')
  assert.doesNotMatch(raw, /^List-Unsubscribe/m)
})

test('the stored message is shown as its sender wrote it', async () => {
  await domainTracks({ open: 'yes', click: 'yes', unsubscribe: 'yes' })
  const to = newAddress()
  const answer = await service.send({ to, html: `${LINK}%unsubscribe_url%`, text: TEXT })
  const id = (answer.body.id as string).slice(1, -1)
  await arrival(to)
  const event = await eventually('its delivered event', async () => {
    const [delivered] = await service.events(`?message-id=${id}&event=delivered`)
    return delivered
  })
  const { url } = event['storage'] as { url: string }
  const stored = await service.call('GET', new URL(url).pathname)
  assert.equal(stored.body['body-html'], `${LINK}%unsubscribe_url%`)
  assert.equal(stored.body['body-plain'], TEXT)
})
