import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { createTestList, LIST_TIME } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { newId } from '../../base/ids.ts'
import { LEASE_MS } from '../../platform/jobs/stepped-task.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import { insert, StaleWrite, type Store } from '../../platform/store/store.ts'
import { NOT_PENDING } from './consent.ts'
import { listHeaders } from './expand.ts'
import {
  cancelExpansions,
  createExpansionJob,
  type Expansion,
  endExpansionsOf,
  expansionStatement,
  type InsertDeliveries,
} from './expansion-job.ts'
import type { List } from './list.ts'
import type { ListStore } from './store.ts'

const MESSAGE = 'message-1'

/** An account with a domain, a message and a list of `count` members, every tenth unsubscribed. */
async function setUp(store: Store, count: number): Promise<{ lists: ListStore; list: List }> {
  const { lists } = await createTestList(store)
  await store.commit([
    insert('messages', {
      id: MESSAGE,
      account_id: 'account',
      domain_id: 'domain',
      domain_name: 'mg.example.com',
      message_id: 'm@mg.example.com',
      summary_json: '{}',
      options_json: '{}',
      content_kind: 'parts',
      content: null,
      content_blob: null,
      blobs_json: '[]',
      created_at: LIST_TIME,
    }),
  ])
  const write = Array.from({ length: count }, (_, n) => ({
    list_id: 'list-id',
    address_key: `m${n}@example.org`,
    address: `M${n}@Example.org`,
    name: `Member ${n}`,
    vars_json: JSON.stringify({ n }),
    subscribed: n % 10 === 9 ? (0 as const) : (1 as const),
    by_link: 0 as const,
    ...NOT_PENDING,
  }))
  await lists.changeMembers('list-id', [], () => ({
    change: { write, added: count, cause: { source: 'api', at: LIST_TIME } },
    result: true,
  }))
  return { lists, list: (await lists.byId('list-id')) as List }
}

const subscribed = (count: number, without: readonly number[] = []) =>
  Array.from({ length: count }, (_, n) => n)
    .filter((n) => n % 10 !== 9 && !without.includes(n))
    .map((n) => `M${n}@Example.org`)
    .sort()

const post = (list: List, exclude: string[] = []) =>
  expansionStatement(
    {
      domainId: 'domain',
      messagePk: MESSAGE,
      list,
      headers: listHeaders(list, { way: 'api', headers: [] }),
      exclude,
    },
    LIST_TIME,
  )

const deliveries: InsertDeliveries = (expansion: Expansion, members) =>
  members.map((member) => {
    const row: DeliveryRow = {
      id: newId(LIST_TIME),
      account_id: expansion.accountId,
      domain_id: expansion.domainId,
      message_pk: expansion.messagePk,
      recipient: member.address,
      recipient_domain: member.domain,
      recipient_header: member.name,
      variables_json: JSON.stringify(member.vars),
      list_json: null,
      state: 'queued',
      due_at: LIST_TIME,
      expires_at: LIST_TIME,
      attempts: 0,
      lease_owner: null,
      lease_token: null,
      lease_until: null,
      reason: 'new',
      last_code: null,
      last_reply: null,
      paused_due_at: null,
      source_key: '',
      created_at: LIST_TIME,
      updated_at: LIST_TIME,
    }
    return insert('deliveries', row)
  })

async function recipients(store: Store): Promise<string[]> {
  const rows = await store.db.selectFrom('deliveries').select('recipient').orderBy('recipient').execute()
  return rows.map((row) => row.recipient)
}

const job = (
  store: Store,
  lists: ListStore,
  owner: string,
  insertDeliveries = deliveries,
  clock = createTestClock(LIST_TIME),
) => createExpansionJob({ store, lists, clock, owner, insertDeliveries, inserted: () => {} })

async function drain(runOne: () => Promise<boolean>): Promise<void> {
  while (await runOne());
}

eachStore('every subscribed member gets one delivery, direct recipients none', async (store) => {
  const { lists, list } = await setUp(store, 1134)
  await store.commit([post(list, ['m5@EXAMPLE.org', 'M1000@example.org', 'nobody@example.org'])])
  await drain(job(store, lists, 'one').runOne)
  assert.deepEqual(await recipients(store), subscribed(1134, [5, 1000]))
  const row = await store.db
    .selectFrom('deliveries')
    .selectAll()
    .where('recipient', '=', 'M7@Example.org')
    .execute()
  assert.deepEqual(
    row.map((one) => [one.recipient_domain, one.recipient_header, one.variables_json]),
    [['example.org', 'Member 7', '{"n":7}']],
  )
  const done = await store.db.selectFrom('list_expansions').selectAll().executeTakeFirstOrThrow()
  assert.deepEqual([done.state, Number(done.copies)], ['done', subscribed(1134).length - 2])
  const known = await job(store, lists, 'one').byId(done.id)
  assert.deepEqual(known?.headers, listHeaders(list, { way: 'api', headers: [] }))
})

eachStore(
  'a process that dies between chunks or within one leaves no copy out and makes none twice',
  async (store) => {
    const { lists, list } = await setUp(store, 1150)
    await store.commit([post(list)])
    let chunks = 0
    const dying: InsertDeliveries = async (expansion, members) => {
      const rows = await deliveries(expansion, members)
      // The second chunk fails inside the database, after the rows that it has already written.
      return ++chunks === 2
        ? [...(rows ?? []), { sql: 'INSERT INTO no_such_table VALUES (1)', values: [] }]
        : rows
    }
    const first = job(store, lists, 'first', dying)
    assert.equal(await first.runOne(), true)
    assert.equal((await recipients(store)).length, 500)
    await assert.rejects(first.runOne())
    assert.equal((await recipients(store)).length, 500, 'a chunk is there whole or not at all')

    const clock = createTestClock(LIST_TIME)
    clock.stepWall(LEASE_MS + 1_000)
    await drain(job(store, lists, 'second', deliveries, clock).runOne)
    assert.deepEqual(await recipients(store), subscribed(1150))
  },
)

eachStore('two that do the same chunk at the same time make one', async (store) => {
  const { lists, list } = await setUp(store, 800)
  await store.commit([post(list)])
  const late = createTestClock(LIST_TIME)
  late.stepWall(LEASE_MS + 1_000)
  let other: Promise<boolean> = Promise.resolve(false)
  const overtaken: InsertDeliveries = async (expansion, members) => {
    other = job(store, lists, 'second', deliveries, late).runOne()
    await other
    return deliveries(expansion, members)
  }
  await assert.rejects(job(store, lists, 'first', overtaken).runOne(), StaleWrite)
  assert.equal(await other, true)
  assert.equal((await recipients(store)).length, 500)
  late.stepWall(2 * LEASE_MS)
  await drain(job(store, lists, 'third', deliveries, late).runOne)
  assert.deepEqual(await recipients(store), subscribed(800))
})

eachStore('an accepted post reaches all members though its list is deleted meanwhile', async (store) => {
  const { lists, list } = await setUp(store, 700)
  await store.commit([post(list)])
  const running = job(store, lists, 'one')
  await running.runOne()
  await lists.remove(list)
  assert.equal(await lists.byId(list.id), null)
  await drain(running.runOne)
  assert.deepEqual(await recipients(store), subscribed(700))
  const left = await store.db.selectFrom('list_members').select('address').execute()
  assert.deepEqual(left, [], 'the members go with the last copy')
})

eachStore('an empty list, and a cancelled expansion, make no copies', async (store) => {
  const { lists, list } = await setUp(store, 0)
  await store.commit([post(list)])
  const running = job(store, lists, 'one', () => assert.fail('asked for an empty list'))
  await drain(running.runOne)
  await store.commit([post(list)])
  await store.commit(cancelExpansions('domain'))
  assert.equal(await running.runOne(), false)
  assert.deepEqual(await recipients(store), [])
})

eachStore('a step that is being made when the post is cancelled is undone whole', async (store) => {
  const { lists, list } = await setUp(store, 700)
  await store.commit([post(list)])
  const cancelling: InsertDeliveries = async (expansion, members) => {
    await lists.remove(list)
    await store.commit(endExpansionsOf(MESSAGE))
    return deliveries(expansion, members)
  }
  await assert.rejects(job(store, lists, 'one', cancelling).runOne(), StaleWrite)
  assert.deepEqual(await recipients(store), [])
  assert.equal(await job(store, lists, 'two').runOne(), false)
  const left = await store.db.selectFrom('list_members').select('address').execute()
  assert.deepEqual(left, [], 'the members of the deleted list were kept for this post only')
})

eachStore('a post to a large list does not hold up one to another list', async (store) => {
  const { lists, list } = await setUp(store, 700)
  await store.commit([post(list)])
  const clock = createTestClock(LIST_TIME)
  const order: string[] = []
  const noting: InsertDeliveries = (expansion) => {
    order.push(expansion.listAddress)
    return []
  }
  const running = job(store, lists, 'one', noting, clock)
  clock.stepWall(1)
  await running.runOne()
  clock.stepWall(1)
  await store.commit([post({ ...list, address: 'other@mg.example.com' })])
  await running.runOne()
  assert.deepEqual(order, ['devs@mg.example.com', 'other@mg.example.com'])
})
