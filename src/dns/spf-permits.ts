/**
 * Whether the SPF record of a name permits an address, as far as receivers can tell without a message (RFC 7208 §4.6). Macros,
 * "exists" and "ptr" are left out: they match nothing here.
 */
import { cidrContains, parseCidr, parseIp } from '../base/ip.ts'
import type { DnsAnswer, Resolver } from './resolver.ts'
import { isSpfRecord, SPF_LOOKUPS_MAX } from './spf.ts'

/** `none`: there is no record, or it cannot be used. `unknown`: DNS did not answer. */
export type SpfVerdict = 'permits' | 'refuses' | 'none' | 'unknown'

/** Hosts of one "mx", RFC 7208 §4.6.4. */
const MX_HOSTS_MAX = 10
/** Of one record; hostile includes must not make a check run long. */
const TERMS_MAX = 200
const TERM =
  /^([+?~-]?)(all|include|a|mx|ip4|ip6)(?::([^/\s]*|[0-9a-f:.]+))?((?:\/\d{1,3})?(?:\/\/\d{1,3})?)$/i

interface Walk {
  resolver: Pick<Resolver, 'query'>
  ip: string
  lookups: number
}

export function spfPermits(resolver: Pick<Resolver, 'query'>, name: string, ip: string): Promise<SpfVerdict> {
  return evaluate({ resolver, ip, lookups: 0 }, name)
}

async function evaluate(walk: Walk, name: string): Promise<SpfVerdict> {
  const answer = await walk.resolver.query(name, 'TXT')
  if (!isAnswer(answer)) return 'unknown'
  const records = answer.records.filter(isSpfRecord)
  const [record] = records
  if (record === undefined || records.length > 1) return 'none'
  const terms = record.trim().split(/ +/).slice(1, TERMS_MAX)
  for (const term of terms) {
    const [, qualifier = '', mechanism = '', value = '', length = ''] = TERM.exec(term) ?? []
    if (mechanism === '' || value.includes('%')) continue
    const matches = await matchesTerm(walk, mechanism.toLowerCase(), value || name, length)
    if (matches === 'unknown') return 'unknown'
    if (matches === 'none') return 'none'
    if (matches) return ['', '+'].includes(qualifier) ? 'permits' : 'refuses'
  }
  const redirect = /(?:^| )redirect=([^\s%]+)(?: |$)/i.exec(record)?.[1]
  if (redirect === undefined) return 'refuses'
  walk.lookups++
  return walk.lookups > SPF_LOOKUPS_MAX ? 'none' : evaluate(walk, redirect)
}

async function matchesTerm(
  walk: Walk,
  mechanism: string,
  value: string,
  length: string,
): Promise<boolean | 'unknown' | 'none'> {
  if (mechanism === 'all') return true
  if (mechanism === 'ip4' || mechanism === 'ip6') return isWithin(`${value}${length}`, walk.ip)
  walk.lookups++
  if (walk.lookups > SPF_LOOKUPS_MAX) return 'none'
  if (mechanism === 'include') {
    const verdict = await evaluate(walk, value)
    // An include of nothing is an error for receivers (RFC 7208 §5.2).
    return verdict === 'unknown' || verdict === 'none' ? verdict : verdict === 'permits'
  }
  if (mechanism === 'a') return hostMatches(walk, value, length)
  const hosts = await walk.resolver.query(value, 'MX')
  if (!isAnswer(hosts)) return 'unknown'
  for (const { exchange } of hosts.records.slice(0, MX_HOSTS_MAX)) {
    const matches = await hostMatches(walk, exchange, length)
    if (matches !== false) return matches
  }
  return false
}

/** `length`: `/24//64`, for each family. */
async function hostMatches(
  { resolver, ip }: Walk,
  host: string,
  length: string,
): Promise<boolean | 'unknown'> {
  const isV6 = parseIp(ip)?.family === 6
  const answer = await resolver.query(host, isV6 ? 'AAAA' : 'A')
  if (!isAnswer(answer)) return 'unknown'
  const prefix = (isV6 ? /\/\/(\d+)$/ : /^\/(\d+)/).exec(length)?.[1] ?? (isV6 ? '128' : '32')
  return answer.records.some((address) => isWithin(`${address}/${prefix}`, ip))
}

function isWithin(network: string, ip: string): boolean {
  const whole = network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`
  const cidr = parseCidr(whole)
  return cidr !== null && cidrContains(cidr, ip)
}

const isAnswer = ({ kind }: DnsAnswer<'A' | 'AAAA' | 'MX' | 'TXT'>) =>
  kind === 'records' || kind === 'nodata' || kind === 'nxdomain'
