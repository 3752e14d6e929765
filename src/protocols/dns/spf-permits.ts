/**
 * Whether the SPF record of a name permits an address, as far as receivers can tell without a message (RFC 7208 §4.6). Macros,
 * "exists" and "ptr" are left out: they match nothing here. mailauth's evaluation of SPF, which serves received mail, costs
 * 30 MB of memory; this is asked every hour, also where no mail is received.
 */
import { cidrContains, parseCidr, parseIp } from '../../base/net/ip.ts'
import { type DnsAnswer, isDefinite, type Resolver } from './resolver.ts'
import {
  isSpfRecord,
  parseSpf,
  SPF_LOOKUPS_MAX,
  SPF_VOID_LOOKUPS_MAX,
  type SpfTerm,
  spfFault,
} from './spf.ts'

/** `none`: there is no record, or it cannot be used. `unknown`: DNS did not answer. */
export type SpfVerdict = 'permits' | 'refuses' | 'none' | 'unknown'

/** Hosts of one "mx", RFC 7208 §4.6.4. */
const MX_HOSTS_MAX = 10

interface Walk {
  resolver: Pick<Resolver, 'query'>
  ip: string
  lookups: number
  voidLookups: number
}

export function spfPermits(resolver: Pick<Resolver, 'query'>, name: string, ip: string): Promise<SpfVerdict> {
  return evaluate({ resolver, ip, lookups: 0, voidLookups: 0 }, name)
}

async function evaluate(walk: Walk, name: string): Promise<SpfVerdict> {
  const answer = await walk.resolver.query(name, 'TXT')
  if (!isDefinite(answer)) return 'unknown'
  const records = answer.records.filter(isSpfRecord)
  const [record] = records
  if (record === undefined || records.length > 1) return 'none'
  const terms = parseSpf(record)
  if (spfFault(terms) !== null) return 'none'
  for (const term of terms.filter(({ kind }) => kind === 'mechanism')) {
    const matches = await matchesTerm(walk, term, name)
    if (matches === 'unknown' || matches === 'none') return matches
    if (matches) return ['', '+'].includes(term.qualifier) ? 'permits' : 'refuses'
  }
  const redirect = terms.find((term) => term.kind === 'modifier' && term.name === 'redirect')?.value
  if (redirect === undefined || redirect.includes('%')) return 'refuses'
  return countLookup(walk) ? evaluate(walk, redirect) : 'none'
}

/** False: there are more than receivers make. */
const countLookup = (walk: Walk): boolean => ++walk.lookups <= SPF_LOOKUPS_MAX

type Match = boolean | 'unknown' | 'none'

async function matchesTerm(walk: Walk, term: SpfTerm, domain: string): Promise<Match> {
  const { name, value, lengths } = term
  if (name === 'all') return true
  if (name === 'ip4' || name === 'ip6') return isWithin(value, walk.ip)
  if (!countLookup(walk)) return 'none'
  if (name === 'ptr' || name === 'exists' || value.includes('%')) return false
  const target = value || domain
  if (name === 'include') {
    const verdict = await evaluate(walk, target)
    // An include of nothing is an error for receivers (RFC 7208 §5.2).
    return verdict === 'unknown' || verdict === 'none' ? verdict : verdict === 'permits'
  }
  if (name === 'a') return hostMatches(walk, target, lengths, true)
  const hosts = await walk.resolver.query(target, 'MX')
  if (!isDefinite(hosts)) return 'unknown'
  if (!countVoid(walk, hosts) || hosts.records.length > MX_HOSTS_MAX) return 'none'
  for (const { exchange } of hosts.records) {
    const matches = await hostMatches(walk, exchange, lengths, false)
    if (matches !== false) return matches
  }
  return false
}

/** False: more names lead to nothing than receivers accept. */
const countVoid = (walk: Walk, { records }: DnsAnswer<'A' | 'AAAA' | 'MX'>): boolean =>
  records.length > 0 || ++walk.voidLookups <= SPF_VOID_LOOKUPS_MAX

/** `lengths`: `/24//64`, for each family. */
async function hostMatches(walk: Walk, host: string, lengths: string, countsVoid: boolean): Promise<Match> {
  const { resolver, ip } = walk
  const isV6 = parseIp(ip)?.family === 6
  const answer = await resolver.query(host, isV6 ? 'AAAA' : 'A')
  if (!isDefinite(answer)) return 'unknown'
  if (countsVoid && !countVoid(walk, answer)) return 'none'
  const prefix = (isV6 ? /\/\/(\d+)$/ : /^\/(\d+)/).exec(lengths)?.[1] ?? (isV6 ? '128' : '32')
  return answer.records.some((address) => isWithin(`${address}/${prefix}`, ip))
}

function isWithin(network: string, ip: string): boolean {
  const whole = network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`
  const cidr = parseCidr(whole)
  return cidr !== null && cidrContains(cidr, ip)
}
