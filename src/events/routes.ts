/** Events over HTTP (events.md V1, V2). */

import type { Clock } from '../base/clock.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

export interface EventRouteParts {
  store: Store
  domains: { byName(name: string): Promise<{ accountId: string; name: string } | null> }
  clock: Clock
  sealer: Sealer
  baseUrl: string
}

export function eventRoutes(parts: EventRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v3/{domain_name}/events',
      id: 'listEvents',
      tag: 'Events',
      summary: 'List events',
      deprecated: true,
      auth: { area: 'events', access: 'read' },
      rateLimit: 'analytics',
      params: [],
      responses: { 200: { description: 'Events' } },
      async handler({ path, caller }) {
        const rows = await parts.store.db
          .selectFrom('events')
          .select('payload_json')
          .where('account_id', '=', caller.accountId)
          .where('domain_name', '=', path.domain_name)
          .orderBy('timestamp_us', 'desc')
          .limit(100)
          .execute()
        return { items: rows.map((row) => JSON.parse(row.payload_json) as unknown), paging: {} }
      },
    }),
  ]
}
