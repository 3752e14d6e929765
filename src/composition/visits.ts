/** Puts together what happens when recipients open, click and unsubscribe. */
import type { Operation } from '../http/operation.ts'
import { createListStore } from '../lists/store.ts'
import { NO_GEO, openGeo } from '../tracking/geo.ts'
import { createUnsubscriber, type Unsubscriber } from '../tracking/unsubscribe.ts'
import { visitRoutes } from '../tracking/visit-routes.ts'
import { createVisits } from '../tracking/visits.ts'
import type { Closers, Core } from './core.ts'
import type { Mail } from './mail.ts'
import type { Outgoing } from './outgoing.ts'
import type { TrackingComposition } from './tracking.ts'

export interface VisitParts {
  routes: Operation[]
  unsubscriber: Unsubscriber
}

export async function startVisits(
  { config, log, clock, store, domains }: Core,
  { known }: Mail,
  { webhooks }: Outgoing,
  { tokens, links }: TrackingComposition,
  open: Closers,
): Promise<VisitParts> {
  const geo = config.geoDatabase === null ? NO_GEO : await openGeo(config.geoDatabase, clock, log)
  open.push(() => geo.stop())
  const outbox = webhooks.outboxStatements
  const lists = createListStore(store)
  const unsubscriber = createUnsubscriber({ store, domains, lists, known, clock, outbox })
  const visits = createVisits({ store, known, geo, clock, log, outbox })
  open.push(() => visits.stop())
  const routes = visitRoutes({
    tokens,
    visits,
    unsubscriber,
    urlOf: links.urlOf,
    async senderOf({ scope, listSid, domainId }) {
      if (scope === 'list' && listSid !== null) return (await lists.byId(listSid))?.address ?? null
      return (await domains.byId(domainId))?.name ?? null
    },
    clock,
  })
  return { routes, unsubscriber }
}
