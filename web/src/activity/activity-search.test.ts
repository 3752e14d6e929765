import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldOf, isIndexed, logQueryOf, readActivitySearch } from './activity-search.ts'

test('what was typed decides where it is sought', () => {
  assert.equal(fieldOf('bob@example.org'), 'recipient')
  assert.equal(fieldOf('bob@'), 'recipient')
  assert.equal(fieldOf('your order'), 'subject')
  assert.equal(fieldOf('<20260601120000.5d2c81e09af3b764@example.com>'), 'message_id')
})

test('a whole address is looked up, a part of one is sought', () => {
  const filterOf = (search: Parameters<typeof logQueryOf>[0]) => logQueryOf(search).filter?.AND[0]
  const bob = filterOf({ q: 'bob@example.org' })
  assert.deepEqual([bob?.attribute, bob?.comparator], ['recipient', '='])
  assert.equal(filterOf({ q: 'bob@' })?.comparator, 'contains')
  assert.equal(filterOf({ q: 'bob@example.org', by: 'from' })?.comparator, 'contains')
  assert.equal(filterOf({ q: '<a@b.example>', by: 'message_id' })?.values[0]?.value, 'a@b.example')
  assert.equal(isIndexed(logQueryOf({ q: 'bob@example.org' })), true)
  assert.equal(isIndexed(logQueryOf({ q: 'order' })), false)
})

test('kinds of failures are asked by the metric that counts them, and a token stands for the whole query', () => {
  assert.deepEqual(logQueryOf({ event: 'bounced' }).metric_events, ['bounced'])
  assert.deepEqual(logQueryOf({ event: 'opened' }).events, ['opened'])
  const people = (event: 'clicked' | 'delivered') =>
    logQueryOf({ event, people: 'only' }).filter?.AND[0]?.values[0]
  assert.deepEqual([people('clicked')?.value, people('delivered')], ['None', undefined])
  assert.deepEqual(logQueryOf({ at: 'token', event: 'opened' }), {
    pagination: { token: 'token', limit: 50 },
  })
})

test('unknown and empty parameters are dropped', () => {
  assert.deepEqual(readActivitySearch({ q: '', by: 'nothing', event: 'opened', x: '1', at: 'y' }), {
    event: 'opened',
    at: 'y',
  })
})
