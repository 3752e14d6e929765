/** The queue as operators see and change it. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Holds } from '../../sending/content-check/holds.ts'
import type { MessagesArea } from '../messages/area.ts'
import { eventMessage } from '../record/event-message.ts'
import { createContentDecisions } from './content-decisions.ts'
import { contentHoldRoutes } from './content-hold-routes.ts'
import { queueRoutes } from './routes.ts'
import { shapingRoutes } from './shaping-routes.ts'
import { createQueueTotals } from './totals.ts'

export function queueApiArea(
  core: Core,
  { delivery, records, sources, shaping, siteOverrides: overrides, blocks }: MessagesArea,
  holds: Holds,
): Area {
  const { config, store, clock, recorder } = core
  const { firstAccountId } = core
  const totals = createQueueTotals(store, delivery, clock, blocks, overrides)
  const messageOf = async (id: string) => {
    const record = await records.byId(id)
    return record && eventMessage(record, config.storageUrl, record.id, record.summary)
  }
  const parts = { store, delivery, clock, recorder, totals, messageOf, sources, firstAccountId }
  const decisions = createContentDecisions(parts)
  return {
    operations: [
      ...shapingRoutes({ shaping, overrides, clock }),
      ...queueRoutes({ ...parts, baseUrl: config.publicUrl }),
      ...contentHoldRoutes({
        ...{ store, clock, holds, firstAccountId },
        decided: () => decisions.wake(),
      }),
    ],
    jobs: [decisions],
  }
}
