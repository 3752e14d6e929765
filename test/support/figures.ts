/** Test helpers: a domain to count for, and its sums. */

import { insert, type Store } from '../../src/platform/store/store.ts'
import { newDomainRow } from '../../src/sending/domains/domain.ts'
import { COUNTERS, type Counter } from '../../src/watching/metrics/counters.ts'
import type { Unit } from '../../src/watching/metrics/intervals.ts'
import { rollUp } from '../../src/watching/metrics/storage/roll-up.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/watching/metrics/storage/splits.ts'

export const ACCOUNT = 'account-1'
export const DOMAIN = 'mg.example.com'

export async function addDomain(store: Store, name = DOMAIN, accountId = ACCOUNT): Promise<void> {
  const account = insert('accounts', {
    id: accountId,
    name: accountId,
    signing_key_sealed: new Uint8Array(),
    created_at: 0,
  })
  await store.commit([{ ...account, sql: `${account.sql} ON CONFLICT DO NOTHING` }])
  await store.commit([insert('domains', domainRow(name, accountId))])
}

export const domainRow = (name: string, accountId: string) =>
  newDomainRow({
    id: `id-${name}`,
    account_id: accountId,
    name,
    type: 'custom',
    state: 'active',
    created_at: 0,
  })

/** No rule is about the rate of sending. */
export const NO_RATE_LIMIT = () => false

const ALL_OVER = Date.UTC(2100, 0, 1)

/**
 * Makes the rows of the unit. The sums of all its intervals, of mail as a whole or with a tag; zeros are left out. The default
 * unit is the shortest.
 */
export async function countedOf(
  store: Store,
  scope: { domain?: string; tag?: string; unit?: Unit } = {},
): Promise<Partial<Record<Counter, number>>> {
  if (scope.unit === 'day' || scope.unit === 'month') await rollUp(store, ALL_OVER)
  const rows = await store.db
    .selectFrom('figures')
    .innerJoin('figure_scopes', 'figure_scopes.no', 'figures.scope')
    .selectAll('figures')
    .where('domain_name', '=', scope.domain ?? DOMAIN)
    .where('split', '=', scope.tag === undefined ? SPLIT_NUMBERS.none : SPLIT_NUMBERS.tag)
    .where('tag', '=', scope.tag ?? '')
    .where('unit', '=', UNIT_NUMBERS[scope.unit ?? (scope.tag === undefined ? 'hour' : 'day')])
    .execute()
  const found: Partial<Record<Counter, number>> = {}
  for (const counter of COUNTERS) {
    const sum = rows.reduce((total, row) => total + Number(row[counter]), 0)
    if (sum > 0) found[counter] = sum
  }
  return found
}
