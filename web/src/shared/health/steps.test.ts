import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SenderRules } from '../../api-types.ts'
import {
  domainSteps,
  inOrder,
  listingSteps,
  rateSteps,
  reportSteps,
  ruleSteps,
  standingSteps,
} from './steps.ts'

const NO_RATES = {
  bounce_rate: 0,
  complaint_rate: 0,
  trap_rate: 0,
  full_mailbox_rate: 0,
  bad_failure_rate: 0,
}
const rules = (isBulk: boolean, ...failed: readonly (readonly [string, string])[]): SenderRules =>
  ({
    is_bulk_sender: isBulk,
    rules: [
      { rule: 'dkim', required_of: 'everybody', passed: true, sentence: '' },
      { rule: 'spf', required_of: 'everybody', passed: null, sentence: '' },
      ...failed.map(([rule, required_of]) => ({ rule, required_of, passed: false, sentence: 'why' })),
    ],
  }) as unknown as SenderRules
const ids = (steps: readonly { id: string }[]) => steps.map(({ id }) => id)

test('what stops mail comes first, then what costs the most', () => {
  const listed = [
    { list: 'dbl.example', name: 'DBL', first_seen: '', last_seen: '', comments: ['https://example.com'] },
  ]
  const standing = {
    stopped: [
      { state: 'held', reason: 'too many complaints' },
      { domain: 'b.example', state: 'slowed' },
    ],
  }
  const steps = inOrder([
    ...rateSteps({ ...NO_RATES, bounce_rate: 3, complaint_rate: 30 }, 'a.example'),
    ...ruleSteps(
      rules(false, ['bimi', 'nobody'], ['dmarc', 'bulk senders'], ['spf', 'everybody']),
      'a.example',
    ),
    ...listingSteps('a.example', listed),
    ...standingSteps(standing as never, 'a.example'),
    ...reportSteps({ totals: { dmarc: { messages: 100, failed: 20 } } } as never, 'a.example'),
  ])
  assert.deepEqual(ids(steps), [
    ...['standing ', 'rule spf', 'list a.example dbl.example'],
    ...['complaint_rate', 'reports', 'rule dmarc', 'bounce_rate', 'rule bimi'],
  ])
  assert.equal(steps[0]?.why, 'too many complaints')
  assert.equal(steps[3]?.href, '/activity?event=complained&domain=a.example')
})

test('rules for bulk senders are urgent for those who are', () => {
  assert.equal(ruleSteps(rules(true, ['dmarc', 'bulk senders']), 'a.example')[0]?.level, 'now')
  assert.equal(ruleSteps(rules(false, ['dmarc', 'bulk senders']), 'a.example')[0]?.level, 'soon')
})

test('what is all right, or not known, is no step', () => {
  assert.deepEqual(rateSteps(NO_RATES), [])
  assert.deepEqual(ruleSteps(rules(true), 'a.example'), [])
  assert.deepEqual(
    reportSteps({ totals: { dmarc: { messages: 1_000, failed: 5 } } } as never, 'a.example'),
    [],
  )
  assert.deepEqual(reportSteps({ totals: {} }, 'a.example'), [])
  const domains = [
    { name: 'a.example', state: 'active', type: 'custom' },
    { name: 'b.example', state: 'unverified', type: 'custom' },
    { name: 'c.example', state: 'unverified', type: 'sandbox' },
  ]
  assert.deepEqual(ids(domainSteps(domains, [])), ['unverified b.example'])
})
