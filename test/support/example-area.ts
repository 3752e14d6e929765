/** An area as a new one is added: one folder's `area.ts`, one line in the list. It counts deliveries of each domain. */

import type { Area } from '../../src/area.ts'
import { integer, object } from '../../src/base/shape.ts'
import type { Core } from '../../src/core.ts'
import { operation } from '../../src/platform/http/operation.ts'
import { createJob } from '../../src/platform/jobs/job.ts'
import { ownDomain } from '../../src/sending/domains/names/directory.ts'

const TABLE = 'CREATE TABLE IF NOT EXISTS example_deliveries (domain_name TEXT, delivered_at BIGINT)'
const KEEP_MS = 86_400_000

export async function exampleArea({ store, clock, domains }: Core): Promise<Area> {
  await store.commit([{ sql: TABLE, values: [] }])
  return {
    operations: [
      operation({
        method: 'GET',
        path: '/sendwright/v1/example/{domain_name}',
        id: 'readExample',
        tag: 'Example',
        summary: 'Deliveries of a domain in the last day',
        auth: { area: 'events', access: 'read', domain: 'domain_name' },
        answers: { 200: object('How much was delivered', { delivered: integer('Messages') }) },
        async handler({ path, caller }) {
          const domain = await ownDomain(domains, caller, path.domain_name)
          const sql = 'SELECT count(*) AS count FROM example_deliveries WHERE domain_name = ?'
          const [row] = await store.read({ sql, values: [domain.name] })
          return { delivered: Number(row?.['count']) }
        },
      }),
    ],
    jobs: [
      createJob({
        name: 'example-retention',
        everyMs: 3_600_000,
        scope: 'database',
        async work() {
          const sql = 'DELETE FROM example_deliveries WHERE delivered_at < ?'
          await store.commit([{ sql, values: [Math.floor(clock.now() - KEEP_MS)] }])
        },
      }),
    ],
    withEvents: {
      of: ['delivered'],
      rows: (events) =>
        events.map(({ domainName, timestampUs }) => ({
          sql: 'INSERT INTO example_deliveries VALUES (?, ?)',
          values: [domainName, Math.floor(timestampUs / 1000)],
        })),
    },
    async domainDeleted({ name }) {
      await store.commit([{ sql: 'DELETE FROM example_deliveries WHERE domain_name = ?', values: [name] }])
    },
  }
}
