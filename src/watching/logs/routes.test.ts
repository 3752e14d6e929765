// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { addAccount } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { readCsv } from '../../base/csv.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { readLogQuery } from './log-query.ts'
import { type LogPageRequest, openLogPage, sealLogPage } from './log-token.ts'

interface Item {
  id: string
  event: string
  recipient: string
  [member: string]: unknown
}

const PATH = '/v1/analytics/logs'
const filter = (attribute: string, comparator: string, ...values: string[]) => ({
  AND: [{ attribute, comparator, values: values.map((value) => ({ label: value, value })) }],
})

async function start(t: TestContext, database: 'sqlite' | 'postgres') {
  const service = await startTestService(t, {}, { database })
  const list = (json: object) => service.call('POST', PATH, { json })
  return { service, list }
}

/** Sends to each, and waits until all are delivered. */
async function deliver(
  service: TestService,
  recipients: readonly string[],
  form: Record<string, string> = {},
) {
  for (const to of recipients) assert.equal((await service.send({ to, ...form })).status, 200)
  await eventually('all are delivered', async () => {
    const found = await service.events('?event=delivered&limit=300')
    return recipients.every((recipient) => found.some((event) => event['recipient'] === recipient))
  })
}

const recipientsIn = (items: readonly Item[]) => items.map(({ recipient }) => recipient)

const openStream = (
  service: TestService,
  query: string,
  signal: AbortSignal,
  { key = service.key, last = '' } = {},
) =>
  fetch(`${service.url}/sendwright/v1/events/stream${query}`, {
    headers: {
      authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}`,
      'last-event-id': last,
    },
    signal,
  })

/** The events of a stream until `count` have come; `open`: called once it is open. `last`: its header Last-Event-ID. */
async function streamed(
  service: TestService,
  query: string,
  count: number,
  open: () => Promise<void>,
  last = '',
) {
  const aborter = new AbortController()
  const response = await openStream(service, query, aborter.signal, { last })
  assert.equal(response.status, 200)
  const items: Item[] = []
  let text = ''
  let isOpen = false
  for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream(),
  )) {
    if (!isOpen) await open()
    isOpen = true
    text += chunk
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const [, id, data] = /^event: events\nid: (.*)\ndata: (.*)$/s.exec(frame) ?? []
      if (data !== undefined) items.push(...JSON.parse(data).items)
      if (data !== undefined) assert.equal(id, items.at(-1)?.id)
    }
    if (items.length >= count) break
  }
  aborter.abort()
  return items
}

test('three accounts that take every stream leave one to a fourth, and lose one of theirs', async (t) => {
  const service = await startTestService(t)
  const aborter = new AbortController()
  t.after(() => aborter.abort())
  const open = (key: string) => openStream(service, '', aborter.signal, { key })
  const greedy: Response[] = []
  for (const [key, count] of [
    [service.key, 20],
    [addAccount(service).key, 20],
    [addAccount(service).key, 10],
  ] as const)
    for (let n = 0; n < count; n++) greedy.push(await open(key))
  assert.deepEqual([...new Set(greedy.map(({ status }) => status))], [200])
  assert.equal((await open(addAccount(service).key)).status, 200)
  await greedy[0]?.text()
  const refused = await open(service.key)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '10'])
  assert.match(await refused.text(), /an account has at most 20, and all share 50 evenly/)
})

eachDatabase((database) => {
  test('a stream has the events of any filter from its opening on, once each, and an account has a few', async (t) => {
    const { service } = await start(t, database)
    await deliver(service, ['before@example.org'], { subject: 'Rare before' })
    // On PostgreSQL events come that were committed while an older transaction, of any database, was open.
    const words = { sqlite: 'rare', postgres: 'rare one' }[database]
    const query = new URLSearchParams({ filter: JSON.stringify(filter('subject', 'contains', words)) })
    const items = await streamed(service, `?${query}`, 4, async () => {
      await deliver(service, ['a@example.org', 'b@example.org'], { subject: 'Rare one' })
      await deliver(service, ['c@example.org'], { subject: 'Common' })
    })
    assert.deepEqual(items.map(({ event, recipient }) => `${event} ${recipient}`).sort(), [
      'accepted a@example.org',
      'accepted b@example.org',
      'delivered a@example.org',
      'delivered b@example.org',
    ])
    // What happens while nobody listens comes after the event that was the last one, once each.
    await deliver(service, ['e@example.org'], { subject: 'Rare one' })
    const last = items.at(-1)?.id ?? ''
    const resumed = (more: string, header: string) =>
      streamed(service, `?${query}${more}`, 2, async () => {}, header)
    const missed = await resumed('', last)
    assert.deepEqual(recipientsIn(missed), ['e@example.org', 'e@example.org'])
    assert.deepEqual(await resumed(`&after=${last}`, ''), missed)
    // The header is newer than the address that a browser repeats.
    const first = items[0]?.id ?? ''
    assert.deepEqual(await resumed(`&after=${first}`, last), missed)
    assert.deepEqual(await streamed(service, `?${query}&after=${first}`, 5, async () => {}), [
      ...items.slice(1),
      ...missed,
    ])
    const tagged = new URLSearchParams({ filter: JSON.stringify(filter('tag', '=', 'newborn')) })
    const byTag = await streamed(service, `?events=accepted&${tagged}`, 1, () =>
      deliver(service, ['d@example.org'], { 'o:tag': 'newborn' }),
    )
    assert.deepEqual(recipientsIn(byTag), ['d@example.org'])
    const status = async (query: string, signal: AbortSignal) =>
      (await openStream(service, query, signal)).status
    const aborter = new AbortController()
    assert.equal(await status('?events=nothing', aborter.signal), 400)
    assert.equal(await status('?after=nothing', aborter.signal), 400)
    assert.equal(await status('?filter={"AND":[{"attribute":"x"}]}', aborter.signal), 400)
    const statuses = await Promise.all(Array.from({ length: 21 }, () => status('', aborter.signal)))
    assert.deepEqual(statuses.sort(), [...Array.from({ length: 20 }, () => 200), 429])
    aborter.abort()
    await eventually('the streams are closed', async () => {
      const one = new AbortController()
      const answer = await status('', one.signal)
      one.abort()
      return answer === 200
    })
  })

  test('logs follow the contract', async (t) => {
    const { service, list } = await start(t, database)

    await t.test('an account without events', async () => {
      const { status, body } = await list({})
      assert.equal(status, 200)
      const { start: from, end: to, ...rest } = body
      assert.deepEqual(rest, { items: [], pagination: {}, aggregates: {} })
      assert.equal(Date.parse(to) - Date.parse(from), 86_400_000)
    })

    const recipients = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@example.org`)
    await deliver(service, recipients, { 'o:tag': 'Order', 'v:number': '17' })

    await t.test('an item has the form of logs', async () => {
      const { body } = await list({
        events: ['delivered'],
        filter: filter('recipient', '=', 'A@example.org'),
      })
      assert.equal(body.items.length, 1)
      const [item] = body.items
      assert.partialDeepStrictEqual(item, {
        event: 'delivered',
        account: { id: service.service.first.accountId },
        domain: { name: service.domain },
        recipient: 'a@example.org',
        tags: ['Order'],
        'user-variables': '{"number":"17"}',
        'delivery-status': { 'attempt-no': 1 },
      })
      assert.match(item['@timestamp'], /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
      assert.ok(Array.isArray(item.storage.url))
      const accepted = await list({ events: ['accepted'], pagination: { limit: 1 } })
      assert.equal(accepted.body.items[0].method, 'HTTP')
    })

    await t.test('pages by tokens, which carry the query', async () => {
      const query = {
        events: ['delivered'],
        include_totals: true,
        pagination: { sort: 'timestamp:asc', limit: 2 },
      }
      // Ascending lists leave out what a transaction of any database on the server could still precede.
      await eventually('all are settled', async () => {
        const { body } = await list({ ...query, pagination: { ...query.pagination, limit: 50 } })
        return body.items.length === recipients.length
      })
      const one = await list(query)
      assert.deepEqual(Object.keys(one.body.pagination).sort(), ['first', 'last', 'next', 'total'])
      assert.equal(one.body.pagination.total, 5)
      assert.deepEqual(one.body.aggregates, { all: 5, metrics: { delivered: 5 } })
      const two = await list({ events: ['failed'], pagination: { token: one.body.pagination.next } })
      const three = await list({ pagination: { token: two.body.pagination.next, limit: 50 } })
      const found = [one, two, three].flatMap(({ body }) => recipientsIn(body.items))
      assert.deepEqual(found.toSorted(), recipients)
      assert.deepEqual([two.body.items.length, three.body.items.length], [2, 1])
      assert.ok(!('next' in three.body.pagination))
      assert.deepEqual([three.body.start, three.body.end], [one.body.start, one.body.end])
      assert.deepEqual(three.body.aggregates, one.body.aggregates)
      const back = await list({ pagination: { token: three.body.pagination.previous, limit: 2 } })
      assert.deepEqual(recipientsIn(back.body.items), recipientsIn(two.body.items))
      for (const token of Object.values(one.body.pagination))
        assert.ok(typeof token === 'number' || String(token).length <= 2048)
    })

    await t.test('tokens that are not of this query', async () => {
      const one = await list({ pagination: { limit: 1 } })
      const token: string = one.body.pagination.next
      const changed = `${token.slice(0, 40)}${token[40] === 'A' ? 'B' : 'A'}${token.slice(41)}`
      for (const bad of ['x', changed, `${token}AAAA`, 'A'.repeat(3000), '../..']) {
        const answer = await list({ pagination: { token: bad } })
        assert.deepEqual([answer.status, answer.body], [400, { message: 'invalid pagination token' }])
      }
    })

    await t.test('metrics name events too', async () => {
      const found = async (body: object) => (await list(body)).body.items.length
      assert.equal(await found({ metric_events: ['delivered_first_attempt'] }), 5)
      assert.equal(await found({ metric_events: ['delivered_two_plus_attempts'] }), 0)
      assert.equal(await found({ metric_events: ['hard_bounces'], events: ['accepted'] }), 5)
      assert.equal(await found({ events: ['trapped', 'email_validation'] }), 0)
    })

    await t.test('what clients send for nothing', async () => {
      const bodies: object[] = [
        { start: '', end: '', filter: {}, events: null },
        {
          start: 'Mon, 01 Jan 0001 00:00:00 +0000',
          end: 'Mon, 01 Jan 0001 00:00:00 +0000',
          filter: { AND: null },
        },
        { pagination: { limit: 0, total: 0, token: '', sort: '' }, duration: '' },
      ]
      for (const body of bodies) assert.equal((await list(body)).body.items.length, 10, JSON.stringify(body))
      assert.equal((await service.call('POST', PATH)).body.items.length, 10)
      const form = { pagination: '{:limit=>5}', events: 'delivered' }
      assert.equal((await service.call('POST', PATH, { form })).body.items.length, 5)
    })

    await t.test('errors', async () => {
      const long = Array.from(
        { length: 100 },
        (_, at) => `${crypto.randomUUID()}${crypto.randomUUID()}-${at}`,
      )
      for (const [body, message] of [
        [{ events: ['eaten'] }, 'invalid event: eaten'],
        [{ filter: filter('tag', '>', 'a') }, "comparator '>' is not supported for attribute 'tag'"],
        [{ start: 1780300800, end: 1780300799 }, "'start' must be before 'end'"],
        [{ pagination: { limit: 101 } }, 'limit must not exceed 100'],
        [{ filter: filter('id', '=', ...long) }, 'the filter is too long: name fewer or shorter values'],
      ] as const) {
        const answer = await list(body)
        assert.deepEqual([answer.status, answer.body], [400, { message }])
      }
    })

    await t.test('the whole list as CSV', async () => {
      const headers = { accept: 'text/csv' }
      const json = { events: ['delivered'], pagination: { sort: 'timestamp:asc' } }
      await service.send({ to: 'f@example.org', subject: '=1+2' })
      await eventually('the last is delivered', async () => (await list(json)).body.items.length === 6)
      const answer = await service.call('POST', PATH, { json, headers })
      assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
      const records: string[][] = []
      for await (const record of readCsv([Buffer.from(answer.text)] as never)) records.push(record)
      const [header = [], ...rows] = records
      const column = (name: string) => rows.map((row) => row[header.indexOf(name)])
      assert.deepEqual(column('recipient').toSorted(), [...recipients, 'f@example.org'])
      assert.equal(column('subject').at(-1), "'=1+2")
      const limited = { ...json, pagination: { limit: 2 } }
      const two = await service.call('POST', PATH, { json: limited, headers })
      assert.equal(two.text.trim().split('\r\n').length, 3)
      const refused = await service.call('POST', PATH, { json: { pagination: { token: 'x' } }, headers })
      assert.deepEqual(refused.body, { message: 'a CSV file has no pagination token' })
      const bad = await service.call('POST', PATH, { json: { events: ['x'] }, headers })
      assert.equal(bad.status, 400)
    })
  })
})

test('a token belongs to its account, and ends after a day', () => {
  const sealer = createSealer('a secret of at least 32 characters!!')
  const now = Date.UTC(2026, 5, 1)
  const page: LogPageRequest = {
    accountId: 'account-1',
    query: readLogQuery(() => undefined, now),
    gap: { in: 'settled', us: 5, seq: 7 },
    up: false,
    start: null,
    totals: null,
  }
  const token = sealLogPage(sealer, page, now)
  assert.deepEqual(openLogPage(sealer, token, 'account-1', now + 86_400_000), page)
  assert.equal(openLogPage(sealer, token, 'account-1', now + 86_400_001), null)
  assert.equal(openLogPage(sealer, token, 'account-2', now), null)
  assert.equal(openLogPage(createSealer('another secret of 32 characters!!!'), token, 'account-1', now), null)
})

test('keys that may not read events read no logs, and an old token is refused', async (t) => {
  const clock = createTestClock(Date.now())
  const service = await startTestService(t, {}, { clock })
  await service.send({})
  await service.send({})
  const one = await eventually('there are two events', async () => {
    const answer = await service.call('POST', PATH, {
      json: { events: ['accepted'], pagination: { limit: 1 } },
    })
    return answer.body.pagination.next && answer
  })
  const json = { pagination: { token: one.body.pagination.next } }
  assert.equal((await service.call('POST', PATH, { json })).body.items.length, 1)
  clock.leap(86_400_001)
  assert.deepEqual((await service.call('POST', PATH, { json })).body, { message: 'invalid pagination token' })
  assert.equal((await service.call('POST', PATH, { json: {}, key: null })).status, 401)
})

test('the public JavaScript client reads logs', async (t) => {
  const { service } = await start(t, 'sqlite')
  await deliver(service, ['alice@example.org'])
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const found = await client.logs.list({
    start: new Date(Date.now() - 3_600_000),
    end: new Date(Date.now() + 1_000),
    events: ['delivered'],
    include_totals: true,
    filter: {
      AND: [{ attribute: 'domain', comparator: '=', values: [{ label: 'Domain', value: service.domain }] }],
    },
  })
  assert.equal(found.items.length, 1)
  assert.ok(found.items[0]?.['@timestamp'] instanceof Date)
  assert.deepEqual([found.aggregates.all, found.pagination.total], [1, 1])
  const all = await client.logs.list({ start: new Date(Date.now() - 3_600_000) })
  assert.equal(all.items.length, 2)
})
