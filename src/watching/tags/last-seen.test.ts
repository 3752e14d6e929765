// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Store } from '../../platform/store/store.ts'
import { newTagStatements } from './known-tags.ts'
import { createLastSeen } from './last-seen.ts'
import { createTagStore } from './tag-store.ts'

const NOW = 1_780_315_200_000
const MINUTE = 60_000
const shop = { id: 'domain-1', accountId: 'account-1' }

/** Counts the rows that are changed. */
function counting(store: Store): Store & { changed: number } {
  const counted = {
    ...store,
    changed: 0,
    commit: async (...unit: Parameters<Store['commit']>) => {
      const results = await store.commit(...unit)
      for (const { affected } of results) counted.changed += affected
      return results
    },
  }
  return counted
}

eachStore('a tag is written at most once an hour, however often it is used', async (store) => {
  const clock = createTestClock(NOW)
  const counted = counting(store)
  const seen = createLastSeen({ store: counted, clock })
  const tags = createTagStore(store)
  await store.commit(newTagStatements(shop, ['Sale', 'other'], NOW))
  for (let minute = 0; minute < 125; minute++) {
    clock.leap(MINUTE)
    seen.used(shop, ['SALE'])
    seen.used(shop, ['sale'])
    await seen.write()
  }
  assert.equal(counted.changed, 2 * 3, 'three hours, in two tables')
  const sale = await tags.find(shop.id, 'sale')
  assert.deepEqual([sale?.first_seen, sale?.last_seen], [NOW, NOW + 120 * MINUTE])
  const [ofAccount] = await tags.accountPage({
    accountIds: ['account-1'],
    prefix: 'sale',
    order: 'tag_key',
    descending: false,
    skip: 0,
    limit: 1,
  })
  assert.deepEqual([ofAccount?.first_seen, ofAccount?.last_seen], [NOW, NOW + 120 * MINUTE])
  assert.equal((await tags.find(shop.id, 'other'))?.last_seen, NOW)
})

eachStore('a tag that was described first is first seen with its first message', async (store) => {
  const clock = createTestClock(NOW)
  const seen = createLastSeen({ store, clock })
  const tags = createTagStore(store)
  await tags.describe(shop, 'Plan', 'for later', true)
  seen.used(shop, ['plan'])
  await seen.write()
  const tag = await tags.find(shop.id, 'plan')
  assert.deepEqual([tag?.tag, tag?.first_seen, tag?.last_seen], ['Plan', NOW, NOW])
})

eachStore('what could not be written is written later', async (store) => {
  const clock = createTestClock(NOW)
  let isAway = true
  const away: Store = {
    ...store,
    commit: (...unit) => (isAway ? Promise.reject(new Error('away')) : store.commit(...unit)),
  }
  const seen = createLastSeen({ store: away, clock })
  await store.commit(newTagStatements(shop, ['sale'], NOW - 10 * MINUTE))
  seen.used(shop, ['sale'])
  await assert.rejects(seen.write(), /away/)
  await seen.write(AbortSignal.abort())
  isAway = false
  await seen.write()
  assert.equal((await createTagStore(store).find(shop.id, 'sale'))?.last_seen, NOW)
})
