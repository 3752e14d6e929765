import assert from 'node:assert/strict'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { bareRecorder, eventStatement } from '../../../test/support/events.ts'
import { createTestList, LIST_TIME } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { LEASE_MS } from '../../platform/jobs/stepped-task.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Entry, readJsonEntries } from './bulk.ts'
import type { List } from './list.ts'
import { listUploadedEvent } from './list-events.ts'
import { unsubscribeMember } from './service.ts'
import { createListStore, type ListStore } from './store.ts'
import { createUploadTasks, newTaskId } from './upload-tasks.ts'

const entries = (count: number, more: object = {}): Entry[] =>
  readJsonEntries(Array.from({ length: count }, (_, n) => ({ address: `m${n}@example.org`, ...more })))

const CLICK = { source: 'unsubscribe_link', at: LIST_TIME } as const

const facts = (more: object = {}) => ({
  taskId: newTaskId(LIST_TIME),
  format: 'json' as const,
  subscribed: true,
  ...{ isUpsert: false, isConfirmed: false, calledBy: undefined },
  ...more,
})

const tasksOf = (
  store: Store,
  lists: ListStore,
  owner: string,
  clock: TestClock = createTestClock(LIST_TIME),
) => createUploadTasks({ store, lists, clock, recorder: bareRecorder, owner })

async function drain(runOne: () => Promise<boolean>): Promise<void> {
  while (await runOne());
}

async function eventCounts(store: Store): Promise<Record<string, number>> {
  const rows = await store.db
    .selectFrom('events')
    .select(['event', (eb) => eb.fn.countAll<number>().as('count')])
    .groupBy('event')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.event, Number(row.count)]))
}

eachStore('an upload continues after a crash; each member and each event is written once', async (store) => {
  const { lists, list } = await createTestList(store)
  const first = tasksOf(store, lists, 'first')
  await first.add(list, entries(700), facts())
  await first.runOne()
  const half = await store.db.selectFrom('list_uploads').selectAll().executeTakeFirstOrThrow()
  assert.deepEqual([half.state, Number(half.done)], ['running', 250])
  assert.equal((await lists.byId(list.id))?.membersCount, 250)

  // As if the first process had died right after it claimed the next step.
  await store.commit([
    { sql: "UPDATE list_uploads SET lease_owner = 'first', lease_until = ?", values: [LIST_TIME + LEASE_MS] },
  ])
  const clock = createTestClock(LIST_TIME)
  clock.stepWall(LEASE_MS + 1)
  await drain(tasksOf(store, lists, 'second', clock).runOne)
  assert.equal((await lists.byId(list.id))?.membersCount, 700)
  assert.equal((await lists.findMembers(list.id, {}, 1, 0)).total, 700)
  assert.deepEqual(await eventCounts(store), { list_member_uploaded: 700, list_uploaded: 1 })
  const done = await store.db.selectFrom('list_uploads').selectAll().executeTakeFirstOrThrow()
  assert.deepEqual([done.state, Number(done.upserted_count), done.entries_json], ['done', 700, '[]'])
})

eachStore('uploads of one list keep their order', async (store) => {
  const { lists, list } = await createTestList(store)
  const tasks = tasksOf(store, lists, 'one')
  await tasks.add(list, entries(300, { name: 'first' }), facts())
  await tasks.add(list, entries(300, { name: 'second' }), facts({ isUpsert: true }))
  await drain(tasks.runOne)
  const { items } = await lists.findMembers(list.id, {}, 300, 0)
  assert.equal(items.length, 300)
  assert.ok(items.every(({ name }) => name === 'second'))
})

eachStore('without upsert an upload leaves members as they are, and tells nothing of them', async (store) => {
  const { lists, list } = await createTestList(store)
  const tasks = tasksOf(store, lists, 'one')
  await tasks.apply(list, entries(3, { name: 'before' }), facts())
  const after = await tasks.apply(list, entries(5, { name: 'after' }), facts())
  assert.equal(after?.membersCount, 5)
  const { items } = await lists.findMembers(list.id, {}, 10, 0)
  assert.deepEqual(
    items.map(({ name }) => name),
    ['before', 'before', 'before', 'after', 'after'],
  )
  assert.deepEqual(await eventCounts(store), { list_member_uploaded: 5, list_uploaded: 2 })
})

eachStore('an upload ends with its list', async (store) => {
  const { lists, list } = await createTestList(store)
  const tasks = tasksOf(store, lists, 'one')
  await tasks.add(list, entries(300), facts())
  await tasks.runOne()
  await lists.remove(list)
  await tasks.add(list, entries(300), facts())
  await drain(tasks.runOne)
  const rows = await store.db.selectFrom('list_uploads').select('state').execute()
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['done', 'done'],
  )
  assert.deepEqual(await store.db.selectFrom('list_members').select('address').execute(), [])
  assert.equal(await tasks.apply(list, entries(1), facts()), null)
})

eachStore('members changed at the same moment, also by other nodes, are all counted', async (store) => {
  const { lists, list } = await createTestList(store)
  const nodes = [lists, createListStore(store), createListStore(store)]
  await Promise.all(
    Array.from({ length: 24 }, (_, n) => {
      const node = nodes[n % nodes.length] as ListStore
      return tasksOf(store, node, `node${n % nodes.length}`).apply(list, entries(n + 1), facts())
    }),
  )
  assert.equal((await lists.byId(list.id))?.membersCount, 24)
  assert.equal((await lists.findMembers(list.id, {}, 1, 0)).total, 24)
  assert.deepEqual(await eventCounts(store), { list_member_uploaded: 24, list_uploaded: 24 })
})

eachStore('the list link unsubscribes once, with its event in the same transaction', async (store) => {
  const { lists, list } = await createTestList(store)
  await tasksOf(store, lists, 'one').apply(list, entries(1), facts())
  const event = (list: List) => [
    eventStatement(
      listUploadedEvent(list, facts({ taskId: 'click' }), { upserted: 0, failed: 0 }, LIST_TIME),
    ),
  ]
  const unsubscribe = () => unsubscribeMember(lists, list.id, 'M0@example.org', CLICK, event)
  assert.equal(await unsubscribe(), 'changed')
  assert.equal(await unsubscribe(), 'unchanged')
  assert.equal((await eventCounts(store))['list_uploaded'], 2, 'one of the upload, one of the click')
  assert.equal((await lists.member(list.id, 'm0@example.org'))?.subscribed, false)
  assert.deepEqual(await lists.subscribedAfter(list.id, '', 10), [])
  assert.equal((await lists.byId(list.id))?.membersCount, 1, 'an unsubscribed member stays in the list')
  assert.equal(await unsubscribeMember(lists, list.id, 'nobody@example.org', CLICK), 'unknown')
  assert.equal(await unsubscribeMember(lists, 'no-list', 'm0@example.org', CLICK), 'unknown')
})
