/** Alerts, their limits and errors over HTTP (alerts.md sections 1 to 4). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { activeUser, as } from '../../../test/support/users.ts'
import { holds } from './threshold-checks.ts'

const PATH = '/v1/thresholds/alerts/send'
const GIVEN = {
  name: 'Bounces',
  metric: 'hard_bounce_rate',
  comparator: '>',
  limit: '.05',
  dimension: 'domain',
}
const ALLOW = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }

const create = (service: TestService, json: object, key?: string) =>
  service.call('POST', PATH, { json: { ...GIVEN, ...json }, ...(key !== undefined && { key }) })

eachDatabase((database) => {
  test('an alert is created, read, listed, replaced and deleted', async (t) => {
    const service = await startTestService(t, {}, { database })
    const made = await create(service, {})
    assert.equal(made.status, 200, made.text)
    const { id, created_at, updated_at, ...rest } = made.body
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.match(created_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    assert.equal(updated_at, created_at)
    const defaults = { description: '', alert_channels: ['email'], filters: [], period: '1h' }
    assert.deepEqual(rest, { ...GIVEN, ...defaults })
    const first = (await service.call('GET', `${PATH}/Bounces`)).body
    assert.deepEqual({ ...first, last_checked: undefined }, { ...made.body, last_checked: undefined })
    const { items, total } = (await service.call('GET', PATH)).body
    // The checks may have run.
    assert.deepEqual(
      [{ ...items[0], last_checked: undefined }, total],
      [{ ...made.body, last_checked: undefined }, 1],
    )

    const odd = 'Ünïcode / 100% "x"'
    const filters = [{ dimension: 'recipient_provider', comparator: 'contains', values: ['Out', 'Gm'] }]
    const replaced = await service.call('PUT', `${PATH}/Bounces`, {
      json: { ...GIVEN, name: odd, limit: 0.1, filters, period: '30d', alert_channels: ['slack', 'slack'] },
    })
    assert.deepEqual([replaced.status, replaced.body], [200, { message: 'Alert updated' }])
    const read = (await service.call('GET', `${PATH}/${encodeURIComponent(odd)}`)).body
    assert.deepEqual(
      [read.id, read.created_at, read.limit, read.filters, read.period, read.alert_channels],
      [id, created_at, '0.1', filters, '30d', ['slack']],
    )
    assert.ok(read.updated_at > updated_at)
    const back = await service.call('PUT', `${PATH}/${encodeURIComponent(odd)}`, { json: GIVEN })
    assert.equal(back.status, 200, back.text)
    assert.deepEqual((await service.call('GET', `${PATH}/Bounces`)).body.filters, [], 'as a whole')
    const gone = await service.call('DELETE', `${PATH}/Bounces`)
    assert.deepEqual([gone.status, gone.body], [200, { message: 'Alert deleted' }])
    assert.deepEqual((await service.call('GET', PATH)).body, { items: [], total: 0 })
    assert.deepEqual((await service.call('GET', '/v1/thresholds/hits')).body, { items: [], total: 0 })
  })

  test('names are unique in the account, and there are at most 100', async (t) => {
    const service = await startTestService(t, {}, { database })
    const refused = async (answer: ReturnType<typeof create>, status: number, message: string) => {
      const { status: got, body } = await answer
      assert.deepEqual([got, body], [status, { message }])
    }
    assert.equal((await create(service, {})).status, 200)
    assert.equal((await create(service, { name: 'bounces' })).status, 200, 'names are compared exactly')
    await refused(create(service, {}), 400, 'alert with this name already exists')
    const rename = service.call('PUT', `${PATH}/bounces`, { json: GIVEN })
    await refused(rename, 400, 'alert with this name already exists')
    for (const method of ['GET', 'DELETE'])
      await refused(service.call(method, `${PATH}/none`), 404, 'alert not found')
    await refused(service.call('PUT', `${PATH}/none`, { json: GIVEN }), 404, 'alert not found')
    await refused(service.call('GET', `${PATH}/a%00b`), 404, 'alert not found')
    const many = Array.from({ length: 98 }, (_, at) => create(service, { name: `alert ${at}` }))
    assert.ok((await Promise.all(many)).every(({ status }) => status === 200))
    await refused(create(service, { name: 'one more' }), 400, 'maximum number of alerts reached')
  })
})

let service: TestService
test.before(async (t) => {
  service = await startTestService(t as TestContext, ALLOW)
})

test('invalid alerts are refused with the texts of the contract', async () => {
  const filter = { dimension: 'domain', comparator: '=', values: ['a.example'] }
  const cases: [change: Record<string, unknown>, message: string][] = [
    ...['name', 'metric', 'comparator', 'limit', 'dimension'].flatMap(
      (name): [Record<string, unknown>, string][] => [
        [{ [name]: undefined }, `${name} is required`],
        [{ [name]: '' }, `${name} is required`],
        [{ [name]: null }, `${name} is required`],
      ],
    ),
    [{ metric: 'foo' }, 'invalid metric: foo'],
    [{ metric: ['hard_bounce_rate'] }, 'invalid metric: ["hard_bounce_rate"]'],
    [{ comparator: '=>' }, 'invalid comparator: =>'],
    [{ dimension: 'country' }, 'invalid dimension: country'],
    ...['1.01', '-0.1', '5%', '0,5', '1e-2', '.', 'NaN'].map((limit): [Record<string, unknown>, string] => [
      { limit },
      `invalid limit: ${limit}`,
    ]),
    [{ name: 'x'.repeat(129) }, `invalid name: ${'x'.repeat(129)}`],
    [{ name: 'a\nb' }, 'invalid name: a\nb'],
    [{ name: 'Sendwright:disk-space' }, 'invalid name: Sendwright:disk-space'],
    ...['0h', '31d', '721h', '60m', '1.5h', '1h '].map((period): [Record<string, unknown>, string] => [
      { period },
      `invalid period: ${period}`,
    ]),
    [{ alert_channels: ['sms'] }, 'invalid alert_channels: sms'],
    [{ alert_channels: 'email' }, 'invalid alert_channels: email'],
    [{ filters: {} }, 'invalid filters: {}'],
    [{ filters: Array(21).fill(filter) }, 'filters has more than 20 entries'],
    [{ filters: [{ ...filter, dimension: 'tag' }] }, 'invalid dimension: tag'],
    [{ filters: [{ ...filter, comparator: '<' }] }, 'invalid comparator: <'],
    [{ filters: [{ ...filter, values: [] }] }, 'filters: values must have 1 to 100 entries'],
    [
      { filters: [{ ...filter, values: Array(101).fill('a') }] },
      'filters: values must have 1 to 100 entries',
    ],
    [{ filters: [{ ...filter, values: [1] }] }, 'invalid values: 1'],
    [
      { filters: Array(3).fill({ ...filter, values: Array(100).fill('x'.repeat(500)) }) },
      'filters are larger than 64 KB',
    ],
    [{ subaccount_id: 'foreign' }, 'invalid subaccount_id: foreign'],
  ]
  for (const [change, message] of cases) {
    const answer = await create(service, change)
    assert.deepEqual([answer.status, answer.body], [400, { message }])
  }
  for (const body of ['[]', 'null', '"x"', '{']) {
    const headers = { 'content-type': 'application/json' }
    const answer = await service.call('POST', PATH, { body, headers })
    assert.equal(answer.status, 400, body)
  }
})

test('comparisons are numeric: six decimals, four for equality', () => {
  const cases: [value: number, comparator: Parameters<typeof holds>[1], limit: string, expected: boolean][] =
    [
      [0.05, '>', '.05', false],
      [0.0500004, '>', '0.05', false],
      [0.0500006, '>', '0.05', true],
      [0.05, '>=', '0.050', true],
      [0.0499999, '<', '0.05', false],
      [0.049999, '<', '0.05', true],
      [0.05, '<=', '.05', true],
      [0.05004, '=', '.05', true],
      [0.05006, '=', '.05', false],
      [0.05004, '!=', '.05', false],
      [0.06, '!=', '.05', true],
      [1, '=', '1', true],
    ]
  for (const [value, comparator, limit, expected] of cases)
    assert.equal(holds(value, comparator, limit), expected, `${value} ${comparator} ${limit}`)
})

test('readers read, developers change, and nobody else', async () => {
  const support = await activeUser(service, 'support@example.org', 'support')
  assert.equal((await as(service, support.cookie, 'GET', PATH)).status, 200)
  assert.equal((await as(service, support.cookie, 'POST', PATH, GIVEN)).status, 403)
  const developer = await activeUser(service, 'developer@example.org', 'developer')
  assert.equal((await as(service, developer.cookie, 'POST', PATH, { ...GIVEN, name: 'own' })).status, 200)
  const keyOf = async (cookie: string) =>
    (await as(service, cookie, 'GET', '/v1/alerts/settings')).body.webhooks.signing_key
  assert.equal(await keyOf(support.cookie), '', 'the signing key is for those who may read the account')
  assert.notEqual(await keyOf(developer.cookie), '')
})

test('settings of channels are kept under both paths, and a webhook is tried first', async (t) => {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const url = `http://user:pass@${receiver.host}:${receiver.port}/hook?secret=1`
  const given = { event_type: 'send_alert', channel: 'webhook', settings: { url } }
  const made = await service.call('POST', '/v1/alerts/settings', { json: given })
  assert.equal(made.status, 200, made.text)
  const { id, ...rest } = made.body
  assert.deepEqual(rest, given)
  const [tried] = receiver.posts
  assert.deepEqual(
    [tried?.method, tried?.path, tried?.headers.authorization],
    ['GET', '/hook?secret=1', 'Basic dXNlcjpwYXNz'],
  )
  receiver.answer = 204
  const refused = await service.call('POST', '/v1/alerts/settings/events', { json: given })
  assert.equal(refused.status, 400)
  assert.match(
    refused.body.message,
    /^webhook must answer a GET with 200: .*user:\*\*\*\*@.*: it answered 204$/,
  )

  const mail = { event_type: 'ip_listed', channel: 'email', settings: { emails: ['OPS@example.org'] } }
  const changed = await service.call('PUT', `/v1/alerts/settings/${id}`, { json: mail })
  const updated = { id, ...mail, settings: { emails: ['ops@example.org'] } }
  assert.deepEqual(changed.body, { message: 'Alert setting updated', ...updated })
  const list = async () => (await service.call('GET', '/v1/alerts/settings')).body
  const { events, webhooks, slack } = await list()
  assert.deepEqual([events, slack], [[updated], {}])
  const { body } = await service.call('GET', '/v5/accounts/http_signing_key')
  assert.equal(webhooks.signing_key, body.http_signing_key)
  assert.equal((await service.call('DELETE', `/v1/alerts/settings/events/${id}`)).status, 200)
  assert.deepEqual((await list()).events, [])
  for (const method of ['PUT', 'DELETE']) {
    const answer = await service.call(method, `/v1/alerts/settings/events/${id}`, { json: mail })
    assert.deepEqual([answer.status, answer.body], [404, { message: 'alert setting not found' }])
  }
  for (const path of ['/v1/alerts', '/v1/alerts/events']) {
    const { events: types } = (await service.call('GET', path)).body
    assert.deepEqual([types.length, types[0]], [9, 'send_alert'])
  }
})

test('invalid settings are refused', async () => {
  const cases: [json: object, message: RegExp][] = [
    [{}, /^invalid event_type: $/],
    [{ event_type: 'x' }, /^invalid event_type: x$/],
    [{ event_type: 'send_alert' }, /^invalid channel: $/],
    [{ event_type: 'send_alert', channel: 'email' }, /^settings\.emails is required$/],
    [{ event_type: 'send_alert', channel: 'email', settings: { emails: ['x'] } }, /^invalid email: x$/],
    [
      { event_type: 'send_alert', channel: 'email', settings: { emails: Array(11).fill('a@b.example') } },
      /more than 10/,
    ],
    [{ event_type: 'send_alert', channel: 'slack' }, /^settings\.url is required$/],
    [{ event_type: 'send_alert', channel: 'slack', settings: { url: 'ftp://x.example/' } }, /scheme/],
    [{ event_type: 'send_alert', channel: 'webhook', settings: { url: 'http://10.0.0.1/' } }, /not allowed/],
  ]
  for (const [json, message] of cases) {
    const answer = await service.call('POST', '/v1/alerts/settings/events', { json })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.body.message, message)
  }
})
