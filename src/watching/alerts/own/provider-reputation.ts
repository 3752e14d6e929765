/** What Gmail and Microsoft say of the mail, by the limits that they document (reputation.md). */
import { DAY_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { ReputationFindings } from '../../reputation/findings.ts'
import type { OwnCheck } from './own-check.ts'

/** Gmail asks for less than 0.1 %, and treats mail worse from 0.3 % on; Microsoft names no limit and is judged alike. */
const WARNING_RATE = 0.001
const SPAM_RATE = 0.003
const FAILING_DAYS = 1
/** Each becomes a hit with its notices; SNDS may name thousands of addresses. */
const FINDINGS_MAX = 200

const percent = (rate: number) => `${(rate * 100).toFixed(2)} %`
const dateOf = (day: number) => new Date(day).toISOString().slice(0, 10)
const COMMON = { everyMs: 10 * MINUTE_MS } as const

export function reputationChecks(findings: ReputationFindings): OwnCheck[] {
  return [...gmailChecks(findings), ...sndsChecks(findings), failingCheck(findings)].map((check) => ({
    ...check,
    read: async (now) => (await check.read(now)).slice(0, FINDINGS_MAX),
  }))
}

function gmailChecks(findings: ReputationFindings): OwnCheck[] {
  const spam = (name: string, limit: number, below: number, words: string): OwnCheck => ({
    ...COMMON,
    name,
    description: `Gmail users call ${percent(limit)} or more of a domain's mail spam.`,
    ...{ metric: 'gmail_spam_rate', limit: String(limit), dimension: 'domain' },
    async read() {
      return (await findings.gmail())
        .filter(({ spamRate }) => spamRate >= limit && spamRate < below)
        .map(({ domain, day, spamRate }) => ({
          value: domain,
          figure: spamRate.toFixed(4),
          since: day,
          advice: `Gmail users called ${percent(spamRate)} of the mail of ${domain} spam on ${dateOf(day)}. ${words}`,
        }))
    },
  })
  return [
    spam(
      'gmail-spam-rate',
      SPAM_RATE,
      Number.POSITIVE_INFINITY,
      'From 0.3 % on Gmail puts mail into the spam folder or refuses it, until the rate was lower for seven days. Stop the mailing that caused it, write only to those who asked for it, and remove those who do not open it.',
    ),
    spam(
      'gmail-spam-rate-warning',
      WARNING_RATE,
      SPAM_RATE,
      'Gmail asks for less than 0.1 %. Look at the lists that were written to last; at 0.3 % mail is refused.',
    ),
    {
      ...COMMON,
      name: 'gmail-compliance',
      description: 'A domain does not meet the requirements of Gmail.',
      ...{ metric: 'gmail_needs_work', limit: '1', dimension: 'domain' },
      async read(now) {
        return (await findings.needsWork()).map(({ domain, requirements }) => ({
          value: domain,
          figure: String(requirements.length),
          since: now,
          advice: `Gmail says that ${domain} needs work: ${requirements.join(', ')}. GET /sendwright/v1/domains/${domain}/sender-rules says what to change; Gmail looks again within a week.`,
        }))
      },
    },
  ]
}

function sndsChecks(findings: ReputationFindings): OwnCheck[] {
  const about = { ...COMMON, dimension: 'ip', comparator: '>=' } as const
  return [
    {
      ...about,
      name: 'snds-filter-result',
      description: 'Outlook.com takes most of the mail of an address for spam (SNDS: RED).',
      ...{ metric: 'snds_red', limit: '1' },
      async read() {
        return (await findings.snds())
          .filter(({ filterResult }) => filterResult === 'RED')
          .map(({ ip, day }) => ({
            value: ip,
            figure: '1',
            since: day,
            advice: `Outlook.com took more than 90 % of the mail of ${ip} for spam on ${dateOf(day)}. Find the mailing, stop it, and send little from the address until it is green again.`,
          }))
      },
    },
    {
      ...about,
      name: 'snds-complaints',
      description: 'More than 0.3 % of the recipients at Outlook.com complain about an address.',
      ...{ metric: 'snds_complaint_rate', comparator: '>', limit: String(SPAM_RATE) },
      async read() {
        return (await findings.snds())
          .filter(({ complaintRate }) => (complaintRate ?? 0) > SPAM_RATE)
          .map(({ ip, day, complaints, complaintRate }) => ({
            value: ip,
            figure: (complaintRate ?? 0).toFixed(4),
            since: day,
            advice: `${complaints} of the recipients at Outlook.com complained about mail of ${ip} on ${dateOf(day)}. Join its feedback loop (JMRP), so that those who complain are suppressed, and stop the mailing that caused it.`,
          }))
      },
    },
    {
      ...about,
      name: 'snds-traps',
      description: 'Mail of an address reached spam traps of Microsoft.',
      ...{ metric: 'snds_trap_hits', limit: '1' },
      async read() {
        return (await findings.snds())
          .filter(({ trapHits }) => trapHits > 0)
          .map(({ ip, day, trapHits }) => ({
            value: ip,
            figure: String(trapHits),
            since: day,
            advice: `${trapHits} messages of ${ip} reached spam traps of Microsoft on ${dateOf(day)}: a list was not asked for, or is old. Find it by the time of the hits (GET /v1/reputationanalytics/snds/${ip}), and remove those who have not opened anything for a year.`,
          }))
      },
    },
    {
      ...about,
      name: 'snds-blocked',
      description: 'Outlook.com blocks an address (SNDS).',
      ...{ metric: 'snds_blocked', limit: '1' },
      async read(now) {
        return (await findings.blocks()).map(({ range, detail }) => ({
          value: range,
          figure: '1',
          since: now,
          advice: `SNDS says that Outlook.com blocks ${range}: "${detail}". End the cause, then ask for removal with the form "Sender support" of Outlook.com.`,
        }))
      },
    },
  ]
}

function failingCheck(findings: ReputationFindings): OwnCheck {
  return {
    ...COMMON,
    name: 'reputation-sources',
    description: 'Gmail Postmaster Tools or Microsoft SNDS have not been readable for a day.',
    ...{ metric: 'failing_days', limit: String(FAILING_DAYS), dimension: 'source' },
    async read(now) {
      return (await findings.failing())
        .filter(({ since }) => now - since >= FAILING_DAYS * DAY_MS)
        .map(({ name, failure, since }) => ({
          value: name,
          figure: ((now - since) / DAY_MS).toFixed(1),
          since,
          advice: `${name} cannot be read: ${failure} POST /sendwright/v1/reputation-sources/${name}/test tries it at once. Missed days are read later.`,
        }))
    },
  }
}
