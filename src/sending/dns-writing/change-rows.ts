/** The table of changes: what was written for a domain and what stood there, committed before it is written. */
import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { DnsChangeRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'
import { isUniqueViolation } from '../domains/keys/dkim-keys.ts'
import { type StoredChange, writtenKey } from './plan.ts'

export const changesIn = (row: Pick<DnsChangeRow, 'changes_json'>) =>
  JSON.parse(row.changes_json) as StoredChange[]

/** Kept for each domain, the newest; what older ones wrote is no longer known as written by this service. */
const KEPT_MAX = 50

export function createChangeRows(store: Store, clock: Clock) {
  const { db } = store
  const now = () => Math.floor(clock.now())
  const ofDomain = (domainId: string) =>
    db.selectFrom('dns_changes').selectAll().where('domain_id', '=', domainId)

  return {
    list: (domainId: string): Promise<DnsChangeRow[]> =>
      ofDomain(domainId).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(KEPT_MAX).execute(),

    one: (domainId: string, id: string): Promise<DnsChangeRow | undefined> =>
      ofDomain(domainId).where('id', '=', id).executeTakeFirst(),

    writing: (domainId: string): Promise<DnsChangeRow | undefined> =>
      ofDomain(domainId).where('state', '=', 'writing').executeTakeFirst(),

    /** Null: another change of the domain is being written. */
    async begin(
      { id: domainId, accountId }: Pick<Domain, 'id' | 'accountId'>,
      provider: string,
      undoes: string | null,
      changes: readonly StoredChange[],
    ): Promise<DnsChangeRow | null> {
      const at = now()
      const row: DnsChangeRow = {
        ...{ id: newId(at), account_id: accountId, domain_id: domainId, provider, undoes },
        ...{ state: 'writing', changes_json: JSON.stringify(changes), error: null },
        ...{ created_at: at, updated_at: at },
      }
      try {
        await db.insertInto('dns_changes').values(row).execute()
        return row
      } catch (error) {
        if (isUniqueViolation(error)) return null
        throw error
      }
    },

    async end(
      row: DnsChangeRow,
      state: 'done' | 'failed',
      changes: readonly StoredChange[],
      error: string | null,
    ): Promise<DnsChangeRow> {
      const change = { state, changes_json: JSON.stringify(changes), error, updated_at: now() }
      await store.transaction(async (tx) => {
        await tx.updateTable('dns_changes').set(change).where('id', '=', row.id).execute()
        if (state === 'done' && row.undoes !== null)
          await tx.updateTable('dns_changes').set({ state: 'undone' }).where('id', '=', row.undoes).execute()
        const newest = tx
          .selectFrom('dns_changes')
          .select('id')
          .where('domain_id', '=', row.domain_id)
          .orderBy('created_at', 'desc')
          .orderBy('id', 'desc')
          .limit(KEPT_MAX)
        await tx
          .deleteFrom('dns_changes')
          .where('domain_id', '=', row.domain_id)
          .where('id', 'not in', newest)
          .execute()
      })
      return { ...row, ...change }
    },

    /** Values that this service has written for the domain, and not taken back, as `writtenKey` writes them. */
    async written(domainId: string): Promise<Set<string>> {
      const rows = await ofDomain(domainId)
        .where('undoes', 'is', null)
        .where('state', '<>', 'undone')
        .execute()
      return new Set(
        rows
          .flatMap(changesIn)
          .filter(({ written }) => written !== false)
          .flatMap(({ name, type, add }) => add.map((value) => writtenKey(name, type, value))),
      )
    },

    removeAll: (domainId: string) => db.deleteFrom('dns_changes').where('domain_id', '=', domainId).execute(),
  }
}
