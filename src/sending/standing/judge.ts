/**
 * Whether a sender is stopped, and which part of it. Pure.
 *
 * 1. A figure is too high if it has reached its limit over the window, of at least `min_messages`, and at least BAD_MIN
 *    times: a single complaint of 300 is 0.3 %.
 * 2. Good senders are slowed first. A slowed one is held when the figure is still too high after another `min_messages`; one
 *    that has mended its list meanwhile brings the figure down and is not.
 * 3. A domain is stopped alone if the rest of its account is large enough to be judged, and good. An account that has had
 *    DOMAINS_ALONE_MAX stopped alone is stopped as a whole: else it could burn one domain after the other.
 * 4. What was slowed, held or warned of stays so until its time is over, or until it is released.
 */
import type { StandingLimits } from './policy.ts'

/** What was sent, and what came of it. */
export interface SentFigures {
  sent: number
  bounced: number
  unknownUsers: number
  complained: number
  trapped: number
  /** By the outbound check. */
  checked: number
  badContent: number
}

export const NO_FIGURES: SentFigures = {
  ...{ sent: 0, bounced: 0, unknownUsers: 0, complained: 0, trapped: 0, checked: 0, badContent: 0 },
}

export const CODES = ['spam-traps', 'complaints', 'bounces', 'unknown-users', 'bad-content'] as const
export type Code = (typeof CODES)[number]

export interface Fault {
  code: Code
  /** For people. */
  reason: string
}

/** Once or twice is chance. */
const BAD_MIN = 5
/** Domains of an account that may be stopped alone at a time. */
const DOMAINS_ALONE_MAX = 2

interface Rate {
  code: Code
  percent: number
  bad: number
  of: number
  words: string
}

/** The gravest figure that is too high; null: none is. */
export function faultOf(figures: SentFigures, limits: StandingLimits): Fault | null {
  const { sent, checked, trapped } = figures
  const hours = `in ${limits.window_hours} hours`
  if (limits.spam_trap_hits > 0 && trapped >= limits.spam_trap_hits)
    return {
      code: 'spam-traps',
      reason: `${trapped} messages to spam traps ${hours}; the limit is ${limits.spam_trap_hits}`,
    }
  const rates: Rate[] = [
    ['complaints', limits.complaint_percent, figures.complained, sent, 'were called spam'],
    ['bounces', limits.bounce_percent, figures.bounced, sent, 'bounced'],
    ['unknown-users', limits.unknown_user_percent, figures.unknownUsers, sent, 'had no such user'],
    ['bad-content', limits.bad_content_percent, figures.badContent, checked, 'had bad content'],
  ].map(([code, percent, bad, of, words]) => ({ code, percent, bad, of, words }) as Rate)
  const fault = rates.find(
    ({ percent, bad, of }) =>
      percent > 0 && of >= limits.min_messages && bad >= BAD_MIN && bad * 100 >= percent * of,
  )
  if (fault === undefined) return null
  const { code, percent, bad, of, words } = fault
  const rate = Math.round((bad / of) * 100_000) / 1000
  return {
    code,
    reason: `${rate} % (${bad} of ${of}) messages ${words} ${hours}; the limit is ${percent} %`,
  }
}

export type StandingState = 'good' | 'warned' | 'slowed' | 'held'

/** A domain of the account that is judged. */
export interface JudgedDomain {
  name: string
  figures: SentFigures
  state: StandingState
  /** Messages since it was slowed; only for `slowed`. */
  sentSince: number
}

export interface JudgedAccount {
  limits: StandingLimits
  state: StandingState
  /** As of a domain. */
  sentSince: number
  /** It is reported, and goes on as before. */
  isWarnedOnly: boolean
  domains: readonly JudgedDomain[]
}

export interface Verdict extends Fault {
  /** Null: the account as a whole. */
  domain: string | null
  state: 'warned' | 'slowed' | 'held'
  figures: SentFigures
}

/** What has to be stopped now. */
export function judgeAccount(account: JudgedAccount): Verdict[] {
  const { limits, state, isWarnedOnly } = account
  if (state === 'held' || state === 'warned') return []
  const alone = account.domains.filter((domain) => domain.state === 'slowed' || domain.state === 'held')
  const others = account.domains.filter((domain) => !alone.includes(domain))
  const rest = others.reduce((sum, { figures }) => plus(sum, figures), NO_FIGURES)
  const fault = faultOf(rest, limits)
  if (state === 'slowed') {
    const isHeld = fault !== null && account.sentSince >= limits.min_messages
    return isHeld ? [{ ...fault, domain: null, state: 'held', figures: rest }] : []
  }
  const held = alone.flatMap(({ name, figures, sentSince, ...domain }): Verdict[] => {
    const found = domain.state === 'slowed' && sentSince >= limits.min_messages && faultOf(figures, limits)
    return found ? [{ ...found, domain: name, state: 'held', figures }] : []
  })
  const first = isWarnedOnly ? 'warned' : 'slowed'
  // Where the account has too high a figure, its cause need not be large.
  const own = fault === null ? limits : { ...limits, min_messages: 1 }
  const culprits = others.flatMap(({ name, figures }): Verdict[] => {
    const found = faultOf(figures, own)
    const without = minus(rest, figures)
    const isAlone = without.sent >= limits.min_messages && faultOf(without, limits) === null
    return found && isAlone ? [{ ...found, domain: name, state: first, figures }] : []
  })
  const [culprit] = culprits
  if (culprit && alone.length + culprits.length > DOMAINS_ALONE_MAX)
    return [{ ...culprit, domain: null, figures: rest }]
  if (culprit) return [...held, ...culprits]
  return fault === null ? held : [{ ...fault, domain: null, state: first, figures: rest }]
}

const NAMES = Object.keys(NO_FIGURES) as (keyof SentFigures)[]

const combine = (one: SentFigures, other: SentFigures, sign: 1 | -1): SentFigures =>
  Object.fromEntries(NAMES.map((name) => [name, one[name] + sign * other[name]])) as unknown as SentFigures

export const plus = (one: SentFigures, other: SentFigures): SentFigures => combine(one, other, 1)
const minus = (one: SentFigures, other: SentFigures): SentFigures => combine(one, other, -1)
