/** Forward-confirmed reverse DNS: the name of an address that leads back to it (RFC 1912 §2.1). */
import { parseIp } from '../../base/net/ip.ts'
import { reverseName } from './names.ts'
import { isDefinite, type Resolver } from './resolver.ts'

/** Names of one address that are looked at. */
const NAMES_MAX = 4

interface ConfirmedName {
  /** '' without one. */
  name: string
  /** Why there is no such name, for a person; null: there is one. */
  fault: string | null
  /** False: DNS did not answer, so nothing is known. */
  isKnown: boolean
}

export async function confirmName(resolver: Resolver, ip: string): Promise<ConfirmedName> {
  const none = (fault: string, isKnown: boolean) => ({ name: '', fault, isKnown })
  const reverse = reverseName(ip)
  if (reverse === null) return none(`${ip} is not an address`, true)
  const answer = await resolver.query(reverse, 'PTR')
  let isKnown = isDefinite(answer)
  const names = answer.records.slice(0, NAMES_MAX)
  if (names.length === 0) return none(`${ip} has no reverse name (${answer.kind})`, isKnown)
  const type = parseIp(ip)?.family === 6 ? 'AAAA' : 'A'
  for (const name of names) {
    const found = await resolver.query(name, type)
    if (found.records.some((address) => reverseName(address) === reverse))
      return { name, fault: null, isKnown: true }
    isKnown &&= isDefinite(found)
  }
  return none(`${ip} is named ${names.join(', ')}, which does not lead back to it`, isKnown)
}
