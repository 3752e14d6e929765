/**
 * What is known of blocklists: those that are watched by default, and others that operators add (docs/api/monitoring.md, decision 201).
 *
 * By default: lists that answer anybody without registration, for low volume and commercial use, by their own terms as read
 * in November 2026. Mailspike is not, since it is free for non-commercial use only; nor are Spamhaus, Barracuda and Abusix,
 * which refuse public resolvers or want to know who asks.
 */

import { type BlocklistKind, STANDARD_TEST_ENTRIES, type TestEntries } from '../../protocols/dns/blocklist.ts'
import { isWithin } from '../../protocols/dns/names.ts'

interface KnownList {
  /** As the list is named in operations, events and settings; without a customer's key. */
  zone: string
  name: string
  /** Where an entry is looked up and removed. */
  page: string
  /** Kinds of subjects, each with the test entries that the list documents. */
  tests: Partial<Readonly<Record<BlocklistKind, TestEntries>>>
  /** How refusals name the list. */
  words: RegExp
  /** Sites of the shaping that refuse mail by this list, as their replies say (bounces/rules.json). Others are learnt. Absent: none. */
  usedBy?: readonly { site: string; provider: string }[]
}

const { ipv4, ipv6, domain } = STANDARD_TEST_ENTRIES

const SPAMHAUS_USERS = [
  { site: 'outlook-consumer', provider: 'Outlook US' },
  { site: 'outlook-365', provider: 'Outlook 365' },
  { site: 'yahoo', provider: 'Yahoo US' },
  { site: 'apple', provider: 'Apple' },
]
const SPAMHAUS = {
  page: 'https://check.spamhaus.org/',
  // Its list of domains is named by itself.
  words: /spamhaus(?!.{0,20}\bdbl\b)/i,
  usedBy: SPAMHAUS_USERS,
}
const SPAMHAUS_DBL = {
  page: 'https://check.spamhaus.org/',
  tests: { domain: { listed: 'dbltest.com', free: 'example.com' } },
  words: /spamhaus.{0,20}\bdbl\b|dbl\.spamhaus/i,
}

const KNOWN: readonly KnownList[] = [
  {
    zone: 'bl.spamcop.net',
    name: 'SpamCop',
    page: 'https://www.spamcop.net/bl.shtml',
    tests: { ipv4 },
    words: /spamcop/i,
  },
  {
    zone: 'psbl.surriel.com',
    name: 'PSBL',
    page: 'https://psbl.org/',
    tests: { ipv4 },
    words: /psbl\.(?:surriel\.com|org)|\bpsbl\b/i,
  },
  {
    zone: 'dnsbl-1.uceprotect.net',
    name: 'UCEPROTECT Level 1',
    page: 'https://www.uceprotect.net/en/rblcheck.php',
    tests: { ipv4 },
    words: /dnsbl-1\.uceprotect|uceprotect.{0,10}\b(?:level ?)?1\b/i,
  },
  {
    zone: 'dnsbl.dronebl.org',
    name: 'DroneBL',
    page: 'https://dronebl.org/lookup',
    tests: { ipv4, ipv6 },
    words: /dronebl/i,
  },
  {
    zone: 'bl.mailspike.net',
    name: 'Mailspike',
    page: 'https://mailspike.io/ip_verify',
    tests: { ipv4 },
    words: /mailspike/i,
  },
  {
    zone: 'b.barracudacentral.org',
    name: 'Barracuda',
    page: 'https://www.barracudacentral.org/rbl/removal-request',
    tests: { ipv4 },
    words: /barracudacentral|barracuda reputation/i,
  },
  { zone: 'zen.spamhaus.org', name: 'Spamhaus ZEN', tests: { ipv4, ipv6 }, ...SPAMHAUS },
  { zone: 'zen.dq.spamhaus.net', name: 'Spamhaus ZEN', tests: { ipv4, ipv6 }, ...SPAMHAUS },
  { zone: 'dbl.spamhaus.org', name: 'Spamhaus DBL', ...SPAMHAUS_DBL },
  { zone: 'dbl.dq.spamhaus.net', name: 'Spamhaus DBL', ...SPAMHAUS_DBL },
  {
    zone: 'multi.surbl.org',
    name: 'SURBL',
    page: 'https://www.surbl.org/surbl-analysis',
    tests: { domain: { listed: 'test.surbl.org', free: 'example.com' } },
    words: /\bsurbl\b/i,
  },
  {
    zone: 'multi.uribl.com',
    name: 'URIBL',
    page: 'https://admin.uribl.com/',
    tests: { domain: { listed: 'test.uribl.com', free: 'example.com' } },
    words: /\buribl\b/i,
  },
]

export interface Blocklist extends KnownList {
  /** What is asked: with the customer's key, if the list has one. A secret then. */
  askedZone: string
}

/** Lists of a setting, each once. `kinds`: what an unknown list has, with the standard test entries. */
export const blocklistsOf = (zones: readonly string[], kinds: 'addresses' | 'domains'): Blocklist[] =>
  eachOnce(zones.map((askedZone) => blocklistOf(askedZone, kinds)))

/** One list for each zone, with the kinds of all of them: some have addresses and domains. */
export function eachOnce(lists: readonly Blocklist[]): Blocklist[] {
  const byZone = new Map<string, Blocklist>()
  for (const list of lists)
    byZone.set(list.zone, { ...list, tests: { ...byZone.get(list.zone)?.tests, ...list.tests } })
  return [...byZone.values()]
}

export function blocklistOf(askedZone: string, kinds: 'addresses' | 'domains'): Blocklist {
  const zone = askedZone.toLowerCase()
  // Customers of Spamhaus have their key in front of the zone.
  const known = KNOWN.find((list) => zone === list.zone || (isKeyed(list.zone) && isWithin(zone, list.zone)))
  if (known !== undefined) return { ...known, askedZone: zone }
  return {
    ...{ askedZone: zone, zone, name: zone, page: '', usedBy: [] },
    tests: kinds === 'domains' ? { domain } : { ipv4, ipv6 },
    words: new RegExp(`(?<![\\w.-])${zone.replaceAll('.', '\\.')}(?!\\.?[\\w-])`, 'i'),
  }
}

const isKeyed = (zone: string) => zone.endsWith('.dq.spamhaus.net')
