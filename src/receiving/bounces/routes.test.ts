import assert from 'node:assert/strict'
import { test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { startTestService } from '../../../test/support/service.ts'
import { loadRules } from './rules.ts'

test('the operations as the contract words them', async (t) => {
  const service = await startTestService(t)
  const path = '/v1/bounce-classification'
  const get = (rest: string, key?: string | null) =>
    service.call('GET', `${path}${rest}`, key === undefined ? {} : { key })

  await t.test('before any failure', async () => {
    const stats = await get('/stats')
    assert.equal(stats.status, 200)
    assert.equal(stats.body.items, null)
    assert.deepEqual((await get('/domains')).body, { items: [], total: 0, req: {} })
    assert.deepEqual((await get(`/domains/${service.domain}/entities`)).body, { items: [] })
    assert.deepEqual((await get(`/domains/${service.domain}/entities/nobody/rules`)).body, { items: [] })
    const metrics = await service.call('POST', '/v2/bounce-classification/metrics', {
      json: { duration: '48h', resolution: 'hour', dimensions: ['tag'], pagination: { sort: 'tag:asc' } },
    })
    assert.equal(metrics.status, 200, metrics.text)
    const { start, end, ...rest } = metrics.body
    assert.match(start, /^\w{3}, \d{2} \w{3} \d{4} \d{2}:00:00 \+0000$/)
    assert.equal(Date.parse(end) - Date.parse(start), 48 * 3_600_000)
    assert.deepEqual(rest, {
      resolution: 'hour',
      duration: '48h',
      dimensions: ['tag'],
      pagination: { sort: 'tag:asc', skip: 0, limit: 10, total: 0 },
      items: [],
    })
  })

  await t.test('entities and rules', async () => {
    const entities = (await get('/config/entities')).body
    assert.deepEqual(entities.hotmail, { name: 'Microsoft (Hotmail)' })
    assert.deepEqual(entities.unclassified, { name: 'Unclassified' })
    assert.equal(Object.keys(entities).length, 30)
    const rules = (await get('/config/rules')).body
    assert.equal(Object.keys(rules).length, loadRules(null).rules.length + 1)
    assert.deepEqual(rules['generic-ptr'], {
      entity_id: 'generic',
      class: 'AUTHENTICATION',
      'sample-text': '450 4.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]',
      explanation: 'The sending IP has no usable reverse DNS name.',
      'short-explanation': 'SPF, DKIM, DMARC or reverse DNS',
    })
    const groups = '/v2/bounce-classification/config/groups'
    const group = await service.call('GET', `${groups}/generic-ptr`)
    const named = { id: 'generic-ptr', 'entity-name': entities.generic.name }
    assert.deepEqual([group.status, group.body], [200, { ...rules['generic-ptr'], ...named }])
    const none = await service.call('GET', `${groups}/none`)
    assert.deepEqual([none.status, none.body], [404, { message: 'Group not found' }])
  })

  await t.test('errors', async () => {
    const cases: [rest: string, status: number, message: string][] = [
      ['/stats?group=foo', 400, 'invalid group: foo'],
      ['/stats?limit=1001', 400, "The 'limit' parameter can't be larger than 1000"],
      ['/stats?include_subaccounts=maybe', 400, 'Invalid format for parameter include_subaccounts: maybe'],
      ['/domains?limit=0', 400, 'Invalid format for parameter limit: 0'],
      ['/domains?query=name', 400, 'Invalid format for parameter query: name'],
      ['/domains/nobody.example/entities', 404, 'Domain not found'],
      ['/domains/nobody.example/entities?include_subaccounts=yes', 404, 'Domain not found'],
      ['/domains/nobody.example/entities/gmail/rules', 404, 'Domain not found'],
      [`/domains/${service.domain}/events?x=1`, 410, 'Deprecated: use POST /v1/analytics/logs'],
      ['/domains/nobody.example/events', 410, 'Deprecated: use POST /v1/analytics/logs'],
    ]
    for (const [rest, status, message] of cases) {
      const answer = await get(rest)
      assert.deepEqual([answer.status, answer.body], [status, { message }], rest)
    }
    const metrics = await service.call('POST', '/v2/bounce-classification/metrics', {
      json: { dimensions: ['foo'] },
    })
    assert.deepEqual([metrics.status, metrics.body], [400, { message: 'invalid dimension: foo' }])
    assert.equal((await get('/domains?query=domain.name:nobody.example')).status, 200)
  })

  await t.test('every role but sending reads', async () => {
    const paths = [
      ['GET', `${path}/stats`],
      ['GET', `${path}/config/rules`],
      ['GET', `${path}/domains/${service.domain}/entities/gmail/rules`],
      ['POST', '/v2/bounce-classification/metrics'],
    ] as const
    for (const [role, status] of [
      ['basic', 200],
      ['sending', 401],
    ] as const) {
      const form = { role, ...(role === 'sending' && { kind: 'domain', domain_name: service.domain }) }
      const made = await service.call('POST', '/v1/keys', { form })
      assert.ok(made.status < 300, made.text)
      for (const [method, where] of paths) {
        const answer = await service.call(method, where, { key: made.body.key.secret })
        assert.equal(answer.status, status, `${role} ${where} ${answer.text}`)
      }
      const log = await get(`/domains/${service.domain}/events`, made.body.key.secret)
      assert.equal(log.status, role === 'basic' ? 410 : 401)
    }
    assert.equal((await get('/stats', null)).status, 401)
  })

  await t.test('the public JavaScript client asks for metrics', async () => {
    const Mailgun = MailgunModule as unknown as typeof MailgunModule.default
    const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
    const start = new Date(Date.now() - 3 * 86_400_000)
    const found = await client.bounceClassification.list({
      start,
      end: new Date(),
      resolution: 'day',
      dimensions: ['domain.name', 'group-id'],
      metrics: ['critical_bounce_count'],
      filter: {
        AND: [
          {
            attribute: 'domain.name',
            comparator: '=',
            values: [{ label: service.domain, value: service.domain }],
          },
        ],
      },
      pagination: { sort: 'domain.name:asc', limit: 10 },
    })
    assert.deepEqual([found.items, found.dimensions], [[], ['domain.name', 'group-id']])
    assert.equal(found.start.toISOString().slice(0, 10), start.toISOString().slice(0, 10))
  })

  await t.test('the machine description has them', async () => {
    const { paths } = (await service.call('GET', '/openapi.json')).body
    const old = [
      ...['/stats', '/domains', '/domains/{domain}/entities', '/domains/{domain}/events'],
      ...['/domains/{domain}/entities/{entity_id}/rules', '/config/entities', '/config/rules'],
    ]
    for (const rest of old) assert.equal(paths[`${path}${rest}`].get.deprecated, true, rest)
    assert.ok(paths['/v2/bounce-classification/metrics'].post)
  })
})
