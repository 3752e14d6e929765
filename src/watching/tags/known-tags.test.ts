// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { admitTags, createKnownTags, type KnownTags, newTagStatements } from './known-tags.ts'
import { createTagStore } from './tag-store.ts'

const NOW = 1_780_315_200_000
const shop = { id: 'domain-1', accountId: 'account-1' }
const blog = { id: 'domain-2', accountId: 'account-1' }

/** As acceptance does it; the statements are left to the caller. */
async function admitted(known: KnownTags, domain: typeof shop, given: readonly string[]) {
  const { tags, newTags } = admitTags(given, await known.known(domain, given))
  known.used(domain, { tags, newTags })
  return { tags, statements: newTagStatements(domain, newTags, NOW) }
}

eachStore(
  'new tags over the limit of the domain or of the account are dropped, known ones stay',
  async (store) => {
    const clock = createTestClock(NOW)
    const open = () =>
      createKnownTags({ store, clock, limits: { perDomain: 3, perAccount: 4 }, lastSeen: { used() {} } })
    const known = open()
    const admit = async (domain: typeof shop, ...tags: string[]) => {
      const { tags: allowed, statements } = await admitted(known, domain, tags)
      await store.commit(statements)
      return allowed
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
    assert.deepEqual((await admitted(open(), shop, ['two', 'new'])).tags, ['two'], 'after a restart')
    await createTagStore(store).removeAll(shop)
    known.forgetDomain(shop.id)
    assert.deepEqual(await admit(shop, 'new'), ['new'])
  },
)

eachStore('two messages with the same new tags are both accepted', async (store) => {
  const known = createKnownTags({
    store,
    clock: createTestClock(NOW),
    limits: { perDomain: 0, perAccount: 0 },
    lastSeen: { used() {} },
  })
  const [one, two] = await Promise.all([admitted(known, shop, ['b', 'a']), admitted(known, shop, ['A', 'b'])])
  await Promise.all([store.commit(one.statements), store.commit(two.statements)])
  assert.deepEqual(
    [one.tags, two.tags],
    [
      ['b', 'a'],
      ['A', 'b'],
    ],
  )
  assert.deepEqual((await admitted(known, shop, ['a', 'b'])).statements, [], 'known now')
})
