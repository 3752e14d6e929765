import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DomainDns, ExplainedRecord, RecordToPublish } from '../domains-api.ts'
import { advice, foundToShow, lastCheckedMs, recordGroups, recordState, stillNeeded } from './records.ts'

const CHECKED_AT = '2026-11-21T12:00:00Z'

const explained = (
  record: Partial<RecordToPublish>,
  look: Partial<Omit<ExplainedRecord, 'record'>> = {},
): ExplainedRecord => ({
  record: { purpose: 'spf', name: 'mg.example.com', type: 'TXT', value: 'v', ...record },
  asked: 'TXT mg.example.com',
  server: '127.0.0.1:53',
  found: [],
  valid: 'unknown',
  sentence: '',
  checked_at: CHECKED_AT,
  ...look,
})
const valid = { valid: 'valid' } as const

test('a record is valid, missing, wrong, elsewhere or not checked, by what was found', () => {
  const { checked_at: _, ...unchecked } = explained({})
  for (const [one, state] of [
    [unchecked, 'unchecked'],
    [explained({}), 'missing'],
    [explained({}, valid), 'valid'],
    [explained({}, { found: ['site-verification=1'] }), 'missing'],
    [explained({}, { found: ['site-verification=1', 'v=spf1 -all'] }), 'wrong'],
    [explained({}, { found: ['"v=spf1 -all"'] }), 'wrong'],
    [explained({ purpose: 'dkim' }, { found: ['k=rsa; p='] }), 'wrong'],
    [explained({ purpose: 'tracking', type: 'CNAME' }, { found: ['a.example'] }), 'wrong'],
    [explained({ purpose: 'mx', type: 'MX' }, { found: ['10 mx.example'] }), 'elsewhere'],
  ] as const)
    assert.equal(recordState(one), state, JSON.stringify(one))
})

test('what is still needed follows the rules of verification', () => {
  const spf = explained({}, valid)
  const key = (record: Partial<RecordToPublish>, look = {}) => explained({ purpose: 'dkim', ...record }, look)
  for (const [records, needed] of [
    [[], ['DKIM']],
    [
      [key({}), explained({})],
      ['DKIM', 'SPF'],
    ],
    [[key({}, valid), spf], []],
    [[key({}, valid), explained({})], ['SPF']],
    // A key that does not sign yet blocks nothing, one that signs does.
    [[key({ is_active: true }, valid), key({ is_active: false }), spf], []],
    [[key({ is_active: true }), key({ is_active: false }, valid), spf], ['DKIM']],
    [[key({}, valid), key({}), spf], []],
    // Keys that the service rotates need both CNAMEs.
    [[key({ type: 'CNAME', is_active: true }, valid), key({ type: 'CNAME' }), spf], ['DKIM']],
  ] as const)
    assert.deepEqual(stillNeeded(records), needed)
})

test('mail hosts take bounces, unless the domain has a return path of its own', () => {
  const mx = explained({ purpose: 'mx', type: 'MX' })
  const apart = explained({ purpose: 'return-path-mx', type: 'MX' })
  const purposes = (records: ExplainedRecord[]) => recordGroups(records).map(({ purpose }) => purpose)
  assert.match(purposes([mx])[0] ?? '', /^For bounces .* mailfrom_host\.$/)
  const [returnPath, receiving] = purposes([mx, apart])
  assert.match(returnPath ?? '', /^Bounces .* are lost\.$/)
  assert.doesNotMatch(receiving ?? '', /bounces/i)
})

test('records come in groups by purpose, and groups without records are left out', () => {
  const records = (['mx', 'tracking', 'spf', 'dkim'] as const).map((purpose) => explained({ purpose }))
  const titles = recordGroups(records).map(({ title, records: held }) => `${title} ${held.length}`)
  assert.deepEqual(titles, ['Sending 2', 'Tracking 1', 'Receiving 1'])
})

test('the advice leaves out what stands beside it: the question, the server, and a long value', () => {
  const source = '127.0.0.1:53 was asked for TXT records of mg.example.com.'
  const key = `k=rsa; p=${'A'.repeat(400)}`
  for (const [sentence, value, shown] of [
    [
      `${source} It does not exist. Add there this TXT record: v`,
      'v',
      'It does not exist. Add there this TXT record: v',
    ],
    [`${source} Publish this TXT record: ${key}`, key, 'Publish this TXT record, with the value above.'],
    ['127.0.0.1:53 gave no answer.', 'v', '127.0.0.1:53 gave no answer.'],
  ] as const)
    assert.equal(advice({ ...explained({}), sentence }, value), shown)
})

test('what was found shows unless it is what it should be', () => {
  const mx = { purpose: 'mx', type: 'MX', value: 'a.example', priority: 10 } as const
  for (const [one, shown] of [
    [explained({}, { ...valid, found: ['v'] }), []],
    [explained({}, { ...valid, found: ['v with more'] }), ['v with more']],
    [explained({}, { found: ['other', 'more'] }), ['other', 'more']],
    [explained(mx, { ...valid, found: ['10 a.example'] }), []],
    [explained(mx, { ...valid, found: ['10 a.example', '10 b.example'] }), []],
    [explained(mx, { found: ['5 c.example'] }), ['5 c.example']],
  ] as const)
    assert.deepEqual(foundToShow(one), shown)
})

test('the last check is the latest of any record, and none before the first', () => {
  const { checked_at: _, ...unchecked } = explained({})
  assert.equal(
    lastCheckedMs({ records: [unchecked], service: [], dmarc: unchecked } as unknown as DomainDns),
    undefined,
  )
  const later = explained({}, { checked_at: '2026-11-21T12:00:05Z' })
  assert.equal(
    lastCheckedMs({ records: [explained({}), later], service: [], dmarc: unchecked } as unknown as DomainDns),
    Date.UTC(2026, 10, 21, 12, 0, 5),
  )
})
