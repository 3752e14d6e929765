import assert from 'node:assert/strict'
import { createTestClock } from '../../test/support/clock.ts'
import { eachStore } from '../../test/support/stores.ts'
import { createKnownTags } from './known-tags.ts'

const NOW = 1_780_315_200_000
const shop = { id: 'domain-1', accountId: 'account-1' }
const blog = { id: 'domain-2', accountId: 'account-1' }

eachStore(
  'new tags over the limit of the domain or of the account are dropped, known ones stay',
  async (store) => {
    const clock = createTestClock(NOW)
    const open = () => createKnownTags({ store, clock, limits: { perDomain: 3, perAccount: 4 } })
    const known = open()
    const admit = async (domain: typeof shop, ...tags: string[]) => {
      const admitted = await known.admit(domain, tags, NOW)
      await store.commit(admitted.statements)
      return admitted.tags
    }
    assert.deepEqual(await admit(shop, 'One', 'two'), ['One', 'two'])
    assert.deepEqual(await admit(shop, 'three', 'ONE', 'four'), ['three', 'ONE'])
    assert.deepEqual(
      await admit(blog, 'one', 'five', 'six'),
      ['one'],
      'three and one more are four of the account',
    )
    clock.leap(60_000)
    assert.deepEqual(await admit(blog, 'five', 'six'), ['five'], 'the account counts each tag once')
    const rows = await store.db
      .selectFrom('tags')
      .select('tag')
      .where('domain_id', '=', shop.id)
      .orderBy('tag')
      .execute()
    assert.deepEqual(
      rows.map(({ tag }) => tag),
      ['One', 'three', 'two'],
      'as first seen',
    )
    assert.deepEqual((await open().admit(shop, ['two', 'new'], NOW)).tags, ['two'], 'after a restart')
    await known.forgetDomain(shop.id)
    assert.deepEqual(await admit(shop, 'new'), ['new'])
  },
)

eachStore('two messages with the same new tags are both accepted', async (store) => {
  const known = createKnownTags({
    store,
    clock: createTestClock(NOW),
    limits: { perDomain: 0, perAccount: 0 },
  })
  const [one, two] = await Promise.all([
    known.admit(shop, ['b', 'a'], NOW),
    known.admit(shop, ['A', 'b'], NOW),
  ])
  await Promise.all([store.commit(one.statements), store.commit(two.statements)])
  assert.deepEqual(
    [one.tags, two.tags],
    [
      ['b', 'a'],
      ['A', 'b'],
    ],
  )
  assert.deepEqual((await known.admit(shop, ['a', 'b'], NOW)).statements, [], 'known now')
})
