import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { deliveredAt, eventStatement, NOW_MS } from '../../../test/support/events.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { openPostgres } from '../../platform/store/postgres/postgres.ts'
import { rangeOf } from './routes.ts'

interface Listed {
  id: string
  timestamp: number
  event: string
}

async function list(service: TestService, path: string): Promise<{ items: Listed[]; paging: Paging }> {
  const { status, body } = await service.call('GET', path.replace(service.config.publicUrl, ''))
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

type Paging = Record<'first' | 'last' | 'next' | 'previous', string>

const encoded = (fields: Record<string, string>) => `?${new URLSearchParams(fields)}`

/** Sends `count` messages and waits until each is delivered. */
async function sendSome(service: TestService, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const sent = await service.send({ 'o:tag': ['news', `issue-${index}`], 'o:testmode': 'yes' })
    assert.equal(sent.status, 200)
  }
  await eventually('all delivered', async () => (await service.events('?event=delivered')).length === count)
}

test('events over HTTP', async (t) => {
  const service = await startTestService(t)
  const events = `/v3/${service.domain}/events`
  await sendSome(service, 3)

  await t.test('links are absolute, on the base URL, with a token of one path part', async () => {
    const { items, paging } = await list(service, events)
    assert.equal(items.length, 6)
    assert.deepEqual(Object.keys(paging).sort(), ['first', 'last', 'next', 'previous'])
    for (const url of Object.values(paging)) {
      assert.equal(url.startsWith(`${service.config.publicUrl}${events}/`), true, url)
      assert.match(url.split('/').at(-1) ?? '', /^[A-Za-z0-9_=-]+$/)
    }
    assert.deepEqual((await list(service, paging.next)).items, [])
    assert.deepEqual((await list(service, paging.previous)).items, [])
  })

  await t.test('newsletter analytics: a range, event names, tags, then page tokens', async () => {
    const seconds = Math.floor(Date.now() / 1000)
    const query = encoded({
      begin: String(seconds - 3600),
      end: String(seconds + 60),
      ascending: 'yes',
      event: 'delivered OR opened OR failed OR unsubscribed OR complained',
      tags: 'news AND issue-1',
      limit: '300',
    })
    const page = await list(service, events + query)
    assert.deepEqual(
      page.items.map(({ event }) => event),
      ['delivered'],
    )
    assert.deepEqual((await list(service, page.paging.next)).items, [])
  })

  await t.test(
    'the token is also accepted as a query parameter; other parameters are then ignored',
    async () => {
      const { items, paging } = await list(service, `${events}?limit=4&event=accepted`)
      const token = paging.first.split('/').at(-1) ?? ''
      const again = await list(service, events + encoded({ page: token, event: 'failed', limit: '1' }))
      assert.deepEqual(again.items, items)
      const path = await list(service, `${events}/${token}?event=failed&limit=1`)
      assert.deepEqual(path.items, items)
    },
  )

  await t.test('the timestamp of an event as begin and end names that event', async () => {
    const [one] = (await list(service, events)).items
    const at = String(one?.timestamp)
    const { items } = await list(service, events + encoded({ begin: at, end: at }))
    assert.equal(
      items.some(({ id }) => id === one?.id),
      true,
    )
    const date = new Date(Date.now() - 60_000).toUTCString()
    assert.equal((await list(service, events + encoded({ begin: date, ascending: 'yes' }))).items.length, 6)
  })

  await t.test('mailgun.js reads events and follows pages', async () => {
    const quiet = { ...console, warn: () => {} }
    // The client warns about every deprecated call.
    const { warn } = console
    console.warn = quiet.warn
    t.after(() => {
      console.warn = warn
    })
    const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
    const seen: string[] = []
    let page = await client.events.get(service.domain, { ascending: 'yes', limit: 4 })
    const sizes: number[] = []
    while (page.items.length > 0) {
      sizes.push(page.items.length)
      seen.push(...page.items.map((item) => String(item['id'])))
      page = await client.events.get(service.domain, { page: page.pages.next.page })
    }
    assert.deepEqual(sizes, [4, 2])
    assert.equal(new Set(seen).size, 6)
    const back = await client.events.get(service.domain, { page: page.pages.previous.page })
    assert.equal(back.items.length, 4)
  })

  await t.test('errors have the texts of the contract', async () => {
    const faults: [string, string][] = [
      ['limit=301', 'limit must be between 1 and 300'],
      ['limit=0', 'limit must be between 1 and 300'],
      ['limit=many', 'limit must be between 1 and 300'],
      ['begin=yesterday&ascending=yes', 'yesterday is not an RFC-2822 compliant date'],
      ['begin=1', 'ascending is required when end is not given'],
      ['begin=1&end=2&ascending=no', 'ascending contradicts the time range'],
      ['begin=2&end=1&ascending=yes', 'ascending contradicts the time range'],
      ['ascending=perhaps', 'Invalid format for parameter ascending: perhaps'],
      ['page=abc', 'Invalid page token'],
      ['colour=red', "'colour' is not a valid filter predicate attribute"],
      ['event=deliverd', "no event is named 'deliverd' (did you mean delivered?)"],
      ['event=failed%20OR%20Oppened', "no event is named 'oppened' (did you mean opened?)"],
      ['event=a%20OR', 'invalid filter expression for event'],
      [`subject=${'a'.repeat(1501)}`, 'invalid filter expression for subject'],
      [`tags=${'x'.repeat(1400)}&subject=${'y'.repeat(1400)}`, 'invalid filter expression for subject'],
    ]
    for (const [query, message] of faults) {
      const { status, body } = await service.call('GET', `${events}?${query}`)
      assert.deepEqual([status, body], [400, { message }], query.slice(0, 40))
    }
    assert.deepEqual((await service.call('GET', `${events}/abc`)).body, { message: 'Invalid page token' })
    const unknown = await service.call('GET', '/v3/nowhere.example.com/events')
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
    assert.equal((await service.call('GET', `${events}?pretty=yes&begin=&limit=&event=`)).status, 200)
    assert.equal((await service.call('GET', events, { key: null })).status, 401)
  })

  await t.test('the longest filters make links that are served', async () => {
    const query = encoded({ tags: '"ü'.repeat(1).concat('ü'.repeat(900), '"'), limit: '1', ascending: 'yes' })
    const { paging } = await list(service, events + query)
    for (const url of Object.values(paging)) assert.deepEqual((await list(service, url)).items, [])
  })

  await t.test('a changed token is refused, and one of another domain', async () => {
    const { paging } = await list(service, events)
    const url = paging.next.replace(service.config.publicUrl, '')
    const last = url.at(-5) === 'A' ? 'B' : 'A'
    const changed = url.slice(0, -5) + last + url.slice(-4)
    assert.equal((await service.call('GET', changed)).status, 400)
  })
})

test('events of a deleted domain stay readable, also on PostgreSQL', async (t) => {
  const service = await startTestService(t, {}, { database: 'postgres' })
  await sendSome(service, 2)
  const { accountId } = service.service.first
  const store = await openPostgres(service.config.databaseUrl ?? '')
  try {
    const offset = Date.now() - NOW_MS - 60_000
    const about = { accountId, domainName: 'gone.example.com' }
    const kept = Array.from({ length: 5 }, (_, index) => deliveredAt(offset + index, 'a@x.org', {}, about))
    await store.commit(kept.map(eventStatement))
    const { items, paging } = await list(service, '/v3/Gone.Example.com/events?limit=3')
    const rest = await list(service, paging.next)
    assert.deepEqual(
      [...items, ...rest.items].map(({ id }) => id),
      kept.map(({ id }) => id).reverse(),
    )
    const foreign = paging.next
      .replace(service.config.publicUrl, '')
      .replace('gone.example.com', service.domain)
    assert.deepEqual((await service.call('GET', foreign)).body, { message: 'Invalid page token' })
    // Ascending pages wait for all open transactions on the server, including those of other tests.
    await eventually('an ascending page with an event', async () => {
      const page = await list(service, `/v3/${service.domain}/events?ascending=yes&limit=1`)
      return page.items.length === 1
    })
  } finally {
    await store.close()
  }
})

test('begin, end and ascending give range and direction', () => {
  const cases: [
    number | null,
    number | null,
    boolean | undefined,
    [number | null, number | null, boolean],
  ][] = [
    [1, 5, undefined, [1, 5, true]],
    [1, 5, true, [1, 5, true]],
    [5, 1, undefined, [1, 5, false]],
    [5, 1, false, [1, 5, false]],
    [5, 5, false, [5, 5, false]],
    [5, null, true, [5, null, true]],
    [5, null, false, [null, 5, false]],
    [null, null, undefined, [null, null, false]],
    [null, null, true, [null, null, true]],
    [null, 5, undefined, [5, null, false]],
    [null, 5, true, [null, 5, true]],
  ]
  for (const [begin, end, ascending, [lowUs, highUs, upwards]] of cases) {
    assert.deepEqual(rangeOf(begin, end, ascending), { lowUs, highUs, ascending: upwards })
  }
})
