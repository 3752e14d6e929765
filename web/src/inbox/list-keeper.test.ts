import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { QueryClient } from '@tanstack/react-query'
import type { Answer, InboxFilters, InboxItem, Page } from '../api.ts'
import { inboxQuery } from './inbox-queries.ts'
import { keepList, type ListKeeper, removeFromList } from './list-keeper.ts'
import { itemsOf } from './pages.ts'

/** The service's inbox, newest first, one letter for each message. */
let stored: string
let queries: QueryClient
/** Pending reads of the first page, oldest first. */
let underWay: { answer(): void; fail(status: number): void }[]

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] })
  stored = 'ba'
  queries = new QueryClient()
  underWay = []
})
afterEach(() => mock.timers.reset())

const itemOf = (id: string) => ({ id }) as InboxItem
const pageOf = (ids: string): Page<InboxItem> => ({
  items: [...ids].map(itemOf),
  paging: { first: '', last: '', previous: '', next: '' },
})
const load = (ids: string, filters: InboxFilters = {}) =>
  queries.setQueryData(inboxQuery(filters).queryKey, { pages: [pageOf(ids)], pageParams: [''] })
const shown = (filters: InboxFilters = {}) =>
  itemsOf(queries.getQueryData(inboxQuery(filters).queryKey))
    .map(({ id }) => id)
    .join('')

/** Responds on request, with the state at the time of the call. */
const read = () =>
  new Promise<Answer<Page<InboxItem>>>((resolve) => {
    const page = pageOf(stored)
    underWay.push({
      answer: () => resolve({ ok: true, value: page }),
      fail: (status) => resolve({ ok: false, failure: { status, message: 'Not now' } }),
    })
  })

/** Answers the pending reads, the last first, and those that they cause. */
async function answerAll() {
  for (let n = 0; n < 10 && underWay.length > 0; n += 1) {
    underWay.pop()?.answer()
    await settled()
  }
  assert.equal(underWay.length, 0, 'the first page is asked for again and again')
}

/** The list's own query: ends on request, and then replaces the list by the state at its start. */
function startOwnQuery() {
  const page = pageOf(stored)
  const { promise, resolve } = Promise.withResolvers<Page<InboxItem>>()
  void queries.fetchInfiniteQuery({ ...inboxQuery({}), queryFn: () => promise, staleTime: 0 })
  return () => resolve(page)
}

const deliver = (keeper: ListKeeper, id: string) => {
  stored = id + stored
  keeper.arrived(itemOf(id))
}
/** Ends the interval in which arrivals are batched. */
const gathered = () => mock.timers.tick(150)

/** Runs everything that waits for neither a response nor a timer. */
async function settled() {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
}

test('arrivals go on top in one step, without a request', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  deliver(keeper, 'c')
  deliver(keeper, 'd')
  assert.equal(shown(), 'ba')
  gathered()
  await settled()
  assert.equal(shown(), 'dcba')
  assert.equal(underWay.length, 0)
})

test('who asks while the first page is read gets it read again, after the answer under way', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  void keeper.readTop()
  await settled()
  stored = `c${stored}`
  const second = keeper.readTop()
  await settled()
  assert.equal(underWay.length, 1)
  await answerAll()
  assert.equal(await second, undefined)
  assert.equal(shown(), 'cba')
})

test('what arrives while the first page is read is on top of it afterwards', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  void keeper.readTop()
  await settled()
  deliver(keeper, 'c')
  gathered()
  await settled()
  await answerAll()
  assert.equal(shown(), 'cba')
})

test('with filters each arrival has the first page read, and an old answer hides nothing', async () => {
  const filters = { q: 'invoice' }
  load(stored, filters)
  const keeper = keepList(queries, filters, read)
  deliver(keeper, 'c')
  gathered()
  await settled()
  deliver(keeper, 'd')
  gathered()
  await settled()
  await answerAll()
  assert.equal(shown(filters), 'dcba')
})

test('what arrives while the list is loaded for the first time shows, though that answer is older', async () => {
  const finish = startOwnQuery()
  const keeper = keepList(queries, {}, read)
  deliver(keeper, 'c')
  gathered()
  await settled()
  stored = `d${stored}` // this one arrived without a notification
  void keeper.readTop()
  await settled()
  await answerAll()
  finish()
  await settled()
  await answerAll()
  assert.equal(shown(), 'dcba')
})

test('a page that scrolling asked for while the first one was read keeps its place', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  void keeper.readTop()
  await settled()
  const finish = startOwnQuery()
  stored = `c${stored}`
  await answerAll()
  finish()
  await settled()
  await answerAll()
  assert.equal(shown(), 'cba')
})

test('a deleted message does not come back with an answer that was under way', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  void keeper.readTop()
  await settled()
  stored = 'b'
  void removeFromList(queries, {}, 'a')
  assert.equal(shown(), 'b')
  await answerAll()
  assert.equal(shown(), 'b')

  const finish = startOwnQuery()
  void removeFromList(queries, {}, 'b')
  finish()
  await settled()
  assert.equal(shown(), '')
})

test('a failed reading is told, leaves the list and is no end', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  const failed = keeper.readTop()
  await settled()
  deliver(keeper, 'c')
  underWay.pop()?.fail(503)
  assert.equal((await failed)?.status, 503)
  assert.equal(shown(), 'cba')
  stored = `d${stored}`
  const again = keeper.readTop()
  await settled()
  await answerAll()
  assert.equal(await again, undefined)
  assert.equal(shown(), 'dcba')
})

test('after its end it lays nothing over the list', async () => {
  load(stored)
  const keeper = keepList(queries, {}, read)
  deliver(keeper, 'c')
  keeper.stop()
  gathered()
  await settled()
  assert.equal(shown(), 'ba')
})
