/** Routes: rules for received mail. */
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { routeRoutes } from './routes.ts'
import { createRoutes } from './service.ts'
import { createKnownRoutes, createRouteStore } from './store.ts'

export function routesArea(core: Core): Area {
  const { store, sealer, clock, httpClient: client } = core
  const table = createRouteStore(store, sealer)
  const known = createKnownRoutes(table, clock)
  return {
    operations: routeRoutes(createRoutes({ table, known, client, clock }), table),
    async accountDeleted(accountId) {
      await table.removeAll(accountId)
      known.changed(accountId)
    },
  }
}
