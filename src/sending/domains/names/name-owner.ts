/**
 * Whose a name is. DNS proves it: a verified domain has its own name and all names below it, up to the next verified domain
 * (decision 165). A domain that is not verified has only its own name, and only while no verified one is above.
 */
import { type MaybePromise, whenKnown } from '../../../base/flow/cache.ts'
import type { Domain } from '../domain.ts'
import type { DomainDirectory } from './directory.ts'
import { ancestorsOf, rootDomainOf } from './domain-names.ts'

type Known = Pick<DomainDirectory, 'byName'>

/** Names between a name and its registrable domain, each of which costs a look-up. No domain is deeper. */
const DEPTH_MAX = 8

/** Whether DNS has proven the domain; names of sandbox domains are the service's own. */
export const isProven = ({ verified, type }: Pick<Domain, 'verified' | 'type'>): boolean =>
  verified || type === 'sandbox'

/**
 * The name, and those above it that may belong to the same owner, nearest first: all up to the registrable domain. Above
 * that are registries, and hosts whose tenants are owners of their own.
 */
export function namesUpToRoot(name: string): string[] {
  const root = rootDomainOf(name)
  const above = ancestorsOf(name).filter((ancestor) => ancestor.length >= root.length)
  return [name, ...above.slice(-DEPTH_MAX)]
}

/** The nearest verified domain at or above the name, else the domain of that very name; null: nobody's. Sync if cached. */
export function ownerOf(domains: Known, name: string): MaybePromise<Domain | null> {
  return whenKnown(nearestProven(domains, namesUpToRoot(name)), (owner) => owner ?? domains.byName(name))
}

function nearestProven(domains: Known, names: readonly string[]): MaybePromise<Domain | null> {
  const [name, ...above] = names
  if (name === undefined) return null
  return whenKnown(domains.byName(name), (domain) =>
    domain !== null && isProven(domain) ? domain : nearestProven(domains, above),
  )
}

/**
 * Whether a name belongs to another account than the sender's. A domain that is not verified does not count against the
 * owner of a verified one in the same organization: anybody may have claimed the parent of a name.
 */
export function isForeign(
  domains: Known,
  sender: Pick<Domain, 'accountId' | 'name' | 'verified' | 'type'>,
  name: string,
): MaybePromise<boolean> {
  return whenKnown(ownerOf(domains, name), (owner) => {
    if (owner === null || owner.accountId === sender.accountId) return false
    return isProven(owner) || !isProven(sender) || rootDomainOf(sender.name) !== rootDomainOf(owner.name)
  })
}

/**
 * The host of the domain's return paths: the chosen one where its SPF record was valid at the last check and the account
 * owns it, else the domain itself. Receivers check SPF for this host, so it must not be another account's (RFC 7489 §3.1.2).
 */
export function returnPathHost(domains: Known, domain: Domain): MaybePromise<string> {
  const { name, mailfromHost, returnPathValid, accountId } = domain
  if (mailfromHost === name || !returnPathValid) return name
  return whenKnown(ownerOf(domains, mailfromHost), (owner) =>
    owner?.accountId === accountId && isProven(owner) ? mailfromHost : name,
  )
}
