import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { ChangeHub } from '../../base/changes.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { WorkTurns } from './match/pattern-work.ts'
import type { Route } from './match/route.ts'
import { createRoutes } from './service.ts'
import { createKnownRoutes, createRouteStore, ROUTES_MAX } from './store.ts'

const SEALER = createSealer('s'.repeat(64))
const ROUTE: Route = {
  id: 'a'.repeat(24),
  accountId: 'one',
  priority: 0,
  description: '',
  expression: 'catch_all()',
  actions: ['forward("https://u:secret@x.example/")'],
  createdAt: 1,
}

eachStore('routes belong to one account, and their actions are sealed', async (store) => {
  const table = createRouteStore(store, SEALER)
  await table.insert(ROUTE)
  assert.deepEqual(await table.find('one', ROUTE.id), ROUTE)
  assert.equal(await table.find('two', ROUTE.id), null)
  assert.equal(await table.update({ ...ROUTE, accountId: 'two', priority: 5 }), false)
  assert.equal(await table.remove('two', ROUTE.id), false)
  await table.removeAll('two')
  assert.deepEqual(await table.list('two', { limit: 10, skip: 0 }), { routes: [], total: 0 })
  assert.deepEqual(await table.list('one', { limit: 10, skip: 0 }), { routes: [ROUTE], total: 1 })
  const [row] = await store.read({ sql: 'SELECT * FROM routes', values: [] })
  assert.ok(!Buffer.from(row?.['actions_sealed'] as Uint8Array).includes('secret'))
})

test('an account has a limited number of routes, also when they are made at once', async () => {
  let total = ROUTES_MAX - 2
  const inserted: Route[] = []
  const clock = createTestClock()
  const table = {
    list: async () => ({ routes: [], total }),
    insert: async (route: Route) => {
      await clock.advance(0)
      total += 1
      inserted.push(route)
    },
  } as unknown as Parameters<typeof createRoutes>[0]['table']
  const known = createKnownRoutes(table, clock, new ChangeHub())
  const routes = createRoutes({
    table,
    known,
    clock,
    client: { fault: async () => null },
    turns: new WorkTurns(),
  })
  const given = { priority: 0, description: '', expression: 'catch_all()', actions: ['stop()'] }
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => routes.create('one', given)))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 2)
  assert.equal(inserted.length, 2)
})
