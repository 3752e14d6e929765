import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ATTRIBUTE_NAMES, COMPARATORS, conditionsOf, eventsOf, type LogRow, passesAll } from './log-filter.ts'

const delivered: LogRow = {
  id: 'Event-1',
  event: 'delivered',
  accountId: 'account-1',
  domainName: 'mg.example.com',
  payload: {
    recipient: 'Alice@example.org',
    'recipient-domain': 'example.org',
    'recipient-provider': 'Gmail',
    tags: ['Summer', 'sale'],
    'user-variables': { order: '17' },
    envelope: { 'sending-ip': '203.0.113.9' },
    flags: { 'is-routed': false },
    message: {
      headers: { from: 'Shop <shop@mg.example.com>', to: 'Alice', subject: 'Big news', 'message-id': 'M1@x' },
      attachments: [{ filename: 'a.pdf' }, { filename: 'B.txt' }],
      recipients: ['alice@example.org', 'bob@example.net'],
      size: 1204,
    },
    'delivery-status': { code: 250, message: 'OK queued' },
  },
}
const clicked: LogRow = {
  id: 'Event-2',
  event: 'clicked',
  accountId: 'account-2',
  domainName: 'other.example',
  payload: {
    geolocation: { country: 'DE' },
    'client-info': { bot: 'gmail', 'device-type': 'mobile' },
    'mailing-list': { address: 'devs@mg.example.com' },
  },
}
const bounced: LogRow = {
  ...delivered,
  id: 'Event-3',
  event: 'failed',
  payload: { severity: 'permanent', 'i-classification-rule-id': 'spamhaus', flags: { 'is-routed': true } },
}
const ROWS = [delivered, clicked, bounced]

const filter = (attribute: string, comparator: string, ...values: unknown[]) => ({
  AND: [{ attribute, comparator, values: values.map((value) => ({ label: '', value })) }],
})

/** The rows that pass, by number. */
const CASES: [given: unknown, passing: number[]][] = [
  [filter('event', '=', 'FAILED'), [3]],
  [filter('event', '!=', 'failed', 'clicked'), [1]],
  [filter('attachment_filename', '=', 'b.TXT'), [1]],
  [filter('attachment', '!=', 'b.txt'), [2, 3]],
  [filter('message_id', '=', '<m1@X>'), [1]],
  [filter('message-id', '!=', 'M1@x'), [2, 3]],
  [filter('tag', '=', 'summer', 'winter'), [1]],
  [filter('tags', '!=', 'summer'), [2, 3]],
  [filter('severity', '=', 'permanent'), [3]],
  [filter('ip', '=', '203.0.113.9'), [1]],
  [filter('ip_pool', '=', 'none'), [1, 2, 3]],
  [filter('recipient_domain', '=', 'example.org'), [1]],
  [filter('recipient_provider', '=', 'gmail'), [1]],
  [filter('country', '=', 'de'), [2]],
  [filter('country', '=', 'Unknown'), [1, 3]],
  [filter('subaccount', '=', 'account-2'), [2]],
  [filter('id', '!=', 'event-1'), [2, 3]],
  [filter('delivery_status_code', '=', 250), [1]],
  [filter('is_routed', '=', true), [3]],
  [filter('is_routed', '=', 'false'), [1, 2]],
  [filter('i_classification_rule_id', '=', 'spamhaus'), [3]],
  [filter('from', 'contains', 'SHOP@'), [1]],
  [filter('subject', '=', 'big news'), [1]],
  [filter('subject', 'not contains', 'news'), [2, 3]],
  [filter('recipient', 'contains', 'alice'), [1]],
  [filter('domain', 'contains', 'example.com'), [1, 3]],
  [filter('bot', '=', 'Gmail'), [2]],
  [filter('bot', '=', 'None'), [1, 3]],
  [filter('device', '!=', 'mobile'), [1, 3]],
  [filter('mailing_list_address', 'contains', 'devs@'), [2]],
  [filter('list', 'not contains', 'devs@'), [1, 3]],
  [filter('to', 'contains', 'ali'), [1]],
  [filter('recipients', 'contains', 'bob@'), [1]],
  [filter('user_variables', 'contains', '"order":"17"'), [1]],
  [filter('delivery_status_message', 'contains', 'queued'), [1]],
  [filter('size', '>', 1000), [1]],
  [filter('size', '<', '1204'), []],
  [{ AND: null }, [1, 2, 3]],
  [{}, [1, 2, 3]],
  [undefined, [1, 2, 3]],
  [{ AND: [...filter('tag', '=', 'sale').AND, ...filter('size', '<', 2).AND] }, []],
  [{ AND: [{ attribute: 'tag', comparator: '=', values: ['sale'] }] }, [1]],
]

test('conditions pass the events that they describe', () => {
  for (const [given, passing] of CASES) {
    const conditions = conditionsOf(given)
    const passes = passesAll(conditions)
    const found = ROWS.flatMap((row, at) => (passes(row) ? [at + 1] : []))
    assert.deepEqual(found, passing, JSON.stringify(given))
    const names = eventsOf(conditions)
    for (const row of ROWS.filter(passes)) assert.ok(names?.has(row.event) ?? true, JSON.stringify(given))
  }
})

test('every attribute has a case', () => {
  const used = new Set(CASES.flatMap(([given]) => conditionsOf(given).map(({ attribute }) => attribute)))
  assert.deepEqual(
    ATTRIBUTE_NAMES.filter((name) => !used.has(name)),
    [],
  )
})

test('each attribute takes its comparators only', () => {
  const taken = (attribute: string) =>
    COMPARATORS.filter((comparator) => {
      try {
        return conditionsOf(filter(attribute, comparator, '1')).length === 1
      } catch {
        return false
      }
    }).join(' ')
  const equal = 'event attachment_filename message_id tag severity ip ip_pool recipient_domain'
  const more =
    'recipient_provider country subaccount id delivery_status_code is_routed i_classification_rule_id'
  for (const name of `${equal} ${more}`.split(' ')) assert.equal(taken(name), '= !=', name)
  for (const name of 'from subject recipient domain bot device'.split(' '))
    assert.equal(taken(name), '= != contains not contains', name)
  for (const name of 'mailing_list_address to recipients user_variables delivery_status_message'.split(' '))
    assert.equal(taken(name), 'contains not contains', name)
  assert.equal(taken('size'), '> <')
})

const BAD: [given: unknown, message: string][] = [
  [{ AND: {} }, 'filter.AND must be a list'],
  [{ AND: Array(21).fill({}) }, 'filter has more than 20 entries'],
  [filter('colour', '=', 'red'), 'invalid attribute: colour'],
  [filter('constructor', '=', 'red'), 'invalid attribute: constructor'],
  [filter('tag', '~', 'red'), 'invalid comparator: ~'],
  [filter('tag', '>', 'red'), "comparator '>' is not supported for attribute 'tag'"],
  [filter('tag', '='), 'filter tag: values must not be empty'],
  [filter('size', '>', 'big'), 'filter size: not a number: big'],
  [filter('tag', '=', 'x'.repeat(501)), 'filter tag: at most 100 values of 500 characters'],
  [{ AND: [1] }, 'invalid attribute: '],
]

test('what is not understood is named', () => {
  for (const [given, message] of BAD) assert.throws(() => conditionsOf(given), { message })
})
