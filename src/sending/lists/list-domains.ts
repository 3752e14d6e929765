/**
 * Which domains of an account have lists. Sending then queries the database only for recipients that can be lists;
 * without this every message would cost one query.
 */
import { createCache, type MaybePromise } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'

export interface ListDomains {
  /** Names of the domains. */
  get(accountId: string): MaybePromise<ReadonlySet<string>>
  /** Must be called when lists of the account have changed here. */
  forget(accountId: string): void
}

/** As for domains: a domain's first list created on another node takes effect after at most this time. */
const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 10_000

export function createListDomains(store: Store, clock: Clock): ListDomains {
  return createCache<ReadonlySet<string>>({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    shared: { changes: store.changes, topic: 'list-domains' },
    async load(accountId) {
      const rows = await store.db
        .selectFrom('lists')
        .select('domain_name')
        .distinct()
        .where('account_id', '=', accountId)
        .execute()
      return new Set(rows.map((row) => row.domain_name))
    },
  })
}
