// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { DELIVERED, eventStatements, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { failureStatements } from '../../receiving/bounces/failures.ts'
import { explainedReasons } from '../../receiving/bounces/reasons.ts'
import { loadRules } from '../../receiving/bounces/rules.ts'
import { type EventRecord, failedEvent } from '../events/event.ts'

const rules = loadRules(null)
const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }

interface Given {
  provider: string
  ruleId: string
  reply: string
  severity?: 'temporary' | 'permanent'
  account?: string
}

const failed = (
  { provider, ruleId, reply, severity = 'permanent', account = 'account-1' }: Given,
  at: number,
) =>
  failedEvent(
    testMessage({}, { accountId: account, messageId: `m${at}@x` }),
    to,
    {
      ...DELIVERED,
      recipientProvider: provider,
      severity,
      reason: 'bounce',
      ruleId,
      status: { ...DELIVERED.status, code: 550, message: reply },
    },
    NOW_MS + at,
  )

const write = (events: readonly EventRecord[]) => [
  ...eventStatements(events),
  ...failureStatements(rules, events),
]

eachStore(
  'failures by provider and class, with the most frequent reply and its newest delivery',
  async (store) => {
    const [blocked, unknown] = ['BLACKLISTED', 'BOUNCE'].map(
      (category) => rules.rules.find((rule) => rule.category === category)?.id as string,
    )
    if (!blocked || !unknown) throw new Error('the rules have no such categories')
    const events = [
      failed({ provider: 'Gmail', ruleId: unknown, reply: 'no such user' }, 1),
      failed({ provider: 'Gmail', ruleId: unknown, reply: 'no such user' }, 2),
      failed({ provider: 'Gmail', ruleId: unknown, reply: 'gone', severity: 'temporary' }, 3),
      failed({ provider: 'Gmail', ruleId: blocked, reply: 'listed' }, 4),
      failed({ provider: 'Apple', ruleId: unknown, reply: 'nobody' }, 5),
      failed({ provider: 'Apple', ruleId: unknown, reply: 'another account', account: 'account-2' }, 6),
      failed({ provider: 'Apple', ruleId: unknown, reply: 'too late' }, 90_000),
    ]
    await store.commit(write(events))
    const query = { accountId: 'account-1', startMs: NOW_MS, endMs: NOW_MS + 60_000, domainName: null }
    const { reasons, partial } = await explainedReasons(store, rules, query)
    assert.equal(partial, false)
    const brief = reasons.map(({ provider, category, temporary, permanent, reply }) => [
      ...[provider, category, temporary, permanent],
      reply.count,
      reply.text.replace(/^\d+ /, ''),
    ])
    assert.deepEqual(brief, [
      ['Gmail', 'BOUNCE', 1, 2, 2, 'no such user'],
      ['Apple', 'BOUNCE', 0, 1, 1, 'nobody'],
      ['Gmail', 'BLACKLISTED', 0, 1, 1, 'listed'],
    ])
    assert.deepEqual(reasons[0]?.sample.event, {
      id: events[1]?.id,
      messageId: 'm2@x',
      recipient: 'alice@example.org',
    })
    assert.notEqual(reasons[0]?.explanation, '')
    const other = await explainedReasons(store, rules, { ...query, domainName: 'other.example' })
    assert.deepEqual(other.reasons, [])
  },
)

eachDatabase((database) => {
  test('the operation shows volumes, visits with and without machines, and reasons', async (t) => {
    const service = await startTestService(t, { database })
    const read = (rest = '') => service.call('GET', `/sendwright/v1/delivery-reasons${rest}`)
    const before = await read()
    assert.equal(before.status, 200, before.text)
    const none = { opened: 0, unique_opened: 0, clicked: 0, unique_clicked: 0 }
    assert.deepEqual(before.body.visits, { all: none, people: none, machines: {} })
    assert.deepEqual(before.body.providers, [])

    const fault = { recipient: 'nobody@*', stage: 'rcpt', reply: '550 5.1.1 no such user' }
    const put = await service.call('PUT', '/sendwright/v1/inbox/faults', { json: [fault] })
    assert.equal(put.status, 200, put.text)
    assert.equal((await service.send({ to: ['ann@gmail.com', 'nobody@gmail.com'] })).status, 200)
    type Provider = {
      provider: string
      delivered: number
      permanent_failed: number
      failures: Record<string, unknown>[]
    }
    let providers: Provider[] = []
    const sum = (name: 'delivered' | 'permanent_failed') =>
      providers.reduce((all, provider) => all + provider[name], 0)
    await eventually('both are counted', async () => {
      providers = (await read(`?domain=${service.domain}`)).body.providers
      // Failures are known before the figures of their minute are.
      for (const { delivered, permanent_failed } of providers)
        assert.deepEqual([typeof delivered, typeof permanent_failed], ['number', 'number'])
      return sum('delivered') === 1 && sum('permanent_failed') === 1
    })
    // The listener that captures mail says nothing about the provider; the domain does.
    assert.deepEqual(
      providers.map(({ provider }) => provider),
      ['Gmail'],
    )
    const [failure, ...more] = providers.flatMap(({ failures }) => failures)
    assert.deepEqual(more, [])
    assert.deepEqual([failure?.['class'], failure?.['temporary'], failure?.['permanent']], ['BOUNCE', 0, 1])
    assert.match(JSON.stringify(failure?.['reply']), /no such user.*"count":1/)
    const sample = failure?.['sample'] as Record<string, unknown>
    assert.deepEqual([sample['domain'], sample['recipient']], [service.domain, 'nobody@gmail.com'])
    assert.equal(typeof sample['event_id'], 'string')

    for (const [rest, status] of [
      ['?start=bad', 400],
      ['?domain=nobody.example', 404],
      ['?start=2000000000&end=1000000000', 400],
    ] as const)
      assert.equal((await read(rest)).status, status, rest)
    assert.equal((await service.call('GET', '/sendwright/v1/delivery-reasons', { key: null })).status, 401)
  })
})
