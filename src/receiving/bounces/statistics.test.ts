// Both databases: the events of PostgreSQL are in partitions by time.
import assert from 'node:assert/strict'
import { eventStatements } from '../../../test/support/events.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { newDomainRow } from '../../sending/domains/domain.ts'
import {
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  failedEvent,
} from '../../watching/events/event.ts'
import { failureStatements, removeFailuresOf, removeOldFailures } from './failures.ts'
import { readMetrics } from './metrics.ts'
import { readMetricsQuery } from './metrics-query.ts'
import { recentRefusals } from './refusals.ts'
import { loadRules } from './rules.ts'
import { createStatistics } from './statistics.ts'

const NOW = Date.parse('2026-11-20T12:30:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR
const rules = loadRules(null)

const about = (accountId: string, tags: string[]): EventMessage => ({
  accountId,
  domainName: `${accountId}.example`,
  messageId: 'm@example.org',
  storageKey: 'k',
  storageUrl: 'http://localhost/k',
  summary: {
    from: '',
    to: '',
    subject: '',
    sender: 'a@example.org',
    recipients: [],
    attachments: [],
    sizeBytes: 1,
    tags,
    userVariables: {},
    testMode: false,
    method: 'http',
    originatingIp: null,
    keyId: null,
    template: null,
  },
})

interface Given {
  account?: string
  rule?: string
  reply?: string
  severity?: 'permanent' | 'temporary'
  ago?: number
  tags?: string[]
  ip?: string | null
  to?: string
}

const facts = (given: Given, code: number) => ({
  sendingIp: given.ip === undefined ? '192.0.2.1' : given.ip,
  primaryDkim: null,
  recipientProvider: 'Other',
  status: { code, 'attempt-no': 1, message: given.reply ?? 'no', description: '', 'session-seconds': 0 },
})

const toOf = ({ to = 'net.example' }: Given) => ({ recipient: `bob@${to}`, recipientDomain: to })

function failure(given: Given): EventRecord {
  const { account = 'parent', rule = 'generic-spam', severity = 'permanent', ago = HOUR, tags = [] } = given
  return failedEvent(
    about(account, tags),
    toOf(given),
    { ...facts(given, 550), severity, reason: 'generic', ruleId: rule },
    NOW - ago,
  )
}

function delivery(given: Given): EventRecord {
  const { account = 'parent', ago = HOUR, tags = [] } = given
  return deliveredEvent(about(account, tags), toOf(given), facts(given, 250), NOW - ago)
}

async function setUp(store: Store, events: EventRecord[]): Promise<void> {
  const account = (id: string, parent: string | null) =>
    insert('accounts', {
      id,
      parent_id: parent,
      name: `Name of ${id}`,
      signing_key_sealed: Buffer.of(1),
      created_at: NOW,
    })
  await store.commit([account('parent', null), account('child', 'parent'), account('other', null)])
  for (const id of ['parent', 'child', 'other']) {
    await store.db
      .insertInto('domains')
      .values(
        newDomainRow({
          id,
          account_id: id,
          name: `${id}.example`,
          type: 'custom',
          state: 'active',
          created_at: NOW - 30 * DAY,
        }),
      )
      .execute()
  }
  await store.commit([...eventStatements(events), ...failureStatements(rules, events)])
}

const own = { accountId: 'parent', includeSubaccounts: false }
const all = { accountId: 'parent', includeSubaccounts: true }

eachStore('figures cover final failures of the last 7 days of the right accounts', async (store) => {
  await setUp(store, [
    failure({ rule: 'spamhaus', ago: 2 * HOUR, reply: 'older' }),
    failure({ rule: 'spamhaus', ago: HOUR, reply: 'newer <x@y.example> [192.0.2.7]' }),
    failure({ rule: 'generic-spam' }),
    failure({ rule: 'no-such-rule' }),
    failure({ rule: 'generic-spam', ago: 7 * DAY, reply: 'too old' }),
    failure({ rule: 'generic-spam', severity: 'temporary' }),
    failure({ rule: 'generic-spam', account: 'child' }),
    failure({ rule: 'generic-spam', account: 'other' }),
    delivery({}),
  ])
  const statistics = createStatistics(store)
  const count = (values: object, total: number) => ({ values, total })
  assert.deepEqual(await statistics.grouped(own, ['rule-id'], 100, NOW), [
    count({ 'rule-id': 'spamhaus' }, 2),
    count({ 'rule-id': 'generic-spam' }, 1),
    count({ 'rule-id': 'unclassified' }, 1),
  ])
  assert.deepEqual(await statistics.grouped(own, ['entity-id', 'rule-id'], 1, NOW), [
    count({ 'entity-id': 'spamhaus', 'rule-id': 'spamhaus' }, 2),
  ])
  assert.deepEqual(await statistics.grouped(all, ['subaccount.id', 'domain.name'], 100, NOW), [
    count({ 'subaccount.id': 'parent', 'domain.name': 'parent.example' }, 4),
    count({ 'subaccount.id': 'child', 'domain.name': 'child.example' }, 1),
  ])
  const page = (skip: number, domain: string | null = null) =>
    statistics.perDomain(all, { domain, limit: 1, skip }, NOW)
  assert.deepEqual(await page(0), { items: [{ name: 'parent.example', total: 4 }], total: 2 })
  assert.deepEqual(await page(1), { items: [{ name: 'child.example', total: 1 }], total: 2 })
  assert.deepEqual((await page(0, 'child.example')).total, 1)
  assert.deepEqual((await page(0, 'other.example')).items, [])
  assert.deepEqual(await statistics.perEntity(own, 'parent.example', NOW), [
    { entity: 'spamhaus', total: 2 },
    { entity: 'generic', total: 1 },
    { entity: 'unclassified', total: 1 },
  ])
  assert.deepEqual(await statistics.perRule(own, 'parent.example', 'spamhaus', NOW), [
    { ruleId: 'spamhaus', category: 'BLACKLISTED', total: 2 },
  ])
  assert.deepEqual(await statistics.perRule(own, 'child.example', 'generic', NOW), [])
  const samples = await statistics.newestSamples(own)
  assert.equal(samples.get('spamhaus'), '550 newer <ADDR> [IP]')
  assert.equal((await statistics.newestSamples(own, 'child.example')).size, 0)
})

eachStore('metrics: every dimension, every comparator, deliveries along with failures', async (store) => {
  await setUp(store, [
    failure({ rule: 'spamhaus', tags: ['A', 'b'], to: 'one.example', severity: 'temporary', ago: 2 * HOUR }),
    failure({ rule: 'spamhaus', tags: ['A', 'b'], to: 'one.example', reply: 'newest', ago: HOUR }),
    failure({ rule: 'generic-full', tags: ['b'], to: 'two.example', ip: null, ago: DAY }),
    failure({ rule: 'generic-full', to: 'two.example', account: 'child', severity: 'temporary' }),
    failure({ rule: 'generic-full', account: 'other' }),
    failure({ rule: 'generic-full', ago: 9 * DAY }),
    delivery({ tags: ['b'], to: 'one.example' }),
    delivery({ tags: ['b'], to: 'two.example', ago: DAY }),
    delivery({ to: 'two.example', account: 'child' }),
    delivery({ account: 'other' }),
    delivery({ ago: 9 * DAY }),
  ])
  const ask = (body: object, scope = own) =>
    readMetrics(store, rules, scope, readMetricsQuery(body, NOW, Number.POSITIVE_INFINITY)).then(
      ({ items, total }) => {
        assert.ok(total >= items.length)
        return items as (Record<string, unknown> & { metrics: Record<string, number | null> })[]
      },
    )
  /** `[values of the dimensions, failures, deliveries]` of each item. */
  const found = async (dimensions: string[], scope = own, filter: object | null = null) =>
    (await ask({ dimensions, filter, pagination: { limit: 50 } }, scope)).map((item) => [
      ...dimensions.map((name) => item[name]),
      item.metrics['classified_failures_count'],
      item.metrics['delivered_smtp_count'],
    ])

  const [whole] = await ask({})
  assert.deepEqual(Object.keys(whole ?? {}), [
    ...['account.id', 'account.name', 'entity-name', 'recipient-provider', 'recipient-domain', 'domain.name'],
    ...[
      'envelope.i-ip-pool-id',
      'envelope.i-ip-pool-name',
      'envelope.sending-ip',
      'timestamp',
      'tags',
      'tag',
    ],
    ...['criticality', 'severity', 'category', 'group-id', 'sample-text', 'explanation', 'metrics'],
  ])
  assert.equal(whole?.['domain.name'], null)
  assert.deepEqual(whole?.metrics, {
    critical_bounce_count: 1,
    non_critical_bounce_count: 1,
    critical_delay_count: 1,
    non_critical_delay_count: 0,
    classified_failures_count: 3,
    delivered_smtp_count: 2,
    critical_bounce_rate: 20,
    non_critical_bounce_rate: 20,
    critical_delay_rate: 20,
    non_critical_delay_rate: 0,
  })
  const cases: [dimensions: string[], items: unknown[][]][] = [
    [
      ['entity-name'],
      [
        ['Spamhaus', 2, null],
        ['Other', 1, null],
      ],
    ],
    [['domain.name'], [['parent.example', 3, 2]]],
    [
      ['envelope.sending-ip'],
      [
        ['192.0.2.1', 2, 2],
        [null, 1, 0],
      ],
    ],
    [['envelope.i-ip-pool-name'], [[null, 3, 2]]],
    [
      ['tags'],
      [
        ['a, b', 2, 0],
        ['b', 1, 2],
      ],
    ],
    [
      ['tag'],
      [
        ['b', 3, 2],
        ['a', 2, 0],
      ],
    ],
    [
      ['recipient-domain'],
      [
        ['one.example', 2, 1],
        ['two.example', 1, 1],
      ],
    ],
    [
      ['criticality'],
      [
        ['critical', 2, null],
        ['non_critical', 1, null],
      ],
    ],
    [
      ['severity'],
      [
        ['PERMANENT', 2, null],
        ['TEMPORARY', 1, null],
      ],
    ],
    [
      ['category'],
      [
        ['BLACKLISTED', 2, null],
        ['MAILBOXFULL', 1, null],
      ],
    ],
    [
      ['timestamp'],
      [
        ['Thu, 19 Nov 2026 00:00:00 +0000', 1, 1],
        ['Fri, 20 Nov 2026 00:00:00 +0000', 2, 1],
      ],
    ],
  ]
  for (const [dimensions, items] of cases) assert.deepEqual(await found(dimensions), items, dimensions.join())
  assert.deepEqual(await found(['account.name'], all), [
    ['Name of parent', 3, 2],
    ['Name of child', 1, 1],
  ])
  const [first] = await ask({ dimensions: ['group-id', 'account.name'] })
  assert.deepEqual(
    [first?.['group-id'], first?.['sample-text'], first?.['account.id']],
    ['spamhaus', '550 newest', 'parent'],
  )
  assert.match(String(first?.['explanation']), /listed by Spamhaus/)
  assert.equal(first?.metrics['critical_bounce_rate'], null)

  const filters: [attribute: string, comparator: string, values: unknown[], failures: number][] = [
    ['entity-name', '=', ['spamHAUS'], 2],
    ['entity-name', 'not contains', ['spam'], 1],
    ['domain.name', 'contains', ['parent'], 3],
    ['domain.name', '!=', ['parent.example'], 0],
    ['envelope.sending-ip', '=', ['192.0.2.1', '192.0.2.2'], 2],
    ['envelope.sending-ip', '!=', ['192.0.2.1'], 1],
    ['envelope.sending-ip', 'contains', ['192_0', '%'], 0],
    ['envelope.i-ip-pool-name', '=', ['pool'], 0],
    ['envelope.i-ip-pool-name', '!=', ['pool'], 3],
    ['account.name', 'contains', ['of parent'], 3],
    ['tag', '=', ['A'], 2],
    ['tag', '!=', ['a'], 1],
    ['tag', 'contains', ['"'], 0],
    ['tags', '=', ['a, b'], 2],
    ['tags', 'contains', ['b'], 3],
    ['recipient-domain', '=', ['two.example'], 1],
    ['group-id', '=', ['generic-full'], 1],
    ['criticality', '=', ['critical'], 2],
    ['criticality', 'contains', ['critical'], 3],
    ['severity', '=', ['temporary'], 1],
    ['category', '!=', ['BLACKLISTED'], 1],
  ]
  for (const [attribute, comparator, values, failures] of filters) {
    const filter = {
      AND: [{ attribute, comparator, values: values.map((value) => ({ label: 'x', value })) }],
    }
    const [item] = await ask({ filter })
    const counted = item?.metrics['classified_failures_count'] ?? 0
    assert.equal(counted, failures, `${attribute} ${comparator} ${values}`)
  }
  const two = { AND: [{ attribute: 'tag', comparator: '=', values: ['b'] }] }
  assert.deepEqual(await found(['recipient-domain'], own, two), [
    ['one.example', 2, 1],
    ['two.example', 1, 1],
  ])
  const sorted = await ask({
    dimensions: ['recipient-domain'],
    pagination: { sort: 'recipient-domain:desc', skip: 1, limit: 1 },
  })
  assert.deepEqual(
    sorted.map((item) => item['recipient-domain']),
    ['one.example'],
  )
  const hourly = await ask({ dimensions: ['timestamp'], resolution: 'hour', duration: '60m' })
  assert.deepEqual(
    hourly.map((item) => [item['timestamp'], item.metrics['classified_failures_count']]),
    [['Fri, 20 Nov 2026 11:00:00 +0000', 1]],
  )
})

eachStore('rows end with the events, and with their domain', async (store) => {
  await setUp(store, [
    failure({ ago: 3 * DAY }),
    failure({ ago: DAY }),
    failure({ account: 'child' }),
    failure({ rule: 'generic-ptr', account: 'other', reply: 'no reverse dns for 192.0.2.1' }),
    failure({ rule: 'generic-ptr', account: 'other', ago: 25 * HOUR }),
  ])
  assert.deepEqual(await recentRefusals(store, rules, NOW), [
    {
      ruleId: 'generic-ptr',
      count: 1,
      newestReply: '550 no reverse dns for IP',
      explanation: 'The sending IP has no usable reverse DNS name.',
    },
  ])
  const left = async () => {
    const rows = await store.db
      .selectFrom('classified_failures')
      .select('domain_name')
      .orderBy('id')
      .execute()
    return rows.map(({ domain_name: name }) => name.split('.')[0])
  }
  await removeOldFailures(store, NOW - 2 * DAY)
  assert.deepEqual(await left(), ['parent', 'child', 'other', 'other'])
  await removeFailuresOf(store, { accountId: 'other', name: 'other.example' })
  assert.deepEqual(await left(), ['parent', 'child'])
})

eachStore('too many groups are refused, not cut off', async (store) => {
  await setUp(store, [])
  const [row] = failureStatements(rules, [failure({})])
  const columns = row?.sql.match(/\((.*?)\)/)?.[1] ?? ''
  const values = columns.replace('recipient_domain', "recipient_domain || CAST(n AS TEXT) || '.example'")
  await store.commit([
    row as Statement,
    {
      sql: `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
        INSERT INTO classified_failures (${columns}) SELECT ${values} FROM classified_failures, numbers`,
      values: [],
    },
  ])
  const query = readMetricsQuery({ dimensions: ['recipient-domain'] }, NOW, Number.POSITIVE_INFINITY)
  await assert.rejects(
    readMetrics(store, rules, own, query),
    (error) => error instanceof BadRequest && /more than 20000 items/.test(error.message),
  )
})
