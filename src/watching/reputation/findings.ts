/** What the newest days say that somebody has to act on, by the limits that the providers document. Pure, but for the reads. */
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import { newestSndsDays, newestSpamRates, readBlocks } from './days.ts'
import { dayOf, NEEDS_WORK, type Requirement } from './google/figures.ts'
import { complaintRateOf } from './snds/feed.ts'

/** Older figures say nothing about now: both sources are some days late. */
const NEWEST_DAYS = 7

export interface GmailFinding {
  domain: string
  /** First millisecond of the day. */
  day: number
  /** From 0 to 1. */
  spamRate: number
}

export interface SndsFinding {
  ip: string
  day: number
  filterResult: string
  complaints: string
  /** From 0 to 1; null: none can be read. */
  complaintRate: number | null
  trapHits: number
}

export type ReputationFindings = ReturnType<typeof createFindings>

export function createFindings(store: Store, clock: Clock) {
  const range = () => {
    const to = dayOf(clock.now())
    return { from: to - NEWEST_DAYS * DAY_MS, to }
  }
  return {
    /** The newest day with a spam rate of each domain. */
    async gmail(): Promise<GmailFinding[]> {
      return (await newestSpamRates(store, range())).map(({ name, day, spam_rate: rate }) => ({
        ...{ domain: name, day: Number(day), spamRate: Number(rate) },
      }))
    },
    /** Domains that do not meet Gmail's requirements. */
    async needsWork(): Promise<{ domain: string; requirements: string[] }[]> {
      const rows = await store.db
        .selectFrom('gmail_domains')
        .innerJoin('domains', 'domains.id', 'gmail_domains.domain_id')
        .select(['domains.name', 'compliance_json'])
        .execute()
      return rows.flatMap(({ name: domain, compliance_json: json }) => {
        const requirements = (JSON.parse(json) as Requirement[])
          .filter(({ status }) => status === NEEDS_WORK)
          .map(({ requirement }) => requirement)
        return requirements.length === 0 ? [] : [{ domain, requirements }]
      })
    },
    /** The newest day of each address. */
    async snds(): Promise<SndsFinding[]> {
      return (await newestSndsDays(store, null, range())).map((row) => ({
        ...{ ip: row.ip, day: Number(row.day), filterResult: row.filter_result },
        ...{ complaints: row.complaint_rate, complaintRate: complaintRateOf(row.complaint_rate) },
        trapHits: Number(row.trap_hits),
      }))
    },
    /** Blocked ranges. */
    async blocks(): Promise<{ range: string; detail: string }[]> {
      return (await readBlocks(store)).rows.map(({ first_ip: first, last_ip: last, detail }) => ({
        range: first === last ? first : `${first}-${last}`,
        detail,
      }))
    },
    /** Sources that cannot be read. */
    async failing(): Promise<{ name: string; failure: string; since: number }[]> {
      const rows = await store.db
        .selectFrom('reputation_sources')
        .select(['name', 'failure', 'failing_since'])
        .where('failing_since', 'is not', null)
        .execute()
      return rows.map(({ name, failure, failing_since: since }) => ({
        ...{ name, failure: failure ?? '', since: Number(since) },
      }))
    },
  }
}
