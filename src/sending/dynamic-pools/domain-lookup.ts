/** Domains that a caller may name: its own, and for a parent those of its subaccounts (dynamic-pools.md section 2). */

import { NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Domain } from '../domains/domain.ts'

export type LookupParts = Pick<Core, 'domains' | 'accounts'>

/** @throws NotFound, also for that of another account */
export async function reachableDomain(
  { domains, accounts }: LookupParts,
  { accountId }: Caller,
  name: string,
): Promise<Domain> {
  const domain = await domains.byName(name)
  if (domain === null) throw new NotFound('Domain not found')
  if (domain.accountId === accountId) return domain
  const owner = await accounts.byId(domain.accountId)
  if (owner?.parentId !== accountId) throw new NotFound('Domain not found')
  return domain
}
