/** Gmail's and Yahoo's rules for senders, as a list of checks for each domain. */

import type { Area } from '../../area.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { operation } from '../../platform/http/operation.ts'
import { readDnsState } from '../../sending/domains/dns/verification.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import { recordStates } from '../../sending/domains/view.ts'
import type { TrackingArea } from '../../sending/tracking/area.ts'
import type { Counts } from '../metrics/counters.ts'
import { countOf, type Figures } from '../metrics/figures.ts'
import { judgeSender, type SenderFacts } from './rules.ts'
import { SENDER_RULES } from './shapes.ts'

const DAYS = 30
/** Names of metrics-logs.md section 2. */
const PROVIDERS = ['Gmail', 'Google Workspace', 'Yahoo US', 'Yahoo EU']

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
          'Whether a domain follows the rules of Gmail and Yahoo for senders, with figures and what to change',
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
    metrics: ['delivered_count', 'accepted_outgoing_count', 'complained_count'],
  } as const
  const [authentication, totals, days, oneClickOn, bimi] = await Promise.all([
    readAuthentication(core, domain),
    figures.read({ ...query, dimensions: [] }),
    figures.read({
      ...query,
      dimensions: ['time'],
      filter: [...query.filter, { attribute: 'recipient_provider', comparator: '=', values: PROVIDERS }],
    }),
    unsubscribable(domain),
    readBimi(core, domain.name),
  ])
  const counts = totals[0]?.counts
  return {
    domain: domain.name,
    ...authentication,
    delivered: counts ? countOf('delivered_count', counts) : 0,
    complaints: counts ? countOf('complained_count', counts) : 0,
    busiestDay: days.reduce((most, { counts: day }) => Math.max(most, volumeOf(day)), 0),
    oneClickOn,
    bimi,
  }
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
  return {
    spf: valid('spf'),
    dkim: valid('dkim'),
    dmarc: {
      valid: dmarc?.answered ? dmarc.valid : null,
      record: dmarc?.found.find((text) => text.startsWith('v=DMARC1')) ?? '',
      sentence: dmarc?.sentence ?? '',
    },
  }
}

/** TXT at `default._bimi`; null: no answer. */
export async function readBimi(
  { resolver }: Pick<Core, 'resolver'>,
  domainName: string,
): Promise<readonly string[] | null> {
  const answer = await resolver.query(`default._bimi.${domainName}`, 'TXT')
  return ['records', 'nodata', 'nxdomain'].includes(answer.kind) ? answer.records : null
}
