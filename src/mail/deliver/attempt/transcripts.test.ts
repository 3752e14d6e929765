import assert from 'node:assert/strict'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { insert } from '../../../platform/store/store.ts'
import { createTlsCounts } from '../connect/tls-counts.ts'
import { removeOld } from './transcripts.ts'

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
  await removeOld(store, now)
  const kept = await store.db.selectFrom('transcripts').select('delivery_id').execute()
  assert.deepEqual(kept, [{ delivery_id: 'young' }])
  assert.equal((await counts()).length, 1)
  await removeOld(store, now + 32 * DAY_MS)
  assert.equal((await counts()).length, 0)
})
