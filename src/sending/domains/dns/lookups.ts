/**
 * Looks up the records of a domain.
 *
 *  1. The configured resolver is queried without its cache.
 *  2. If it has a definite answer that is not valid, an authoritative server of the zone is queried too: what a
 *     person sees with `dig` there counts, and the sentence says that the resolver still has the old answer.
 *  3. No answer (time-out, SERVFAIL) says nothing about the record: the previous result stays.
 */

import type { Cidr } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Core } from '../../../core.ts'
import { findAuthority } from '../../../protocols/dns/authoritative.ts'
import {
  applyingRecord,
  isDmarcRecord,
  needsExistence,
  policyOf,
  shareOrganization,
  treeWalk,
} from '../../../protocols/dns/dmarc.ts'
import {
  checkAddress,
  checkCname,
  checkDkim,
  checkDmarc,
  checkMx,
  checkSpf,
  checkSts,
  type DmarcFacts,
  type DmarcUse,
  type RecordCheck,
} from '../../../protocols/dns/record-data.ts'
import { createResolver, type DnsAnswer, isDefinite, type Resolver } from '../../../protocols/dns/resolver.ts'
import { countSpfLookups } from '../../../protocols/dns/spf.ts'
import type { StoredCheck, WantedRecord } from './dns-records.ts'

export interface LookupParts extends Pick<Core, 'resolver' | 'clock'> {
  /** Networks whose name servers may be queried although they are not public. */
  allow: readonly Cidr[]
  spfIncludeHost: string
  /** Port of authoritative servers; tests use another one than 53. */
  authorityPort?: number
}

/** Short, because the resolver has already given a definite answer. */
const AUTHORITY_TIMEOUT_MS = 2000
/**
 * For follow-up queries: finding authoritative servers, and resolving SPF includes. Both follow names that the
 * domain's owner controls, who could delay each answer as long as possible.
 */
const FOLLOW_UP_TIMEOUT_MS = 10_000
const FRESH = { fresh: true } as const

/** The same resolver for work that must not delay a stop: its open queries are rejected when `signal` aborts. */
export const untilStopped = (resolver: Resolver, signal: AbortSignal): Resolver => ({
  query: (name, type, options = {}) =>
    resolver.query(name, type, {
      ...options,
      signal: options.signal ? AbortSignal.any([signal, options.signal]) : signal,
    }),
  close() {},
})

/** Looks up one record. `before`: the last check of the same record. Never rejects because of DNS failures. */
export async function lookUp(
  parts: LookupParts,
  wanted: WantedRecord,
  before: StoredCheck | undefined,
): Promise<StoredCheck> {
  const { check, answer } = await query(parts, wanted, parts.resolver)
  const authoritative =
    check.answered && !check.valid
      ? await withDeadline(parts, (resolver) => queryAuthority({ ...parts, resolver }, wanted, answer))
      : null
  const result = authoritative ?? { check, answer }
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

interface LookupResult {
  check: RecordCheck
  answer: DnsAnswer
}

async function query(parts: LookupParts, wanted: WantedRecord, resolver: Resolver): Promise<LookupResult> {
  const { name, type, value } = wanted
  switch (type) {
    case 'TXT': {
      const answer = await resolver.query(name, 'TXT', FRESH)
      if (wanted.purpose === 'dkim') return { check: checkDkim(answer, value), answer }
      if (wanted.purpose === 'mta-sts') return { check: checkSts(answer, value), answer }
      return { check: checkSpf(answer, parts.spfIncludeHost), answer }
    }
    case 'CNAME': {
      // Servers answer a query for an address with the whole chain of aliases.
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

/** The answer of the authoritative servers if the record is valid there, else null. */
async function queryAuthority(
  parts: LookupParts,
  wanted: WantedRecord,
  old: DnsAnswer,
): Promise<LookupResult | null> {
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
    const { check, answer } = await query(parts, wanted, direct)
    if (!check.valid) return null
    const stale = ` ${old.server} still has an older answer and may give it for up to ${old.ttlSeconds} seconds.`
    return { check: { ...check, sentence: check.sentence + stale }, answer }
  } finally {
    direct.close()
  }
}

/** Errors that only a receiver sees, when it resolves the includes; the record by itself is valid. */
async function spfProblems(parts: LookupParts, wanted: WantedRecord, check: RecordCheck): Promise<string> {
  if (!check.valid) return ''
  const count = await withDeadline(parts, (resolver) => countSpfLookups(resolver, wanted.name))
  return count?.kind === 'error' ? count.problems.map((problem) => ` ${problem}`).join('') : ''
}

/** The result of `work`, or null if its queries take longer than FOLLOW_UP_TIMEOUT_MS. */
async function withDeadline<T>({ resolver, clock }: LookupParts, work: (resolver: Resolver) => Promise<T>) {
  const deadline = new AbortController()
  const timer = clock.setTimer(FOLLOW_UP_TIMEOUT_MS, () => deadline.abort())
  try {
    return await work(untilStopped(resolver, deadline.signal))
  } catch (error) {
    if (deadline.signal.aborted) return null
    throw error
  } finally {
    timer.cancel()
  }
}

/**
 * DMARC is not one of our records: it is looked up to give advice. Without one at the domain itself, that of its
 * organization applies (RFC 9989 §4.10.1). Walks from the three names share their queries: eight for most domains.
 */
export async function lookUpDmarc(
  { resolver, clock }: LookupParts,
  use: DmarcUse,
  before: StoredCheck | undefined,
): Promise<StoredCheck> {
  const answers = new Map<string, Promise<DnsAnswer<'TXT'>>>()
  const answerAt = (name: string) => {
    // Nobody waits for a change of a top-level domain, and all domains ask for it.
    const known =
      answers.get(name) ?? resolver.query(`_dmarc.${name}`, 'TXT', name.includes('.') ? FRESH : {})
    answers.set(name, known)
    return known
  }
  const { fromDomain } = use
  let last = await answerAt(fromDomain)
  const find = async (name: string) => {
    last = await answerAt(name)
    return isDefinite(last) ? last.records : null
  }
  const walk = await treeWalk(fromDomain, find)
  const own = await answerAt(fromDomain)
  const applying = applyingRecord(walk)
  const found = typeof applying === 'string' ? null : applying
  // What is wrong at the domain itself is worth more than what applies instead.
  const at = own.records.some(isDmarcRecord) ? fromDomain : (found?.domain ?? fromDomain)
  const answer = applying === 'unknown' ? last : await answerAt(at)
  const facts: DmarcFacts = {
    at,
    exists: !(found && needsExistence(fromDomain, found)) || (await exists(resolver, fromDomain)),
    // Without a record nothing is compared.
    isDkimRelated: found && (await shareOrganization(fromDomain, use.dkimDomain, find)),
    isSpfRelated: found && (await shareOrganization(fromDomain, use.returnPathDomain, find)),
  }
  const check = checkDmarc(answer, use, facts)
  const wanted = { purpose: 'dmarc', name: `_dmarc.${fromDomain}`, type: 'TXT', value: DMARC_ADVICE } as const
  const stored = storedCheck(clock, wanted, check, answer, before)
  if (!check.answered) return before?.policy === undefined ? stored : { ...stored, policy: before.policy }
  return found ? { ...stored, policy: policyOf(fromDomain, found, facts.exists) ?? 'none' } : stored
}

/** Any record makes a name exist, RFC 9989 A.4, an alias to nowhere too. No answer is no proof of absence. */
async function exists(resolver: Resolver, name: string): Promise<boolean> {
  const { kind, chain } = await resolver.query(name, 'A')
  return kind !== 'nxdomain' || chain.length > 0
}

export const DMARC_ADVICE = 'v=DMARC1; p=none'
