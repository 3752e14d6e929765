/**
 * SPF records as their publisher sees them: reading one, and counting the look-ups that evaluating it costs
 * a receiver in the worst case (RFC 7208 §4.6.4). More than ten, or more than two that find nothing, and
 * receivers treat the record as an error, which no test mail from an early mechanism shows.
 *
 * Deciding pass or fail for an address is not done here. Targets with macros are counted and not followed:
 * what they expand to depends on the message.
 */
import { normalizeName } from './names.ts'
import type { DnsAnswer, Resolver } from './resolver.ts'

export const SPF_LOOKUPS_MAX = 10 // RFC 7208 §4.6.4
export const SPF_VOID_LOOKUPS_MAX = 2 // RFC 7208 §4.6.4
const MX_HOSTS_MAX = 10 // per "mx" mechanism, RFC 7208 §4.6.4
/** How far a record over the limit is followed to tell its owner the number. */
const COUNTED_LOOKUPS_MAX = 40
/** Enough to show what is wrong; the rest is more of the same. */
const PROBLEMS_MAX = 10
const TERMS_MAX = 200 // per record; hostile includes must not make one check run long

export interface SpfTerm {
  /** '+', '-', '~' or '?'; '' where none is written and for modifiers. */
  qualifier: string
  /** Lower case: "include", "a", "all", "redirect" ... */
  name: string
  /** After ":" or "=", without a CIDR length for names; '' when there is none. */
  value: string
  kind: 'mechanism' | 'modifier'
}

/** Whether a TXT record is an SPF record: the version, then a blank or the end. RFC 7208 §4.5. */
export function isSpfRecord(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text)
}

/** The terms after the version, in order; what is not a term has the name ''. RFC 7208 §4.6.1, §12. */
export function parseSpf(record: string): SpfTerm[] {
  const terms = record
    .trim()
    .split(/ +/)
    .slice(1, TERMS_MAX + 1)
  return terms.map((term) => {
    const [, qualifier = '', name = '', separator = '', rest = ''] =
      /^([+?~-]?)([a-z][a-z0-9_.-]*)(?:([:=/])(.*))?$/i.exec(term) ?? []
    const kind = separator === '=' ? 'modifier' : 'mechanism'
    const named = ['a', 'mx', 'ptr'].includes(name.toLowerCase())
    const value = separator === '/' ? '' : named ? rest.replace(/\/.*$/, '') : rest
    return { qualifier, name: name.toLowerCase(), value, kind }
  })
}

export interface SpfLookups {
  /** 'error' is what receivers would call permerror; 'temporary': DNS did not say all of it. */
  kind: 'ok' | 'error' | 'temporary'
  /** Look-ups counted; counting ends at 41. */
  lookups: number
  voidLookups: number
  /** One sentence each, for a person; the worst first. Empty when all is well. */
  problems: string[]
}

interface Walk {
  resolver: Resolver
  lookups: number
  voidLookups: number
  problems: string[]
  failure: string
}

/** Counts the look-ups of the SPF record at `domain`, through includes and redirects. */
export async function countSpfLookups(resolver: Resolver, domain: string): Promise<SpfLookups> {
  const walk: Walk = { resolver, lookups: 0, voidLookups: 0, problems: [], failure: '' }
  await walkRecord(walk, normalizeName(domain) ?? domain, [])
  const { lookups, voidLookups } = walk
  const problems = [...walk.problems]
  if (voidLookups > SPF_VOID_LOOKUPS_MAX)
    problems.unshift(
      `${voidLookups} look-ups of the SPF record of ${domain} find nothing, ${SPF_VOID_LOOKUPS_MAX} are allowed: remove the names that no longer exist.`,
    )
  if (lookups > SPF_LOOKUPS_MAX) {
    const count = lookups > COUNTED_LOOKUPS_MAX ? `more than ${COUNTED_LOOKUPS_MAX}` : lookups
    problems.unshift(
      `The SPF record of ${domain} costs ${count} DNS look-ups, ${SPF_LOOKUPS_MAX} are allowed; receivers treat more as an error. Remove includes of services that no longer send for you.`,
    )
  }
  if (problems.length > 0) return { kind: 'error', lookups, voidLookups, problems }
  if (walk.failure !== '') return { kind: 'temporary', lookups, voidLookups, problems: [walk.failure] }
  return { kind: 'ok', lookups, voidLookups, problems }
}

/** Follows the record at `domain`; `path` holds the domains that led to it. */
async function walkRecord(walk: Walk, domain: string, path: readonly string[]): Promise<void> {
  const through = path.length > 0 ? ` (included by ${path.at(-1)})` : ''
  if (path.includes(domain)) {
    note(walk, `The SPF record of ${domain} leads back to itself: ${[...path, domain].join(' -> ')}.`)
    return
  }
  const answer = await ask(walk, domain, 'TXT', path.length > 0)
  if (answer === null) return
  const records = answer.records.filter(isSpfRecord)
  if (records.length !== 1) {
    const what = records.length === 0 ? 'no SPF record' : `${records.length} SPF records`
    note(walk, `${domain}${through} has ${what}; receivers treat that as an error, there must be one.`)
    return
  }
  const terms = parseSpf(records[0] as string)
  const all = terms.findIndex((term) => term.name === 'all')
  // What follows "all" is never looked at, and a redirect counts only without one. RFC 7208 §5.1, §6.1.
  for (const term of all < 0 ? terms : terms.slice(0, all)) {
    // Where DNS does not answer, receivers stop too (temperror, RFC 7208 §2.6.6).
    if (walk.lookups > COUNTED_LOOKUPS_MAX || walk.failure !== '') return
    await walkTerm(walk, term, domain, path)
  }
}

async function walkTerm(walk: Walk, term: SpfTerm, domain: string, path: readonly string[]): Promise<void> {
  const isRedirect = term.kind === 'modifier' && term.name === 'redirect'
  const costs = term.kind === 'mechanism' && ['include', 'a', 'mx', 'ptr', 'exists'].includes(term.name)
  if (term.name === '') {
    note(walk, `The SPF record of ${domain} has a term that cannot be read.`)
    return
  }
  if (!isRedirect && !costs) return
  walk.lookups += 1
  const target = normalizeName(term.value === '' ? domain : term.value)
  if (term.name === 'ptr' || term.value.includes('%')) return
  if (
    target === null ||
    (term.value === '' && (isRedirect || term.name === 'include' || term.name === 'exists'))
  ) {
    note(walk, `The SPF record of ${domain} has "${term.name}" without a usable name.`)
    return
  }
  if (isRedirect || term.name === 'include') return walkRecord(walk, target, [...path, domain])
  const answer = await ask(walk, target, term.name === 'mx' ? 'MX' : 'A', true)
  if (answer !== null && term.name === 'mx' && answer.records.length > MX_HOSTS_MAX)
    note(
      walk,
      `"mx" in the SPF record of ${domain} stands for ${answer.records.length} hosts, ${MX_HOSTS_MAX} are allowed.`,
    )
}

/** Keeps a problem, once, while there are few. */
function note(walk: Walk, problem: string): void {
  if (walk.problems.length < PROBLEMS_MAX && !walk.problems.includes(problem)) walk.problems.push(problem)
}

/** One answer, its emptiness counted when `countsVoid`; null when DNS did not say. */
async function ask<T extends 'A' | 'MX' | 'TXT'>(
  walk: Walk,
  name: string,
  type: T,
  countsVoid: boolean,
): Promise<DnsAnswer<T> | null> {
  let answer = await walk.resolver.query(name, type)
  // An "a" that has only IPv6 addresses is not void: receivers ask by the family of the client. RFC 7208 §5.
  if (type === 'A' && answer.kind === 'nodata') {
    const wide = await walk.resolver.query(name, 'AAAA')
    if (wide.kind !== 'nodata')
      answer = { ...answer, kind: wide.kind, problem: wide.problem, server: wide.server }
  }
  if (answer.kind === 'nodata' || answer.kind === 'nxdomain') {
    if (countsVoid) walk.voidLookups += 1
    return answer
  }
  if (answer.kind === 'records') return answer
  walk.failure ||= `${answer.server || 'No DNS server'} did not say what ${type} records ${name} has (${answer.problem}); try again later.`
  return null
}

/** One record out of several, with `include:<host>`: every mechanism once, then the mildest `all` of them. */
export function mergeSpf(records: readonly string[], includeHost: string): string {
  const terms = records.flatMap((record) => record.trim().split(/ +/).slice(1))
  const isAll = (term: string) => /^[+?~-]?all$/i.test(term)
  const isRedirect = (term: string) => /^redirect=/i.test(term)
  // A redirect has no effect next to "all", so its target becomes an include.
  const kept = terms
    .filter((term) => !isAll(term))
    .map((term) => (isRedirect(term) ? term.replace(/^redirect=/i, 'include:') : term))
  const all = ['~all', '-all'].find((term) => terms.includes(term)) ?? '~all'
  return ['v=spf1', ...new Set([...kept, `include:${includeHost}`]), all].join(' ')
}
