/** Settings of received mail, and of what is checked about mail and addresses. */
import { HOUR_MS } from '../../base/time/durations.ts'
import { spamPoints } from './content-check.ts'
import {
  dnsName,
  duration,
  flag,
  list,
  path,
  quoted,
  type Readers,
  zonesOrOff,
} from './parsers.ts'
import { DEFAULT_RETRY_SCHEDULE_MS } from './sending.ts'

/** Checks of files that settings name; each throws the fault. Without one the file is not checked. */
export interface ConfigChecks {
  bounceRules?(file: string): unknown
}

export type ReceivingConfig = ReturnType<typeof readReceiving>

export function readReceiving(readers: Readers, checks: ConfigChecks) {
  const { setting, optional } = readers
  return {
    /** Waits after failed POSTs of received mail. */
    inboundScheduleMs: setting('INBOUND_SCHEDULE', list(duration), () => DEFAULT_RETRY_SCHEDULE_MS),
    /** Unknown networks have to send their first mail to routes twice. */
    greylist: setting('GREYLIST', flag, () => false),
    /** Domains that ask for them get reports about the TLS of mail to them. */
    tlsReports: setting('TLS_REPORTS', flag, () => true),
    /** Who sends DMARC reports to the domains of authors; null: nobody. */
    dmarcReports: dmarcReports(readers),
    /** The operator's test mailboxes (tools/placement/seeds.ts); null: none. */
    placementSeedsFile: optional('PLACEMENT_SEEDS', path),
    /** A copy that a test mailbox does not have after this time is missing. */
    placementWaitMs: setting('PLACEMENT_WAIT', duration, () => HOUR_MS),
    /** Validation asks receiving servers. Many networks forbid outgoing connections to port 25, and receivers dislike being asked. */
    validationSmtpProbe: setting('VALIDATION_SMTP_PROBE', flag, () => false),
    /** With the own checks: points from which mail is spam. */
    spamThreshold: setting('SPAM_THRESHOLD', spamPoints, () => 5),
    /** With the own checks: DNS blocklists that clients are looked up in. */
    spamDnsblZones: setting('SPAM_DNSBL_ZONES', zonesOrOff, () => []),
    /** Mail that no route wants is accepted and dropped, instead of refused. */
    acceptUnrouted: setting('ACCEPT_UNROUTED', flag, () => false),
    /** The operator's rules for classifying replies, applied before ours; null: none. */
    bounceRulesFile: optional('BOUNCE_RULES', (text) => {
      const file = path(text)
      checks.bounceRules?.(file)
      return file
    }),
  }
}

/** Reports name who sends them, so both are the operator's to say (decision 202). */
function dmarcReports({ optional, faults }: Readers): { organization: string; from: string } | null {
  const organization = optional('DMARC_REPORTS_ORGANIZATION', organizationName)
  const from = optional('DMARC_REPORTS_FROM', reportSender)
  if (organization !== null && from !== null) return { organization, from }
  if (organization !== from)
    faults.push('SENDWRIGHT_DMARC_REPORTS_ORGANIZATION and SENDWRIGHT_DMARC_REPORTS_FROM need each other')
  return null
}

function organizationName(text: string): string {
  if (text.length > 100 || /\p{Cc}/u.test(text))
    throw new Error('is longer than 100 characters, or not one line')
  return text
}

function reportSender(text: string): string {
  const [, local, domain = ''] = /^([a-z0-9._+-]{1,64})@([^@]+)$/i.exec(text) ?? []
  if (local === undefined) throw new Error(`${quoted(text)} is not a mail address`)
  return `${local}@${dnsName(domain)}`
}
