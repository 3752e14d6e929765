/** The metrics operations over HTTP (metrics-logs.md sections 1 to 3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { createNoonClock } from '../../../test/support/clock.ts'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { METRICS } from './figures.ts'

const PATH = '/v1/analytics/metrics'
const USAGE = '/v1/analytics/usage/metrics'

interface Item {
  dimensions: { dimension: string; value: string; display_value: string }[]
  metrics: Record<string, number | string | null>
}

test('metrics follow the contract', async (t) => {
  const clock = createNoonClock()
  const service = await startTestService(t, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }, { clock })
  const { domain } = service
  const post = (json?: unknown, path = PATH) => service.call('POST', path, json === undefined ? {} : { json })
  const itemsOf = async (json: unknown): Promise<Item[]> => {
    const { status, body, text } = await post(json)
    assert.equal(status, 200, text)
    return body.items
  }
  /** Values and one metric of each item. */
  const found = async (dimensions: string[], metric: string, more: object = {}) =>
    (await itemsOf({ dimensions, metrics: [metric], ...more })).map((item) => [
      ...item.dimensions.map(({ value }) => value),
      item.metrics[metric],
    ])
  const filter = (attribute: string, comparator: string, ...values: string[]) => ({
    filter: { AND: [{ attribute, comparator, values: values.map((value) => ({ label: 'x', value })) }] },
  })

  await t.test('without mail there is one item of zeros', async () => {
    const { status, body } = await post()
    assert.equal(status, 200)
    const { start, end, items, ...rest } = body
    assert.deepEqual(rest, {
      resolution: 'day',
      duration: '7d',
      dimensions: [],
      pagination: { sort: '', skip: 0, limit: 10, total: 1 },
      aggregates: { metrics: {} },
    })
    assert.match(start, /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} 00:00:00 \+0000$/)
    assert.equal(Date.parse(end) - Date.parse(start), 7 * 86_400_000)
    assert.deepEqual(items[0].dimensions, [])
    assert.deepEqual(Object.keys(items[0].metrics), [...METRICS, 'esp_block_count'])
    assert.deepEqual([items[0].metrics.delivered_count, items[0].metrics.delivered_rate], [0, '0.0000'])
    assert.deepEqual(await itemsOf({ dimensions: ['domain'] }), [])
  })

  await t.test('mail is counted by each dimension', async () => {
    const to = ['ann@gmail.com', 'bob@one.example', 'eve@two.example']
    assert.equal((await service.send({ to, 'o:tag': ['News', 'may'] })).status, 200)
    await eventually('all is counted', async () => {
      const [item] = await itemsOf({ metrics: ['delivered_count'] })
      return item?.metrics['delivered_count'] === 3
    })
    const account = String((await found(['subaccount'], 'delivered_count'))[0]?.[0])
    const cases: [dimensions: string[], metric: string, items: unknown[][], more?: object][] = [
      [[], 'accepted_outgoing_count', [[3]]],
      [[], 'delivered_rate', [['1.0000']]],
      [['domain'], 'delivered_smtp_count', [[domain, 3]]],
      [
        ['tag'],
        'sent_count',
        [
          ['may', 3],
          ['news', 3],
        ],
      ],
      [['tag'], 'sent_count', [['news', 3]], filter('tag', '=', 'NEWS')],
      [[], 'sent_count', [[3]], filter('tag', 'contains', 'e', 'm')],
      [[], 'sent_count', [[0]], filter('tag', 'not contains', 'e')],
      [
        ['recipient_domain'],
        'delivered_first_attempt_count',
        [
          ['gmail.com', 1],
          ['one.example', 1],
          ['two.example', 1],
        ],
      ],
      [
        ['recipient_domain', 'tag'],
        'delivered_count',
        [
          ['gmail.com', 'may', 1],
          ['gmail.com', 'news', 1],
        ],
        filter('recipient_domain', '!=', 'one.example', 'TWO.example'),
      ],
      [['country', 'device', 'bot'], 'accepted_count', [['Unknown', 'unknown', 'None', 3]]],
      [['ip_pool'], 'accepted_count', [['none', null]]],
      [['ip_pool'], 'delivered_count', [['none', 3]]],
      [
        ['recipient_provider'],
        'accepted_outgoing_count',
        [
          ['Gmail', null],
          ['Other', null],
        ],
        { pagination: { sort: 'recipient_provider:asc' } },
      ],
      [[], 'accepted_count', [[null]], filter('recipient_provider', '=', 'Gmail')],
      [[], 'delivered_count', [[1]], filter('recipient_provider', '=', 'Gmail')],
      [['domain'], 'delivered_count', [], filter('domain', '=', 'other.example')],
      [['subaccount'], 'delivered_count', [], filter('subaccount', '!=', account)],
    ]
    for (const [dimensions, metric, items, more] of cases)
      assert.deepEqual(await found(dimensions, metric, more), items, JSON.stringify([dimensions, more]))
    const [item] = await itemsOf({ dimensions: ['time', 'subaccount'], metrics: ['delivered_count'] })
    assert.deepEqual(
      item?.dimensions.map(({ dimension }) => dimension),
      ['time', 'subaccount'],
    )
    assert.match(item?.dimensions[0]?.value ?? '', / 00:00:00 \+0000$/)
    assert.equal(item?.dimensions[0]?.display_value, item?.dimensions[0]?.value)
    assert.equal(item?.dimensions[1]?.value, account)
    assert.notEqual(item?.dimensions[1]?.display_value, account)
  })

  await t.test('pages, order and aggregates', async () => {
    const ask = { dimensions: ['recipient_domain'], metrics: ['delivered_count', 'delivered_rate'] }
    const page = await post({
      ...ask,
      include_aggregates: true,
      pagination: { sort: 'recipient_domain:desc', skip: 1, limit: 1 },
    })
    assert.deepEqual(page.body.pagination, { sort: 'recipient_domain:desc', skip: 1, limit: 1, total: 3 })
    assert.deepEqual(page.body.items, [
      {
        dimensions: [{ dimension: 'recipient_domain', value: 'one.example', display_value: 'one.example' }],
        metrics: { delivered_count: 1, delivered_rate: '1.0000' },
      },
    ])
    assert.deepEqual(page.body.aggregates, { metrics: { delivered_count: 3, delivered_rate: '1.0000' } })
    const beyond = await post({ ...ask, pagination: { skip: 9 } })
    assert.deepEqual([beyond.body.items, beyond.body.pagination.total], [[], 3])
  })

  await t.test('CSV', async () => {
    const json = { dimensions: ['tag'], metrics: ['delivered_count', 'delivered_rate'] }
    const answer = await service.call('POST', PATH, { json, headers: { accept: 'text/csv' } })
    assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
    assert.equal(answer.text, 'tag,delivered_count,delivered_rate\r\nmay,3,1.0000\r\nnews,3,1.0000\r\n')
  })

  await t.test('subaccounts are included if asked for', async () => {
    const own = await found([], 'delivered_count')
    assert.deepEqual(await found([], 'delivered_count', { include_subaccounts: true }), own)
  })

  await t.test('usage', async () => {
    const { body } = await post({ dimensions: ['time'], resolution: 'hour', duration: '1h' }, USAGE)
    assert.equal(body.items.length, 1)
    assert.match(body.items[0].dimensions[0].value, / 00:00:00 \+0000$/)
    const { processed_count: processed, seed_test_count: seeds } = body.items[0].metrics
    assert.deepEqual([processed, seeds], [3, 0])
  })

  await t.test('copies that an archive took are usage, and no account metric', async () => {
    const receiver = await createReceiver()
    t.after(() => receiver.close())
    const to = ['kim@one.example', 'lee@two.example']
    assert.equal((await service.send({ to, 'o:archive-to': receiver.url })).status, 200)
    const asked = { dimensions: ['time'], metrics: ['archived_count', 'processed_count'] }
    await eventually('both copies and their deliveries are counted', async () => {
      const { archived_count: copies, processed_count: processed } = (await post(asked, USAGE)).body.items[0]
        .metrics
      return copies === 2 && processed === 5
    })
    assert.equal(receiver.posts.length, 2)
    assert.deepEqual((await post(asked)).body, { message: 'invalid metric: archived_count' })
  })

  await t.test('errors', async () => {
    const cases: [json: unknown, message: string, path?: string][] = [
      [{ dimensions: ['foo'] }, 'invalid dimension: foo'],
      [{ dimensions: ['the service'] }, 'invalid dimension: the service'],
      [{ metrics: ['foo'] }, 'invalid metric: foo'],
      [{ resolution: 'week' }, 'invalid resolution: week'],
      [filter('time', '=', 'x'), 'invalid attribute: time'],
      [filter('tag', '>', 'x'), 'invalid comparator: >'],
      [filter('tag', '='), 'filter tag: values must not be empty'],
      [{ dimensions: ['tag', 'domain', 'bot', 'ip'] }, 'more than 3 dimensions'],
      [{ dimensions: ['tag'], pagination: { limit: 1001 } }, 'limit must not exceed 1000'],
      [{ dimensions: ['time'], pagination: { limit: 1501 } }, 'limit must not exceed 1500'],
      [{ pagination: { sort: 'time:asc' } }, 'invalid sort: time:asc'],
      [{ start: 'x' }, 'Invalid format for parameter start: x'],
      [{ duration: '7' }, 'Invalid format for parameter duration: 7'],
      [{ dimensions: ['domain'] }, 'invalid dimension: domain', USAGE],
      [{ metrics: ['delivered_count'] }, 'invalid metric: delivered_count', USAGE],
    ]
    for (const [json, message, path] of cases) {
      const answer = await post(json, path)
      assert.deepEqual([answer.status, answer.body], [400, { message }], JSON.stringify(json))
    }
  })

  await t.test('the public JavaScript client reads them', async () => {
    const Mailgun = MailgunModule as unknown as typeof MailgunModule.default
    const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
    const asked = { dimensions: ['time'], metrics: ['delivered_count'], include_aggregates: true }
    const metrics = await client.metrics.getAccount({
      ...asked,
      start: new Date(clock.now() - 3_600_000),
      end: new Date(clock.now()),
    })
    assert.ok(metrics.start instanceof Date && metrics.end instanceof Date)
    assert.equal(metrics.aggregates.metrics.delivered_count, 5)
    const usage = await client.metrics.getAccountUsage({ dimensions: ['time'] })
    assert.deepEqual(
      usage.items.map(({ metrics: counts }) => counts.processed_count),
      [5],
    )
  })
})
