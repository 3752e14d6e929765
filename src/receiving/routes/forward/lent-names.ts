/**
 * Copies that leave for others keep their author, and have the return path of the domain that sends them; those of a list its
 * signature too. So DMARC passes for all names of that domain's organization (RFC 7489 §3.1), among them some that belong to
 * another account (decision 165).
 */

import { parseAddressList, readOrNull } from '../../../protocols/mime/address.ts'
import { type RawHeader, unfoldedValue } from '../../../protocols/mime/split.ts'
import type { Domain } from '../../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../../sending/domains/names/directory.ts'
import { rootDomainOf } from '../../../sending/domains/names/domain-names.ts'
import { isForeign } from '../../../sending/domains/names/name-owner.ts'

type Known = Pick<DomainDirectory, 'byName'>

/** Whether mail of the domain passes DMARC for a name of another account, in the same organization. */
export async function lendsTo(domains: Known, domain: Domain, name: string): Promise<boolean> {
  const root = rootDomainOf(name)
  const proving = [domain.name, domain.mailfromHost, domain.dkimAuthority]
  if (name === domain.name || !proving.some((own) => rootDomainOf(own) === root)) return false
  return isForeign(domains, domain, name)
}

/** Domains of the authors in all From fields, each once; those that cannot be read are left out. */
export function authorDomains(headers: readonly RawHeader[]): string[] {
  const texts = headers
    .filter(({ name }) => name.toLowerCase() === 'from')
    .map(({ raw }) => unfoldedValue(raw))
  return [...new Set(texts.flatMap(domainsIn))]
}

const domainsIn = (text: string) =>
  (readOrNull(() => parseAddressList(text)) ?? []).map(({ domain }) => domain)
