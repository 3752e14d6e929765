import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { createStoredLinks, linkIdOf } from './links.ts'

const DAY_MS = 86_400_000
const rows = 'SELECT id, url, used_at FROM tracking_links ORDER BY url'

test('the id follows from account and url', () => {
  assert.equal(linkIdOf('a', 'https://x/'), linkIdOf('a', 'https://x/'))
  assert.notEqual(linkIdOf('a', 'https://x/'), linkIdOf('b', 'https://x/'))
  assert.notEqual(linkIdOf('a', 'https://x/'), linkIdOf('a', 'https://x/?'))
})

eachStore('a target is found again, and kept for 400 days after its last use', async (store) => {
  const clock = createTestClock()
  const links = createStoredLinks(store, clock)
  const ids = await links.keep('a', ['https://x/1', 'https://x/2', 'https://x/1'])
  assert.deepEqual(ids, [linkIdOf('a', 'https://x/1'), linkIdOf('a', 'https://x/2'), ids[0]])
  assert.equal(await links.urlOf(ids[1] as string), 'https://x/2')
  assert.equal(await links.urlOf(linkIdOf('b', 'https://x/2')), null)

  clock.leap(300 * DAY_MS)
  // Another process, whose cache is empty.
  await createStoredLinks(store, clock).keep('a', ['https://x/2'])
  await links.keep('b', ['https://x/2'])
  clock.leap(101 * DAY_MS)
  await links.removeOld()
  assert.equal(await links.urlOf(ids[0] as string), null)
  assert.equal(await links.urlOf(ids[1] as string), 'https://x/2')
  clock.leap(301 * DAY_MS)
  await links.removeOld()
  assert.deepEqual(await store.read({ sql: rows, values: [] }), [])
})

eachStore('what is stored today is not written again today', async (store) => {
  const clock = createTestClock()
  let units = 0
  const counting = {
    ...store,
    commit: (...unit: Parameters<typeof store.commit>) => {
      units++
      return store.commit(...unit)
    },
  }
  const links = createStoredLinks(counting, clock)
  const urls = Array.from({ length: 450 }, (_, n) => `https://x/${n}`)
  await links.keep('a', urls)
  assert.equal(units, 3)
  await links.keep('a', urls)
  await links.keep('a', [])
  assert.equal(units, 3)
  clock.leap(DAY_MS)
  await links.keep('a', urls.slice(0, 1))
  assert.equal(units, 4)
  await links.keep('a', urls.slice(0, 1))
  assert.equal(units, 4)
})
