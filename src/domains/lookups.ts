/**
 * Looking up the records of a domain.
 *
 *  1. The configured resolver is asked past every cache of ours.
 *  2. If it has a firm answer that is not right, a server that is authoritative for the zone is asked too: what
 *     a person sees with `dig` there counts, and the sentence says that the resolver still has the old answer.
 *  3. No answer (time-out, SERVFAIL) says nothing about the record: what was known before stays.
 */
import type { Clock } from '../base/clock.ts'
import type { Cidr } from '../base/ip.ts'
import { findAuthority } from '../dns/authoritative.ts'
import {
  checkAddress,
  checkCname,
  checkDkim,
  checkDmarc,
  checkMx,
  checkSpf,
  type DmarcUse,
  type RecordCheck,
} from '../dns/records.ts'
import { createResolver, type DnsAnswer, type Resolver } from '../dns/resolver.ts'
import { countSpfLookups } from '../dns/spf.ts'
import { ancestorsOf } from './names.ts'
import type { StoredCheck, WantedRecord } from './records.ts'

export interface LookupParts {
  resolver: Resolver
  clock: Clock
  /** Networks whose name servers may be asked although they are not public. */
  allow: readonly Cidr[]
  spfIncludeHost: string
  /** Port of authoritative servers; tests have them on another one than 53. */
  authorityPort?: number
}

/** A second opinion is not worth a long wait: the first one was a firm answer. */
const AUTHORITY_TIMEOUT_MS = 2000
/**
 * For what goes beyond the record itself: whose servers to ask, and where its includes lead. Both follow names of
 * the domain's owner, who could have each of them answered as late as possible.
 */
const BEYOND_MS = 10_000
const FRESH = { fresh: true } as const

/** The same resolver for work that a stop must not wait for: its open questions are rejected then. */
export const untilStopped = (resolver: Resolver, signal: AbortSignal): Resolver => ({
  query: (name, type, options = {}) =>
    resolver.query(name, type, {
      ...options,
      signal: options.signal ? AbortSignal.any([signal, options.signal]) : signal,
    }),
  close() {},
})

/** Looks one record up. `before`: the last check of the same record. Never rejects for what DNS does. */
export async function lookUp(
  parts: LookupParts,
  wanted: WantedRecord,
  before: StoredCheck | undefined,
): Promise<StoredCheck> {
  const { check, answer } = await ask(parts, wanted, parts.resolver)
  const better =
    check.answered && !check.valid
      ? await inTime(parts, (resolver) => askAuthority({ ...parts, resolver }, wanted, answer))
      : null
  const result = better ?? { check, answer }
  const stored = storedCheck(parts.clock, wanted, result.check, result.answer, before)
  if (wanted.purpose !== 'spf' && wanted.purpose !== 'return-path-spf') return stored
  return { ...stored, sentence: stored.sentence + (await spfProblems(parts, wanted, result.check)) }
}

function storedCheck(
  clock: Clock,
  wanted: Pick<StoredCheck, 'purpose' | 'name' | 'type' | 'value'>,
  check: RecordCheck,
  answer: DnsAnswer,
  before: StoredCheck | undefined,
): StoredCheck {
  const { purpose, name, type, value } = wanted
  return {
    purpose,
    name,
    type,
    value,
    valid: check.answered ? check.valid : (before?.valid ?? false),
    answered: check.answered,
    found: check.answered ? check.found : (before?.found ?? []),
    asked: `${answer.asked.type} ${answer.asked.name}`,
    server: answer.server,
    sentence: check.sentence,
    checkedAt: Math.floor(clock.now()),
  }
}

interface Asked {
  check: RecordCheck
  answer: DnsAnswer
}

async function ask(parts: LookupParts, wanted: WantedRecord, resolver: Resolver): Promise<Asked> {
  const { name, type, value } = wanted
  switch (type) {
    case 'TXT': {
      const answer = await resolver.query(name, 'TXT', FRESH)
      const check =
        wanted.purpose === 'dkim' ? checkDkim(answer, value) : checkSpf(answer, parts.spfIncludeHost)
      return { check, answer }
    }
    case 'CNAME': {
      // Asked for an address, servers return the whole chain of aliases.
      const answer = await resolver.query(name, 'A', FRESH)
      return { check: checkCname(answer, value), answer }
    }
    case 'A': {
      const answer = await resolver.query(name, 'A', FRESH)
      return { check: checkAddress(answer, value), answer }
    }
    case 'AAAA': {
      const answer = await resolver.query(name, 'AAAA', FRESH)
      return { check: checkAddress(answer, value), answer }
    }
    case 'MX': {
      const answer = await resolver.query(name, 'MX', FRESH)
      return { check: checkMx(answer, value), answer }
    }
  }
}

/** The authoritative servers' view, if it is better than that of the resolver; else null. */
async function askAuthority(parts: LookupParts, wanted: WantedRecord, old: DnsAnswer): Promise<Asked | null> {
  const authority = await findAuthority(parts.resolver, wanted.name, parts.allow)
  if (authority === null) return null
  const port = parts.authorityPort
  const direct = createResolver({
    servers: port === undefined ? authority.servers : authority.servers.map(({ host }) => ({ host, port })),
    clock: parts.clock,
    timeoutMs: AUTHORITY_TIMEOUT_MS,
    attempts: 1,
  })
  try {
    const { check, answer } = await ask(parts, wanted, direct)
    if (!check.valid) return null
    const stale = ` ${old.server} still has an older answer and may give it for up to ${old.ttlSeconds} seconds.`
    return { check: { ...check, sentence: check.sentence + stale }, answer }
  } finally {
    direct.close()
  }
}

/** What a receiver would make of the includes: an error that no look at the one record shows. */
async function spfProblems(parts: LookupParts, wanted: WantedRecord, check: RecordCheck): Promise<string> {
  if (!check.valid) return ''
  const counted = await inTime(parts, (resolver) => countSpfLookups(resolver, wanted.name))
  return counted?.kind === 'error' ? counted.problems.map((problem) => ` ${problem}`).join('') : ''
}

/** What `work` makes of its questions, or null when they take too long. */
async function inTime<T>(
  { resolver, clock }: LookupParts,
  work: (resolver: Resolver) => Promise<T>,
): Promise<T | null> {
  const late = new AbortController()
  const timer = clock.setTimer(BEYOND_MS, () => late.abort())
  try {
    return await work(untilStopped(resolver, late.signal))
  } catch (error) {
    if (late.signal.aborted) return null
    throw error
  } finally {
    timer.cancel()
  }
}

/**
 * DMARC is no record of ours: it is looked up for advice. Without one at the domain itself the nearest ancestor's
 * holds (RFC 9989 §4.10; the older rule of the organizational domain finds the same where there is one).
 */
export async function lookUpDmarc(
  parts: LookupParts,
  use: DmarcUse,
  before: StoredCheck | undefined,
): Promise<StoredCheck> {
  const name = `_dmarc.${use.fromDomain}`
  let answer = await parts.resolver.query(name, 'TXT', FRESH)
  let check = checkDmarc(answer, use)
  for (const ancestor of ancestorsOf(use.fromDomain).slice(0, DMARC_ANCESTORS_MAX)) {
    if (!check.answered || hasDmarc(answer)) break
    const above = await parts.resolver.query(`_dmarc.${ancestor}`, 'TXT', FRESH)
    if (!hasDmarc(above)) continue
    answer = above
    check = checkDmarc(above, use)
  }
  const wanted = { purpose: 'dmarc', name, type: 'TXT', value: DMARC_ADVICE } as const
  return storedCheck(parts.clock, wanted, check, answer, before)
}

export const DMARC_ADVICE = 'v=DMARC1; p=none'
/** Receivers ask at most eight times, RFC 9989 §4.10. */
const DMARC_ANCESTORS_MAX = 7

const hasDmarc = (answer: DnsAnswer<'TXT'>) =>
  answer.records.some((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text))
