/** The rules of Gmail, Yahoo and Microsoft for senders, as a list of checks for each domain. */

import type { Area } from '../../area.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { operation } from '../../platform/http/operation.ts'
import { type FindTexts, isDmarcRecord, readDmarc } from '../../protocols/dns/dmarc.ts'
import { isDefinite } from '../../protocols/dns/resolver.ts'
import { readDnsState } from '../../sending/domains/dns/verification.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import { recordStates } from '../../sending/domains/view.ts'
import type { TrackingArea } from '../../sending/tracking/area.ts'
import type { Counts } from '../metrics/counters.ts'
import { countOf, type FigureRow, type Figures } from '../metrics/figures.ts'
import { judgeSender, type SenderFacts } from './rules.ts'
import { type Family, SENDER_RULES } from './shapes.ts'

const DAYS = 30
/**
 * Names of metrics-logs.md section 2. The rules are about people's own mailboxes, not about those of organizations at
 * Google Workspace or Microsoft 365.
 */
const PROVIDERS: Readonly<Record<Family, readonly string[]>> = {
  gmail: ['Gmail'],
  yahoo: ['Yahoo US', 'Yahoo EU'],
  microsoft: ['Outlook US', 'Outlook EU'],
}

interface SenderRulesUses extends Pick<TrackingArea, 'unsubscribable'> {
  figures: Figures
}

export function senderRulesArea(core: Core, uses: SenderRulesUses): Area {
  return {
    operations: [
      operation({
        method: 'GET',
        path: '/sendwright/v1/domains/{name}/sender-rules',
        id: 'readSenderRules',
        tag: 'Domains',
        summary:
          'Whether a domain follows the rules of Gmail, Yahoo and Microsoft for senders, and what to change',
        auth: { area: 'domains', access: 'read' },
        rateLimit: 'domains',
        answers: { 200: SENDER_RULES },
        async handler({ path, caller }) {
          const domain = await ownDomain(core.domains, caller, path.name)
          return judgeSender(await factsOf(core, uses, domain))
        },
      }),
    ],
  }
}

async function factsOf(
  core: Core,
  { figures, unsubscribable }: SenderRulesUses,
  domain: Domain,
): Promise<SenderFacts> {
  const now = core.clock.now()
  const query = {
    accountIds: [domain.accountId],
    startMs: now - DAYS * DAY_MS,
    endMs: now,
    resolution: 'day',
    filter: [{ attribute: 'domain', comparator: '=', values: [domain.name] }],
    metrics: [
      ...['delivered_count', 'accepted_outgoing_count', 'complained_count'],
      ...['processed_count', 'hard_bounces_count'],
    ],
  } as const
  const [authentication, totals, days, oneClickOn, receives, bimi] = await Promise.all([
    readAuthentication(core, domain),
    figures.read({ ...query, dimensions: [] }),
    figures.read({
      ...query,
      dimensions: ['time', 'recipient_provider'],
      filter: [
        ...query.filter,
        { attribute: 'recipient_provider', comparator: '=', values: Object.values(PROVIDERS).flat() },
      ],
    }),
    unsubscribable(domain),
    receivesMail(core, domain.name),
    readBimi(core, domain.name),
  ])
  const counts = totals[0]?.counts
  const total = (name: 'delivered_count' | 'complained_count' | 'processed_count' | 'hard_bounces_count') =>
    counts ? countOf(name, counts) : 0
  return {
    domain: domain.name,
    ...authentication,
    delivered: total('delivered_count'),
    complaints: total('complained_count'),
    processed: total('processed_count'),
    hardBounces: total('hard_bounces_count'),
    busiestDays: busiestDaysOf(days),
    oneClickOn,
    receives,
    bimi,
  }
}

function busiestDaysOf(rows: readonly FigureRow[]): SenderFacts['busiestDays'] {
  const busiest = (family: Family): number => {
    const days = new Map<string, number>()
    for (const { values, counts } of rows) {
      const [day = '', provider = ''] = values
      if (PROVIDERS[family].includes(provider)) days.set(day, (days.get(day) ?? 0) + volumeOf(counts))
    }
    return Math.max(0, ...days.values())
  }
  return { gmail: busiest('gmail'), yahoo: busiest('yahoo'), microsoft: busiest('microsoft') }
}

/** Mail through a relay is delivered to no provider, and accepted mail has one by the recipients' domains only. */
const volumeOf = (counts: Counts): number =>
  Math.max(countOf('delivered_count', counts), countOf('accepted_outgoing_count', counts))

/** By the last checks in DNS; looks nothing up. */
export async function readAuthentication(
  { store, config }: Pick<Core, 'store' | 'config'>,
  domain: Domain,
): Promise<Pick<SenderFacts, 'spf' | 'dkim' | 'dmarc'>> {
  const dns = await readDnsState(store, domain)
  const states = recordStates(domain, dns, config.dnsTargets)
  const valid = (purpose: string): boolean | null => {
    const some = states.filter(({ wanted }) => wanted.purpose === purpose)
    const checked = some.filter(({ check }) => check?.answered)
    // A key that does not sign says nothing for the mail.
    return checked.length === 0
      ? null
      : checked.some(({ check, isActive }) => isActive && check?.valid === true)
  }
  const dmarc = dns.checks.find(({ purpose }) => purpose === 'dmarc')
  const record = dmarc?.found.find(isDmarcRecord) ?? ''
  return {
    spf: valid('spf'),
    dkim: valid('dkim'),
    dmarc: {
      valid: dmarc?.answered ? dmarc.valid : null,
      record,
      policy: dmarc?.policy ?? readDmarc(record)?.policy ?? null,
      sentence: dmarc?.sentence ?? '',
    },
  }
}

/** By the MX records; null: none, or no answer. A null MX takes nothing (RFC 7505). */
async function receivesMail({ resolver }: Pick<Core, 'resolver'>, name: string): Promise<boolean | null> {
  const answer = await resolver.query(name, 'MX')
  return answer.kind === 'records' ? answer.records.some(({ exchange }) => exchange !== '') : null
}

/** For walks, from the resolver's cache where it can. */
export const dmarcRecordsAt =
  ({ resolver }: Pick<Core, 'resolver'>): FindTexts =>
  async (name) => {
    const answer = await resolver.query(`_dmarc.${name}`, 'TXT')
    return isDefinite(answer) ? answer.records : null
  }

/** TXT at `default._bimi`; null: no answer. */
export async function readBimi(
  { resolver }: Pick<Core, 'resolver'>,
  domainName: string,
): Promise<readonly string[] | null> {
  const answer = await resolver.query(`default._bimi.${domainName}`, 'TXT')
  return isDefinite(answer) ? answer.records : null
}
