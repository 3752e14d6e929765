/**
 * SPF records from their publisher's view: parsing, and counting the lookups that an evaluation costs a receiver in
 * the worst case (RFC 7208 §4.6.4). With more than ten, or more than two that find nothing, receivers treat the
 * record as an error, which a test message that matches an early mechanism does not show.
 *
 * Does not decide pass or fail for an address (`spf-permits.ts` does). Targets with macros are counted but not followed: their expansion
 * depends on the message.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { parseCidr } from '../../base/net/ip.ts'
import { normalizeName } from './names.ts'
import type { Resolver } from './resolver.ts'

export const SPF_LOOKUPS_MAX = 10 // RFC 7208 §4.6.4
export const SPF_VOID_LOOKUPS_MAX = 2 // RFC 7208 §4.6.4
const MX_HOSTS_MAX = 10 // per "mx" mechanism, RFC 7208 §4.6.4
/** How far a record over the limit is followed, to report the number to its owner. */
const COUNTED_LOOKUPS_MAX = 40
/** Enough to show what is wrong; further problems are of the same kind. */
const PROBLEMS_MAX = 10
const TERMS_MAX = 200 // per record; hostile includes must not make one check run long
const TERM_CHARS_MAX = 512 // twice the longest name, which leaves room for macros

export interface SpfTerm {
  /** As written. */
  text: string
  /** False: it breaks the grammar of RFC 7208 §12. Receivers treat the whole record as an error then, §4.6. */
  isValid: boolean
  /** '+', '-', '~' or '?'; '' if none is written and for modifiers. */
  qualifier: string
  /** Lower case: "include", "a", "all", "redirect" ... */
  name: string
  /** After ":" or "=", without a CIDR length for names; '' when there is none. */
  value: string
  /** CIDR lengths of "a" and "mx", as in "a/24//64"; '' when there are none. */
  lengths: string
  kind: 'mechanism' | 'modifier'
}

/** Whether a TXT record is an SPF record: the version, then a blank or the end. RFC 7208 §4.5. */
export function isSpfRecord(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text)
}

/** The terms after the version, in order; one that is no term at all has the name ''. RFC 7208 §4.6.1, §12. */
export function parseSpf(record: string): SpfTerm[] {
  return record
    .trim()
    .split(/ +/)
    .slice(1, TERMS_MAX + 1)
    .map(parseTerm)
}

function parseTerm(text: string): SpfTerm {
  const [, qualifier = '', written = '', separator = '', rest = ''] =
    /^([+?~-]?)([a-z][a-z0-9_.-]*)(?:([:=/])(.*))?$/i.exec(text) ?? []
  const name = written.toLowerCase()
  const kind = separator === '=' ? 'modifier' : 'mechanism'
  const given = separator === '/' ? `/${rest}` : rest
  const isHost = kind === 'mechanism' && (name === 'a' || name === 'mx')
  const lengths = isHost ? (/(?:\/\d{1,3})?(?:\/\/\d{1,3})?$/.exec(given)?.[0] ?? '') : ''
  const value = given.slice(0, given.length - lengths.length)
  const term = { text, qualifier, name, value, lengths, kind } as const
  const isValid = text.length <= TERM_CHARS_MAX && isWellFormed(term, separator === ':')
  return { ...term, isValid }
}

function isWellFormed(term: Omit<SpfTerm, 'isValid'>, hasColon: boolean): boolean {
  const { name, value, lengths, kind, qualifier } = term
  if (kind === 'modifier')
    return (
      qualifier === '' &&
      (['redirect', 'exp'].includes(name) ? isDomainSpec(value) : MACRO_STRING.test(value))
    )
  const isNameOrNone = hasColon ? isDomainSpec(value) : value === ''
  switch (name) {
    case 'all':
      return !hasColon && value === ''
    case 'include':
    case 'exists':
      return hasColon && isDomainSpec(value)
    case 'ptr':
      return isNameOrNone
    case 'a':
    case 'mx':
      return isNameOrNone && areLengths(lengths)
    case 'ip4':
      return hasColon && isIPv4(value.replace(LENGTH, '')) && parseCidr(value) !== null
    case 'ip6':
      return hasColon && isIPv6(value.replace(LENGTH, '')) && parseCidr(value) !== null
    default:
      return false
  }
}

/** Without leading zeros. */
const LENGTH = /\/(?:0|[1-9]\d*)$/

function areLengths(lengths: string): boolean {
  const [, v4 = '0', v6 = '0'] = /^(?:\/(\d+))?(?:\/\/(\d+))?$/.exec(lengths) ?? []
  return !/\/0\d/.test(lengths) && Number(v4) <= 32 && Number(v6) <= 128
}

/** RFC 7208 §7.1; "c", "r" and "t" are for explanations only, §7.2. */
const MACRO_STRING = /^(?:[\x21-\x24\x26-\x7e]|%[%_-]|%\{[slodiphv](?:[1-9]\d*)?r?[.\-+,/_=]*\})*$/i
/** A top label, which is no number, or a macro. */
const DOMAIN_END = /(?:\.(?!\d+\.?$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.?|%\{[^{}]*\})$/i

const isDomainSpec = (text: string) => MACRO_STRING.test(text) && DOMAIN_END.test(text)

/** Why receivers treat a record with these terms as an error (RFC 7208 §4.6, §6); null: they can read it. */
export function spfFault(terms: readonly SpfTerm[]): string | null {
  const broken = terms.find(({ isValid }) => !isValid)
  if (broken) return `the term "${broken.text.slice(0, 80).replace(/[^\x21-\x7e]/g, '?')}" cannot be read`
  const twice = ['redirect', 'exp'].find((name) => terms.filter((term) => isModifier(term, name)).length > 1)
  return twice === undefined ? null : `"${twice}" occurs twice`
}

const isModifier = (term: SpfTerm, name: string) => term.kind === 'modifier' && term.name === name

interface SpfLookups {
  /** 'error' is a permerror for receivers; 'temporary': DNS did not answer all queries. */
  kind: 'ok' | 'error' | 'temporary'
  /** Lookups counted; counting ends at 41. */
  lookups: number
  voidLookups: number
  /** One sentence each, for a person; the worst first. Empty if there are none. */
  problems: string[]
}

interface Walk {
  resolver: Resolver
  lookups: number
  voidLookups: number
  problems: string[]
  failure: string
}

/** Counts the lookups of the SPF record at `domain`, through includes and redirects. */
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

/** Follows the record at `domain`; `path` holds the domains that included it. */
async function walkRecord(walk: Walk, domain: string, path: readonly string[]): Promise<void> {
  const through = path.length > 0 ? ` (included by ${path.at(-1)})` : ''
  if (path.includes(domain)) {
    note(walk, `The SPF record of ${domain} leads back to itself: ${[...path, domain].join(' -> ')}.`)
    return
  }
  const answer = await query(walk, domain, 'TXT', path.length > 0)
  if (answer === null) return
  const records = answer.records.filter(isSpfRecord)
  if (records.length !== 1) {
    const found = records.length === 0 ? 'no SPF record' : `${records.length} SPF records`
    note(walk, `${domain}${through} has ${found}; receivers treat that as an error, there must be one.`)
    return
  }
  const terms = parseSpf(records[0] as string)
  const all = terms.findIndex((term) => term.name === 'all')
  // Terms after "all" are never evaluated, and a redirect counts only without one. RFC 7208 §5.1, §6.1.
  for (const term of all < 0 ? terms : terms.slice(0, all)) {
    // Where DNS does not answer, receivers stop too (temperror, RFC 7208 §2.6.6).
    if (walk.lookups > COUNTED_LOOKUPS_MAX || walk.failure !== '') return
    await walkTerm(walk, term, domain, path)
  }
  const fault = spfFault(terms)
  if (fault !== null) note(walk, `The SPF record of ${domain}${through} is an error for receivers: ${fault}.`)
}

async function walkTerm(walk: Walk, term: SpfTerm, domain: string, path: readonly string[]): Promise<void> {
  const isRedirect = term.kind === 'modifier' && term.name === 'redirect'
  const costs = term.kind === 'mechanism' && ['include', 'a', 'mx', 'ptr', 'exists'].includes(term.name)
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
  const answer = await query(walk, target, term.name === 'mx' ? 'MX' : 'A', true)
  if (answer !== null && term.name === 'mx' && answer.records.length > MX_HOSTS_MAX)
    note(
      walk,
      `"mx" in the SPF record of ${domain} stands for ${answer.records.length} hosts, ${MX_HOSTS_MAX} are allowed.`,
    )
}

/** Records a problem, once, up to the limit. */
function note(walk: Walk, problem: string): void {
  if (walk.problems.length < PROBLEMS_MAX && !walk.problems.includes(problem)) walk.problems.push(problem)
}

/** One answer, counted as void if it is empty and `countsVoid`; null when DNS gave no answer. */
async function query<T extends 'A' | 'MX' | 'TXT'>(walk: Walk, name: string, type: T, countsVoid: boolean) {
  let answer = await walk.resolver.query(name, type)
  // An "a" that has only IPv6 addresses is not void: receivers query the family of the client. RFC 7208 §5.
  if (type === 'A' && answer.kind === 'nodata') {
    const v6 = await walk.resolver.query(name, 'AAAA')
    if (v6.kind !== 'nodata') answer = { ...answer, kind: v6.kind, problem: v6.problem, server: v6.server }
  }
  if (answer.kind === 'nodata' || answer.kind === 'nxdomain') {
    if (countsVoid) walk.voidLookups += 1
    return answer
  }
  if (answer.kind === 'records') return answer
  walk.failure ||= `${answer.server || 'No DNS server'} did not say what ${type} records ${name} has (${answer.problem}); try again later.`
  return null
}

/** Whether a record has the mechanism `include:<host>`, and mail that it matches passes. */
export function includesHost(record: string, host: string): boolean {
  const name = normalizeName(host)
  return parseSpf(record).some(
    (term) =>
      term.name === 'include' && ['', '+'].includes(term.qualifier) && normalizeName(term.value) === name,
  )
}

/** The record with `include:<host>` before its end, and otherwise as it is. */
export function withInclude(record: string, host: string): string {
  const [version = '', ...terms] = record.trim().split(/ +/)
  const end = terms.findIndex((term) => /^(?:[+?~-]?all$|redirect=)/i.test(term))
  return [version, ...terms.toSpliced(end < 0 ? terms.length : end, 0, `include:${host}`)].join(' ')
}

/** Merges several records into one with `include:<host>`: every mechanism once, then the mildest `all`. */
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
