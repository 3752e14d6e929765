/**
 * Interprets a reply for the queried name: records, a CNAME to follow, a definite "no", or a failure. Pure; the
 * resolver sends the queries.
 */
import { isWithin } from './names.ts'
import type { DnsRecord, DnsType, RecordData, Reply } from './packet.ts'

/** Real chains have one to four links; resolvers commonly stop between 8 and 16. */
const CNAME_CHAIN_MAX = 8

/** `chain` holds every CNAME target followed, in order; the last one owns the answer. */
type Step<T extends DnsType> =
  | { kind: 'records'; records: RecordData[T][]; chain: string[]; ttlSeconds: number }
  /** The reply ends at a CNAME whose target must be queried. */
  | { kind: 'alias'; target: string; chain: string[]; ttlSeconds: number }
  /** `ttlSeconds` 0: the server gave no TTL, so the answer must not be cached. RFC 2308 §5. */
  | { kind: 'nodata' | 'nxdomain'; chain: string[]; ttlSeconds: number }
  | { kind: 'servfail' | 'refused'; chain: string[]; problem: string }

const NOERROR = 0
const NXDOMAIN = 3

/**
 * Reads `reply` for `type` at `name`. `earlier` holds the CNAME targets followed in earlier replies; the last of
 * them was queried. Only records whose owner is on the chain count.
 */
export function interpretReply<T extends DnsType>(
  reply: Reply,
  name: string,
  type: T,
  earlier: readonly string[],
): Step<T> {
  // The plain codes have been read already: this one is extended (RFC 6891 §6.1.3).
  if (reply.rcode !== NOERROR && reply.rcode !== NXDOMAIN)
    return { kind: 'servfail', chain: [...earlier], problem: `response code ${reply.rcode}` }
  const chain = [...earlier]
  let current = chain.at(-1) ?? name
  let ttlSeconds = Number.POSITIVE_INFINITY
  for (;;) {
    const found = reply.answers.filter((record) => record.type === type && record.name === current)
    if (found.length > 0) {
      ttlSeconds = Math.min(ttlSeconds, ...found.map((record) => record.ttlSeconds))
      return {
        kind: 'records',
        records: found.map((record) => record.data as RecordData[T]),
        chain,
        ttlSeconds,
      }
    }
    const alias = type === 'CNAME' ? undefined : findAlias(reply.answers, current)
    if (alias === undefined) break
    if (alias.data === name || chain.includes(alias.data))
      return { kind: 'servfail', chain, problem: `CNAME loop: ${[name, ...chain, alias.data].join(' -> ')}` }
    if (chain.length === CNAME_CHAIN_MAX)
      return { kind: 'servfail', chain, problem: `more than ${CNAME_CHAIN_MAX} CNAME records in a row` }
    chain.push(alias.data)
    current = alias.data
    ttlSeconds = Math.min(ttlSeconds, alias.ttlSeconds)
  }
  return withoutRecords(reply, current, chain, chain.length > earlier.length, ttlSeconds)
}

function findAlias(answers: readonly DnsRecord[], owner: string) {
  for (const record of answers) if (record.type === 'CNAME' && record.name === owner) return record
  return undefined
}

/** NXDOMAIN refers to the last name of a chain (RFC 2308 §2.1); an SOA proves that there is no record. */
function withoutRecords(
  reply: Reply,
  current: string,
  chain: string[],
  followed: boolean,
  ttlSeconds: number,
): Exclude<Step<DnsType>, { kind: 'records' }> {
  const negative = negativeTtl(reply, current)
  if (reply.rcode === NXDOMAIN)
    return { kind: 'nxdomain', chain, ttlSeconds: Math.min(ttlSeconds, negative ?? 0) }
  if (followed && negative === null) return { kind: 'alias', target: current, chain, ttlSeconds }
  const refers = reply.authorities.some((record) => record.type === 'NS')
  if (negative === null && refers && !reply.authoritative && !reply.recursionAvailable)
    return { kind: 'refused', chain, problem: 'it only refers to other servers and does not resolve itself' }
  return { kind: 'nodata', chain, ttlSeconds: Math.min(ttlSeconds, negative ?? 0) }
}

/** TTL of a negative answer: the smaller of the SOA's own TTL and its minimum field. RFC 2308 §5. */
function negativeTtl(reply: Reply, name: string): number | null {
  for (const record of reply.authorities)
    if (record.type === 'SOA' && isWithin(name, record.name))
      return Math.min(record.ttlSeconds, record.data.minimum)
  return null
}
