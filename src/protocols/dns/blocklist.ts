/**
 * Looks addresses and domains up in DNS blocklists (RFC 5782).
 *
 * A list that is out of order may list everything or nothing, and some refuse resolvers that many people share. Its test
 * entries tell (§5): `testBlocklist` says why the answers of a list do not count.
 */
import { parseIp } from '../../base/net/ip.ts'
import { reverseName } from './names.ts'
import type { Resolver } from './resolver.ts'

type Asker = Pick<Resolver, 'query'>

export type BlocklistKind = 'ipv4' | 'ipv6' | 'domain'

/** `silent`: the answer says nothing about the address or domain. */
export interface BlocklistAnswer {
  kind: 'listed' | 'not-listed' | 'silent'
  /** The address or domain. */
  subject: string
  zone: string
  /** The list's code, such as 127.0.0.2; '' unless listed. */
  code: string
  sentence: string
}

/** Names below the zone that are always listed, and never. */
export interface TestEntries {
  listed: string
  free: string
}

/** §5: 127.0.0.2 and 127.0.0.1, the same in IPv6 (::FFFF:7F00:2 and :1), and the domains "test" and "invalid". */
const MAPPED = `0.0.0.0.0.f.7.f.f.f.f${'.0'.repeat(20)}`
export const STANDARD_TEST_ENTRIES: Readonly<Record<BlocklistKind, TestEntries>> = {
  ipv4: { listed: '2.0.0.127', free: '1.0.0.127' },
  ipv6: { listed: `2.${MAPPED}`, free: `1.${MAPPED}` },
  domain: { listed: 'test', free: 'invalid' },
}

/** What is looked up below the zone of a list: an address backwards, a domain as it is. */
function blocklistLabels(subject: string): string {
  return reverseName(subject)?.replace(/\.(in-addr|ip6)\.arpa$/, '') ?? subject
}

export function blocklistKind(subject: string): BlocklistKind {
  const family = parseIp(subject)?.family
  return family === undefined ? 'domain' : family === 4 ? 'ipv4' : 'ipv6'
}

/** Every address or domain in every zone. Never rejects. */
export async function queryBlocklists(
  resolver: Asker,
  subjects: readonly string[],
  zones: readonly string[],
): Promise<BlocklistAnswer[]> {
  const pairs = subjects.flatMap((subject) => zones.map((zone) => ({ subject, zone })))
  const answers: BlocklistAnswer[] = []
  for (let from = 0; from < pairs.length; from += CONCURRENT)
    answers.push(
      ...(await Promise.all(
        pairs
          .slice(from, from + CONCURRENT)
          .map(({ subject, zone }) => queryBlocklist(resolver, subject, { zone })),
      )),
    )
  return answers
}

/** Queries at a time. */
const CONCURRENT = 64

interface QueryOptions {
  zone: string
  /** The name of the zone in sentences. Default: the zone. */
  shown?: string
  /** Default: the subject's. */
  labels?: string
  /** Leaves cached answers out. */
  fresh?: boolean
}

/** One address or domain in one list: an address in 127.0.0.0/8 means "listed" (§2.1, §2.2). Never rejects. */
export async function queryBlocklist(
  resolver: Asker,
  subject: string,
  { zone, shown = zone, labels = blocklistLabels(subject), fresh = false }: QueryOptions,
): Promise<BlocklistAnswer> {
  const answer = await resolver.query(`${labels}.${zone}`, 'A', { fresh })
  const result = (kind: BlocklistAnswer['kind'], sentence: string, code = '') => ({
    ...{ kind, subject, zone, sentence, code },
  })
  if (answer.kind === 'nxdomain' || answer.kind === 'nodata')
    return result('not-listed', `${shown} does not list ${subject}`)
  const code = answer.records[0]
  if (code === undefined) return result('silent', `${shown} did not answer (${answer.kind})`)
  // The list refuses this resolver, which says nothing about the subject: 127.255.255.x, and 127.0.0.1 where codes are bits.
  const refusal = answer.records.find((one) => /^127\.(?:255\.255\.|0\.0\.1$)/.test(one))
  if (refusal !== undefined) return result('silent', `${shown} refuses to answer this resolver (${refusal})`)
  return code.startsWith('127.')
    ? result('listed', `${subject} is listed by ${shown} (${code})`, code)
    : result('silent', `${shown} gave ${code}, which means nothing`)
}

/** Why the answers of a list do not count, as a sentence; '': they do. Never rejects. */
export async function testBlocklist(
  resolver: Asker,
  { zone, shown = zone, fresh = false }: QueryOptions,
  entries: TestEntries,
): Promise<string> {
  const ask = (labels: string) =>
    queryBlocklist(resolver, `the test entry ${labels}`, { zone, shown, labels, fresh })
  const [listed, free] = await Promise.all([ask(entries.listed), ask(entries.free)])
  if (listed.kind === 'silent') return listed.sentence
  if (free.kind === 'silent') return free.sentence
  if (free.kind === 'listed') return `${shown} lists everything, even ${free.subject} (${free.code})`
  if (listed.kind === 'not-listed') return `${shown} lists nothing, not even ${listed.subject}`
  return ''
}
