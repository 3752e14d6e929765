/**
 * Every field of the two send operations with what it does to the mail that a receiving server gets. A field
 * of the specification without an entry here fails the last test.
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { type ParsedMail, simpleParser } from 'mailparser'
import { selfSigned } from '../../../test/support/certificates.ts'
import { eventStatement, testMessage } from '../../../test/support/events.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { createSink, type Sink, type SinkMessage } from '../../../test/support/smtp-sink.ts'
import { clickedEvent } from '../../watching/events/later-events.ts'
import type { SendingOverrides } from './area.ts'

type Form = Parameters<TestService['send']>[0]

let sink: Sink
let service: TestService
let count = 0
const ends: (() => Promise<void> | void)[] = []

/** Templates whose content is the tag of their version. */
const templates: Required<Pick<SendingOverrides, 'templates' | 'renderer'>> = {
  templates: {
    async choose(_account, _domain, name, tag = 'active') {
      const headers = {
        From: 'Template <template@example.com>',
        Subject: 'From the template',
        'Reply-To': 'r@example.com',
      }
      const source = { key: tag, content: tag, headers }
      return { templateName: name, version: { ...source, id: tag, tag, engine: 'handlebars' }, source }
    },
  },
  renderer: {
    render: async ({ template: { content, headers }, variables, text }) => ({
      kind: 'rendered',
      html: `<p>${content} ${JSON.stringify(variables)}</p>`,
      text: text ? 'made from the template' : null,
      headers,
      missing: [],
      variables: [],
    }),
  },
}

before(async (t) => {
  sink = await createSink({ tls: selfSigned(['sink.test']) })
  ends.push(() => sink.close())
  const context = Object.assign(Object.create(t as object), {
    after: (end: () => Promise<void>) => ends.unshift(end),
  })
  service = await startTestService(
    context,
    {
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
      SENDWRIGHT_IPS: '127.0.0.2,127.0.0.3,127.0.0.4=shared',
      SENDWRIGHT_TRACKING_URL: 'https://t.example',
    },
    { sending: templates },
  )
})

after(async () => {
  for (const end of ends) await end()
})

interface Got {
  received: SinkMessage
  mail: ParsedMail
  raw: string
  body: { id: string }
  field(name: string): string | undefined
}

const rawMime = (lines: string[]) =>
  new File([lines.join('\r\n')], 'message.mime', { type: 'message/rfc822' })
const simpleMime = (...fields: string[]) =>
  rawMime([
    'From: a@example.com',
    'To: shown@example.org',
    'Subject: Given',
    ...fields,
    '',
    'Hello %recipient.name%',
    '',
  ])

async function arrival(recipient: string): Promise<SinkMessage> {
  return eventually(`mail to ${recipient}`, async () =>
    sink.messages.find((message) => message.envelope.to.includes(recipient)),
  )
}

async function got(form: Form, path: 'messages' | 'messages.mime', watch?: string): Promise<Got> {
  count += 1
  const to = `field-${count}@example.org`
  const given =
    path === 'messages.mime'
      ? { to, message: simpleMime() }
      : { to, from: `s@${service.domain}`, subject: 'S', text: 'T' }
  const all = Object.fromEntries(Object.entries({ ...given, ...form }).filter(([, value]) => value !== ''))
  const answer = await service.call('POST', `/v3/${service.domain}/${path}`, { form: all })
  assert.equal(answer.status, 200, answer.text)
  const received = await arrival(watch ?? to)
  const mail = await simpleParser(received.raw)
  const field = (name: string) => {
    const line = mail.headerLines.find(({ key }) => key === name.toLowerCase())?.line
    return line
      ?.slice(name.length + 1)
      .replace(/\r\n/g, '')
      .trim()
  }
  return { received, mail, raw: received.raw.toString(), body: answer.body, field }
}

const sent = (form: Form, watch?: string) => got(form, 'messages', watch)
const sentMime = (form: Form = {}) => got(form, 'messages.mime')

/** What a message is tracked by whose domain tracks nothing. */
async function trackedBy(form: Form) {
  const html = '<body><a href="http://a.example/">x</a></body>'
  const { mail } = await sent({ html, text: 'http://a.example/', ...form })
  const shown = String(mail.html)
  const [top, end] = [/<body><img src="https:\/\/t\.example\/o\//, /<\/a><img src="https:\/\/t\.example\/o\//]
  return {
    clicks: shown.includes('<a href="https://t.example/c/'),
    textClicks: mail.text?.startsWith('https://t.example/c/') ?? false,
    opens: top.test(shown) ? 'top' : end.test(shown) ? 'end' : null,
  }
}

/** How long nothing may come before "not yet" counts: the engine is woken at once, so a moment is enough. */
async function waits(form: Form): Promise<void> {
  const answer = await service.send({ to: 'later@example.org', ...form })
  assert.equal(answer.status, 200, answer.text)
  const { body } = await service.call('GET', '/sendwright/v1/scheduled')
  const id = answer.body.id.slice(1, -1)
  assert.ok(body.items.some((item: { message_id: string }) => item.message_id === id))
}

/** Clicks of a person in Kolkata, written as tracking writes them. */
function visited(recipient: string, times: readonly number[]): void {
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { timeout: 5000 })
  const owner = database.prepare('SELECT account_id FROM domains WHERE name = ?').get(service.domain)
  const message = testMessage(
    {},
    { accountId: owner?.['account_id'] as string, domainName: service.domain, messageId: 'earlier' },
  )
  const visit = {
    ip: '192.0.2.44',
    client: {
      'client-name': 'Firefox',
      'client-os': 'Linux',
      'client-type': 'browser',
      'device-type': 'desktop',
      'user-agent': 'Mozilla/5.0',
      bot: '',
    },
    geolocation: { country: 'IN', region: 'WB', city: 'Kolkata', timezone: 'Asia/Kolkata' },
    recipientProvider: 'Other',
    deliveredAt: null,
    url: 'https://example.com/',
  }
  for (const time of times) {
    const event = clickedEvent(message, { recipient, recipientDomain: 'example.org' }, visit, time)
    const { sql, values } = eventStatement(event)
    database.prepare(sql).run(...values)
  }
  database.close()
}

/** When the mail of a call is due, in Unix milliseconds. */
async function dueOf(form: Form): Promise<number> {
  return dueOfAnswer(await service.send(form))
}

async function dueOfMime(form: Form): Promise<number> {
  return dueOfAnswer(await service.call('POST', `/v3/${service.domain}/messages.mime`, { form }))
}

async function dueOfAnswer({
  status,
  text,
  body,
}: Awaited<ReturnType<TestService['send']>>): Promise<number> {
  assert.equal(status, 200, text)
  const [accepted] = (await service.events(`?event=accepted&message-id=${body.id.slice(1, -1)}`)) as {
    message: { 'scheduled-for'?: number }
  }[]
  return (accepted?.message['scheduled-for'] ?? 0) * 1000
}

const HOUR_MS = 3_600_000

const FIELDS: Record<string, () => Promise<void>> = {
  async from() {
    const { mail } = await sent({ from: 'Jürgen <j@example.com>' })
    assert.equal(mail.from?.text, '"Jürgen" <j@example.com>')
  },
  async to() {
    const { mail, received } = await sent(
      { to: 'Ann <ann-to@example.org>, bob-to@example.org' },
      'ann-to@example.org',
    )
    assert.match(received.raw.toString(), /^To: Ann <ann-to@example\.org>, bob-to@example\.org\r$/m)
    assert.equal(mail.subject, 'S')
    await arrival('bob-to@example.org')
  },
  async subject() {
    assert.equal((await sent({ subject: 'Grüße' })).mail.subject, 'Grüße')
  },
  async cc() {
    const { field } = await sent({ cc: 'Carl <carl@example.org>' }, 'carl@example.org')
    assert.equal(field('Cc'), 'Carl <carl@example.org>')
  },
  async bcc() {
    const { raw } = await sent({ bcc: 'hidden@example.org' }, 'hidden@example.org')
    assert.doesNotMatch(raw, /hidden@|^bcc/im)
  },
  async text() {
    assert.equal((await sent({ text: 'Größe' })).mail.text?.trim(), 'Größe')
  },
  async html() {
    assert.match(String((await sent({ html: '<p>Größe</p>' })).mail.html), /<p>Größe<\/p>/)
  },
  async 'amp-html'() {
    const { raw } = await sent({ html: '<p>a</p>', 'amp-html': '<html amp4email>b</html>' })
    const types = [...raw.matchAll(/^Content-Type: (text\/[a-z-]+)/gm)].map(([, type]) => type)
    assert.deepEqual(types, ['text/plain', 'text/x-amp-html', 'text/html'])
  },
  async attachment() {
    const { mail } = await sent({ attachment: new File([Buffer.from([0, 255, 10])], 'ä.bin') })
    assert.equal(mail.attachments[0]?.filename, 'ä.bin')
    assert.deepEqual([...(mail.attachments[0]?.content ?? [])], [0, 255, 10])
  },
  async inline() {
    const { mail } = await sent({ html: '<img src="cid:logo.png">', inline: new File(['png'], 'logo.png') })
    assert.equal(mail.attachments[0]?.contentId, '<logo.png>')
  },
  async template() {
    const { mail } = await sent({ template: 'welcome', text: '', subject: '', from: '' })
    assert.match(String(mail.html), /^<p>active \{\}<\/p>\s*$/)
    assert.deepEqual(
      [mail.subject, mail.from?.text],
      ['From the template', '"Template" <template@example.com>'],
    )
    assert.equal((await sent({ template: 'welcome', subject: 'Own' })).mail.subject, 'Own')
  },
  async 't:version'() {
    assert.match(String((await sent({ template: 'welcome', 't:version': 'v2' })).mail.html), /<p>v2 /)
  },
  async 't:text'() {
    const { mail } = await sent({ template: 'welcome', text: '', 't:text': 'yes' })
    assert.equal(mail.text?.trim(), 'made from the template')
  },
  async 't:variables'() {
    const form = { template: 'welcome', 't:variables': '{"a":{"b":1}}', 'v:a': 'below', 'v:c': '[2]' }
    assert.match((await sent(form)).raw, /<p>active \{"a":\{"b":1\},"c":\[2\]\}<\/p>/)
  },
  async 'o:tag'() {
    const { raw } = await sent({ 'o:tag': ['one', 'two, three'] })
    assert.deepEqual(
      raw.match(/^X-Service-Tag: .*/gm),
      ['X-Service-Tag: one\r', 'X-Service-Tag: two, three\r'].map((l) => l.trim()),
    )
  },
  async 'o:dkim'() {
    assert.doesNotMatch((await sent({ 'o:dkim': 'no' })).raw, /^DKIM-Signature/m)
    assert.match((await sent({ 'o:dkim': 'True' })).raw, /^DKIM-Signature/m)
  },
  async 'o:secondary-dkim'() {
    const { raw } = await sent({ 'o:secondary-dkim': `${service.domain}/k1` })
    assert.equal(raw.match(/^DKIM-Signature/gm)?.length, 2)
  },
  async 'o:secondary-dkim-public'() {
    const form = {
      'o:secondary-dkim': `${service.domain},k1`,
      'o:secondary-dkim-public': 'public.example/s9',
    }
    // Nobody publishes that name, so the key signs under its own.
    assert.deepEqual((await sent(form)).raw.match(/; s=[^;]+/g), ['; s=k1', '; s=k1'])
  },
  async 'o:deliverytime'() {
    await waits({ 'o:deliverytime': new Date(Date.now() + 3_600_000).toUTCString() })
    const { field } = await sent({ 'o:deliverytime': '1000000000' })
    assert.equal(field('X-Service-Deliver-By'), undefined)
  },
  async 'o:deliver-within'() {
    await sent({ 'o:deliver-within': '1h30m' })
    const bad = await service.send({ 'o:deliver-within': '4m' })
    assert.equal(bad.body.message, 'o:deliver-within must be between 5m and 24h, for example 1h30m')
  },
  async 'o:deliverytime-optimize-period'() {
    await sent({ 'o:deliverytime-optimize-period': '48h' })
    const hour = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS + 30 * HOUR_MS
    const weeks = [1, 2, 3, 4, 5].map((week) => hour - week * 7 * 24 * HOUR_MS)
    visited('habit@example.org', weeks)
    assert.equal(await dueOf({ to: 'Habit@example.org', 'o:deliverytime-optimize-period': '48h' }), hour)
    assert.ok((await dueOf({ to: 'habit@example.org', 'o:deliverytime-optimize-period': '24h' })) < hour)
  },
  async 'o:time-zone-localize'() {
    await sent({ 'o:time-zone-localize': '04:00PM' })
    visited('zone@example.org', [Date.now() - HOUR_MS])
    const before = Date.now()
    const due = await dueOf({ to: 'zone@example.org', 'o:time-zone-localize': '04:00PM' })
    assert.ok(due > before && due <= Date.now() + 24 * HOUR_MS)
    // 16:00 in Kolkata, which is five and a half hours ahead of UTC all year.
    assert.equal(new Date(due).toISOString().slice(11, 16), '10:30')
  },
  async 'o:testmode'() {
    const answer = await service.send({ to: 'nobody@example.org', 'o:testmode': 'yes' })
    await eventually('delivered', async () =>
      (await service.events()).find(
        (event) =>
          JSON.stringify(event).includes(answer.body.id.slice(1, -1)) && event['event'] === 'delivered',
      ),
    )
    assert.ok(!sink.messages.some(({ envelope }) => envelope.to.includes('nobody@example.org')))
  },
  async 'o:tracking'() {
    const all = await trackedBy({ 'o:tracking': 'yes' })
    assert.deepEqual(all, { clicks: true, textClicks: true, opens: 'end' })
    const html = await trackedBy({ 'o:tracking': 'htmlonly' })
    assert.deepEqual(html, { clicks: true, textClicks: false, opens: 'end' })
    const none = await trackedBy({ 'o:tracking': 'no' })
    assert.deepEqual(none, { clicks: false, textClicks: false, opens: null })
  },
  async 'o:tracking-clicks'() {
    const all = await trackedBy({ 'o:tracking': 'no', 'o:tracking-clicks': 'yes' })
    assert.deepEqual(all, { clicks: true, textClicks: true, opens: null })
    const html = await trackedBy({ 'o:tracking-clicks': 'htmlonly' })
    assert.deepEqual(html, { clicks: true, textClicks: false, opens: null })
    const none = await trackedBy({ 'o:tracking': 'yes', 'o:tracking-clicks': 'false' })
    assert.deepEqual(none, { clicks: false, textClicks: false, opens: 'end' })
  },
  async 'o:tracking-opens'() {
    const opens = await trackedBy({ 'o:tracking-opens': 'yes' })
    assert.deepEqual(opens, { clicks: false, textClicks: false, opens: 'end' })
    const none = await trackedBy({ 'o:tracking': 'yes', 'o:tracking-opens': 'no' })
    assert.deepEqual(none, { clicks: true, textClicks: true, opens: null })
  },
  async 'o:tracking-pixel-location-top'() {
    const form = { 'o:tracking-opens': 'yes', 'o:tracking-pixel-location-top': 'yes' }
    assert.equal((await trackedBy(form)).opens, 'top')
    assert.equal((await trackedBy({ ...form, 'o:tracking-pixel-location-top': 'no' })).opens, 'end')
    const alone = await trackedBy({ 'o:tracking-pixel-location-top': 'yes' })
    assert.equal(alone.opens, null)
  },
  async 'o:require-tls'() {
    const { received } = await sent({ 'o:require-tls': 'yes', 'o:skip-verification': 'yes' })
    assert.equal(received.tls, true)
    await service.send({ to: 'tls-only@example.org', 'o:require-tls': 'yes' })
    await eventually('failed attempt', async () =>
      (await service.events()).find(
        (event) => event['event'] === 'failed' && event['recipient'] === 'tls-only@example.org',
      ),
    )
    assert.ok(!sink.messages.some(({ envelope }) => envelope.to.includes('tls-only@example.org')))
  },
  async 'o:skip-verification'() {
    assert.equal((await sent({ 'o:skip-verification': 'true' })).received.tls, true)
    assert.equal((await sent({ 'o:skip-verification': 'false' })).received.tls, false)
  },
  async 'o:sending-ip'() {
    const { field, received } = await sent({ 'o:sending-ip': '127.0.0.3' })
    assert.deepEqual([field('X-Service-Sending-Ip'), received.remoteAddress], ['127.0.0.3', '127.0.0.3'])
    const other = await service.send({ 'o:sending-ip': '192.0.2.1' })
    assert.deepEqual(
      [other.status, other.body.message],
      [403, "Rejected: IP 192.0.2.1 can't be used to send the message"],
    )
  },
  async 'o:sending-ip-pool'() {
    const { field, received } = await sent({ 'o:sending-ip-pool': 'shared' })
    assert.deepEqual([field('X-Service-Sending-Ip'), received.remoteAddress], ['127.0.0.4', '127.0.0.4'])
    const { status, body } = await service.send({ 'o:sending-ip-pool': 'p1' })
    assert.deepEqual(
      [status, body.message],
      [400, "p1 is not a valid IP pool (value of 'o:sending-ip-pool')"],
    )
  },
  async 'o:archive-to'() {
    const { body } = await service.send({ 'o:archive-to': 'ftp://example.org/' })
    assert.equal(body.message, "ftp://example.org/ is not a valid url (value of 'o:archive-to')")
    const withPassword = await service.send({ 'o:archive-to': 'https://user:secret@example.org/' })
    assert.equal(withPassword.status, 400)
    assert.doesNotMatch(
      (await sent({ 'o:archive-to': 'https://archive.example/in' })).raw,
      /archive\.example/,
    )
  },
  async 'o:suppress-headers'() {
    const some = await sent({
      'o:tag': 't',
      'v:a': 'b',
      'o:suppress-headers': 'X-Mailgun-Tag, X-Service-Sid',
    })
    assert.doesNotMatch(some.raw, /^X-Service-(Tag|Sid)/m)
    assert.match(some.raw, /^X-Service-Variables/m)
    assert.doesNotMatch((await sent({ 'o:tag': 't', 'o:suppress-headers': 'all' })).raw, /^X-Service-/m)
  },
  async 'h:<header_name>'() {
    const { field } = await sent({
      'h:X-Custom': 'Wert ä',
      'h:Reply-To': 'answers@example.com',
      'h:Message-Id': '<own@example.com>',
    })
    assert.equal(field('X-Custom'), 'Wert =?utf-8?B?w6Q=?=')
    assert.equal(field('Reply-To'), 'answers@example.com')
    assert.equal(field('Message-Id'), '<own@example.com>')
  },
  async 'v:<variable_name>'() {
    const { field } = await sent({ 'v:order': '17', 'h:X-Mailgun-Variables': '{"order":1,"paid":true}' })
    assert.deepEqual(JSON.parse(field('X-Service-Variables') ?? ''), { order: '17', paid: true })
  },
  async 'recipient-variables'() {
    const to = 'batch@example.org'
    const form = {
      to: `Bea Tch <${to}>`,
      cc: 'other-batch@example.org',
      subject: 'For %recipient_fname%',
      text: 'You are %recipient.Name Full% %recipient.n% %recipient.absent%.',
      'h:X-Own': '%recipient.n%',
      'recipient-variables': JSON.stringify({ [to.toUpperCase()]: { 'Name Full': 'B. & T.', n: [1] } }),
    }
    const { mail, field } = await sent(form, to)
    assert.deepEqual([mail.subject, field('To'), field('Cc')], ['For Bea', `Bea Tch <${to}>`, undefined])
    assert.equal(mail.text?.trim(), 'You are B. & T. [1] %recipient.absent%.')
    assert.equal(field('X-Own'), '[1]')
  },
}

const MIME_FIELDS: Record<string, () => Promise<void>> = {
  async to() {
    const { field, received } = await sentMime()
    assert.equal(field('To'), 'shown@example.org')
    assert.equal(received.envelope.to.length, 1)
  },
  async message() {
    const { raw } = await sentMime({ message: simpleMime('X-Odd:  two  blanks', 'Bcc: b@example.org') })
    assert.match(raw, /^X-Odd: {2}two {2}blanks\r$/m)
    assert.doesNotMatch(raw, /^Bcc/m)
    assert.ok(raw.endsWith('\r\n\r\nHello %recipient.name%\r\n'))
  },
  async template() {
    const message = rawMime([
      'From: a@example.com',
      'To: b@example.org',
      'Content-Type: text/html',
      '',
      '<p>old</p>',
      '',
    ])
    const { mail } = await sentMime({ template: 'welcome', message })
    assert.match(String(mail.html), /<p>active \{\}<\/p>/)
    assert.equal(mail.subject, 'From the template')
  },
  async 't:version'() {
    const message = rawMime(['From: a@example.com', 'Content-Type: text/html', '', '<p>old</p>', ''])
    assert.match(String((await sentMime({ template: 'w', 't:version': 'v7', message })).mail.html), /<p>v7 /)
  },
  async 't:text'() {
    const message = rawMime([
      'From: a@example.com',
      'Content-Type: multipart/alternative; boundary=b',
      '',
      '--b',
      '',
      'old',
      '--b',
      'Content-Type: text/html',
      '',
      '<p>old</p>',
      '--b--',
      '',
    ])
    assert.match(
      String((await sentMime({ template: 'w', 't:text': 'yes', message })).mail.text),
      /made from the template/,
    )
  },
  async 't:variables'() {
    const message = rawMime(['From: a@example.com', 'Content-Type: text/html', '', '<p>old</p>', ''])
    assert.match(
      String((await sentMime({ template: 'w', 't:variables': '{"x":1}', message })).mail.html),
      /\{"x":1\}/,
    )
  },
  async 'recipient-variables'() {
    const to = 'mime-batch@example.org'
    const variables = JSON.stringify({ [to]: { name: 'Zoë' } })
    const { mail, field } = await got({ to, 'recipient-variables': variables }, 'messages.mime', to)
    assert.deepEqual([mail.text?.trim(), field('To')], ['Hello Zoë', to])
  },
  async 'h:<header_name>'() {
    const { field, raw } = await sentMime({ 'h:Subject': 'Replaced', 'h:X-New': '1' })
    assert.deepEqual([field('Subject'), field('X-New')], ['Replaced', '1'])
    assert.equal(raw.match(/^Subject/gm)?.length, 1)
  },
  async 'o:secondary-dkim-public'() {
    const fields = [
      `X-Service-Secondary-DKIM: ${service.domain}/k1`,
      'X-Service-Secondary-DKIM-Public: public.example/s9',
    ]
    const { raw } = await sentMime({ message: simpleMime(...fields) })
    assert.deepEqual(raw.match(/; s=[^;]+/g), ['; s=k1', '; s=k1'])
    assert.doesNotMatch(raw, /public\.example/)
  },
  async 'v:<variable_name>'() {
    const { field } = await sentMime({
      'v:a': 'x',
      message: simpleMime('X-Service-Variables: {"a":1,"b":2}'),
    })
    assert.equal(field('X-Service-Variables'), '{"a":"x","b":2}')
  },
}

/** Effects that are not in the mail itself: each given as the field, and as its header. */
const MIME_EFFECTS: Record<string, () => Promise<void>> = {
  async 'o:deliverytime'() {
    const at = Math.ceil(Date.now() / 1000) * 1000 + HOUR_MS
    const text = new Date(at).toUTCString()
    for (const form of bothForms('o:deliverytime', 'X-Service-Deliver-By', text))
      assert.equal(await dueOfMime({ to: 'mime-later@example.org', ...form }), at)
  },
  async 'o:deliverytime-optimize-period'() {
    const hour = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS + 30 * HOUR_MS
    const weeks = [1, 2, 3, 4, 5].map((week) => hour - week * 7 * 24 * HOUR_MS)
    visited('mime-habit@example.org', weeks)
    const header = 'X-Service-Delivery-Time-Optimize-Period'
    for (const form of bothForms('o:deliverytime-optimize-period', header, '48h'))
      assert.equal(await dueOfMime({ to: 'mime-habit@example.org', ...form }), hour)
  },
  async 'o:time-zone-localize'() {
    visited('mime-zone@example.org', [Date.now() - HOUR_MS])
    for (const form of bothForms('o:time-zone-localize', 'X-Service-Time-Zone-Localize', '16:00')) {
      const before = Date.now()
      const due = await dueOfMime({ to: 'mime-zone@example.org', ...form })
      assert.ok(due > before && due <= Date.now() + 24 * HOUR_MS)
      // 16:00 in Kolkata, which is five and a half hours ahead of UTC all year.
      assert.equal(new Date(due).toISOString().slice(11, 16), '10:30')
    }
  },
  async 'o:require-tls'() {
    for (const [at, form] of bothForms('o:require-tls', 'X-Service-Require-TLS', 'yes').entries()) {
      const to = `mime-tls-only-${at}@example.org`
      await service.call('POST', `/v3/${service.domain}/messages.mime`, { form: { to, ...form } })
      await eventually('failed attempt', async () =>
        (await service.events(`?recipient=${to}`)).find(({ event }) => event === 'failed'),
      )
      assert.ok(!sink.messages.some(({ envelope }) => envelope.to.includes(to)))
    }
  },
  async 'o:skip-verification'() {
    for (const [value, tls] of [
      ['yes', true],
      ['no', false],
    ] as const)
      for (const form of bothForms('o:skip-verification', 'X-Service-Skip-Verification', value))
        assert.equal((await sentMime(form)).received.tls, tls)
  },
  async 'o:sending-ip-pool'() {
    for (const form of bothForms('o:sending-ip-pool', 'X-Service-Sending-Ip-Pool', 'shared')) {
      const { field, received } = await sentMime(form)
      assert.deepEqual([field('X-Service-Sending-Ip'), received.remoteAddress], ['127.0.0.4', '127.0.0.4'])
      assert.equal(field('X-Service-Sending-Ip-Pool'), undefined)
    }
  },
}

const bothForms = (field: string, header: string, value: string): Form[] => [
  { message: simpleMime(), [field]: value },
  { message: simpleMime(`${header}: ${value}`) },
]

/** The options mean the same in both operations: the field in one message, its header in the other. */
const HEADER_FORM: Record<string, [header: string, value: string, see: RegExp, unseen?: RegExp]> = {
  'o:tag': ['X-Mailgun-Tag', 'a, b', /^X-Service-Tag: a, b\r$/m, /X-Mailgun/],
  'o:dkim': ['X-Service-Dkim', 'no', /^Subject/m, /^(DKIM-Signature|X-Service-Dkim)/m],
  'o:secondary-dkim': [
    'X-Service-Secondary-DKIM',
    '@/k1',
    /DKIM-Signature[\s\S]*DKIM-Signature/,
    /^X-Service-Sec/m,
  ],
  'o:deliverytime': ['X-Service-Deliver-By', '1000000000', /^Subject/m, /^X-Service-Deliver-By/m],
  'o:deliverytime-optimize-period': [
    'X-Service-Delivery-Time-Optimize-Period',
    '24h',
    /^Subject/m,
    /^X-Service-Deliv/m,
  ],
  'o:time-zone-localize': ['X-Service-Time-Zone-Localize', '16:00', /^Subject/m, /^X-Service-Time/m],
  'o:deliver-within': ['X-Service-Deliver-Within', '30m', /^Subject/m, /^X-Service-Deliv/m],
  'o:send-window': ['X-Service-Send-Window', 'always', /^Subject/m, /^X-Service-Send-W/m],
  'o:tracking': ['X-Service-Track', 'htmlonly', /t\.example\/c\/[\s\S]*t\.example\/o\//, /^X-Service-Track/m],
  'o:tracking-clicks': ['X-Service-Track-Clicks', 'yes', /t\.example\/c\//, /^X-Service-Track|\/o\//m],
  'o:tracking-opens': ['X-Service-Track-Opens', 'yes', /t\.example\/o\//, /^X-Service-Track|\/c\//m],
  // Of no effect without opens; scenarios/tracking.test.ts has both together.
  'o:tracking-pixel-location-top': [
    'X-Service-Track-Pixel-Location-Top',
    'yes',
    /^Subject/m,
    /^X-Service-Track|t\.example/m,
  ],
  'o:require-tls': ['X-Service-Require-TLS', 'no', /^Subject/m, /^X-Service-Req/m],
  'o:skip-verification': ['X-Service-Skip-Verification', '1', /^Subject/m, /^X-Service-Skip/m],
  'o:sending-ip': ['X-Service-Sending-Ip', '127.0.0.3', /^X-Service-Sending-Ip: 127\.0\.0\.3\r$/m],
  'o:archive-to': ['X-Service-Archive-To', 'https://a.example/', /^Subject/m, /a\.example/],
  'o:suppress-headers': ['X-Service-Suppress-Headers', 'all', /^Subject/m, /^X-Service/m],
}

for (const [field, prove] of Object.entries(FIELDS)) test(`messages: ${field}`, prove)
for (const [field, prove] of Object.entries(MIME_FIELDS)) test(`messages.mime: ${field}`, prove)
for (const [field, prove] of Object.entries(MIME_EFFECTS)) test(`messages.mime: what ${field} does`, prove)
for (const [field, [header, value, see, unseen]] of Object.entries(HEADER_FORM)) {
  test(`messages.mime: ${field}, as field and as ${header}`, async () => {
    const real = value.replace('@', service.domain)
    const html = (...fields: string[]) =>
      rawMime([
        'From: a@example.com',
        'Subject: S',
        'Content-Type: text/html',
        ...fields,
        '',
        '<a href="http://a.b/">x</a>',
        '',
      ])
    for (const form of [{ [field]: real, message: html() }, { message: html(`${header}: ${real}`) }]) {
      const { raw } = await sentMime(form)
      assert.match(raw, see)
      if (unseen) assert.doesNotMatch(raw, unseen)
    }
  })
}
test('messages.mime: o:testmode and o:sending-ip-pool act as in messages', async () => {
  const message = simpleMime('X-Service-Drop-Message: yes')
  const form = { to: 'dropped@example.org', message }
  assert.equal((await service.call('POST', `/v3/${service.domain}/messages.mime`, { form })).status, 200)
  const pool = { to: 'x@example.org', message: simpleMime(), 'o:sending-ip-pool': 'p' }
  const answer = await service.call('POST', `/v3/${service.domain}/messages.mime`, { form: pool })
  assert.equal(answer.status, 400)
})

/** The fields of the two send operations as the specification lists them. */
const SPECIFIED = {
  messages: `from to subject cc bcc text html amp-html attachment inline template t:version t:text t:variables o:tag
    o:dkim o:secondary-dkim o:secondary-dkim-public o:deliverytime o:deliverytime-optimize-period
    o:time-zone-localize o:testmode o:tracking o:tracking-clicks o:tracking-opens o:require-tls
    o:skip-verification o:sending-ip o:sending-ip-pool o:tracking-pixel-location-top o:archive-to
    o:suppress-headers h:<header_name> v:<variable_name> recipient-variables`,
  mime: `to message template t:version t:text t:variables o:tag o:dkim o:secondary-dkim o:secondary-dkim-public
    o:deliverytime o:deliverytime-optimize-period o:time-zone-localize o:testmode o:tracking o:tracking-clicks
    o:tracking-opens o:require-tls o:skip-verification o:sending-ip o:sending-ip-pool
    o:tracking-pixel-location-top o:archive-to o:suppress-headers h:<header_name> v:<variable_name>
    recipient-variables`,
}

test('no field of the specification is without a proof', () => {
  const mime = { ...MIME_FIELDS, ...MIME_EFFECTS, ...HEADER_FORM, 'o:testmode': 1 }
  assert.deepEqual(
    SPECIFIED.messages.split(/\s+/).filter((field) => !(field in FIELDS)),
    [],
  )
  assert.deepEqual(
    SPECIFIED.mime.split(/\s+/).filter((field) => !(field in mime)),
    [],
  )
})
