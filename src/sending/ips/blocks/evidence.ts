/**
 * When replies that say "blocked" are enough to close an address for a site (decision 113).
 *
 * 1. They count in a row: an accepted message in between begins the count anew.
 * 2. Each reply counts if the provider itself wrote it, which it does for its own mailbox domains. Of other domains behind
 *    a provider one reply counts for each registrable domain, since their owners may write replies too.
 * 3. A site that no shaping names often serves one domain. There, replies of all the domains that have answered within a day
 *    are enough.
 */

import { remember } from '../../../base/flow/cache.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { providerOfDomain } from '../../../mail/deliver/shaping/provider-names.ts'
import type { ShapingTable } from '../../../mail/deliver/shaping/shaping-table.ts'
import { rootDomainOf } from '../../domains/names/domain-names.ts'

/** Replies that close an address: a single one may be a mistake. */
export const REPLIES_TO_CLOSE = 3
/** Pairs of address and site that are remembered. */
const PAIRS_MAX = 10_000
const ROOTS_MAX = 10_000
const ANSWERED_WITHIN_MS = DAY_MS

interface EvidenceParts {
  clock: Clock
  shaping(): Pick<ShapingTable, 'isNamed' | 'siteOf'>
}

/** Replies in a row. */
interface Row {
  replies: number
  /** Replies for the provider's own domains. */
  own: number
  /** Other registrable domains. */
  roots: Set<string>
}

/** Registrable domains that answered last, at most `REPLIES_TO_CLOSE`, with the time on the monotonic clock. */
interface Answered {
  domain: string
  root: string
  roots: Map<string, number>
}

/** `key` names a pair of address and site. */
export function createEvidence({ clock, shaping }: EvidenceParts) {
  const rows = new Map<string, Row>()
  const answeredAt = new Map<string, Answered>()
  /** Looking one up takes longer than all else here. */
  const roots = new Map<string, string>()
  const rootOf = (domain: string) =>
    roots.get(domain) ?? remember(roots, ROOTS_MAX, domain, rootDomainOf(domain))

  /** Asked after each answer of a site without a name. */
  function note(key: string, domain: string): Answered {
    const known = answeredAt.get(key)
    if (known?.domain === domain) {
      known.roots.set(known.root, clock.monotonic())
      return known
    }
    const noted: Answered = { domain, root: rootOf(domain), roots: known?.roots ?? new Map() }
    noted.roots.delete(noted.root)
    noted.roots.set(noted.root, clock.monotonic())
    dropOldest(noted.roots, REPLIES_TO_CLOSE)
    answeredAt.set(key, noted)
    dropOldest(answeredAt, PAIRS_MAX)
    return noted
  }

  function domainsLately({ roots }: Answered): number {
    const since = clock.monotonic() - ANSWERED_WITHIN_MS
    return [...roots.values()].filter((at) => at >= since).length
  }

  const isOwn = (site: string, domain: string) =>
    providerOfDomain(domain) !== 'Other' || shaping().siteOf(domain)?.site === site

  return {
    /** A message was not refused for its address. */
    answered(key: string, site: string, domain: string, isAccepted: boolean): void {
      if (isAccepted && rows.size > 0) rows.delete(key)
      if (!shaping().isNamed(site)) note(key, domain)
    },
    /**
     * A reply says that the address is blocked. `isEnough`: so do enough others. `isSure`: it is the provider's own, or of a
     * site that no shaping names, so it is enough where one reply is.
     */
    blocked(key: string, site: string, domain: string): { isEnough: boolean; isSure: boolean } {
      const row = rows.get(key) ?? { replies: 0, own: 0, roots: new Set() }
      rows.delete(key)
      rows.set(key, row)
      dropOldest(rows, PAIRS_MAX)
      row.replies++
      if (shaping().isNamed(site)) {
        const isSure = isOwn(site, domain)
        if (isSure) row.own++
        else row.roots.add(rootOf(domain))
        return { isEnough: row.own + row.roots.size >= REPLIES_TO_CLOSE, isSure }
      }
      const lately = note(key, domain)
      row.roots.add(lately.root)
      const isEnough = row.replies >= REPLIES_TO_CLOSE && row.roots.size >= domainsLately(lately)
      return { isEnough, isSure: true }
    },
    forget: (key: string): void => void rows.delete(key),
  }
}

function dropOldest<K>(map: Map<K, unknown>, max: number): void {
  const oldest = map.keys().next()
  if (map.size > max && !oldest.done) map.delete(oldest.value)
}
