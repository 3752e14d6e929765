// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import { createCheckCounts } from './counts.ts'
import { digestOf } from './digest.ts'
import { createHolds, REVIEWED_AT_ONCE_MAX, removeStatements } from './holds.ts'

const heldRows = (count: number, digest: string) =>
  Array.from({ length: count }, (_, number) => ({
    ...{ message_pk: `m${String(number).padStart(5, '0')}`, digest, account_id: 'a', holds: 1 },
    ...{ domain_name: 'x.example', reason: 'score 20', held_at: number },
  }))

/** The store, and the statements that it got with the number of rows that each changed. */
function watched(store: Store) {
  const reads: Statement[] = []
  const affected: number[] = []
  const seen: Store = {
    ...store,
    read(statement) {
      reads.push(statement)
      return store.read(statement)
    },
    async commit(unit, place) {
      const results = await store.commit(unit, place)
      affected.push(results.reduce((sum, result) => sum + result.affected, 0))
      return results
    },
  }
  return { seen, reads, affected }
}

eachStore('a decision is one row, found without its messages, however many there are', async (store) => {
  const { seen, reads, affected } = watched(store)
  const holds = createHolds(seen, systemClock)
  await store.commit(insertMany('content_holds', heldRows(5_000, 'same')))
  assert.equal(await holds.decisionOn('same'), null)
  assert.equal(await holds.decide('same', 'released', systemClock.now()), 5_000)
  assert.equal(await holds.decide('same', 'dropped', systemClock.now()), 0)
  assert.deepEqual(affected, [1, 0])
  assert.equal(await holds.decisionOn('same'), 'released')
  assert.deepEqual([await holds.list(null, 10), await holds.waiting()], [[], null])
  if (store.kind === 'postgres') await store.commit([{ sql: 'SET enable_seqscan = off', values: [] }])
  const [{ sql, values }] = reads as [Statement]
  const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
  const plan = JSON.stringify(await store.read({ sql: `${word} ${sql}`, values }))
  assert.match(plan, /content_decisions_pkey|sqlite_autoindex_content_decisions_1/, plan)
})

eachStore('much held mail of one account leaves that of others in view, and has pages', async (store) => {
  const holds = createHolds(store, systemClock)
  const [one] = heldRows(1, 'x')
  assert.ok(one)
  const rows = (account: string, count: number, since: number) =>
    Array.from({ length: count }, (_, at) => ({
      ...one,
      ...{
        message_pk: `${account}${at}`,
        digest: `${account}${at}`,
        account_id: account,
        held_at: since + at,
      },
    }))
  await store.commit(insertMany('content_holds', [...rows('a', 150, 0), ...rows('b', 2, 1_000)]))
  const page = async (skip: number, account: string | null = null) =>
    (await holds.list(account, 4, skip)).map(({ digest }) => digest)
  assert.deepEqual(await page(0), ['a0', 'b0', 'a1', 'b1'])
  assert.deepEqual(await page(4), ['a2', 'a3', 'a4', 'a5'])
  assert.deepEqual([await page(150), await page(1, 'b')], [['a148', 'a149'], ['b1']])
})

eachStore('an account has so many messages before a person, and those that are there stay', async (store) => {
  const holds = createHolds(store, systemClock)
  await store.commit(insertMany('content_holds', heldRows(REVIEWED_AT_ONCE_MAX, 'd')))
  assert.equal(await holds.isFull({ id: 'next', accountId: 'a' }), true)
  assert.equal(await holds.isFull({ id: 'm00000', accountId: 'a' }), false)
  assert.equal(await holds.isFull({ id: 'next', accountId: 'b' }), false)
})

eachStore(
  'messages of which nothing waits are removed in portions, but not one that is held anew',
  async (store) => {
    const { seen, affected } = watched(store)
    const holds = createHolds(seen, systemClock)
    await store.commit(insertMany('content_holds', heldRows(1_300, 'gone')))
    const message = { id: 'm00000', accountId: 'a', domainName: 'x.example' }
    const statement = holds.holdStatement(message, { digest: 'gone', reason: '' }, 1)
    await store.commit([statement])
    await store.commit(removeStatements([{ messagePk: message.id, holds: 1 }]))
    const [{ messages }] = (await holds.list(null, 10)) as unknown as [{ messages: number }]
    assert.equal(messages, 1_300)
    await holds.removeOld(new AbortController().signal)
    assert.deepEqual(await holds.list(null, 10), [])
    assert.ok(Math.max(...affected) <= 500, String(affected))
  },
)

eachStore(
  'counts that the database does not take are written with the next ones, in one order',
  async (store) => {
    let isAway = true
    const units: (readonly Statement[])[] = []
    const counts = createCheckCounts({
      clock: systemClock,
      log: pino({ enabled: false }),
      store: {
        ...store,
        commit(unit, place) {
          if (isAway) return Promise.reject(new Error('away'))
          units.push(unit)
          return store.commit(unit, place)
        },
      },
    })
    counts.add('b', 'x.example', true)
    counts.add('a', 'x.example', false)
    await assert.rejects(counts.close())
    isAway = false
    counts.add('b', 'x.example', false)
    await counts.close()
    const figures = await counts.figures(['a', 'b'], systemClock.now())
    assert.deepEqual(figures.map(({ accountId, checked, bad }) => [accountId, checked, bad]).sort(), [
      ['a', 1, 0],
      ['b', 2, 1],
    ])
    assert.deepEqual(
      units.flat().map(({ values }) => values[0]),
      ['a', 'b'],
    )
  },
)

test('the same bytes in another encoding are another content', async () => {
  const digest = (encoding: string) =>
    digestOf(
      {
        ...{ accountId: 'a', domainId: 'd', summary: {} },
        content: { kind: 'parts', headers: [['Content-Transfer-Encoding', encoding]], files: [] },
      } as never,
      null as never,
    )
  assert.equal(await digest('7bit'), await digest('7bit'))
  assert.notEqual(await digest('7bit'), await digest('base64'))
})
