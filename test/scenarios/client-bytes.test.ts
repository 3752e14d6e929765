/**
 * The exact bytes that client libraries and products send, where they differ from those of a careful client; each
 * followed to the mail that a server receives, the event, or the response.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ParsedMail, simpleParser } from 'mailparser'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

const BOUNDARY = 'b7e1c0ffee'
const FORM = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
const URL_ENCODED = { 'content-type': 'application/x-www-form-urlencoded' }

/** A part with exactly these header lines after its disposition. */
const part = (name: string, value: string | Buffer, head = ''): Buffer =>
  Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${head}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ])

const multipart = (...parts: Buffer[]) => Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)])

const PDF = Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\nbytes', 'latin1')
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = Record<string, any>

interface Rig {
  service: TestService
  sink: Sink
  /** Sends a body unchanged and returns the response. */
  post(path: string, body: Buffer | string, headers: Record<string, string>): ReturnType<TestService['call']>
  /** The mail that this recipient received. */
  mail(recipient: string): Promise<ParsedMail>
  /** The accepted event of this recipient. */
  accepted(recipient: string): Promise<Json>
}

eachDatabase((database) => {
  const scenario = (name: string, run: (rig: Rig) => Promise<void>) =>
    test(name, async (t) => {
      const sink = await createSink({ host: ownAddress() })
      t.after(() => sink.close())
      const env = {
        SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
        SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      }
      const service = await startTestService(t, env, { database })
      await run({
        service,
        sink,
        post: (path, body, headers) => service.call('POST', path, { body, headers }),
        async mail(recipient) {
          const found = () => sink.messages.find(({ envelope }) => envelope.to.includes(recipient))
          const message = await eventually(`mail for ${recipient}`, async () => found() ?? false)
          return simpleParser(message.raw)
        },
        accepted: (recipient) =>
          eventually(`accepted event of ${recipient}`, async () => {
            const events = await service.events(`?event=accepted&recipient=${recipient}`)
            return (events[0] as Json | undefined) ?? false
          }),
      })
    })

  scenario('a file part without a type, or with octet-stream, has the type of its name', async (rig) => {
    const { service } = rig
    const body = multipart(
      part('from', `shop@${service.domain}`),
      part('to', 'files@example.org'),
      part('subject', 'Files'),
      part('html', '<img src="cid:pixel.png">'),
      part('attachment', PDF, '; filename="invoice.pdf"'),
      part(
        'attachment',
        'BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n',
        '; filename="invite.ics"\r\nContent-Type: application/octet-stream',
      ),
      part('attachment', 'a;b\n', '; filename="told.csv"\r\nContent-Type: text/plain'),
      part('inline', PNG, '; filename="pixel.png"\r\nContent-Type: application/octet-stream'),
    )
    const answer = await rig.post(`/v3/${service.domain}/messages`, body, FORM)
    assert.equal(answer.status, 200, answer.text)
    const mail = await rig.mail('files@example.org')
    assert.deepEqual(
      mail.attachments.map(({ filename, contentType }) => [filename, contentType]),
      [
        ['pixel.png', 'image/png'],
        ['invoice.pdf', 'application/pdf'],
        ['invite.ics', 'text/calendar'],
        ['told.csv', 'text/plain'],
      ],
    )
    assert.deepEqual(mail.attachments[1]?.content, PDF)
    const { message } = await rig.accepted('files@example.org')
    assert.deepEqual(
      message.attachments.map((file: Record<string, unknown>) => [file['filename'], file['content-type']]),
      [
        ['invoice.pdf', 'application/pdf'],
        ['invite.ics', 'text/calendar'],
        ['told.csv', 'text/plain'],
      ],
    )
  })

  scenario('an unquoted display name, and semicolons between recipients', async (rig) => {
    const { service } = rig
    const body = multipart(
      part('from', `Site: Title <wordpress@${service.domain}>`),
      part('to', 'a@example.org ; b@example.org'),
      part('cc', 'Doe, Jane [Sales] <jane@example.org>'),
      part('subject', 'Hello'),
      part('text', 'Hi.'),
    )
    const answer = await rig.post(`/v3/${service.domain}/messages`, body, FORM)
    assert.equal(answer.status, 200, answer.text)
    for (const recipient of ['a@example.org', 'b@example.org', 'jane@example.org']) {
      const mail = await rig.mail(recipient)
      assert.deepEqual(mail.from?.value, [{ name: 'Site: Title', address: `wordpress@${service.domain}` }])
      assert.deepEqual(
        [mail.to].flat().flatMap((list) => list?.value.map(({ address }) => address)),
        ['a@example.org', 'b@example.org'],
      )
      assert.deepEqual(
        [mail.cc].flat().flatMap((list) => list?.value),
        [{ name: 'Doe, Jane [Sales]', address: 'jane@example.org' }],
      )
    }
    const injected = encodeURIComponent(`Site: T\r\nBcc: evil@example.net <a@${service.domain}>`)
    const form = `from=${injected}&to=a@example.org&subject=s&text=t`
    assert.equal((await rig.post(`/v3/${service.domain}/messages`, form, URL_ENCODED)).status, 400)
  })

  scenario('vars=null of a list member is no variables', async (rig) => {
    const { service } = rig
    await service.call('POST', '/v3/lists', { form: { address: `news@${service.domain}` } })
    const path = `/v3/lists/news@${service.domain}/members`
    const added = await rig.post(
      path,
      'address=ann%40example.org&name=Ann&subscribed=yes&upsert=yes&vars=null',
      URL_ENCODED,
    )
    assert.equal(added.status, 200, added.text)
    assert.deepEqual(added.body.member, {
      address: 'ann@example.org',
      name: 'Ann',
      subscribed: true,
      vars: {},
    })
    const changed = await service.call('PUT', `${path}/ann@example.org`, {
      body: 'name=Anna&vars=null',
      headers: URL_ENCODED,
    })
    assert.deepEqual([changed.status, changed.body.member.name, changed.body.member.vars], [200, 'Anna', {}])
  })

  scenario('user info in a webhook URL, as a framework registers it', async (rig) => {
    const { service } = rig
    const receiver = await createReceiver()
    try {
      const url = `http://random:token@${receiver.host}:${receiver.port}/anymail/mailgun/tracking/`
      const made = await rig.post(
        `/v3/domains/${service.domain}/webhooks`,
        `id=delivered&url=${encodeURIComponent(url)}`,
        URL_ENCODED,
      )
      assert.equal(made.status, 200, made.text)
      await service.send({ to: 'hook@example.org' })
      const post = await eventually('the call', async () => receiver.posts[0] ?? false)
      assert.equal(post.path, '/anymail/mailgun/tracking/')
      assert.equal(post.headers.authorization, `Basic ${Buffer.from('random:token').toString('base64')}`)
    } finally {
      await receiver.close()
    }
  })

  scenario('a Message-Id per recipient of a batch', async (rig) => {
    const { service } = rig
    const variables = {
      'ann@example.org': { message_id: `65a1.aaaa@${service.domain}` },
      'ben@example.org': { message_id: `65a1.bbbb@${service.domain}` },
      'bad@example.org': { message_id: 'no id' },
      'dup@example.org': { message_id: `65a1.aaaa@${service.domain}` },
    }
    const body = multipart(
      part('from', `News <news@${service.domain}>`),
      ...Object.keys(variables).map((to) => part('to', to)),
      part('subject', 'News'),
      part('text', 'Hi %recipient.message_id%'),
      part('recipient-variables', JSON.stringify(variables)),
      part('h:Message-Id', '<%recipient.message_id%>'),
      part('v:email-id', '65a1'),
    )
    const answer = await rig.post(`/v3/${service.domain}/messages`, body, FORM)
    assert.deepEqual(answer.body, { id: '<%recipient.message_id%>', message: 'Queued. Thank you.' })
    for (const name of ['ann', 'ben'] as const) {
      const address = `${name}@example.org` as const
      const id = variables[address].message_id
      assert.equal((await rig.mail(address)).messageId, `<${id}>`)
      assert.equal((await rig.accepted(address))['message'].headers['message-id'], id)
      const delivered = await eventually('delivered', async () => {
        const [event] = await service.events(`?event=delivered&recipient=${address}`)
        return (event as Json | undefined) ?? false
      })
      assert.equal(delivered['message'].headers['message-id'], id)
      const stored = await service.call('GET', new URL(delivered['storage'].url).pathname)
      assert.equal(stored.body['Message-Id'], `<${id}>`)
      const found = await service.events(`?message-id=${encodeURIComponent(id)}&event=delivered`)
      assert.deepEqual(
        found.map(({ recipient }) => recipient),
        [address],
      )
    }
    for (const name of ['bad', 'dup']) {
      const [event] = await eventually(`the end of ${name}`, async () => {
        const events = (await service.events('?event=rejected')) as Json[]
        const own = events.filter(({ message }) => message.headers.to === `${name}@example.org`)
        return own.length > 0 && own
      })
      assert.match(JSON.stringify(event?.['reject']), /Template render error/)
      // The stored message can still be read.
      const stored = await service.call('GET', new URL(event?.['storage'].url).pathname)
      assert.equal(stored.status, 200, stored.text)
    }
    assert.equal(rig.sink.messages.length, 2)
  })

  scenario('o:tracking-clicks=html rewrites links of the html part alone', async (rig) => {
    const { service } = rig
    const form = new URLSearchParams({
      from: `shop@${service.domain}`,
      to: 'click@example.org',
      subject: 'Links',
      text: 'See https://shop.example/text',
      html: '<a href="https://shop.example/html">See</a>',
      'o:tracking-clicks': 'html',
    })
    const answer = await rig.post(`/v3/${service.domain}/messages`, form.toString(), URL_ENCODED)
    assert.equal(answer.status, 200, answer.text)
    const mail = await rig.mail('click@example.org')
    assert.match(String(mail.text), /https:\/\/shop\.example\/text/)
    assert.doesNotMatch(String(mail.html), /shop\.example\/html/)
  })
})
