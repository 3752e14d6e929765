/** The table of routes. Actions are sealed: their URLs may hold passwords. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Cache, createCache, type SharedCache } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { countOf } from '../../platform/store/count.ts'
import type { RouteRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { type CompiledRoute, compileRoute, type Route } from './match/route.ts'

const PURPOSE = 'route-actions'
/** Routes of one account: all of them are evaluated for each mail. */
export const ROUTES_MAX = 1_000

export type RouteStore = ReturnType<typeof createRouteStore>

export function createRouteStore(store: Store, sealer: Sealer) {
  const sealed = (actions: readonly string[]) => sealer.seal(PURPOSE, JSON.stringify(actions))
  const routeOf = (row: RouteRow): Route => ({
    id: row.id,
    accountId: row.account_id,
    priority: row.priority,
    description: row.description,
    expression: row.expression,
    actions: JSON.parse(sealer.open(PURPOSE, row.actions_sealed).toString()) as string[],
    createdAt: row.created_at,
  })
  const changed = async (statement: Statement) => ((await store.commit([statement]))[0]?.affected ?? 0) > 0
  return {
    /** In the order of evaluation. */
    async list(
      accountId: string,
      { limit, skip }: { limit: number; skip: number },
    ): Promise<{ routes: Route[]; total: number }> {
      const query = store.db.selectFrom('routes').where('account_id', '=', accountId)
      const count = await countOf(query)
      const rows = await query
        .selectAll()
        .orderBy('priority')
        .orderBy('created_at')
        .orderBy('id')
        .limit(limit)
        .offset(skip)
        .execute()
      return { routes: rows.map(routeOf), total: count }
    },
    async find(accountId: string, id: string): Promise<Route | null> {
      if (!/^[0-9a-f]{24}$/.test(id)) return null
      const row = await store.db
        .selectFrom('routes')
        .selectAll()
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .executeTakeFirst()
      return row ? routeOf(row) : null
    },
    async insert(route: Route): Promise<void> {
      const row: RouteRow = {
        id: route.id,
        account_id: route.accountId,
        priority: route.priority,
        description: route.description,
        expression: route.expression,
        actions_sealed: sealed(route.actions),
        created_at: Math.floor(route.createdAt),
      }
      await store.commit([insert('routes', row)])
    },
    /** False: it no longer exists. */
    update: ({ id, accountId, priority, description, expression, actions }: Route): Promise<boolean> =>
      changed({
        sql: 'UPDATE routes SET priority = ?, description = ?, expression = ?, actions_sealed = ? WHERE id = ? AND account_id = ?',
        values: [priority, description, expression, sealed(actions), id, accountId],
      }),
    remove: (accountId: string, id: string): Promise<boolean> =>
      changed({ sql: 'DELETE FROM routes WHERE id = ? AND account_id = ?', values: [id, accountId] }),
    async removeAll(accountId: string): Promise<void> {
      await store.commit([{ sql: 'DELETE FROM routes WHERE account_id = ?', values: [accountId] }])
    },
  }
}

/** Routes of an account, compiled, in the order of evaluation. */
export type KnownRoutes = ReturnType<typeof createKnownRoutes>

/** A change on another node takes effect after at most this time (rule 7). */
const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 500

export function createKnownRoutes(routes: RouteStore, clock: Clock, changes: SharedCache['changes']) {
  const known: Cache<readonly CompiledRoute[]> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    shared: { changes: changes, topic: 'routes' },
    load: async (accountId) =>
      compiledInTurns((await routes.list(accountId, { limit: ROUTES_MAX, skip: 0 })).routes),
  })
  return {
    of: (accountId: string) => known.get(accountId) /** Must be called after every change. */,
    changed: (accountId: string) => known.forget(accountId),
  }
}

/** A route takes up to a quarter of a millisecond. */
const ROUTES_PER_TURN = 100

async function compiledInTurns(routes: readonly Route[]): Promise<CompiledRoute[]> {
  const compiled: CompiledRoute[] = []
  for (let at = 0; at < routes.length; at += ROUTES_PER_TURN) {
    if (at > 0) await nextTurn()
    compiled.push(...routes.slice(at, at + ROUTES_PER_TURN).map(compileRoute))
  }
  return compiled
}
