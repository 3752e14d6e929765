import assert from 'node:assert/strict'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { insert } from '../../../platform/store/store.ts'
import { createTlsCounts } from '../connect/tls-counts.ts'
import { removeOld, removeShortened } from './transcripts.ts'

eachStore('old dialogues and counts go, young ones stay', async (store) => {
  const clock = createTestClock()
  const now = clock.now()
  const transcript = (delivery_id: string, ageDays: number) =>
    insert('transcripts', {
      delivery_id,
      attempt: 1,
      account_id: 'a',
      started_at: Math.round(now - ageDays * DAY_MS),
      mx_host: '',
      lines_json: '[]',
    })
  await store.commit([transcript('old', 15), transcript('young', 13)])
  const results = createTlsCounts(store, clock)
  const about = { recipientDomain: 'a.example', sendingIp: '', policyDomain: 'a.example' }
  const success = { ...about, policyType: 'sts', mxHost: 'mx', result: 'success' } as const
  results.record(success)
  results.record(success)
  await results.close()
  const counts = () => store.db.selectFrom('tls_results').select('sessions').execute()
  results.record(success)
  await results.close()
  assert.deepEqual(await counts(), [{ sessions: 3 }])
  await removeOld(store, now, 14)
  const kept = await store.db.selectFrom('transcripts').select('delivery_id').execute()
  assert.deepEqual(kept, [{ delivery_id: 'young' }])
  assert.equal((await counts()).length, 1)
  await removeOld(store, now + 32 * DAY_MS, 14)
  assert.equal((await counts()).length, 0)
})

eachStore(
  'dialogues of a domain or an account with a shorter time go earlier, those of others stay',
  async (store) => {
    const clock = createTestClock()
    const now = clock.now()
    const transcript = (account_id: string, delivery_id: string, ageDays: number, attempt = 1) =>
      insert('transcripts', {
        ...{ delivery_id, attempt, account_id, mx_host: '', lines_json: '[]' },
        started_at: Math.round(now - ageDays * DAY_MS),
      })
    const setting = (account_id: string, domain_id: string, days: number) =>
      insert('retention_settings', { account_id, domain_id, kind: 'dialogues', days })
    const past = (id: string, domain_id: string) =>
      insert('past_deliveries', {
        ...{ id, account_id: 'a', domain_id, message_pk: 'm', recipient: 'x@example.org' },
        ...{ recipient_domain: 'example.org', recipient_header: 'x@example.org', variables_json: null },
        ...{ list_json: null, state: 'bounced', provider: null, sending_ip: null, delivered_at: null },
        ...{ headers_json: null, removed_at: 0, attempts: 1 },
      })
    await store.commit([
      ...[past('short', 'd1'), past('long', 'd2')],
      ...[transcript('a', 'short', 3), transcript('a', 'short', 1.5, 2), transcript('a', 'long', 9)],
      ...[transcript('a', 'unknown', 6), transcript('a', 'young', 4), transcript('b', 'other', 13)],
    ])
    const bounds = { preset: 14, min: 1, max: 14 }
    const kept = async () => {
      const rows = await store.db.selectFrom('transcripts').select(['delivery_id', 'attempt']).execute()
      return rows.map(({ delivery_id, attempt }) => `${delivery_id} ${attempt}`).toSorted()
    }
    await removeShortened({ store, clock }, bounds)
    assert.equal((await kept()).length, 6, 'nobody has set anything')
    await store.commit([setting('a', '', 5), setting('a', 'd1', 2), setting('a', 'd2', 30)])
    await removeShortened({ store, clock }, bounds)
    assert.deepEqual(await kept(), ['long 1', 'other 1', 'short 2', 'young 1'])
  },
)
