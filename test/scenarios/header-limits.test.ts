/** A header that is too large is refused at once; one that is accepted arrives, also in our own inbox. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

const FIELDS_MAX = 1_000
const BYTES_MAX = 1_048_576

let service: TestService

before(async (t) => {
  service = await startTestService(t as TestContext)
})

const FORM = { from: 'a@example.com', to: 'b@example.org', subject: 's', text: 't' }
const FIXED = 'From: a@example.com\r\nTo: b@example.org\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\n'
/** A message with this many fields, including Subject and Message-Id. */
const withFields = (count: number, subject: string) =>
  `${FIXED}Message-Id: <${subject}@example.com>\r\nMime-Version: 1.0\r\nSubject: ${subject}\r\n${'X: y\r\n'.repeat(count - 6)}\r\nText\r\n`

const sendMime = (raw: string) =>
  service.call('POST', `/v3/${service.domain}/messages.mime`, {
    form: { to: 'b@example.org', message: new File([raw], 'm.eml') },
  })

const captured = (subject: string) =>
  eventually(`the mail "${subject}"`, async (): Promise<{ id: string } | undefined> => {
    const { body } = await service.call('GET', `/sendwright/v1/inbox?subject=${subject}`)
    return body.items[0]
  })

test('a subject of more than a megabyte is a 400', async () => {
  for (const subject of ['x'.repeat(BYTES_MAX + 1), 'ü'.repeat(BYTES_MAX / 2), 'x '.repeat(BYTES_MAX)]) {
    const { status, body } = await service.send({ ...FORM, subject })
    assert.equal(status, 400)
    assert.match(body.message, /^Header (?:Subject )?is too large, max size is 1MB$/)
  }
})

test('so are other values that become a field, and all fields together', async () => {
  const half = 'x'.repeat(600_000)
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, at) => `"${'n'.repeat(1_500)}" <u${at}@e.example>`)
  for (const form of [
    { ...FORM, to: addresses(720).join(',') },
    { ...FORM, from: `${addresses(400).join(',')}`, subject: half },
    { ...FORM, template: 'large', subject: half, text: '' },
  ]) {
    const { status, body } = await service.send(form)
    assert.equal(status, 400, JSON.stringify(body).slice(0, 200))
  }
})

test('over 1,000 fields are a 400, whatever their source', async () => {
  const repeated = await service.send({ ...FORM, 'h:X': Array.from({ length: 1_001 }, () => 'y') })
  assert.equal(repeated.status, 400)
  assert.equal(repeated.body.message, `Too many header fields, max is ${FIELDS_MAX}`)
  assert.equal((await sendMime(withFields(1_001, 'more'))).status, 400)
})

test('over SMTP they are a 554', async (t) => {
  const password = 'correct-horse'
  await service.call('PUT', `/v3/domains/${service.domain}/credentials/postmaster`, { form: { password } })
  const client = await openDialogue(t, { host: service.config.smtpHost, port: service.service.smtp.port })
  await client.reply()
  await client.say('EHLO client.example')
  assert.match(
    (await client.say(`AUTH PLAIN ${plainLogin(`postmaster@${service.domain}`, password)}`)) ?? '',
    /^235/,
  )
  const large = `${FIXED}Subject: ${'x'.repeat(900)}${`\r\n ${'x'.repeat(900)}`.repeat(1_200)}\r\n\r\nText\r\n`
  for (const raw of [withFields(1_001, 'more'), large]) {
    await client.say('MAIL FROM:<a@example.com>')
    await client.say('RCPT TO:<b@example.org>')
    await client.say('DATA')
    client.write(`${raw}.\r\n`)
    assert.match((await client.reply()) ?? '', /^554 5\.6\.0 /)
  }
})

test('1,000 fields are accepted, and appear in the inbox', async () => {
  const sent = await sendMime(withFields(FIELDS_MAX, 'thousand'))
  assert.equal(sent.status, 200, sent.text)
  const item = await captured('thousand')
  const { body } = await service.call('GET', `/sendwright/v1/inbox/${item.id}`)
  assert.equal(body.headers.filter(([name]: [string]) => name === 'X').length, FIELDS_MAX - 6)
})

test('a header of nearly a megabyte is accepted, and appears in the inbox', async () => {
  const field = `X: ${`${'x'.repeat(900)}\r\n `.repeat(1_150)}z\r\n`
  const sent = await sendMime(`${FIXED}Subject: megabyte\r\n${field}\r\nText\r\n`)
  assert.equal(sent.status, 200, sent.text)
  await captured('megabyte')
})

test("a copy whose header its recipient's variables make too large is refused for good", async () => {
  const variables = { 'b@example.org': { a: 'x'.repeat(16_000) } }
  const sent = await service.send({
    ...FORM,
    'h:X-Large': '%recipient.a%'.repeat(75),
    'recipient-variables': JSON.stringify(variables),
  })
  assert.equal(sent.status, 200, sent.text)
  const ended = await eventually('the end of the delivery', async () => {
    const [event] = await service.events('?event=rejected OR failed')
    return event
  })
  assert.match(JSON.stringify(ended), /is too large, max size is 1MB/)
})

test('captured mail over the limits of its parts is shown with its header', async () => {
  const part = `--b\r\nX: ${`${'y'.repeat(900)}\r\n `.repeat(66)}z\r\n\r\nx\r\n`
  const type = 'Mime-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n'
  const sent = await sendMime(`${FIXED}Subject: parts\r\n${type}\r\n${part.repeat(40)}--b--\r\n`)
  assert.equal(sent.status, 200, sent.text)
  const item = await captured('parts')
  const { status, body } = await service.call('GET', `/sendwright/v1/inbox/${item.id}`)
  assert.equal(status, 200)
  assert.equal(body.subject, 'parts')
})
