/** What is looked up in blocklists, and whose it is. */
import { hostAddresses, seenAddresses } from '../../base/net/host-addresses.ts'
import { isPublicAddress } from '../../base/net/ip.ts'
import type { Store } from '../../platform/store/store.ts'
import { isBelow, rootDomainOf, unclaimableReason } from '../../sending/domains/names/domain-names.ts'
import { type AddressBook, mayUse } from '../../sending/ips/address-book.ts'

/** More are looked up in turn, but the rows of more would be read every few minutes. */
const ADDRESSES_MAX = 2_000
const DOMAINS_MAX = 5_000
/** Names that nobody can register, and that no list has (RFC 2606, RFC 6762). */
const UNREGISTRABLE = /\.(?:example|test|local|internal|lan)$/

/** The public addresses that mail leaves from, of all processes; without configured ones those of this host. */
export function watchedAddresses(book: AddressBook): string[] {
  const inUse = book.addresses.filter(({ isEnabled }) => isEnabled)
  return seenAddresses(book.addresses.length > 0 ? inUse : [], hostAddresses())
    .filter(isPublicAddress)
    .slice(0, ADDRESSES_MAX)
}

/** Whether lists could have a domain. */
export const isWatchable = (name: string): boolean =>
  unclaimableReason(name) === null && !UNREGISTRABLE.test(name)

/** The registrable domains of active sending domains, and of domains that accounts added and verified. Lists have those. */
export async function watchedDomains({ db }: Store): Promise<string[]> {
  const [sending, added] = await Promise.all([
    db
      .selectFrom('domains')
      .select('name')
      .where('state', '=', 'active')
      .where('disabled_json', 'is', null)
      .orderBy('id')
      .limit(DOMAINS_MAX)
      .execute(),
    db
      .selectFrom('monitored_domains')
      .select('name')
      .where('verified_at', 'is not', null)
      .orderBy('created_at')
      .limit(DOMAINS_MAX)
      .execute(),
  ])
  const roots = new Set([...sending, ...added].filter(({ name }) => isWatchable(name)).map(rootOf))
  return [...roots].slice(0, DOMAINS_MAX)
}

const rootOf = ({ name }: { name: string }) => rootDomainOf(name)

export interface Monitor {
  accountId: string
  /** The address, or the domain of the account. */
  subject: string
}

/** The domains of accounts with this registrable one, except those that their accounts do not monitor. */
export async function monitorsOfDomain({ db }: Store, root: string): Promise<Monitor[]> {
  const [sending, own] = await Promise.all([
    db
      .selectFrom('domains')
      .select(['account_id', 'name'])
      .where('state', '=', 'active')
      .where((eb) => eb.or([eb('name', '=', root), eb('name', 'like', `%.${root}`)]))
      .limit(DOMAINS_MAX)
      .execute(),
    db
      .selectFrom('monitored_domains')
      .selectAll()
      .where((eb) => eb.or([eb('name', '=', root), eb('name', 'like', `%.${root}`)]))
      .limit(DOMAINS_MAX)
      .execute(),
  ])
  const keyOf = ({ account_id, name }: { account_id: string; name: string }) => `${account_id} ${name}`
  const removed = new Set(own.filter(({ is_removed }) => Number(is_removed) === 1).map(keyOf))
  const all = [...sending, ...own.filter(({ verified_at }) => verified_at !== null)]
  const monitors = all.filter((one) => !removed.has(keyOf(one)) && isOfRoot(one.name, root))
  return [...new Map(monitors.map((one) => [keyOf(one), one])).values()].map(({ account_id, name }) => ({
    accountId: account_id,
    subject: name,
  }))
}

/** `_` in a pattern is any character, and a public suffix may lie between. */
const isOfRoot = (name: string, root: string) =>
  (name === root || isBelow(name, root)) && rootDomainOf(name) === root

/** Accounts that are told about an address: those that may send from it and have a setting for that. */
export async function monitorsOfAddress(
  { db }: Store,
  book: AddressBook,
  ip: string,
  eventType: string,
): Promise<Monitor[]> {
  const settings = await db
    .selectFrom('alert_settings')
    .select('account_id')
    .distinct()
    .where('event_type', '=', eventType)
    .execute()
  const removed = await db
    .selectFrom('monitored_ips')
    .select('account_id')
    .where('ip', '=', ip)
    .where('is_removed', '=', 1)
    .execute()
  const without = new Set(removed.map(({ account_id }) => account_id))
  return settings
    .filter(({ account_id: id }) => !without.has(id) && mayUse(book, id, ip))
    .map(({ account_id: accountId }) => ({ accountId, subject: ip }))
}
