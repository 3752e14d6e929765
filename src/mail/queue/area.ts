/** The queue as operators see and change it. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { MessagesArea } from '../messages/area.ts'
import { eventMessage } from '../record/event-message.ts'
import { queueRoutes } from './routes.ts'
import { shapingRoutes } from './shaping-routes.ts'
import { createQueueTotals } from './totals.ts'

export function queueApiArea(
  core: Core,
  { delivery, records, sources, shaping, siteOverrides: overrides, blocks }: MessagesArea,
): Area {
  const { config, store, clock, recorder } = core
  return {
    operations: [
      ...shapingRoutes({ shaping, overrides, clock, firstAccountId: core.firstAccountId }),
      ...queueRoutes({
        store,
        delivery,
        clock,
        recorder,
        totals: createQueueTotals(store, delivery, clock, blocks, overrides),
        messageOf: async (id) => {
          const record = await records.byId(id)
          return record && eventMessage(record, config.storageUrl, record.id, record.summary)
        },
        sources,
        baseUrl: config.publicUrl,
        firstAccountId: core.firstAccountId,
      }),
    ],
  }
}
