/**
 * DMARC policy records and where they are found (RFC 9989). Pure, except for the look-up that the walk is handed.
 *
 * 1. `readDmarc` reads one record. Tags of RFC 7489 that are gone (pct, rf, ri) are tolerated and have no effect.
 * 2. `treeWalk` queries the names of §4.10, eight at most, and stops at a `psd` of y or n.
 * 3. `organizationOf` and `policyOf` choose from what was found (§4.10.1, §4.10.2).
 *
 * It leaves out who is the author (§5.3.1) and reports; the mail check judges received mail by a library that follows the
 * same rules, and a test holds both equal.
 */
import { normalizeName } from './names.ts'

export type DmarcPolicy = 'none' | 'quarantine' | 'reject'

export interface DmarcRecord {
  /** `p`, or what stands for a missing or wrong one (§4.10.1); null: receivers apply no DMARC. */
  policy: DmarcPolicy | null
  /** For subdomains that exist, and for names that do not, with their defaults; null as `policy`. */
  subdomainPolicy: DmarcPolicy | null
  absentPolicy: DmarcPolicy | null
  /** `t=y`: receivers apply a policy one level below. */
  isTesting: boolean
  /** Whether the domain is a public suffix: y; an organization of its own: n; not said: u. */
  psd: 'y' | 'n' | 'u'
  isDkimStrict: boolean
  isSpfStrict: boolean
  /** Syntactically valid URIs without the obsolete size. */
  aggregateUris: readonly string[]
  failureUris: readonly string[]
  /** Tags whose value receivers replace by the default, in lower case. */
  wrongTags: readonly string[]
  /** Tags that RFC 9989 no longer has. */
  obsoleteTags: readonly string[]
}

const VERSION = /^[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/
const POLICIES: readonly string[] = ['none', 'quarantine', 'reject']
const OBSOLETE = ['pct', 'rf', 'ri']
/** An RFC 3986 URI, in which commas and exclamation marks are encoded (§4.8). */
const URI = /^[a-z][a-z0-9+.-]*:(?:[\w\-.~:/?#[\]@$&'()*+;=]|%[0-9a-f]{2})+$/i
const OBSOLETE_SIZE = /!\d+[kmgt]?$/i
/** Longer records would take work for each mail; published ones have below 1,000 characters. */
const LENGTH_MAX = 8_192

/** Whether a TXT record is meant as a DMARC record: it begins with the version, letter by letter (§4.7). */
export const isDmarcRecord = (text: string): boolean => text.length <= LENGTH_MAX && VERSION.test(text)

/** Reads a record; null: it is none, or has a tag twice, which makes the whole list invalid (RFC 6376 §3.2). */
export function readDmarc(text: string): DmarcRecord | null {
  const tags = isDmarcRecord(text) ? readTags(text) : null
  if (tags === null) return null
  const wrong: string[] = []
  const choice = <const T extends string>(tag: string, values: readonly T[]): T | null => {
    const value = tags.get(tag)
    if (value === undefined) return null
    const found = values.find((one) => one === value.toLowerCase())
    if (found === undefined) wrong.push(tag)
    return found ?? null
  }
  const uris = (tag: string): string[] => {
    const given = (tags.get(tag) ?? '').split(',').map((uri) => uri.trim().replace(OBSOLETE_SIZE, ''))
    const valid = given.filter((uri) => URI.test(uri))
    if (tags.has(tag) && valid.length < given.length) wrong.push(tag)
    return valid
  }
  const [p, sp, np] = ['p', 'sp', 'np'].map((tag) => choice(tag, POLICIES) as DmarcPolicy | null)
  const isTesting = choice('t', ['y', 'n']) === 'y'
  const psd = choice('psd', ['y', 'n', 'u']) ?? 'u'
  const isDkimStrict = choice('adkim', ['r', 's']) === 's'
  const isSpfStrict = choice('aspf', ['r', 's']) === 's'
  const aggregateUris = uris('rua')
  const isUsable = p && !wrong.includes('sp') && !wrong.includes('np')
  const policy = isUsable ? p : aggregateUris.length > 0 ? 'none' : null
  const subdomainPolicy = isUsable ? (sp ?? p) : policy
  return {
    policy,
    subdomainPolicy,
    absentPolicy: isUsable ? (np ?? subdomainPolicy) : policy,
    isTesting,
    psd,
    isDkimStrict,
    isSpfStrict,
    aggregateUris,
    failureUris: uris('ruf'),
    wrongTags: tags.has('p') ? wrong : ['p', ...wrong],
    obsoleteTags: OBSOLETE.filter((tag) => tags.has(tag)),
  }
}

/** `name=value` parts by name in lower case; null: one name occurs twice. Parts of another form are left out (§4.8). */
function readTags(text: string): Map<string, string> | null {
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const [, name, value = ''] = /^[ \t]*([a-z]+)[ \t]*=[ \t]*(.*)$/is.exec(part) ?? []
    if (name === undefined) continue
    const key = name.toLowerCase()
    if (tags.has(key)) return null
    tags.set(key, value.trim())
  }
  return tags
}

/** Labels after which a walk takes the shortcut, and names that a walk queries (§4.10). */
const LABELS_AFTER_SHORTCUT = 7

/** The names that a walk from a domain queries, longest first; at most eight. */
export function walkNames(domain: string): string[] {
  const labels = domain.split('.')
  const above = labels.slice(Math.max(1, labels.length - LABELS_AFTER_SHORTCUT))
  return [domain, ...above.map((_, at) => above.slice(at).join('.'))]
}

/** TXT records at `_dmarc.<name>`, none included; null: DNS gave no answer. */
export type FindTexts = (name: string) => Promise<readonly string[] | null>

interface Found {
  domain: string
  record: DmarcRecord
  text: string
}

export interface DmarcWalk {
  /** Where it began, in lower case and ASCII. */
  domain: string
  /** Names with exactly one valid record, longest first. */
  found: readonly Found[]
  /** DNS gave no answer for a name; what is above it is unknown. */
  isBroken: boolean
}

/** Queries the names of a walk one after the other. A name that DNS cannot hold has no record. */
export async function treeWalk(name: string, find: FindTexts): Promise<DmarcWalk> {
  const domain = normalizeName(name)
  if (domain === null) return { domain: name, found: [], isBroken: false }
  const found: Found[] = []
  for (const at of walkNames(domain)) {
    const texts = await find(at)
    if (texts === null) return { domain, found, isBroken: true }
    const one = onlyRecord(texts)
    if (one === null) continue
    found.push({ domain: at, ...one })
    if (one.record.psd !== 'u') break
  }
  return { domain, found, isBroken: false }
}

function onlyRecord(texts: readonly string[]): Omit<Found, 'domain'> | null {
  const [text, ...others] = texts.filter(isDmarcRecord)
  if (text === undefined || others.length > 0) return null
  const record = readDmarc(text)
  return record && { record, text }
}

/** The organizational domain (§4.10.2); null: a look-up failed that might have changed it. */
export function organizationOf({ domain, found, isBroken }: DmarcWalk): string | null {
  for (const { domain: at, record } of found) {
    if (record.psd === 'n') return at
    if (record.psd === 'y' && at !== domain) return oneBelow(domain, at)
  }
  return isBroken ? null : (found.at(-1)?.domain ?? domain)
}

const oneBelow = (domain: string, suffix: string): string =>
  domain
    .split('.')
    .slice(-suffix.split('.').length - 1)
    .join('.')

/** Relaxed alignment (§4.4): whether two names have one organization; null: a look-up failed. */
export async function shareOrganization(
  one: string,
  other: string,
  find: FindTexts,
): Promise<boolean | null> {
  if (normalizeName(one) === normalizeName(other)) return true
  const [left, right] = [
    organizationOf(await treeWalk(one, find)),
    organizationOf(await treeWalk(other, find)),
  ]
  return left === null || right === null ? null : left === right
}

/** The record that applies to mail of the domain where the walk began (§4.10.1). */
export function applyingRecord(walk: DmarcWalk): Found | 'none' | 'unknown' {
  const own = walk.found.find(({ domain }) => domain === walk.domain)
  if (own) return own
  const organization = organizationOf(walk)
  if (organization === null) return 'unknown'
  const suffix = walk.found.find(({ record }) => record.psd === 'y')
  return walk.found.find(({ domain }) => domain === organization) ?? suffix ?? 'none'
}

/**
 * What receivers do with mail that fails: `p` of the domain's own record, else `sp`, or `np` for a name that does not exist;
 * one level less while it is tested. Null: no DMARC. `exists` is needed only where `needsExistence` says so.
 */
export function policyOf(
  domain: string,
  { domain: at, record }: Pick<Found, 'domain' | 'record'>,
  exists: boolean,
): DmarcPolicy | null {
  const asked = domain === at ? record.policy : exists ? record.subdomainPolicy : record.absentPolicy
  if (!record.isTesting) return asked
  return asked === 'reject' ? 'quarantine' : asked && 'none'
}

export const needsExistence = (domain: string, { domain: at, record }: Found): boolean =>
  domain !== at && record.subdomainPolicy !== record.absentPolicy
