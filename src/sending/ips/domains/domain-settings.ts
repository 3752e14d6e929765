/** The rows that say which addresses a domain sends from: a linked pool, its own addresses, or neither. */

import { NotFound } from '../../../base/process/errors.ts'
import type { DomainRow } from '../../../platform/store/schema.ts'
import type { Tx } from '../../../platform/store/store.ts'
import { type Domain, domainOfRow } from '../../domains/domain.ts'

/** At most one of them is given; both null: those of its account. */
export interface DomainAddresses {
  ips: readonly string[] | null
  poolId: string | null
}

/** The domain as it is now. @throws NotFound when it was deleted meanwhile */
export async function presentDomain(tx: Tx, { id }: Pick<Domain, 'id'>): Promise<Domain> {
  const row = await tx.selectFrom('domains').selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw new NotFound('Domain not found')
  return settingsOfRow(row)
}

/** The state is not looked at. */
export const settingsOfRow = (row: DomainRow): Domain => domainOfRow(row, 0)

/** Must be followed by `DomainDirectory.changed` after the commit. */
export async function setDomainAddresses(
  tx: Tx,
  domain: Pick<Domain, 'id' | 'accountId'>,
  { ips, poolId }: DomainAddresses,
): Promise<void> {
  await tx
    .updateTable('domains')
    .set({ sending_ips_json: ips === null ? null : JSON.stringify(ips), sending_pool_id: poolId })
    .where('id', '=', domain.id)
    .execute()
  await tx.deleteFrom('domain_ips').where('domain_id', '=', domain.id).execute()
  if (ips === null || ips.length === 0) return
  await tx
    .insertInto('domain_ips')
    .values(ips.map((ip) => ({ domain_id: domain.id, ip, account_id: domain.accountId })))
    .execute()
}
