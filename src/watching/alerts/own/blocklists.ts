/** Sending addresses and domains that are on a blocklist (monitoring.md section 1). */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Leaving, Listing, Listings } from '../../blocklists/listings.ts'
import type { OwnCheck } from './own-check.ts'

/** Null: no list is watched. */
export function blocklistCheck(listings: Listings | null): OwnCheck | null {
  if (listings === null) return null
  return {
    name: 'blocklists',
    description: 'An address that mail leaves from is on a blocklist.',
    dimension: 'ip',
    eventTypes: { triggered: 'ip_listed', resolved: 'ip_delisted' },
    ...LISTING,
    async read() {
      const leaving = await listings.leaving()
      return findings(
        await listings.list('ip'),
        (ip, lists, pages) =>
          `${ip} is listed by ${lists}. Receivers that use it refuse mail from there. ${leavingSentence(leaving.get(ip))}Find what caused it on the list's own page, end that, then ask for removal${pages}.`,
      )
    },
  }
}

/** Null: no list is watched. */
export function listedDomainsCheck(listings: Listings | null): OwnCheck | null {
  if (listings === null) return null
  return {
    name: 'listed-domains',
    description: 'A sending domain is on a blocklist.',
    dimension: 'domain',
    eventTypes: { triggered: 'domain_listed', resolved: 'domain_delisted' },
    ...LISTING,
    async read() {
      return findings(
        await listings.list('domain'),
        (domain, lists, pages) =>
          `${domain} is listed by ${lists}. Receivers that use it refuse mail that names the domain, from whatever address. Find what caused it on the list's own page, end that, then ask for removal${pages}; meanwhile disable the domain.`,
      )
    },
  }
}

const LISTING = {
  metric: 'blocklists_listing',
  limit: '1',
  everyMs: MINUTE_MS,
} as const

function findings(
  listings: readonly Listing[],
  adviceOn: (subject: string, lists: string, pages: string) => string,
) {
  return [...Map.groupBy(listings, ({ subject }) => subject)].map(([subject, some]) => {
    const pages = some.flatMap(({ list }) => list.page || [])
    return {
      value: subject,
      figure: String(some.length),
      since: Math.min(...some.map(({ since }) => since)),
      advice: adviceOn(
        subject,
        some.map(({ list }) => list.zone).join(', '),
        pages.length > 0 ? `: ${pages.join(' ')}` : '',
      ),
    }
  })
}

function leavingSentence(leaving: Leaving | undefined): string {
  if (leaving === undefined) return ''
  const { left, kept } = leaving
  const leftSentence = left.length > 0 ? `Mail to ${left.join(', ')} leaves from other addresses. ` : ''
  const keptSentence =
    kept.length > 0 ? `It stays in use for ${kept.join(', ')}: no other address of its set can be used. ` : ''
  return leftSentence + keptSentence
}
