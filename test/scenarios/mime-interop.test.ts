/** The mail at a receiving server, read by an independent parser. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, type TestContext, test } from 'node:test'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { type ParsedMail, simpleParser } from 'mailparser'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'

let sink: Sink
let service: TestService

before(async (t) => {
  const context = t as TestContext
  sink = await createSink({ host: ownAddress() })
  context.after(() => sink.close())
  service = await startTestService(context, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
})

/** Sends and returns what the sink received, one message per recipient. */
async function receiveAll(form: Parameters<TestService['send']>[0], copies: number): Promise<SinkMessage[]> {
  const before = sink.messages.length
  const sent = await service.send(form)
  assert.equal(sent.status, 200, sent.text)
  return (await sink.waitFor(before + copies)).slice(before)
}

async function receive(
  form: Parameters<TestService['send']>[0],
): Promise<{ mail: ParsedMail; message: SinkMessage }> {
  const [message] = (await receiveAll(form, 1)) as [SinkMessage]
  return { mail: await simpleParser(message.raw), message }
}

test('attachments and inline files arrive byte for byte', async () => {
  const contents = [
    Buffer.alloc(0),
    Buffer.of(0),
    randomBytes(999),
    randomBytes(200_000),
    Buffer.from('\r\n.\r\nend\n'),
  ]
  const files = contents.map(
    (bytes, index) => new File([bytes], `file ${index}.bin`, { type: 'application/octet-stream' }),
  )
  const picture = randomBytes(5000)
  const { mail } = await receive({
    html: '<p><img src="cid:logo.png"></p>',
    attachment: files,
    inline: new File([picture], 'logo.png', { type: 'image/png' }),
  })
  const attached = mail.attachments.filter((file) => !file.related)
  assert.deepEqual(
    attached.map((file) => file.content),
    contents,
  )
  assert.deepEqual(
    attached.map((file) => file.filename),
    files.map((file) => file.name),
  )
  const inline = mail.attachments.find((file) => file.related)
  assert.equal(inline?.cid, 'logo.png')
  assert.deepEqual(inline?.content, picture)
})

test('non-ASCII subjects, names and file names are right', async () => {
  const { mail, message } = await receive({
    from: `Jürgen Groß <sender@${service.domain}>`,
    to: '"Ren\u00e9e, \u65e5\u672c\u8a9e" <alice@example.org>',
    subject:
      'Grüße 🎉 aus 東京 — ein sehr langer Betreff, der ganz sicher gefaltet werden muss, weil er lang ist',
    text: 'Žluťoučký kůň\nدعوة\n',
    attachment: new File(['x'], 'Überweisung 東京 (1).pdf', { type: 'application/pdf' }),
  })
  assert.equal(
    mail.subject,
    'Grüße 🎉 aus 東京 — ein sehr langer Betreff, der ganz sicher gefaltet werden muss, weil er lang ist',
  )
  assert.equal(mail.from?.value[0]?.name, 'Jürgen Groß')
  const to = Array.isArray(mail.to) ? mail.to[0] : mail.to
  assert.equal(to?.value[0]?.name, 'Ren\u00e9e, \u65e5\u672c\u8a9e')
  assert.equal(mail.text, 'Žluťoučký kůň\nدعوة\n')
  assert.equal(mail.attachments[0]?.filename, 'Überweisung 東京 (1).pdf')
  const head = message.raw.subarray(0, message.raw.indexOf('\r\n\r\n'))
  assert.ok(
    head.every((byte) => byte < 0x80),
    'the header is pure ASCII',
  )
  assert.ok(
    head
      .toString()
      .split('\r\n')
      .every((line) => line.length <= 998),
  )
})

test('a non-ASCII address is sent with SMTPUTF8, a non-ASCII domain as punycode', async () => {
  const messages = await receiveAll({ to: ['пользователь@example.org', 'bob@bücher.example'] }, 2)
  const recipients = messages.flatMap((message) => message.envelope.to).sort()
  assert.deepEqual(recipients, ['bob@xn--bcher-kva.example', 'пользователь@example.org'])
  assert.ok(sink.commands.some(([, line]) => /^MAIL FROM:.*SMTPUTF8/.test(line)))
})

test('the parts are in the order text, amp, html; bcc is never shown', async () => {
  const messages = await receiveAll(
    {
      text: 'plain',
      html: '<p>html</p>',
      'amp-html': '<!doctype html><html ⚡4email></html>',
      cc: 'carol@example.org',
      bcc: 'secret@example.org',
    },
    3,
  )
  const raw = (messages[0] as SinkMessage).raw.toString()
  assert.match(raw, /multipart\/alternative/)
  const types = [...raw.matchAll(/^Content-Type: (text\/[a-z-]+)/gim)].map((match) => match[1])
  assert.deepEqual(types, ['text/plain', 'text/x-amp-html', 'text/html'])
  assert.ok(messages.some(({ envelope }) => envelope.to.includes('secret@example.org')))
  assert.ok(messages.every((each) => !each.raw.includes('secret@example.org')))
})

test('custom headers replace those that may occur once, and forbidden ones are ignored', async () => {
  const { mail, message } = await receive({
    'h:Reply-To': 'replies@example.net',
    'h:Subject': 'From the header',
    'h:X-Custom': ['one', 'two'],
    'h:Received': 'from nowhere',
    'h:DKIM-Signature': 'v=1',
    'h:Content-Type': 'text/evil',
    'v:order': '17',
    'o:tag': ['first', 'second'],
  })
  const raw = message.raw.toString()
  assert.equal(mail.subject, 'From the header')
  assert.equal(mail.replyTo?.value[0]?.address, 'replies@example.net')
  assert.deepEqual(mail.headers.get('x-custom'), ['one', 'two'])
  assert.doesNotMatch(raw, /nowhere|text\/evil/)
  assert.equal(raw.match(/^Subject:/gim)?.length, 1)
  assert.equal(raw.match(/^DKIM-Signature:/gim)?.length, 1)
  assert.deepEqual(
    raw.match(/^X-Service-Tag: .*$/gm)?.map((line) => line.slice(15).trim()),
    ['first', 'second'],
  )
  assert.match(raw, /^X-Service-Variables: \{"order":"17"\}/m)
})

test('line breaks in values create no header lines', async () => {
  const { message } = await receive({
    subject: 'One\r\nBcc: evil@example.org\r\n\r\nbody',
    'h:X-A': 'a\r\nX-Injected: yes',
    'o:tag': 'tag\r\nX-Injected: yes',
    'v:x': 'v\r\nX-Injected: yes',
  })
  const head = message.raw.subarray(0, message.raw.indexOf('\r\n\r\n')).toString()
  assert.doesNotMatch(head, /^(bcc|x-injected):/im)
})

test('the signature verifies with the published key, o:dkim=no sends none, test mode sends nothing', async () => {
  const { message } = await receive({ html: '<p>signed</p>' })
  const { results } = await dkimVerify(message.raw, {
    resolver: async (name: string) => {
      const listed = await service.call('GET', `/v4/domains/${service.domain}/keys`)
      const record = listed.body.items?.find(
        (item: { dns_record: { name: string } }) => item.dns_record.name === name,
      )
      return [[record.dns_record.value as string]]
    },
  })
  assert.equal(results[0]?.status?.result, 'pass')

  const unsigned = await receive({ 'o:dkim': 'no' })
  assert.doesNotMatch(unsigned.message.raw.toString(), /dkim-signature/i)

  const count = sink.messages.length
  await service.send({ 'o:testmode': 'yes', subject: 'test mode' })
  await receive({ subject: 'after it' })
  assert.equal(sink.messages.length, count + 1)
  const delivered = await eventually('the delivered event of test mode', async () => {
    const found = await service.events('?event=delivered&subject="test mode"')
    return found.length > 0 && found
  })
  assert.equal(statusOf(delivered).code, 650)
})

function statusOf([event]: Record<string, unknown>[]): { code: number } {
  assert.ok(event, 'there is an event')
  return event['delivery-status'] as { code: number }
}
