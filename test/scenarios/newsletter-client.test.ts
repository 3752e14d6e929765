/**
 * A newsletter as a publishing product sends it with the public JavaScript client: one call with recipient variables,
 * its own unsubscribe fields and open tracking; then the mails as received; then the events, polled page by page.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { type ParsedMail, simpleParser } from 'mailparser'
import { eachDatabase } from '../support/databases.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { createSink, type SinkMessage } from '../support/smtp-sink.ts'

const READERS = ['alice', 'bob', 'carol', 'dave', 'erin'].map((name, index) => ({
  address: `${name}@example.org`,
  name,
  list_unsubscribe: `https://blog.example/unsubscribe/?uuid=${index}&newsletter=weekly`,
}))
const EMAIL_ID = '65a1f0c2d3b4e5f6a7b8c9d0'
const TAGS = ['bulk-email', 'blog-email']
const EVENTS_PER_PAGE = 3
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

type Client = ReturnType<Mailgun['client']>
type Event = Awaited<ReturnType<Client['events']['get']>>['items'][number]

eachDatabase((database) => {
  test('a newsletter by the JavaScript client: sent, received, opened, polled', async (t) => {
    const sink = await createSink({ host: ownAddress() })
    t.after(() => sink.close())
    const env = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
    const service = await startTestService(t, env, { database })
    const { domain } = service
    const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
    const begin = Date.now() / 1000 - 60

    const { id } = await client.messages.create(domain, {
      to: READERS.map(({ address }) => address),
      from: `Blog <noreply@${domain}>`,
      'h:Reply-To': `editor@${domain}`,
      subject: 'Weekly, for %recipient.name%',
      html: '<p>Dear %recipient.name%,</p><p><a href="%recipient.list_unsubscribe%">Unsubscribe</a></p>',
      text: 'Dear %recipient.name%, unsubscribe at %recipient.list_unsubscribe%',
      'recipient-variables': JSON.stringify(
        Object.fromEntries(READERS.map(({ address, ...variables }) => [address, variables])),
      ),
      'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
      'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      'v:email-id': EMAIL_ID,
      'o:tag': TAGS,
      'o:tracking-opens': true,
    })
    assert.match(id ?? '', /^<.+@.+>$/)

    await sink.waitFor(READERS.length)
    const opened = await Promise.all(READERS.map((reader) => checkMail(sink.messages, reader, domain)))
    for (const pixel of opened.slice(0, 2)) {
      const answer = await fetch(pixel, { headers: { 'user-agent': BROWSER } })
      assert.equal(answer.headers.get('content-type'), 'image/png')
    }

    const events = await eventually('all events', async () => {
      const found = await poll(client, domain, begin)
      return found.length === READERS.length + 2 && found
    })
    checkEvents(events, id ?? '')
  })
})

/** Checks that the mail of one reader has only that reader's data. Returns the URL of its pixel. */
async function checkMail(
  messages: readonly SinkMessage[],
  { address, name, list_unsubscribe }: (typeof READERS)[number],
  domain: string,
): Promise<string> {
  const own = messages.filter(({ envelope }) => envelope.to.includes(address))
  assert.equal(own.length, 1, address)
  const { raw, envelope } = own[0] as SinkMessage
  assert.deepEqual(envelope.to, [address])
  const mail = await simpleParser(raw)
  assert.equal(mail.subject, `Weekly, for ${name}`)
  assert.equal(mail.replyTo?.text, `editor@${domain}`)
  assert.deepEqual(
    [mail.to].flat().map((to) => to?.text),
    [address],
  )
  for (const other of READERS) if (other.address !== address) assert.ok(!raw.includes(other.address))
  assert.equal(mail.text?.trim(), `Dear ${name}, unsubscribe at ${list_unsubscribe}`)

  const [web, mailto, ...more] = unfolded(mail, 'List-Unsubscribe').split(/,\s*/)
  assert.equal(web, `<${list_unsubscribe}>`)
  assert.match(mailto ?? '', new RegExp(`^<mailto:unsub\\+[a-z0-9]+@${domain.replaceAll('.', '\\.')}>$`))
  assert.deepEqual(more, [], 'nothing is added to what the sender gives')
  assert.equal(unfolded(mail, 'List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  assert.deepEqual(JSON.parse(unfolded(mail, 'X-Service-Variables')), { 'email-id': EMAIL_ID })
  assert.deepEqual(
    mail.headerLines.filter(({ key }) => key === 'x-service-tag').map(({ line }) => line.split(': ')[1]),
    TAGS,
  )
  assert.match(String(mail.html), new RegExp(`<p>Dear ${name},</p>`))
  const pixel = /<img src="([^"]+\/o\/[^"]+)"/.exec(String(mail.html))?.[1]
  assert.ok(pixel, 'a pixel')
  return pixel
}

function unfolded(mail: ParsedMail, name: string): string {
  const lines = mail.headerLines.filter(({ key }) => key === name.toLowerCase())
  assert.equal(lines.length, 1, name)
  return (lines[0]?.line ?? '')
    .slice(name.length + 1)
    .replace(/\r?\n/g, '')
    .trim()
}

/** As publishing products poll: by the page token of the page before, until a page is empty. */
async function poll(client: Client, domain: string, begin: number): Promise<Event[]> {
  const query = {
    limit: EVENTS_PER_PAGE,
    event: 'delivered OR opened OR failed OR unsubscribed OR complained',
    tags: TAGS.join(' AND '),
    begin: String(begin),
    end: String(Date.now() / 1000 + 60),
    ascending: 'yes' as const,
  }
  const all: Event[] = []
  let page = await client.events.get(domain, query)
  while (page.items.length > 0) {
    assert.ok(page.items.length <= EVENTS_PER_PAGE)
    const times = page.items.map(({ timestamp }) => timestamp)
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
      'oldest first',
    )
    all.push(...page.items)
    assert.ok(page.pages.next.page, 'a token of the next page')
    page = await client.events.get(domain, { page: page.pages.next.page, ...query })
  }
  return all
}

function checkEvents(events: readonly Event[], id: string): void {
  const recipients = (name: string) =>
    events
      .filter(({ event }) => event === name)
      .map(({ recipient }) => recipient)
      .sort()
  assert.deepEqual(
    recipients('delivered'),
    READERS.map(({ address }) => address),
  )
  assert.deepEqual(
    recipients('opened'),
    READERS.slice(0, 2).map(({ address }) => address),
  )
  assert.equal(new Set(events.map((event) => event.id)).size, events.length, 'no event on two pages')
  // From page to page, events newer than the first page may step back by the duration of a commit (decision 7).
  const steps = events.slice(1).map(({ timestamp }, at) => timestamp - (events[at]?.timestamp ?? 0))
  assert.ok(
    steps.every((step) => step > -1),
    `in order of time: ${steps}`,
  )
  for (const event of events) {
    assert.deepEqual(event.tags, TAGS)
    assert.deepEqual(event['user-variables'], { 'email-id': EMAIL_ID })
    assert.equal(`<${event.message.headers['message-id']}>`, id)
  }
}
