/** Links to figures: what their page shows to a stranger, and what ends them (metrics-logs.md section 7). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../../test/support/service.ts'
import { createSubaccount } from '../../../../test/support/subaccounts.ts'
import { activeUser, as, cookieOf } from '../../../../test/support/users.ts'

const PATH = '/sendwright/v1/shared-figures'
const QUERY = { dimensions: ['time'], metrics: ['delivered_count'], duration: '7d' }
const DAY_MS = 86_400_000

const share = (service: TestService, json: object, headers: Record<string, string> = {}) =>
  service.call('POST', PATH, { json, headers })

/** Opens a link as a stranger. */
async function open(service: TestService, url: string) {
  const answer = await fetch(service.url + new URL(url).pathname, { redirect: 'manual' })
  return { status: answer.status, headers: answer.headers, html: await answer.text() }
}

eachDatabase((database) => {
  test('a stranger with the link sees the figure and nothing else, until it is revoked or expires', async (t) => {
    const clock = createTestClock(Date.now())
    const service = await startTestService(t, {}, { database, clock })
    await service.send({ to: ['a@example.org', 'b@example.org'], subject: 'Secret subject' })
    await eventually('counted', async () => {
      await clock.advance(1_000)
      const { body } = await service.call('POST', '/v1/analytics/metrics', { json: QUERY })
      return body.items[0]?.metrics.delivered_count === 2
    })
    const title = `<img src=x onerror=alert(1)> "&'`
    const made = await share(service, { title, query: QUERY })
    assert.equal(made.status, 200, made.text)
    const { id, url } = made.body
    assert.match(url, /\/shared\/[A-Za-z0-9_-]{43}$/)
    const { status, headers, html } = await open(service, url)
    assert.equal(status, 200)
    assert.match(html, /<h1>&lt;img src=x onerror=alert\(1\)&gt; &quot;&amp;&#39;<\/h1>/)
    assert.match(html, /\(so far\)<\/th><td>2<\/td>/)
    for (const secret of [service.domain, 'example.org', 'Secret', id, '<script', 'onerror=alert(1)>'])
      assert.ok(!html.includes(secret), secret)
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.match(headers.get('x-robots-tag') ?? '', /noindex/)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/)
    assert.equal(headers.get('set-cookie'), null)

    const token = url.split('/').at(-1) as string
    const list = await service.call('GET', PATH)
    assert.deepEqual(
      list.body.items.map((item: { id: string; title: string; query: unknown }) => [
        item.id,
        item.title,
        item.query,
      ]),
      [[id, title, QUERY]],
    )
    const audit = await service.call('GET', '/sendwright/v1/audit?action=shared-figure.create')
    assert.equal(audit.body.items.length, 1)
    for (const text of [list.text, audit.text]) assert.ok(!text.includes(token), 'the token is shown once')

    assert.equal((await service.call('DELETE', `${PATH}/${id}`)).status, 200)
    const gone = await open(service, url)
    assert.equal(gone.status, 404)
    assert.equal((await service.call('DELETE', `${PATH}/${id}`)).status, 404)

    const short = (await share(service, { title: 'Short', days: 1, query: QUERY })).body.url
    assert.equal((await open(service, short)).status, 200)
    clock.leap(DAY_MS + 1)
    const late = await open(service, short)
    const unknown = await open(service, `http://any/shared/${'x'.repeat(43)}`)
    for (const one of [late, unknown]) assert.deepEqual([one.status, one.html], [404, gone.html])
  })
})

test('a link is valid while the user or key that made it could make another', async (t) => {
  const service = await startTestService(t)
  const shown = async (url: string) => (await open(service, url)).status
  const listed = async () => (await service.call('GET', PATH)).body.items.length
  const json = { title: 'Ours', query: QUERY }
  const { id, cookie } = await activeUser(service, 'ann@example.org')
  const { url: ofUser } = (await as(service, cookie, 'POST', PATH, json)).body
  const change = (form: Record<string, string>) => service.call('PUT', `/v5/users/${id}`, { form })
  assert.equal(await shown(ofUser), 200)
  await change({ role: 'support' })
  assert.deepEqual([await shown(ofUser), await listed()], [404, 0])
  await change({ role: 'developer' })
  assert.deepEqual([await shown(ofUser), await listed()], [200, 1])
  await change({ is_disabled: 'true' })
  assert.equal(await shown(ofUser), 404)

  const { key } = (await service.call('POST', '/v1/keys', { form: { role: 'developer' } })).body
  const { url: ofKey } = (await service.call('POST', PATH, { key: key.secret, json })).body
  const session = await service.call('POST', '/sendwright/v1/session', {
    key: null,
    json: { key: key.secret },
  })
  const { url: ofSession } = (await as(service, cookieOf(session), 'POST', PATH, json)).body
  assert.deepEqual([await shown(ofKey), await shown(ofSession)], [200, 200])
  assert.equal((await service.call('DELETE', `/v1/keys/${key.id}`)).status, 200)
  assert.deepEqual([await shown(ofKey), await shown(ofSession), await listed()], [404, 404, 0])
})

test('links are of their account, of those who may change things, and few', async (t) => {
  const service = await startTestService(t)
  const { id, url } = (await share(service, { title: 'Ours', query: QUERY })).body
  const child = await createSubaccount(service, 'Child')
  const acting = { 'x-service-on-behalf-of': child }
  assert.deepEqual((await service.call('GET', PATH, { headers: acting })).body.items, [])
  assert.equal((await service.call('DELETE', `${PATH}/${id}`, { headers: acting })).status, 404)
  const theirs = (await share(service, { title: 'Theirs', query: QUERY }, acting)).body.url
  assert.equal((await open(service, theirs)).status, 200)
  const disable = `/v5/accounts/subaccounts/${child}/disable`
  assert.equal((await service.call('POST', disable)).status, 200)
  await eventually('the link ends with its account', async () => (await open(service, theirs)).status === 404)

  const { body } = await service.call('POST', '/v1/keys', { form: { role: 'support' } })
  const key = body.key.secret
  assert.equal((await service.call('GET', PATH, { key })).body.items.length, 1)
  assert.equal((await service.call('POST', PATH, { key, json: { title: 'x', query: QUERY } })).status, 403)
  assert.equal((await service.call('DELETE', `${PATH}/${id}`, { key })).status, 403)

  const bad: [object, RegExp][] = [
    [{ query: QUERY }, /title must have 1 to 100/],
    [{ title: 'x'.repeat(101), query: QUERY }, /title/],
    [{ title: 'x' }, /query must be an object/],
    [{ title: 'x', query: [] }, /query must be an object/],
    [{ title: 'x', days: 91, query: QUERY }, /days must be 1 to 90/],
    [{ title: 'x', days: 'a', query: QUERY }, /days/],
    [{ title: 'x', query: { ...QUERY, metrics: [] } }, /4 metrics at most/],
    [{ title: 'x', query: { ...QUERY, dimensions: ['time', 'tag'] } }, /one dimension/],
    [{ title: 'x', query: { ...QUERY, dimensions: ['subaccount'] } }, /subaccount/],
    [{ title: 'x', query: { ...QUERY, include_subaccounts: true } }, /no subaccounts/],
    [{ title: 'x', query: { ...QUERY, resolution: 'hour', duration: '60d' } }, /400 intervals/],
    [{ title: 'x', query: { ...QUERY, metrics: ['nothing'] } }, /invalid metric/],
    [{ title: 'x', query: { ...QUERY, end: 'x'.repeat(5_000) } }, /4096 bytes/],
  ]
  for (const [json, text] of bad) {
    const answer = await share(service, json)
    assert.deepEqual([answer.status, text.test(answer.text)], [400, true], answer.text)
  }
  for (let n = 1; n < 50; n += 1)
    assert.equal((await share(service, { title: `Link ${n}`, query: QUERY })).status, 200)
  assert.match((await share(service, { title: 'One more', query: QUERY })).text, /there are 50 links/)
  const statuses = new Set<number>()
  for (let n = 0; n < 31; n += 1) statuses.add((await open(service, url)).status)
  assert.deepEqual([...statuses], [200, 429])
})

test('a figure that has got too many intervals since is told as a page', async (t) => {
  const clock = createTestClock(Date.now())
  const service = await startTestService(t, {}, { clock })
  const start = String(Math.floor(clock.now() / 1000) - 398 * 3_600)
  const query = { dimensions: ['time'], metrics: ['delivered_count'], resolution: 'hour', start }
  const { body, text } = await share(service, { title: 'Grows', query })
  assert.ok(body.url, text)
  assert.equal((await open(service, body.url)).status, 200)
  clock.leap(4 * 3_600_000)
  const { status, headers, html } = await open(service, body.url)
  assert.deepEqual(
    [status, html, headers.get('x-robots-tag')],
    [...[404, 'This figure has become too large to be shown.\n', 'noindex, nofollow']],
  )
})

test('a table by a dimension, rates, and what is not known', async (t) => {
  const service = await startTestService(t)
  await service.send({ to: 'ann@gmail.com', 'o:tag': '<b>news</b>' })
  await eventually('counted', async () => {
    const json = { metrics: ['delivered_count'] }
    const { body } = await service.call('POST', '/v1/analytics/metrics', { json })
    return body.items[0].metrics.delivered_count === 1
  })
  const page = async (query: object) => {
    const { body, text } = await share(service, { title: 'Table', query })
    assert.ok(body.url, text)
    return (await open(service, body.url)).html
  }
  const metrics = ['accepted_count', 'delivered_count', 'delivered_rate']
  const byProvider = await page({ dimensions: ['recipient_provider'], metrics })
  assert.match(byProvider, /<th scope="row">Gmail<\/th><td>–<\/td><td>1<\/td><td>100\.00%<\/td>/)
  const byTag = await page({ dimensions: ['tag'], metrics: ['delivered_count'] })
  assert.match(byTag, /<th scope="row">&lt;b&gt;news&lt;\/b&gt;<\/th>/)
  const none = await page({ dimensions: ['tag'], metrics, start: '1000000000', end: '1000090000' })
  assert.match(none, /There was no mail in this time/)
})
