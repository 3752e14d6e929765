/** Tracking end to end: links in received mail, fetched by their reader, to events and suppressions. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { simpleParser } from 'mailparser'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

interface Scene {
  service: TestService
  sink: Sink
}

type Event = Record<string, unknown> & { 'delivery-status'?: Record<string, unknown> }

async function startScene(
  t: TestContext,
  overrides: Parameters<typeof startTestService>[2] = {},
): Promise<Scene> {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const env = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const service = await startTestService(t, env, overrides)
  for (const kind of ['open', 'click', 'unsubscribe']) {
    const form = { active: 'yes' }
    const path = `/v3/domains/${service.domain}/tracking/${kind}`
    assert.equal((await service.call('PUT', path, { form })).status, 200)
  }
  return { service, sink }
}

let scene: Scene
before(async (t) => {
  scene = await startScene(t as TestContext)
})

/** The links in the mail to an address. */
async function read({ sink }: Scene, recipient: string) {
  const message = await eventually(`mail to ${recipient}`, async () =>
    sink.messages.findLast(({ envelope }) => envelope.to.includes(recipient)),
  )
  const { html } = await simpleParser(message.raw)
  assert.ok(html)
  const field = (name: string) =>
    splitMessage(message.raw)
      .headers.filter((header) => header.name.toLowerCase() === name)
      .map(({ value }) => value)
      .join()
  return {
    pixel: /<img src="([^"]+\/o\/[^"]+)"/.exec(html)?.[1] ?? '',
    links: [...html.matchAll(/href="([^"]+\/c\/[^"]+)"/g)].map((match) => match[1] ?? ''),
    footer: /href="([^"]+\/u\/[^"]+)"/.exec(html)?.[1] ?? '',
    oneClick: /<(https?:[^>]+)>/.exec(field('list-unsubscribe'))?.[1] ?? '',
    post: field('list-unsubscribe-post'),
  }
}

const events = ({ service }: Scene, event: string, recipient: string) =>
  service.events(`?event=${event}&recipient=${recipient}`) as Promise<Event[]>

const eventsWhen = (of: Scene, event: string, recipient: string, count = 1) =>
  eventually(`${count} ${event} of ${recipient}`, async () => {
    const found = await events(of, event, recipient)
    return found.length >= count && found
  })

const READER = {
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'content-type': 'application/x-www-form-urlencoded',
}
const get = (url: string) => fetch(url, { redirect: 'manual', headers: READER })
const post = (url: string, body: string) => fetch(url, { method: 'POST', body, headers: READER })

const LONG = `https://shop.example.com/long?x=${'abc%20'.repeat(150)}`
const HTML = `<html><body><a href="https://shop.example.com/a?x=1&amp;y=2">A</a> <a href="${LONG}">B</a></body></html>`

eachDatabase((database) => {
  test('the links of a received mail work', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, { database })
    const recipient = 'alice@example.org'
    await its.service.send({ to: recipient, html: HTML, 'o:tag': 'news' })
    const mail = await read(its, recipient)
    assert.equal((await get(mail.pixel)).headers.get('content-type'), 'image/png')
    const [short = '', long = ''] = mail.links
    assert.equal((await get(short)).headers.get('location'), 'https://shop.example.com/a?x=1&y=2')
    assert.ok(long.length <= 512)
    assert.equal((await get(long)).headers.get('location'), LONG)
    await eventsWhen(its, 'opened', recipient)
    const clicks = await eventsWhen(its, 'clicked', recipient, 2)
    assert.deepEqual(
      new Set(clicks.map(({ url }) => url)),
      new Set(['https://shop.example.com/a?x=1&y=2', LONG]),
    )
    assert.equal((await get(mail.footer)).status, 200)
    assert.equal(mail.post, 'List-Unsubscribe=One-Click')
    assert.equal((await post(mail.oneClick, mail.post)).status, 200)
    assert.equal((await eventsWhen(its, 'unsubscribed', recipient)).length, 1)
    await its.service.send({ to: recipient, html: HTML })
    const [failed] = await eventsWhen(its, 'failed', recipient)
    assert.equal(failed?.['delivery-status']?.['code'], 606)
    // The reader resubscribes through the page of the same mail.
    assert.match(await (await post(mail.footer, 'action=resubscribe')).text(), /You are subscribed again/)
    await its.service.send({ to: recipient, html: HTML })
    await eventsWhen(its, 'delivered', recipient, 2)
  })
})

test('the link in a post of a mailing list unsubscribes from that list only', async () => {
  const { service } = scene
  const list = `devs@${service.domain}`
  const made = await service.call('POST', '/v3/lists', { form: { address: list } })
  assert.equal(made.status, 200, made.text)
  const members = JSON.stringify(['ann@example.org', 'bob@example.org'])
  await service.call('POST', `/v3/lists/${list}/members.json`, { form: { members } })
  await service.send({ to: list, html: HTML })
  const mail = await read(scene, 'ann@example.org')
  assert.match(
    await (await get(mail.oneClick)).text(),
    new RegExp(`Stop mail of the mailing list <strong>${list}`),
  )
  assert.equal((await post(mail.oneClick, mail.post)).status, 200)
  const [left] = await eventsWhen(scene, 'unsubscribed', 'ann@example.org')
  const listOfEvent = left?.['mailing-list'] as Record<string, unknown> | undefined
  assert.equal(listOfEvent?.['address'], list)
  const member = await service.call('GET', `/v3/lists/${list}/members/ann@example.org`)
  assert.equal(member.body.member.subscribed, false)
  assert.equal((await service.call('GET', `/v3/${service.domain}/unsubscribes/ann@example.org`)).status, 404)
  await post(mail.oneClick, 'action=resubscribe')
  const again = await service.call('GET', `/v3/lists/${list}/members/ann@example.org`)
  assert.equal(again.body.member.subscribed, true)
})

test('a mail opened days after its stored message was removed still creates an event', async (t) => {
  const clock = createTestClock()
  const its = await startScene(t, { clock })
  const recipient = 'late@example.org'
  const ticking = <T>(what: string, look: () => Promise<T | null | undefined | false>) =>
    eventually(what, async () => {
      await clock.advance(50)
      return look()
    })
  await its.service.send({ to: recipient, html: HTML, 'o:tag': 'news', 'v:order': '17' })
  const [delivered] = await ticking('delivered', async () => {
    const found = await events(its, 'delivered', recipient)
    return found.length > 0 && found
  })
  const mail = await read(its, recipient)
  assert.ok(delivered)
  const { url } = delivered['storage'] as { url: string }
  const stored = async () => (await its.service.call('GET', new URL(url).pathname)).status
  assert.equal(await stored(), 200)
  clock.leap(8 * 86_400_000)
  await clock.advance(1)
  clock.leap(11 * 60_000)
  await clock.advance(1)
  await ticking('the message removed', async () => (await stored()) === 404)
  await get(mail.pixel)
  await post(mail.oneClick, mail.post)
  for (const name of ['opened', 'unsubscribed']) {
    const [event] = await ticking(name, async () => {
      const found = await events(its, name, recipient)
      return found.length > 0 && found
    })
    assert.deepEqual(event?.['user-variables'], { order: '17' })
    assert.deepEqual(event?.['tags'], name === 'opened' ? ['news'] : ['*'])
    assert.equal(event?.['delivered-at'], name === 'opened' ? delivered['timestamp'] : undefined)
    assert.equal((event?.['client-info'] as Event | undefined)?.['bot'], '')
  }
})
