/** Looks addresses and domains up in DNS blocklists (RFC 5782). */
import { reverseName } from './names.ts'
import type { Resolver } from './resolver.ts'

type Asker = Pick<Resolver, 'query'>

/** `silent`: the answer says nothing about the address or domain. */
interface BlocklistAnswer {
  kind: 'listed' | 'not-listed' | 'silent'
  /** The address or domain. */
  subject: string
  zone: string
  sentence: string
}

/** Every address in every zone. Never rejects. */
export function queryBlocklists(
  resolver: Asker,
  addresses: readonly string[],
  zones: readonly string[],
): Promise<BlocklistAnswer[]> {
  return queryAll(resolver, addresses, zones, (ip) =>
    String(reverseName(ip)?.replace(/\.(in-addr|ip6)\.arpa$/, '')),
  )
}

/** Every domain in every zone (§2.2, domain name DNSxLs). Never rejects. */
export function queryDomainBlocklists(
  resolver: Asker,
  domains: readonly string[],
  zones: readonly string[],
): Promise<BlocklistAnswer[]> {
  return queryAll(resolver, domains, zones, (domain) => domain)
}

/** Queries at a time. */
const CONCURRENT = 64

async function queryAll(
  resolver: Asker,
  subjects: readonly string[],
  zones: readonly string[],
  labelsOf: (subject: string) => string,
): Promise<BlocklistAnswer[]> {
  const pairs = subjects.flatMap((subject) => zones.map((zone) => ({ subject, zone })))
  const answers: BlocklistAnswer[] = []
  for (let from = 0; from < pairs.length; from += CONCURRENT)
    answers.push(
      ...(await Promise.all(
        pairs
          .slice(from, from + CONCURRENT)
          .map(({ subject, zone }) => queryOne(resolver, subject, labelsOf(subject), zone)),
      )),
    )
  return answers
}

/** An address in 127.0.0.0/8 for the labels below the zone means "listed" (§2.1). */
async function queryOne(
  resolver: Asker,
  subject: string,
  labels: string,
  zone: string,
): Promise<BlocklistAnswer> {
  const answer = await resolver.query(`${labels}.${zone}`, 'A')
  const result = (kind: BlocklistAnswer['kind'], sentence: string) => ({ kind, subject, zone, sentence })
  if (answer.kind === 'nxdomain' || answer.kind === 'nodata')
    return result('not-listed', `${zone} does not list ${subject}`)
  const code = answer.records[0]
  if (code === undefined) return result('silent', `${zone} did not answer (${answer.kind})`)
  // 127.255.255.x: the list refuses this resolver, which says nothing about the subject.
  if (/^127\.255\.255\./.test(code))
    return result('silent', `${zone} refuses to answer this resolver (${code})`)
  return code.startsWith('127.')
    ? result('listed', `${subject} is listed by ${zone} (${code})`)
    : result('silent', `${zone} gave ${code}, which means nothing`)
}
