import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { ownerOf } from '../../sending/domains/names/name-owner.ts'

/**
 * The domain that receives mail for a host (routes-inbound.md section 5 rule 1): the host itself, else the nearest verified
 * domain above it, if that has `wildcard`. A name that somebody has claimed below it, and not proven, takes nothing from it.
 * Null: none.
 */
export async function receivingDomain(
  domains: Pick<DomainDirectory, 'byName'>,
  host: string,
): Promise<Domain | null> {
  const owner = await ownerOf(domains, host)
  if (owner === null || owner.name === host || owner.wildcard) return owner
  return domains.byName(host)
}
