// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/stores.ts'
import { insertMany, type Statement } from '../../platform/store/store.ts'
import { digestOf } from './digest.ts'
import { createHolds } from './holds.ts'

eachStore('a decision is found without its messages, however many there are', async (store) => {
  const held = Array.from({ length: 5_000 }, (_, number) => ({
    ...{ message_pk: `m${number}`, digest: 'same', account_id: 'a', domain_name: 'x.example' },
    ...{ reason: 'score 20', held_at: number, decision: null, decided_at: null },
  }))
  await store.commit(insertMany('content_holds', held))
  const reads: Statement[] = []
  const holds = createHolds({
    ...store,
    read(statement) {
      reads.push(statement)
      return store.read(statement)
    },
  })
  assert.equal(await holds.decisionOn('same'), null)
  assert.equal(await holds.decide('same', 'released', 10), held.length)
  assert.equal(await holds.decisionOn('same'), 'released')
  if (store.kind === 'postgres') await store.commit([{ sql: 'ANALYZE content_holds', values: [] }])
  const [{ sql, values }] = reads as [Statement]
  const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
  const plan = JSON.stringify(await store.read({ sql: `${word} ${sql}`, values }))
  assert.match(plan, /content_holds_decision/, plan)
  assert.doesNotMatch(plan, /TEMP B-TREE|Sort/, plan)
})

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
