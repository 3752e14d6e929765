/** From a receiving server's refusal to its event, its webhook, the statistics and the bounces table. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import {
  type Answer,
  eventually,
  ownAddress,
  startTestService,
  type TestService,
} from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

type Event = Record<string, unknown> & { 'delivery-status': Record<string, unknown> }

/** The reply to each recipient, and its result: rule, reason, severity. */
const REPLIES: Readonly<Record<string, [reply: string, rule: string, reason: string, severity: string]>> = {
  'gone@example.net': [
    '550-5.1.1 The email account that you tried to reach\r\n550 5.1.1 does not exist.',
    'gmail-no-user',
    'bounce',
    'permanent',
  ],
  'edge@example.net': [
    '550 5.4.1 Recipient address rejected: Access denied',
    'm365-access-denied',
    'espblock',
    'permanent',
  ],
  'whatever@example.net': ['550 whatever', 'unclassified', 'generic', 'permanent'],
  'listed@example.net': [
    '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org for <listed@example.net>',
    'spamhaus',
    'blacklisted',
    'permanent',
  ],
  'grey@example.net': ['450 4.2.0 greylisted, see postgrey', 'generic-greylist', 'greylisted', 'temporary'],
  'slow@example.net': ['421 4.7.0 too many connections', 'generic-rate', 'espblock', 'temporary'],
}

eachDatabase((database) => {
  test('a refusal is classified, counted, shown and reported', async (t) => {
    const sink = await createSink({ host: ownAddress() })
    const receiver = await createReceiver()
    t.after(() => Promise.all([sink.close(), receiver.close()]))
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const service = await startTestService(
      t,
      {
        SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
        SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
        SENDWRIGHT_RETRY_SCHEDULE: '1h',
      },
      { database, log },
    )
    for (const [address, [reply]] of Object.entries(REPLIES)) sink.on(`RCPT TO:<${address}>`, reply)
    const form = { id: 'permanent_fail', url: `${receiver.url}/failed` }
    assert.equal((await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })).status, 200)

    const recipients = [...Object.keys(REPLIES), 'fine@example.net']
    assert.equal((await service.send({ to: recipients, 'o:tag': ['Welcome', 'shop'] })).status, 200)
    const outcomes = await outcomesOf(service, recipients.length)

    await t.test('the event names rule and reason', () => {
      for (const [address, [, rule, reason, severity]] of Object.entries(REPLIES)) {
        const event = outcomes.get(address)
        assert.deepEqual(
          [event?.['i-classification-rule-id'], event?.['reason'], event?.['severity']],
          [rule, reason, severity],
          address,
        )
      }
      const typeOf = (address: string) => outcomes.get(address)?.['delivery-status']['bounce-type']
      assert.equal(typeOf('gone@example.net'), 'hard')
      assert.equal(typeOf('edge@example.net'), 'soft')
      assert.equal('i-classification-rule-id' in (outcomes.get('fine@example.net') ?? {}), false)
    })

    await t.test('so does the webhook', async () => {
      const posts = await eventually(
        'four webhooks',
        async () => receiver.posts.length >= 4 && receiver.posts,
      )
      const rules = posts.map(({ body }) => body['event-data']['i-classification-rule-id']).sort()
      assert.deepEqual(rules, ['gmail-no-user', 'm365-access-denied', 'spamhaus', 'unclassified'])
    })

    await t.test('only the missing mailbox is suppressed, from the next message on', async () => {
      const { items } = (await service.call('GET', `/v3/${service.domain}/bounces`)).body
      assert.deepEqual(
        items.map(({ address }: { address: string }) => address),
        ['gone@example.net'],
      )
      const seen = sink.commands.filter(([, line]) => /RCPT TO:<gone@/i.test(line)).length
      await service.send({ to: 'gone@example.net' })
      const suppressed = await eventually('the suppressed event', async () =>
        (await service.events('?event=failed')).find((event) => event['reason'] === 'suppress-bounce'),
      )
      assert.equal('i-classification-rule-id' in suppressed, false)
      assert.equal(sink.commands.filter(([, line]) => /RCPT TO:<gone@/i.test(line)).length, seen)
    })

    await t.test('statistics count final failures, suppressed ones not', async () => {
      const path = '/v1/bounce-classification'
      const get = async (rest: string) => (await ok(service.call('GET', `${path}${rest}`))).body
      const stats = await get('/stats?group=rule-id&group=entity-id')
      assert.match(stats._duration, /^(0s|\d+ms)$/)
      assert.deepEqual(stats.items, [
        group('gmail', 'gmail-no-user', 'The mailbox does not exist or is switched off'),
        group('office365', 'm365-access-denied', 'Refused by reputation or policy'),
        group('spamhaus', 'spamhaus', 'A blocklist names the sender'),
        group('unclassified', 'unclassified', 'Not classified'),
      ])
      assert.deepEqual(await get('/domains'), {
        items: [{ domain: { name: service.domain }, bounced: { total: 4 } }],
        total: 1,
        req: {},
      })
      const entities = await get(`/domains/${service.domain}/entities`)
      assert.deepEqual(entities.items[0], {
        'entity-id': 'gmail',
        'entity-name': 'Gmail',
        bounced: { total: 1 },
      })
      assert.deepEqual((await get(`/domains/${service.domain}/entities/spamhaus/rules`)).items, [
        {
          'rule-id': 'spamhaus',
          category: 'BLACKLISTED',
          severity: 'PERMANENT',
          'sample-text':
            '554 5.7.1 Service unavailable; Client host [IP] blocked using zen.spamhaus.org for <ADDR>',
          explanation:
            'The sending IP or a domain is listed by Spamhaus; ask for removal after fixing the cause.',
          bounced: { total: 1 },
        },
      ])
    })

    await t.test('metrics count failures of both kinds and deliveries', async () => {
      const json = { dimensions: ['domain.name', 'tag'], filter: { AND: null }, start: '', end: '' }
      const { body } = await ok(service.call('POST', '/v2/bounce-classification/metrics', { json }))
      assert.equal(body.pagination.total, 2)
      for (const item of body.items) {
        assert.equal(item['domain.name'], service.domain)
        assert.deepEqual(item.metrics, {
          critical_bounce_count: 1,
          non_critical_bounce_count: 3,
          critical_delay_count: 0,
          non_critical_delay_count: 2,
          classified_failures_count: 6,
          delivered_smtp_count: 1,
          critical_bounce_rate: 14,
          non_critical_bounce_rate: 43,
          critical_delay_rate: 0,
          non_critical_delay_rate: 29,
        })
      }
      assert.deepEqual(body.items.map((item: Record<string, unknown>) => item['tag']).sort(), [
        'shop',
        'welcome',
      ])
    })

    await t.test('refusals because of the host or its domains are reported to the operator', async () => {
      const { items } = (await ok(service.call('GET', '/sendwright/v1/system/checks'))).body
      const found = items.find(({ name }: { name: string }) => name === 'refusals')
      assert.equal(found.state, 'warning')
      assert.match(
        found.sentence,
        /spamhaus, 1 times \(newest: "554 5\.7\.1 .*\[IP\].*"\): .*ask for removal/,
      )
      const reported = lines.filter(({ rule }) => rule !== undefined)
      assert.deepEqual(
        reported.map(({ rule, level }) => [rule, level]),
        [['spamhaus', 40]],
      )
    })

    await t.test('a second listing within the hour is not reported again', async () => {
      sink.on('RCPT TO:<again@example.net>', '554 5.7.1 see spamhaus')
      await service.send({ to: 'again@example.net' })
      await eventually('its event', async () =>
        (await service.events('?recipient=again@example.net&event=failed')).at(0),
      )
      assert.equal(lines.filter(({ rule }) => rule !== undefined).length, 1)
    })
  })
})

const group = (entity: string, rule: string, words: string) => ({
  'rule-id': rule,
  'short-explanation': words,
  'entity-id': entity,
  bounced: { total: 1 },
})

async function ok(answer: Promise<Answer>): Promise<Answer> {
  const got = await answer
  assert.equal(got.status, 200, got.text)
  return got
}

/** The failed or delivered event of each recipient. */
async function outcomesOf(service: TestService, count: number): Promise<Map<string, Event>> {
  return eventually('an outcome for every recipient', async () => {
    const events = (await service.events()).filter(({ event }) => event === 'failed' || event === 'delivered')
    const found = new Map(events.map((event) => [event['recipient'] as string, event as Event]))
    return found.size === count && found
  })
}

test('a full mailbox is retried, and creates no record when the mail is too old, unless a policy requires one', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RETRY_SCHEDULE: '1s',
  })
  sink.on('RCPT', '452 4.2.2 The recipient is over quota')
  const failures = async (count: number) =>
    eventually('the final failures', async () => {
      const events = (await service.events('?event=failed')) as Event[]
      return events.filter(({ severity }) => severity === 'permanent').length === count && events
    })
  const bounces = async () => (await service.call('GET', `/v3/${service.domain}/bounces`)).body.items
  await service.send({ to: 'full@example.net' })
  const events = await failures(1)
  assert.deepEqual(
    events.map((event) => [event['severity'], event['reason'], event['i-classification-rule-id']]),
    [
      ['permanent', 'old', 'generic-full'],
      ['temporary', 'generic', 'generic-full'],
    ],
  )
  assert.equal(events[0]?.['delivery-status']['last-code'], 452)
  assert.deepEqual(await bounces(), [])
  const rules = `/v1/bounce-classification/domains/${service.domain}/entities/generic/rules`
  const { items } = (await service.call('GET', rules)).body
  assert.deepEqual(
    items.map((item: Record<string, unknown>) => [item['rule-id'], item['category'], item['sample-text']]),
    [['generic-full', 'MAILBOXFULL', '452 4.2.2 The recipient is over quota']],
  )

  const policy = {
    hard_bounces_to_suppress: 2,
    soft_bounces_to_suppress: 2,
    window_days: 30,
    lifetime_days: 0,
  }
  const path = `/sendwright/v1/domains/${service.domain}/suppression-policy`
  assert.equal((await service.call('PUT', path, { json: policy })).status, 200)
  await service.send({ to: 'full@example.net' })
  await failures(2)
  assert.deepEqual(await bounces(), [])
  // Policy and reputation replies do not concern the recipient, however often; a missing mailbox does.
  sink.on('RCPT TO:<blocked@example.net>', '550 5.7.1 refused by local policy')
  sink.on('RCPT TO:<gone@example.net>', '550 5.1.1 user unknown')
  for (let round = 0; round < 2; round++) {
    await service.send({ to: ['blocked@example.net', 'gone@example.net'] })
    await failures(4 + 2 * round)
  }
  await service.send({ to: 'full@example.net' })
  await failures(7)
  const addresses = (await bounces()).map(({ address }: { address: string }) => address)
  assert.deepEqual(addresses.sort(), ['full@example.net', 'gone@example.net'])
})
