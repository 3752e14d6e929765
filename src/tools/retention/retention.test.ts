import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../platform/config/config.ts'
import { KEPT_KINDS } from '../../platform/store/kept-days.ts'
import { TABLE_KINDS } from '../system/sizes/table-kinds.ts'
import { type Effective, effectiveDays } from './effective.ts'
import { KINDS_OF_DATA } from './kinds.ts'
import { policyText, spanOf } from './policy-text.ts'

const BOUNDS: ReadonlyMap<string, string> = new Map(
  Object.values(TABLE_KINDS).flatMap((tables) => Object.entries(tables)),
)

test('what ends by its age is kept for a time, what people remove is not', () => {
  for (const { kind, tables, days } of KINDS_OF_DATA)
    for (const table of tables)
      assert.equal(
        BOUNDS.get(table),
        days === null || table === 'sessions' ? bound(table) : 'age',
        `${kind}: ${table}`,
      )
  const named = KINDS_OF_DATA.flatMap(({ tables }) => tables)
  assert.deepEqual(named.toSorted(), [...new Set(named)].toSorted(), 'each table is of one kind')
  for (const kind of KEPT_KINDS)
    assert.ok(
      KINDS_OF_DATA.some((each) => each.kind === kind),
      kind,
    )
})

const bound = (table: string) => (table === 'sessions' ? 'age' : 'owned')

/** Tables with data of recipients, of the kinds of data that end by age, which the list must name or leave out with a reason. */
const NOT_NAMED: Record<string, string> = {
  delivery_reports: 'ids of deliveries and of events',
  content_decisions: 'digests',
  content_holds: 'the message has it',
  list_expansions: 'the message has it',
}

test('no table with mail, events or dialogues is left out', () => {
  const named = new Set<string>(KINDS_OF_DATA.flatMap(({ tables }) => tables))
  const kinds = [
    'messages',
    'events',
    'dialogues',
    'webhooks',
    'tracking',
    'inbox',
    'audit',
    'validation',
  ] as const
  const missing = kinds.flatMap((kind) =>
    Object.entries(TABLE_KINDS[kind]).flatMap(([table, by]) =>
      by === 'age' && !named.has(table) && NOT_NAMED[table] === undefined ? [table] : [],
    ),
  )
  assert.deepEqual(missing, [])
})

const at = (items: readonly Effective[], kind: string) => {
  const found = items.find((item) => item.kind === kind)
  assert.ok(found)
  return [found.keptDays, found.source]
}

test('the domain decides, then the account, then the service; message_ttl shortens', () => {
  const config = readConfig({ SENDWRIGHT_EVENT_RETENTION_DAYS: '20' })
  const none = { account: {}, domain: null }
  const domain = (set: object, messageTtlSeconds = 0) => ({ set, messageTtlSeconds })
  const table: [string, Parameters<typeof effectiveDays>[1], string, unknown][] = [
    ['nothing set', none, 'messages', [3, 'service']],
    ['account', { account: { messages: 1 }, domain: null }, 'messages', [1, 'account']],
    [
      'domain over account',
      { account: { messages: 1 }, domain: domain({ messages: 5 }) },
      'messages',
      [5, 'domain'],
    ],
    ['domain without its own', { account: { messages: 1 }, domain: domain({}) }, 'messages', [1, 'account']],
    ['nothing at all', { account: {}, domain: domain({ messages: 0 }) }, 'messages', [0, 'domain']],
    ['ttl alone may be longer', { account: {}, domain: domain({}, 432_000) }, 'messages', [5, 'message_ttl']],
    [
      'ttl does not lengthen',
      { account: { messages: 1 }, domain: domain({}, 432_000) },
      'messages',
      [1, 'account'],
    ],
    [
      'ttl shortens',
      { account: { messages: 1 }, domain: domain({}, 3_600) },
      'messages',
      [1 / 24, 'message_ttl'],
    ],
    ['events', { account: { events: 7 }, domain: null }, 'events', [7, 'account']],
    ['the operator has less now', { account: { events: 30 }, domain: null }, 'events', [20, 'account']],
    ['no more than events', none, 'failures', [20, 'service']],
    ['fixed', none, 'delivery_facts', [60, 'fixed']],
  ]
  for (const [name, settings, kind, expected] of table)
    assert.deepEqual(at(effectiveDays(config, settings), kind), expected, name)
})

test('spans in words', () => {
  const table: [number, string][] = [
    [1, '1 day'],
    [30, '30 days'],
    [1 / 24, '1 hour'],
    [0.3, '8 hours'],
    [1.2, '2 days'],
  ]
  for (const [days, words] of table) assert.equal(spanOf(days), words)
})

test('the passage says what is kept of people, and nothing of counts', () => {
  const settings = { account: { messages: 0 }, domain: null }
  const text = policyText(effectiveDays(readConfig({}), settings), 'example.com')
  assert.match(text, /^For mail that we send from example\.com, /m)
  assert.match(
    text,
    /^- Messages: addresses, subject and content\. We remove it as soon as the message was delivered to its last recipient, or given up\.$/m,
  )
  assert.match(text, /^- Events: .*\. We store it for 30 days after they happened\.$/m)
  assert.match(text, /^- Suppressions: address and reason\. We store it until it is removed on request/m)
  assert.doesNotMatch(text, /Statistics/)
})
