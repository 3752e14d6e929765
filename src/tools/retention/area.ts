/** What is kept, for how long, and who says so (retention.md). The jobs that remove read `platform/store/kept-days.ts`. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { retentionRoutes } from './routes.ts'

export function retentionArea(core: Core): Area {
  const { store } = core
  const remove = (column: 'account_id' | 'domain_id', id: string) =>
    store.commit([{ sql: `DELETE FROM retention_settings WHERE ${column} = ?`, values: [id] }])
  return {
    operations: retentionRoutes(core),
    domainDeleted: async ({ id }) => void (await remove('domain_id', id)),
    accountDeleted: async (accountId) => void (await remove('account_id', accountId)),
  }
}
