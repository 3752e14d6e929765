/** How many domains send from each address, and the page of domains of one. */
import { sql } from 'kysely'
import { countOf } from '../../platform/store/count.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Domain, domainOfRow } from '../domains/domain.ts'
import { type AddressBook, dedicatedTo, sharedFor } from './address-book.ts'
import { addressesOf } from './domains/domain-addresses.ts'

/** Domains of an account by the address that they send from. */
export async function domainCounts(
  store: Store,
  book: AddressBook,
  accountId: string,
): Promise<(ip: string) => number> {
  const count = sql<number>`count(*)`.as('count')
  const ofAccount = store.db.selectFrom('domains').where('account_id', '=', accountId)
  const [own, linked, enrolled, rest] = await Promise.all([
    store.db
      .selectFrom('domain_ips')
      .select(['ip', count])
      .where('account_id', '=', accountId)
      .groupBy('ip')
      .execute(),
    ofAccount
      .select(['sending_pool_id', count])
      .where('sending_pool_id', 'is not', null)
      .groupBy('sending_pool_id')
      .execute(),
    ofAccount
      .select(['dynamic_pool_id', count])
      .where('dynamic_pool_id', 'is not', null)
      .groupBy('dynamic_pool_id')
      .execute(),
    ofAccount
      .select(count)
      .where('sending_pool_id', 'is', null)
      .where('sending_ips_json', 'is', null)
      .where('dynamic_pool_id', 'is', null)
      .executeTakeFirstOrThrow(),
  ])
  const byIp = new Map(own.map((row) => [row.ip, Number(row.count)]))
  const byPool = new Map([
    ...linked.map((row) => [row.sending_pool_id, Number(row.count)] as const),
    ...enrolled.map((row) => [row.dynamic_pool_id, Number(row.count)] as const),
  ])
  const byDefault = new Set(defaultIps(book, accountId))
  return (ip) =>
    (byIp.get(ip) ?? 0) +
    (byPool.get(book.byIp.get(ip)?.poolId ?? '') ?? 0) +
    (byDefault.has(ip) ? Number(rest.count) : 0)
}

/** Addresses of a domain that names none. */
function defaultIps(book: AddressBook, accountId: string): string[] {
  const dedicated = dedicatedTo(book, accountId)
  return (dedicated.length > 0 ? dedicated : sharedFor(book, accountId)).map(({ ip }) => ip)
}

interface DomainPage {
  limit: number
  skip: number
  /** A domain matches if its name contains one of them; none: all match. */
  words: readonly string[]
}

/** Domains that send from an address, by id. `total` counts all matches. */
export async function domainsOfAddress(
  store: Store,
  book: AddressBook,
  accountId: string,
  ip: string,
  { limit, skip, words }: DomainPage,
): Promise<{ items: Domain[]; total: number }> {
  const poolId = book.byIp.get(ip)?.poolId ?? null
  const isDefault = defaultIps(book, accountId).includes(ip)
  let query = store.db
    .selectFrom('domains')
    .where('account_id', '=', accountId)
    .where((eb) =>
      eb.or([
        eb(
          'id',
          'in',
          eb
            .selectFrom('domain_ips')
            .select('domain_id')
            .where('domain_ips.ip', '=', ip)
            .where('domain_ips.account_id', '=', accountId),
        ),
        ...(poolId === null ? [] : [eb('sending_pool_id', '=', poolId), eb('dynamic_pool_id', '=', poolId)]),
        ...(isDefault
          ? [
              eb.and([
                eb('sending_pool_id', 'is', null),
                eb('sending_ips_json', 'is', null),
                eb('dynamic_pool_id', 'is', null),
              ]),
            ]
          : []),
      ]),
    )
  if (words.length > 0)
    query = query.where((eb) => eb.or(words.map((word) => eb('name', 'like', `%${word}%`))))
  const count = await countOf(query)
  const rows = await query.selectAll().orderBy('id').limit(limit).offset(skip).execute()
  return { items: rows.map((row) => domainOfRow(row, 0)), total: count }
}

const WORDS_MAX = 20

/** Split at blanks and punctuation (section 2 rule 2); in lower case, so that a name's letters are compared. */
export const searchWords = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .slice(0, WORDS_MAX)

export const domainItem = (book: AddressBook, domain: Domain) => ({
  domain: domain.name,
  ips: addressesOf(book, domain),
})
