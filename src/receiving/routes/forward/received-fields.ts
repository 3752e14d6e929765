/** The header of a received mail as it is kept: forged fields removed, those of the service on top (section 5). */

import { formatRfc2822 } from '../../../base/time/dates.ts'
import type { StoredHeader } from '../../../mail/record/record.ts'
import { FORWARDED_SUFFIX, RECEIVED_SUFFIXES } from '../../../mail/request/options.ts'
import type { RawHeader } from '../../../protocols/mime/split.ts'
import type { SpamScore } from '../../../protocols/scanners/spam-score.ts'
import type { ReceptionOpening } from '../../sessions/session.ts'
import type { MailVerdict } from '../mail-check.ts'

/** What the Received field tells. */
export interface SessionFacts extends Omit<ReceptionOpening, 'requireTls'> {
  id: string
  at: Date
  hostname: string
}

export interface ReceptionFacts extends SessionFacts {
  prefix: string
  /** Prefixes under which programs may look for the service's fields as well. */
  prefixAliases: readonly string[]
  /** Without it, the fields that tell the results of checks are left out. */
  tellsChecks: boolean
  /** Null: the mail has none. */
  spam: SpamScore | null
}

const SPF_WORDS: Readonly<Record<string, string>> = { pass: 'Pass', fail: 'Fail', softfail: 'SoftFail' }

export function keptFields(
  headers: readonly RawHeader[],
  facts: ReceptionFacts,
  verdict: MailVerdict,
): StoredHeader[] {
  const { prefix, tellsChecks, spam } = facts
  const own: StoredHeader[] = [
    [`${prefix}Incoming`, 'Yes'],
    ['X-Envelope-From', `<${facts.sender}>`],
    rawHeader(receivedField(facts)),
  ]
  if (tellsChecks) {
    if (spam !== null) {
      own.push([`${prefix}Sflag`, spam.isSpam ? 'Yes' : 'No'])
      own.push([`${prefix}Sscore`, String(Math.round(spam.score * 10) / 10)])
    }
    own.push([`${prefix}Spf`, SPF_WORDS[verdict.spf] ?? 'Neutral'])
    if (verdict.dkim !== null)
      own.push([`${prefix}Dkim-Check-Result`, verdict.dkim === 'pass' ? 'Pass' : 'Fail'])
  }
  own.push(rawHeader(verdict.authenticationResults))
  const given = headers
    .filter((header) => !isForged(header, facts))
    .map(({ name, value, raw }): StoredHeader => [name, value, raw])
  return [...own, ...given]
}

/** The trace of routes stays: it ends loops, and a forged one ends only the sender's own mail. */
function isForged({ name, value }: RawHeader, facts: ReceptionFacts): boolean {
  const { prefix, prefixAliases, hostname } = facts
  const lower = name.toLowerCase()
  // Other fields under these prefixes may be another service's own, and covered by its signature.
  for (const alias of prefixAliases)
    if (lower.startsWith(alias.toLowerCase()) && RECEIVED_SUFFIXES.has(lower.slice(alias.length))) return true
  const own = prefix.toLowerCase()
  if (lower.startsWith(own)) return lower !== `${own}${FORWARDED_SUFFIX.toLowerCase()}`
  if (lower === 'x-envelope-from') return true
  // RFC 8601 §5: results under our own name were made by somebody else.
  return lower === 'authentication-results' && authServer(value) === hostname.toLowerCase()
}

/** The id at the start of a value, after comments (RFC 8601 §2.2). */
function authServer(value: string): string {
  const text = value.replace(/^(?:\s|\([^()]*\))+/, '')
  return (/^"?([^\s;"(]*)/.exec(text)?.[1] ?? '').toLowerCase()
}

function rawHeader(raw: string): StoredHeader {
  const colon = raw.indexOf(':')
  return [
    raw.slice(0, colon),
    raw
      .slice(colon + 1)
      .replaceAll(/\r\n(?=[ \t])/g, '')
      .trim(),
    raw,
  ]
}

const HELO_LENGTH_MAX = 255

/** Without a line end. */
export function receivedField({ helo, remoteAddress, hostname, protocol, id, at }: SessionFacts): string {
  const name = helo.slice(0, HELO_LENGTH_MAX).replaceAll(/[^A-Za-z0-9.:[\]_-]/g, '?')
  const address = remoteAddress.includes(':') ? `IPv6:${remoteAddress}` : remoteAddress
  return `Received: from ${name} ([${address}])\r\n by ${hostname} with ${protocol} id ${id};\r\n ${formatRfc2822(at)}`
}

/** A mail with more Received fields of this service is in a loop; a list or route that forwards to another is one each. */
export const OWN_HOPS_MAX = 5

/** Received fields of this service that a mail has, and the routes that forwarded it before. */
export function traceOf(
  headers: readonly RawHeader[],
  { hostname, prefix }: Pick<ReceptionFacts, 'hostname' | 'prefix'>,
): { ownHops: number; routeIds: ReadonlySet<string> } {
  const by = new RegExp(`\\bby\\s+${hostname.replaceAll('.', '\\.')}(?![\\w.-])`, 'i')
  const named = (name: string) => headers.filter((header) => header.name.toLowerCase() === name)
  return {
    ownHops: named('received').filter(({ value }) => by.test(value.slice(0, 2_000))).length,
    routeIds: new Set(named(`${prefix}${FORWARDED_SUFFIX}`.toLowerCase()).map(({ value }) => value.trim())),
  }
}
