import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'

/** Labels below a domain that takes mail for its subdomains; each costs a look-up. */
const DEPTH_MAX = 8

/**
 * The domain that receives mail for a host (routes-inbound.md section 5 rule 1): the host itself, else the nearest domain
 * above it, if that has `wildcard`. A domain in between belongs to somebody else, perhaps, and ends the search. Null: none.
 */
export async function receivingDomain(
  domains: Pick<DomainDirectory, 'byName'>,
  host: string,
): Promise<Domain | null> {
  const exact = await domains.byName(host)
  if (exact) return exact
  let name = host
  for (let depth = 0; depth < DEPTH_MAX; depth++) {
    const dot = name.indexOf('.')
    if (dot < 0) return null
    name = name.slice(dot + 1)
    const above = await domains.byName(name)
    if (above) return above.wildcard ? above : null
  }
  return null
}
