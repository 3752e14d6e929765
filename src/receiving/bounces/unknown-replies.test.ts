import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import { insertMany, type Store } from '../../platform/store/store.ts'
import { loadRules } from './rules.ts'
import { unknownReplies } from './unknown-replies.ts'

const NOW = Date.UTC(2026, 10, 27)
const DAY_MS = 86_400_000
const rules = loadRules(null)

const add = (store: Store, samples: readonly string[], more = {}) =>
  store.commit(
    [
      insertMany(
        'classified_failures',
        samples.map((sample) => ({
          account_id: 'one',
          domain_name: 'mg.example.com',
          recipient_domain: 'there.example',
          provider: 'Other',
          sending_ip: null,
          tags_json: '[]',
          rule_id: 'unclassified',
          entity: 'unclassified',
          category: 'GENERIC',
          severity: 'PERMANENT',
          critical: 0,
          sample,
          failed_at: NOW - 1_000,
          ...more,
        })),
      ),
    ].flat(),
  )

eachStore(
  'replies that differ in numbers and ids are one text; the ten most frequent are named',
  async (store) => {
    await add(store, ['550 5.0.0 Nope a1b2-77 <ADDR>', '550 5.0.0 Nope x9 <ADDR>'])
    await add(store, ['550 5.0.0 Nope 12 <ADDR>'], { account_id: 'two', failed_at: NOW - 10 })
    for (let at = 0; at < 12; at++)
      await add(store, [`554 Word${'x'.repeat(at)}`, `554 Word${'x'.repeat(at)}`])
    const { replies, partial } = await unknownReplies(store, rules, NOW)
    assert.equal(partial, false)
    assert.equal(replies.length, 10)
    assert.deepEqual(replies[0]?.text, '550 5.0.0 Nope # <ADDR>')
    assert.deepEqual([replies[0]?.count, replies[0]?.lastAt, replies[1]?.count], [3, NOW - 10, 2])
  },
)

eachStore(
  'replies of other rules, old ones, and those that the present rules know are left out',
  async (store) => {
    await add(store, ['550 blah'], { rule_id: 'generic-spam' })
    await add(store, ['550 blah'], { failed_at: NOW - 8 * DAY_MS })
    await add(store, ['550 5.1.1 User unknown', '550 5.1.1 User unknown'])
    assert.deepEqual((await unknownReplies(store, rules, NOW)).replies, [])
  },
)

eachStore('the text is limited in length, the work in the number of failures', async (store) => {
  const rows = Array.from({ length: 1_000 }, (_, at) => `550 ${'word '.repeat(90)}${'a'.repeat(at % 50)}`)
  for (let at = 0; at < 21; at++) await add(store, rows)
  const { replies, partial } = await unknownReplies(store, rules, NOW)
  assert.equal(partial, true)
  assert.deepEqual(
    replies.map(({ text, count }) => [text.length, count]),
    [[200, 20_000]],
  )
})
