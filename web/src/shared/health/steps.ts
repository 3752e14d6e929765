/** What to do next for a domain or an account, from what the API says of it, in the order of what it would bring. Pure. */
import type {
  AccountStanding,
  DomainHealth,
  DomainReportPage,
  HealthScore,
  ListedDomain,
  SenderRules,
} from '../../api-types.ts'
import { STEP_TEXT as TEXT } from './text.ts'

/** How urgent a step is: mail is stopped or refused; mail is at risk; it would be better. */
export type Level = 'now' | 'soon' | 'better'

export interface Step {
  /** Unique within the page. */
  id: string
  level: Level
  title: string
  why: string
  /** Where it is done; missing: elsewhere. */
  href?: string
  /** Points of the health score that it would bring, or an estimate in the same measure. */
  gain: number
}

type Rates = HealthScore['rates']

/** What a rate of the score takes off, and where it is mended. */
export const rateSteps = (rates: Rates, domain?: string): Step[] =>
  (Object.entries(rates) as [keyof Rates, number][])
    .filter(([, points]) => points > 0)
    .map(([rate, points]) => ({
      id: rate,
      level: points >= SOON_POINTS ? 'soon' : 'better',
      title: TEXT.rates[rate].title,
      why: `${TEXT.points(points)} ${TEXT.rates[rate].why}`,
      href: RATE_PAGES[rate](domain),
      gain: points,
    }))

const SOON_POINTS = 5
const ofDomain = (domain: string | undefined) =>
  domain === undefined ? '' : `&domain=${encodeURIComponent(domain)}`
const RATE_PAGES: Readonly<Record<keyof Rates, (domain?: string) => string>> = {
  bounce_rate: (domain) => `/activity?event=failed${ofDomain(domain)}`,
  complaint_rate: (domain) => `/activity?event=complained${ofDomain(domain)}`,
  trap_rate: () => '/sending/validation',
  full_mailbox_rate: (domain) => `/activity?event=failed${ofDomain(domain)}`,
  bad_failure_rate: () => '/sending/validation',
}

/** Estimates, in points: refused by receivers, held here, in spam. */
const GAINS = {
  held: 100,
  unverified: 90,
  everybody: 60,
  slowed: 50,
  listed: 40,
  bulk: 30,
  dmarc: 20,
  small: 10,
  nobody: 1,
}

/** Rules of receivers that the domain does not follow. */
export function ruleSteps({ rules, is_bulk_sender: isBulk }: SenderRules, domain: string): Step[] {
  return rules
    .filter(({ passed }) => passed === false)
    .map(({ rule, required_of, sentence }): Step => {
      const isRequired = required_of === 'everybody' || (required_of === 'bulk senders' && isBulk)
      return {
        id: `rule ${rule}`,
        level: isRequired ? 'now' : required_of === 'nobody' ? 'better' : 'soon',
        title: TEXT.rules[rule],
        why: sentence,
        href: `/domains/${encodeURIComponent(domain)}${DNS_RULES.has(rule) ? '' : '/receivers'}`,
        gain:
          required_of === 'everybody'
            ? GAINS.everybody
            : required_of === 'nobody'
              ? GAINS.nobody
              : isBulk
                ? GAINS.bulk
                : GAINS.small,
      }
    })
}
const DNS_RULES: ReadonlySet<string> = new Set(['spf', 'dkim', 'dmarc'])

export const listingSteps = (domain: string, listed: readonly ListedDomain[]): Step[] =>
  listed.map(({ list, name, comments }) => ({
    id: `list ${domain} ${list}`,
    level: 'now',
    title: TEXT.listed(domain, name),
    why: `${TEXT.listedWhy} ${comments.join(' ')}`.trim(),
    gain: GAINS.listed,
  }))

/** `domain`: only what concerns it; the account as a whole concerns each. */
export const standingSteps = ({ stopped }: AccountStanding, domain?: string): Step[] =>
  stopped
    .filter((one) => domain === undefined || one.domain === undefined || one.domain === domain)
    .map(({ domain: name, state, reason }) => ({
      id: `standing ${name ?? ''}`,
      level: state === 'warned' ? 'soon' : 'now',
      title: TEXT.standing[state](name),
      why: reason,
      gain: state === 'held' ? GAINS.held : state === 'slowed' ? GAINS.slowed : GAINS.small,
    }))

const DMARC_FAILED_SHARE = 0.02 // below it are forwarders, which everybody has

/** Mail in the domain's name that others have seen fail. */
export function reportSteps({ totals }: Pick<DomainReportPage, 'totals'>, domain: string): Step[] {
  const { messages = 0, failed = 0 } = totals.dmarc ?? {}
  if (messages === 0 || failed / messages < DMARC_FAILED_SHARE) return []
  return [
    {
      id: 'reports',
      level: 'soon',
      title: TEXT.reports,
      why: TEXT.reportsWhy(failed, messages),
      href: `/domains/${encodeURIComponent(domain)}/receivers?type=dmarc`,
      gain: GAINS.dmarc,
    },
  ]
}

/** Domains that cannot send, or are listed. */
export const domainSteps = (
  domains: readonly { name: string; state: string; type: string }[],
  health: readonly DomainHealth[],
): Step[] => [
  ...domains
    .filter(({ state, type }) => state === 'unverified' && type !== 'sandbox')
    .map(
      ({ name }): Step => ({
        id: `unverified ${name}`,
        level: 'now',
        title: TEXT.unverified(name),
        why: TEXT.unverifiedWhy,
        href: `/domains/${encodeURIComponent(name)}`,
        gain: GAINS.unverified,
      }),
    ),
  ...health.flatMap(({ domain, listed }) => listingSteps(domain, listed)),
]

const LEVELS: readonly Level[] = ['now', 'soon', 'better']

/** The most urgent first, and of those what would bring the most. */
export const inOrder = (steps: readonly Step[]): Step[] =>
  [...steps].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || b.gain - a.gain)
