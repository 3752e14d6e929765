/** Domains by name, for hot paths: cached for a few seconds, invalidated when they change. */
import { domainToASCII } from 'node:url'
import { type Cache, createCache } from '../../../base/flow/cache.ts'
import { NotFound } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import type { Store } from '../../../platform/store/store.ts'
import { type Domain, domainOfRow } from '../domain.ts'

/** A change on another node takes effect after at most this time (domain-keys.md rule 11). */
const REMEMBER_MS = 5_000
const DOMAINS_MAX = 10_000

export type DomainDirectory = ReturnType<typeof createDomainDirectory>

export function createDomainDirectory(store: Store, clock: Clock) {
  const find = (column: 'id' | 'name') => async (value: string) => {
    const row = await store.db.selectFrom('domains').selectAll().where(column, '=', value).executeTakeFirst()
    return row ? domainOfRow(row, clock.now()) : null
  }
  const common = { clock, ttlMs: REMEMBER_MS, entriesMax: DOMAINS_MAX }
  const { changes } = store
  const names: Cache<Domain | null> = createCache({
    ...common,
    load: find('name'),
    shared: { changes, topic: 'domain-names' },
  })
  const ids: Cache<Domain | null> = createCache({
    ...common,
    load: find('id'),
    shared: { changes, topic: 'domain-ids' },
  })
  return {
    /** The domain of that name (any letter case), whichever account owns it, or null. Synchronous if cached. */
    byName: (name: string) => {
      const ascii = storedName(name)
      return ascii === null ? null : names.get(ascii)
    },
    byId: (id: string) => ids.get(id),
    /** Must be called after every change of a domain. */
    changed({ id, name }: Pick<Domain, 'id' | 'name'>): void {
      names.forget(name)
      ids.forget(id)
    },
  }
}

/** The caller's domain of that name. @throws NotFound with the text of domain operations */
export async function ownDomain(domains: DomainDirectory, caller: Caller, name: string): Promise<Domain> {
  const domain = await domains.byName(name)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound('Domain not found')
  return domain
}

const STORED_NAME = /^[a-z0-9.-]{1,253}$/

/** The stored form: lower case, an internationalised name as A-labels. Null: no domain can have such a name. */
export function storedName(name: string): string | null {
  if (STORED_NAME.test(name)) return name
  const ascii = /^[\x20-\x7e]*$/.test(name) ? name.toLowerCase() : domainToASCII(name)
  return STORED_NAME.test(ascii) ? ascii : null
}
