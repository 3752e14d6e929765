/** Looks addresses up in DNS blocklists (RFC 5782). */
import { reverseName } from './names.ts'
import type { Resolver } from './resolver.ts'

/** `silent`: the answer says nothing about the address. */
export interface BlocklistAnswer {
  kind: 'listed' | 'not-listed' | 'silent'
  ip: string
  zone: string
  sentence: string
}

/** Every address in every zone. Never rejects. */
export function queryBlocklists(
  resolver: Pick<Resolver, 'query'>,
  addresses: readonly string[],
  zones: readonly string[],
): Promise<BlocklistAnswer[]> {
  return Promise.all(addresses.flatMap((ip) => zones.map((zone) => queryBlocklist(resolver, ip, zone))))
}

/** An address in 127.0.0.0/8 for the reversed address below the zone means "listed" (§2.1). */
async function queryBlocklist(
  resolver: Pick<Resolver, 'query'>,
  ip: string,
  zone: string,
): Promise<BlocklistAnswer> {
  const labels = reverseName(ip)?.replace(/\.(in-addr|ip6)\.arpa$/, '')
  const answer = await resolver.query(`${labels}.${zone}`, 'A')
  const result = (kind: BlocklistAnswer['kind'], sentence: string) => ({ kind, ip, zone, sentence })
  if (answer.kind === 'nxdomain' || answer.kind === 'nodata')
    return result('not-listed', `${zone} does not list ${ip}`)
  const code = answer.records[0]
  if (code === undefined) return result('silent', `${zone} did not answer (${answer.kind})`)
  // 127.255.255.x: the list refuses this resolver, which says nothing about the address.
  if (/^127\.255\.255\./.test(code))
    return result('silent', `${zone} refuses to answer this resolver (${code})`)
  return code.startsWith('127.')
    ? result('listed', `${ip} is listed by ${zone} (${code})`)
    : result('silent', `${zone} gave ${code}, which means nothing`)
}
