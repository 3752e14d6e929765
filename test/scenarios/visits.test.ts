/** Requests of recipients, end to end: pixel, link and unsubscribe link, to events, webhooks and suppressions. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { newId } from '../../src/base/ids.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { LINK_SECRET, linksOf, testTokens } from '../support/links.ts'
import { writeMmdb } from '../support/mmdb.ts'
import { fetchRepeatedly } from '../support/repeated-fetches.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const TARGET = 'https://shop.example.com/a?x=1&y=%20z#end'

interface Scene {
  service: TestService
  sink: Sink
  receiver: Receiver
}

async function startScene(t: TestContext, database: 'sqlite' | 'postgres'): Promise<Scene> {
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver()
  t.after(() => Promise.all([sink.close(), receiver.close()]))
  const geo = join(await temporaryFolder(t), 'places.mmdb')
  await writeFile(
    geo,
    writeMmdb([
      [
        '192.0.2.0/24',
        {
          country: { iso_code: 'DE' },
          subdivisions: [{ iso_code: 'BE' }],
          city: { names: { en: 'Berlin' } },
          location: { time_zone: 'Europe/Berlin' },
        },
      ],
    ]),
  )
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_SECRET: LINK_SECRET,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8',
      SENDWRIGHT_GEO_DATABASE: geo,
    },
    { database },
  )
  for (const id of ['opened', 'clicked', 'unsubscribed']) {
    const form = { id, url: `${receiver.url}/${id}` }
    assert.equal((await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })).status, 200)
  }
  return { service, sink, receiver }
}

let scene: Scene
before(async (t) => {
  scene = await startScene(t as TestContext, 'sqlite')
})

let sent = 0

/** Sends a mail to a new recipient; resolves once its delivery is recorded. */
async function mail({ service, sink }: Scene, form: Record<string, string | string[]> = {}) {
  const recipient = `reader${++sent}@example.org`
  const answer = await service.send({ to: recipient, 'o:tag': ['News', 'weekly'], 'v:order': '17', ...form })
  assert.equal(answer.status, 200, answer.text)
  const message = await eventually('the mail', async () =>
    sink.messages.find(({ envelope }) => envelope.to.includes(recipient)),
  )
  await eventually(
    'its delivered event',
    async () => (await eventsOf({ service }, 'delivered', recipient))[0],
  )
  return {
    recipient,
    links: await linksOf(service, message),
    messageId: answer.body.id.slice(1, -1) as string,
  }
}

type Event = Record<string, unknown>

const eventsOf = ({ service }: Pick<Scene, 'service'>, event: string, recipient: string): Promise<Event[]> =>
  service.events(`?event=${event}&recipient=${recipient}`)

const oneEvent = (of: Pick<Scene, 'service'>, event: string, recipient: string, count = 1) =>
  eventually(`${count} ${event} of ${recipient}`, async () => {
    const events = await eventsOf(of, event, recipient)
    return events.length >= count && events
  })

const VISITOR = { 'user-agent': FIREFOX, 'x-forwarded-for': '192.0.2.44' }

const visit = (url: string, init: RequestInit = {}) =>
  fetch(url, {
    redirect: 'manual',
    ...init,
    headers: { ...VISITOR, ...(init.headers as Record<string, string>) },
  })

const post = (url: string, body: string) =>
  visit(url, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } })

const oneClick = (url: string) => post(url, 'List-Unsubscribe=One-Click')

function assertPublic(headers: Headers): void {
  assert.equal(headers.get('referrer-policy'), 'no-referrer')
  assert.match(headers.get('x-robots-tag') ?? '', /noindex/)
  assert.equal(headers.get('x-frame-options'), 'DENY')
  assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/)
  assert.doesNotMatch(headers.get('content-security-policy') ?? '', /script-src/)
  assert.match(headers.get('cache-control') ?? '', /no-store/)
  assert.equal(headers.get('set-cookie'), null)
}

eachDatabase((database) => {
  test('pixel, link and unsubscribe link become events, webhooks and a suppression', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, database)
    const { service, receiver } = its
    const { recipient, links, messageId } = await mail(its)
    const pixel = await visit(links.open)
    assert.equal(pixel.status, 200)
    const click = await visit(links.click(TARGET))
    assert.deepEqual([click.status, click.headers.get('location')], [302, TARGET])
    const left = await oneClick(links.unsubscribe())
    assert.deepEqual([left.status, await left.text(), left.headers.get('set-cookie')], [200, '', null])

    const common = {
      'log-level': 'info',
      recipient,
      'recipient-domain': 'example.org',
      'recipient-provider': 'Other',
      campaigns: [],
      'user-variables': { order: '17' },
      message: { headers: { 'message-id': messageId } },
      ip: '192.0.2.44',
      geolocation: { country: 'DE', region: 'BE', city: 'Berlin', timezone: 'Europe/Berlin' },
    }
    const client = {
      'client-name': 'Firefox',
      'client-os': 'Linux',
      'client-type': 'browser',
      'device-type': 'desktop',
      'user-agent': FIREFOX,
    }
    const [delivered] = await eventsOf(its, 'delivered', recipient)
    for (const [name, more] of [
      ['opened', { tags: ['News', 'weekly'] }],
      ['clicked', { tags: ['News', 'weekly'], url: TARGET }],
      ['unsubscribed', { tags: ['*'] }],
    ] as const) {
      const events = await oneEvent(its, name, recipient)
      assert.equal(events.length, 1)
      const { id, timestamp, 'delivered-at': deliveredAt, 'client-info': info, ...rest } = events[0] as Event
      assert.match(String(id), /^[-\w]{22}$/)
      assert.ok(Math.abs(Number(timestamp) * 1000 - Date.now()) < 60_000)
      assert.equal(deliveredAt, name === 'unsubscribed' ? undefined : delivered?.['timestamp'])
      const { bot, ...described } = info as Record<string, string>
      assert.deepEqual(described, client)
      // Within two seconds of the delivery an open or click counts as a bot's; the exact moment depends on the test.
      assert.ok(bot === '' || (bot === 'generic' && name !== 'unsubscribed'))
      assert.deepEqual(rest, { event: name, ...common, ...more })
    }

    const key = (await service.call('GET', '/v5/accounts/http_signing_key')).body.http_signing_key
    for (const name of ['opened', 'clicked', 'unsubscribed']) {
      const received = await eventually(`the webhook of ${name}`, async () =>
        receiver.posts.find(
          ({ path, body }) => path === `/${name}` && body['event-data'].recipient === recipient,
        ),
      )
      const { signature } = received.body
      const expected = createHmac('sha256', key)
        .update(signature.timestamp + signature.token)
        .digest('hex')
      assert.equal(signature.signature, expected)
      const { account, domain, ...data } = received.body['event-data']
      assert.deepEqual([account.id, domain.name], [service.service.first.accountId, service.domain])
      assert.deepEqual(data, (await eventsOf(its, name, recipient))[0])
    }

    const listed = await service.call('GET', `/v3/${service.domain}/unsubscribes/${recipient}`)
    assert.deepEqual(listed.body.tags, ['*'])
    await service.send({ to: recipient })
    const [failed] = await oneEvent(its, 'failed', recipient)
    assert.ok(failed)
    assert.equal(failed['reason'], 'suppress-unsubscribe')
    assert.equal((failed['delivery-status'] as Event)['code'], 606)
  })
})

test('the pixel is a transparent png, also for a bad token and for HEAD, which does not count as an open', async () => {
  const { recipient, links } = await mail(scene)
  for (const url of [links.open, `${scene.service.url}/o/forged`]) {
    const answer = await visit(url)
    const bytes = Buffer.from(await answer.arrayBuffer())
    assert.equal(answer.headers.get('content-type'), 'image/png')
    assert.equal(answer.headers.get('cache-control'), 'no-store, no-cache, must-revalidate')
    assert.equal(bytes.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n')
    assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [1, 1])
    assertPublic(answer.headers)
  }
  const head = await visit(links.open, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text(), head.headers.get('content-type')], [200, '', 'image/png'])
  await visit(links.open)
  // The HEAD created no event. Both opens are a bot's: one right after the delivery, one after the HEAD.
  const events = await oneEvent(scene, 'opened', recipient, 2)
  assert.equal(events.length, 2)
  assert.deepEqual(
    events.map((event) => (event['client-info'] as Event | undefined)?.['bot']),
    ['generic', 'generic'],
  )
})

test('HEAD redirects to the target and is not a click; a target is repeated byte for byte', async () => {
  const { recipient, links } = await mail(scene)
  const head = await visit(links.click(TARGET), { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('location')], [302, TARGET])
  assertPublic(head.headers)
  for (const [target, location] of [
    ['HTTP://Shop.Example.com:80/%2e%2E/ü', 'http://shop.example.com/%C3%BC'],
    ["http://user@shop.example.com/~a'b(c)?q[]=1|2", "http://user@shop.example.com/~a'b(c)?q[]=1|2"],
    ['https://shop.example.com/\r\nSet-Cookie: a=b', 'https://shop.example.com/Set-Cookie:%20a=b'],
  ] as const) {
    const answer = await visit(links.click(target))
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, location])
    assert.equal(answer.headers.get('set-cookie'), null)
  }
  const events = await oneEvent(scene, 'clicked', recipient, 3)
  assert.equal(events.length, 3)
})

test('a redirect goes to http and https alone, and only for an authentic token', async () => {
  const { recipient, links } = await mail(scene)
  const sealed = [
    'javascript:alert(1)',
    'data:text/html,x',
    '//evil.example',
    'https:evil.example',
    'ftp://a/b',
    '',
  ]
  const forged = [
    `${scene.service.url}/c/forged`,
    `${links.click(TARGET)}A`,
    links.open.replace('/o/', '/c/'),
  ]
  for (const url of [...sealed.map(links.click), ...forged]) {
    const answer = await visit(url)
    assert.equal(answer.status, 404, url)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
    assert.equal(answer.headers.get('location'), null)
    assertPublic(answer.headers)
  }
  await visit(links.click(TARGET))
  const events = await oneEvent(scene, 'clicked', recipient)
  assert.deepEqual(
    events.map(({ url }) => url),
    [TARGET],
  )
})

test('links work for a delivery that is no longer known, without an event', async () => {
  const gone = newId()
  const { url } = scene.service
  const click = await visit(`${url}/c/${testTokens.click(gone, { url: TARGET })}`)
  assert.equal(click.headers.get('location'), TARGET)
  assert.equal((await visit(`${url}/o/${testTokens.open(gone)}`)).status, 200)
})

test('a loop on one link is still redirected, but does not fill the database', async () => {
  const { recipient, links } = await mail(scene)
  const url = links.click(TARGET)
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => visit(url)))
    for (const answer of answers) assert.equal(answer.status, 302)
  }
  await visit(links.open)
  // The open was written after all clicks.
  await oneEvent(scene, 'opened', recipient)
  const clicks = await eventsOf(scene, 'clicked', recipient)
  // Sixty a minute, and a new minute may have begun meanwhile.
  assert.ok(clicks.length >= 60 - 16 && clicks.length <= 120, String(clicks.length))
})

test('other methods are refused by their path', async () => {
  const { links } = await mail(scene)
  for (const [url, method, allow] of [
    [links.open, 'POST', 'GET, HEAD'],
    [links.click(TARGET), 'POST', 'GET, HEAD'],
    [links.click(TARGET), 'DELETE', 'GET, HEAD'],
    [links.unsubscribe(), 'PUT', 'GET, HEAD, POST'],
  ] as const) {
    const answer = await visit(url, { method })
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow])
  }
})

test('R46: ten thousand fetches of unsubscribe links change nothing', async () => {
  const { service } = scene
  const list = `r46@${service.domain}`
  assert.equal((await service.call('POST', '/v3/lists', { form: { address: list } })).status, 200)
  const { recipient, links } = await mail(scene)
  const member = { address: recipient }
  assert.equal((await service.call('POST', `/v3/lists/${list}/members`, { form: member })).status, 200)
  await service.send({ to: list })
  const copy = await eventually('the copy of the list', async () => {
    const events = await eventsOf(scene, 'delivered', recipient)
    return events.find((event) => 'mailing-list' in event)
  })
  const { sid } = copy['mailing-list'] as { sid: string }
  const url = links.unsubscribe()
  const urls = [
    url,
    links.unsubscribe({ scope: 'tags', tags: ['News'] }),
    links.unsubscribe({ scope: 'list', listSid: sid }),
  ]
  assert.deepEqual([...(await fetchRepeatedly(urls, 10_000))], [[200, 10_000]])
  const listed = await service.call('GET', `/v3/${service.domain}/unsubscribes`)
  assert.ok(listed.body.items.every(({ address }: Event) => address !== recipient))
  const { body } = await service.call('GET', `/v3/lists/${list}/members/${recipient}`)
  assert.equal(body.member.subscribed, true)
  assert.deepEqual(await eventsOf(scene, 'unsubscribed', recipient), [])
  const page = await visit(url)
  const html = await page.text()
  assertPublic(page.headers)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(html, /<button type="submit">Unsubscribe<\/button>/)
  assert.doesNotMatch(html, /<script|javascript:|\son\w+=/i)
  assert.ok(!html.includes(recipient) && html.includes('r***@example.org'))
})

test('one-click works as a form of either kind, from a foreign origin, and creates one event', async () => {
  const { recipient, links } = await mail(scene)
  const url = links.unsubscribe({ scope: 'tags', tags: ['News', 'weekly'] })
  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  const first = await visit(url, {
    method: 'POST',
    body: form,
    headers: { origin: 'https://webmail.example' },
  })
  assert.deepEqual([first.status, await first.text()], [200, ''])
  assert.equal((await oneClick(url)).status, 200)
  const events = await oneEvent(scene, 'unsubscribed', recipient)
  assert.deepEqual(
    events.map(({ tags }) => tags),
    [['News', 'weekly']],
  )
})

test('a POST with an empty, unknown or too large body, or with its fields in the URL, changes nothing', async () => {
  const { recipient, links } = await mail(scene)
  const url = links.unsubscribe()
  assert.equal((await post(url, '')).status, 400)
  assert.equal((await post(`${url}?List-Unsubscribe=One-Click`, 'a=b')).status, 400)
  assert.equal((await post(`${url}?action=unsubscribe`, '')).status, 400)
  assert.equal((await post(url, 'action=delete')).status, 400)
  assert.equal((await post(url, `List-Unsubscribe=One-Click&x=${'y'.repeat(8192)}`)).status, 413)
  assert.equal((await oneClick(`${scene.service.url}/u/forged`)).status, 404)
  const listed = await scene.service.call('GET', `/v3/${scene.service.domain}/unsubscribes/${recipient}`)
  assert.equal(listed.status, 404)
})

test('undoing is limited, and does not remove what the sender added', async () => {
  const { recipient, links } = await mail(scene)
  const { service } = scene
  const url = links.unsubscribe()
  await service.call('POST', `/v3/${service.domain}/unsubscribes`, { form: { address: recipient } })
  assert.match(await (await visit(url)).text(), /You are unsubscribed/)
  assert.match(await (await post(url, 'action=resubscribe')).text(), /Still unsubscribed/)
  const statuses: number[] = []
  for (let round = 0; round < 12; round++) statuses.push((await post(url, 'action=resubscribe')).status)
  assert.ok(statuses.includes(429))
})

test('HTTPS in front gets Strict-Transport-Security, plain HTTP does not', async () => {
  const { links } = await mail(scene)
  const secure = await visit(links.open, { headers: { 'x-forwarded-proto': 'https' } })
  assert.equal(secure.headers.get('strict-transport-security'), 'max-age=31536000')
  assert.equal((await visit(links.open)).headers.get('strict-transport-security'), null)
})

test('any host name will do', async () => {
  const { links } = await mail(scene)
  const { hostname, port, pathname } = new URL(links.click(TARGET))
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { host: 'email.mg.example.com' }
    const asked = request({ hostname, port, path: pathname, headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject).end()
  })
  assert.equal(status, 302)
})
