/**
 * Finds the hosts that receive mail for a domain.
 *
 *  1. MX records, following CNAMEs at the domain (RFC 5321 §5.1).
 *  2. A single MX "." means that the domain accepts no mail (RFC 7505): final, no retry.
 *  3. No MX record: the domain itself, if it has an address (RFC 5321 §5.1, "implicit MX").
 *  4. Hosts by preference, equal ones shuffled; at most MAIL_HOSTS_MAX of them are lookups up. Denied ones are left out.
 *  5. Addresses of both families; those that are not public are dropped unless they are allowed, and so are denied ones.
 *
 * A failed lookup makes the whole result temporary only if no host is usable without it. An MX that names a CNAME
 * is against RFC 2181 §10.3 but common, and is followed.
 */
import { isIP } from 'node:net'
import { anyCidrContains, type Cidr, isPublicAddress } from '../../base/net/ip.ts'
import { normalizeName } from './names.ts'
import type { MxData } from './packet.ts'
import { type DnsAnswer, isDefinite, type Resolver } from './resolver.ts'

/** Big providers publish up to seven; a hundred MX records must not cause two hundred queries. */
const MAIL_HOSTS_MAX = 16
/** Hosts looked up at once: a domain whose hosts' names are never answered must not take many queries from others. */
const HOSTS_AT_A_TIME = 4
/** Per family. Enough to get past dead ones; Postfix tries five in all. */
const ADDRESSES_PER_HOST_MAX = 4

interface MailAddress {
  address: string
  family: 4 | 6
}

export interface MailHost {
  /** The name in the MX record (or the domain itself), which the certificate must match. RFC 8461 §4.1. */
  exchange: string
  /** The target of the exchange's CNAMEs; the exchange itself without any. TLSA base domain, RFC 7672 §2.2.3. */
  canonicalName: string
  preference: number
  /** IPv6 first, then IPv4, each in random order; never empty. */
  addresses: MailAddress[]
  /** The MX answer and the address answers were all validated, so TLSA may be lookups up. RFC 7672 §2.2. */
  authenticated: boolean
}

export type MxResult =
  /** In the order of trying; never empty. `implicit`: the domain has no MX records. */
  | { kind: 'hosts'; hosts: MailHost[]; authenticated: boolean; implicit: boolean }
  | { kind: 'null-mx' }
  /** The domain does not exist. */
  | { kind: 'no-domain'; reason: string }
  /** The domain exists, but no host in it receives mail. */
  | { kind: 'no-mail-host'; reason: string }
  /** All its mail hosts have only forbidden addresses. */
  | { kind: 'forbidden'; reason: string; addresses: string[] }
  /** All its mail hosts are denied. */
  | { kind: 'denied'; reason: string }
  /** DNS gave no answer; retry later. `localFault`: no query was sent, because nothing could leave this machine. */
  | { kind: 'temporary'; reason: string; localFault?: string }

interface MailHostOptions {
  /** A number from 0 up to 1, as Math.random gives it. */
  random: () => number
  /** Networks that may be reached although they are not public. */
  allow?: readonly Cidr[]
  /** Hosts that get no mail; default: none. */
  deny?: MailHostDenial | undefined
  signal?: AbortSignal
}

export interface MailHostDenial {
  /** In lower case, without a final dot. */
  name(exchange: string): boolean
  address(address: string): boolean
}

/** Finds the hosts that receive mail for `domain`. Rejects only when `signal` is aborted. */
export async function findMailHosts(
  resolver: Resolver,
  domain: string,
  options: MailHostOptions,
): Promise<MxResult> {
  const query = options.signal === undefined ? {} : { signal: options.signal }
  const answer = await resolver.query(domain, 'MX', query)
  if (answer.kind === 'nxdomain') return { kind: 'no-domain', reason: noDomain(answer) }
  if (!isDefinite(answer)) return temporary(describeFailure(answer), answer.localFault)
  const implicit = answer.kind === 'nodata'
  if (!implicit && isNullMx(answer.records)) return { kind: 'null-mx' }
  const published = implicit ? [{ preference: 0, exchange: answer.asked.name }] : answer.records
  const permitted = published.filter(({ exchange }) => !options.deny?.name(exchange.toLowerCase()))
  if (permitted.length === 0 && published.length > 0) return denied(published)
  const exchanges = orderExchanges(permitted, options.random)
  const lookups: HostLookup[] = []
  for (let at = 0; at < exchanges.length; at += HOSTS_AT_A_TIME) {
    const some = exchanges.slice(at, at + HOSTS_AT_A_TIME)
    lookups.push(...(await Promise.all(some.map((mx) => lookUpHost(resolver, mx, options, query)))))
  }
  const hosts = lookups.map(({ host }) => host).filter((host) => host !== null)
  if (hosts.length === 0) return withoutHosts(domain, implicit, exchanges, lookups)
  for (const host of hosts) host.authenticated &&= answer.authenticated
  return { kind: 'hosts', hosts, authenticated: answer.authenticated, implicit }
}

function isNullMx(records: readonly MxData[]): boolean {
  return records.length === 1 && records[0]?.exchange === ''
}

/** Usable exchanges, each once with its best preference, ordered by preference, equal ones in random order. */
function orderExchanges(records: readonly MxData[], random: () => number): MxData[] {
  const best = new Map<string, number>()
  for (const { exchange, preference } of records) {
    // "." next to others has no meaning (RFC 7505 §3), and an exchange is a name, never an address.
    if (exchange === '' || isIP(exchange) !== 0) continue
    best.set(exchange, Math.min(preference, best.get(exchange) ?? preference))
  }
  const exchanges = [...best].map(([exchange, preference]) => ({ exchange, preference }))
  // Same preference: shuffle, so that the load spreads over the hosts (RFC 5321 §5.1). The sort is stable.
  return shuffle(exchanges, random)
    .sort((a, b) => a.preference - b.preference)
    .slice(0, MAIL_HOSTS_MAX)
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const held = result[i] as T
    result[i] = result[j] as T
    result[j] = held
  }
  return result
}

interface HostLookup {
  host: MailHost | null
  /** Addresses that must not be connected to. */
  forbidden: string[]
  /** Every address that it has is denied. */
  isDenied: boolean
  /** Why an address is unknown, if DNS gave no answer; otherwise ''. */
  failure: string
  localFault: string | undefined
}

async function lookUpHost(
  resolver: Resolver,
  mx: MxData,
  options: MailHostOptions,
  query: { signal?: AbortSignal },
): Promise<HostLookup> {
  const answers = await Promise.all([
    resolver.query(mx.exchange, 'AAAA', query),
    resolver.query(mx.exchange, 'A', query),
  ])
  const allowed = (address: string) =>
    isPublicAddress(address) || anyCidrContains(options.allow ?? [], address)
  const addresses: MailAddress[] = []
  const forbidden: string[] = []
  let isDenied = false
  for (const { asked, records } of answers) {
    const family = asked.type === 'AAAA' ? 6 : 4
    const permitted = records.filter((address) => !options.deny?.address(address))
    isDenied ||= permitted.length < records.length
    const usable = permitted.filter(allowed)
    forbidden.push(...permitted.filter((address) => !usable.includes(address)))
    for (const address of shuffle(usable, options.random).slice(0, ADDRESSES_PER_HOST_MAX))
      addresses.push({ address, family })
  }
  const answered = answers.filter(isDefinite)
  const unanswered = answers.find((answer) => !isDefinite(answer))
  const failure = unanswered === undefined ? '' : describeFailure(unanswered)
  const localFault = unanswered?.localFault
  isDenied &&= addresses.length === 0 && forbidden.length === 0
  if (addresses.length === 0) return { host: null, forbidden, isDenied, failure, localFault }
  const canonicalName = answered.find((answer) => answer.kind === 'records')?.chain.at(-1) ?? mx.exchange
  const authenticated = answered.every((answer) => answer.authenticated)
  return {
    host: { ...mx, canonicalName, addresses, authenticated },
    forbidden,
    isDenied,
    failure,
    localFault,
  }
}

/** No usable host: temporary if a lookup failed, else decided by what was found. */
function withoutHosts(
  domain: string,
  implicit: boolean,
  exchanges: readonly MxData[],
  lookups: readonly HostLookup[],
): MxResult {
  const unanswered = lookups.find((lookup) => lookup.failure !== '')
  if (unanswered !== undefined)
    return temporary(
      unanswered.failure,
      lookups.find((lookup) => lookup.localFault !== undefined)?.localFault,
    )
  const addresses = lookups.flatMap((lookup) => lookup.forbidden)
  if (addresses.length > 0) {
    const shown = addresses.slice(0, ADDRESSES_PER_HOST_MAX).join(', ')
    const reason = `the mail hosts of ${domain} have only addresses that are not public: ${shown}`
    return { kind: 'forbidden', reason, addresses: addresses.slice(0, MAIL_HOSTS_MAX) }
  }
  if (lookups.some(({ isDenied }) => isDenied)) return denied(exchanges)
  if (implicit) return { kind: 'no-mail-host', reason: `${domain} has neither MX records nor an address` }
  const names = exchanges.map((mx) => mx.exchange).join(', ')
  const reason = names
    ? `none of the mail hosts of ${domain} has an address: ${names}`
    : `the MX records of ${domain} name no host`
  return { kind: 'no-mail-host', reason }
}

/** The hosts that are left out for their names or addresses; others have no address. */
const denied = (exchanges: readonly MxData[]): MxResult => ({
  kind: 'denied',
  reason: `its mail hosts are denied: ${exchanges
    .slice(0, ADDRESSES_PER_HOST_MAX)
    .map(({ exchange }) => exchange)
    .join(', ')}`,
})

function temporary(reason: string, localFault: string | undefined): MxResult {
  return { kind: 'temporary', reason, ...(localFault !== undefined && { localFault }) }
}

function noDomain(answer: DnsAnswer): string {
  if (answer.problem !== '') return answer.problem
  const alias = answer.chain.at(-1)
  const name = normalizeName(answer.asked.name) ?? answer.asked.name
  return alias === undefined
    ? `${name} does not exist`
    : `${name} is an alias of ${alias}, which does not exist`
}

function describeFailure(answer: DnsAnswer): string {
  const from = answer.server === '' ? '' : ` from ${answer.server}`
  return `no ${answer.asked.type} answer for ${answer.asked.name}${from}: ${answer.problem}`
}
