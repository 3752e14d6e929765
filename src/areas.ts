/**
 * The areas of the service, each built from the core and from the areas above it. What each is and does, its own
 * `area.ts` says; a new one is a line here.
 */

import type { Area } from './area.ts'
import type { Clock } from './base/time/clock.ts'
import { backupArea } from './carry/backup/area.ts'
import { exportsArea } from './carry/exports/area.ts'
import { personArea } from './carry/person/area.ts'
import type { Core } from './core.ts'
import { openOverrides } from './mail/deliver/overrides/overrides.ts'
import { openShaping } from './mail/deliver/shaping/shaping.ts'
import { type MessagesArea, messagesArea, type SendingOverrides } from './mail/messages/area.ts'
import { queueApiArea } from './mail/queue/area.ts'
import { createKnownDeliveries } from './mail/stored/known-deliveries.ts'
import { type AccountsArea, accountsArea } from './people/access/area.ts'
import type { Keys } from './people/keys/api-keys.ts'
import { limitNoticesArea, messageLimitsArea } from './people/message-limits/area.ts'
import { oidcArea } from './people/oidc/area.ts'
import { rateLimitsArea } from './people/rate-limits/area.ts'
import { sandboxArea } from './people/sandbox/area.ts'
import { subaccountsArea } from './people/subaccounts/area.ts'
import { usersArea } from './people/users/area.ts'
import type { JobReport } from './platform/jobs/job.ts'
import { bouncesArea } from './receiving/bounces/area.ts'
import { domainReportsArea } from './receiving/domain-reports/area.ts'
import { inboxArea } from './receiving/inbox/area.ts'
import { reportSendingArea } from './receiving/report-sending/area.ts'
import { routesArea } from './receiving/routes/area.ts'
import { snsArea } from './receiving/sns/area.ts'
import { type CertificatesArea, certificatesArea } from './sending/certificates/area.ts'
import { consentArea } from './sending/consent/area.ts'
import { contentCheckArea } from './sending/content-check/area.ts'
import { dnsWritingArea } from './sending/dns-writing/area.ts'
import { type DomainsArea, domainsArea } from './sending/domains/area.ts'
import type { Domain } from './sending/domains/domain.ts'
import { dynamicPoolsArea } from './sending/dynamic-pools/area.ts'
import { ipsArea } from './sending/ips/area.ts'
import { addressesForDomains, openAddresses } from './sending/ips/known-addresses.ts'
import { listsArea } from './sending/lists/area.ts'
import { relaysArea } from './sending/relays/area.ts'
import { standingArea } from './sending/standing/area.ts'
import { openStandings } from './sending/standing/known-standings.ts'
import { suppressionsArea } from './sending/suppressions/area.ts'
import { templatesArea } from './sending/templates/area.ts'
import { trackingArea } from './sending/tracking/area.ts'
import { placementArea } from './tools/placement/area.ts'
import { preflightArea } from './tools/preflight/area.ts'
import { recipientsArea } from './tools/recipients/area.ts'
import { retentionArea } from './tools/retention/area.ts'
import { systemArea } from './tools/system/area.ts'
import { validationArea } from './tools/validation/area.ts'
import { alertsArea } from './watching/alerts/area.ts'
import { blocklistsArea } from './watching/blocklists/area.ts'
import { eventSinksArea } from './watching/event-sinks/area.ts'
import { eventsArea } from './watching/events/area.ts'
import { healthScoreArea } from './watching/health-score/area.ts'
import { logsArea } from './watching/logs/area.ts'
import { metricsArea } from './watching/metrics/area.ts'
import type { Figures } from './watching/metrics/figures.ts'
import { type PrometheusArea, prometheusArea } from './watching/prometheus/area.ts'
import { reputationArea } from './watching/reputation/area.ts'
import { senderRulesArea } from './watching/sender-rules/area.ts'
import { tagsArea } from './watching/tags/area.ts'
import { tlsReportsArea } from './watching/tls-results/area.ts'
import { webhooksArea } from './watching/webhooks/area.ts'

interface AreaParts {
  keys: Keys
  secret: string
  jobs(): Promise<JobReport[]>
  systemClock: Clock
  isExempt: ((address: string) => boolean) | undefined
  sending: SendingOverrides
  /** Figures that alerts on rates are judged by; undefined: the counted ones. */
  figures: Figures | undefined
  /** Further areas, for tests. */
  further: readonly ((core: Core) => Area | Promise<Area>)[]
}

/** Areas that the listeners need by name. */
interface NamedAreas {
  accounts: AccountsArea
  certificates: CertificatesArea
  domains: DomainsArea
  messages: MessagesArea
  prometheus: PrometheusArea
}

/** Adds each area to `areas` as soon as it is built, so that a start that fails can stop those. */
export async function buildAreas(core: Core, parts: AreaParts, areas: Area[]): Promise<NamedAreas> {
  const add = <T extends Area>(area: T): T => {
    areas.push(area)
    return area
  }
  const removals = removalsBy(areas)
  const known = createKnownDeliveries({ ...core, storageUrl: core.config.storageUrl })

  const accounts = add(accountsArea(core, parts.keys, parts.isExempt))
  const addresses = await openAddresses(core.store, core.clock, core.config, core.firstAccountId)
  const domains = add(
    await domainsArea(core, {
      addresses: addressesForDomains(addresses),
      postmasterLogin: accounts.credentials.systemWrite,
      removeAll: removals.ofDomain,
    }),
  )
  const { signingKeys } = domains
  add(dnsWritingArea(core))
  const templates = add(templatesArea(core))
  const lists = add(listsArea(core))
  const { check: suppressions } = add(suppressionsArea(core))
  const webhooks = add(await webhooksArea(core))
  const certificates = add(await certificatesArea(core))
  const { capture, inbox } = add(await inboxArea(core))
  const bounces = add(bouncesArea(core, { known, isOwnHost: domains.isMailHost }))
  add(snsArea(core, bounces))
  const standings = await openStandings({
    ...core,
    deliverers: () => core.nodes.deliveryShare().count,
    isUnknownUser: bounces.isUnknownUser,
    isCaptured: core.config.delivery.kind === 'capture',
  })
  const metrics = add(metricsArea(core, { ...bounces, also: standings.newStepCount }))
  // Below metrics: it keeps the usage of a deleted domain before its counters are removed.
  const messageLimits = add(messageLimitsArea(core))
  const { limits } = messageLimits
  for (const build of [rateLimitsArea, recipientsArea, retentionArea]) add(build(core))
  const { shapingFile: file, dataFolder } = core.config
  const shaping = await openShaping({ file, dataFolder, clock: core.clock, log: core.log })
  const ips = add(ipsArea(core, { known: addresses, figures: metrics.figures, shaping: shaping.current }))
  const siteOverrides = await openOverrides(core)
  const relays = add(await relaysArea(core, { blocks: ips.blocks, overrides: siteOverrides }))
  const { known: tags } = add(tagsArea(core, metrics))
  const tracking = add(await trackingArea(core, { ...certificates, known, lists: lists.store, templates }))
  const { tracker, previewTracker, unsubscribable } = tracking
  const content = add(contentCheckArea(core))
  const { scanners } = content
  const { judge } = bounces
  const { countArchived } = metrics
  const messages = add(
    messagesArea(
      core,
      {
        ...{ signingKeys, tags, templates, lists, suppressions, tracker },
        ...{ judge, capture, limits, ips, shaping, siteOverrides, countArchived },
        relays: relays.engineRelays,
        standings: standings.engine,
        content,
      },
      parts.sending,
    ),
  )
  const { delivery, sendSystemMail: sendMail } = messages
  relays.relays.onChange(delivery.shapingChanged)
  add(consentArea(core, { lists, tracking, sendMail: messages.sendConfirmation }))
  add(usersArea(core, accounts, sendMail))
  add(await oidcArea(core, accounts, sendMail))
  add(sandboxArea(core, sendMail))
  add(limitNoticesArea(core, messageLimits, sendMail))
  add(
    subaccountsArea(core, {
      addAccount: webhooks.addAccount,
      wakeDelivery: delivery.wake,
      removeDomains: domains.removeAllOf,
      removeAll: removals.ofAccount,
    }),
  )
  add(queueApiArea(core, messages, content.holds))
  const { observe } = add(reportSendingArea(core, { sendMime: messages.sendReport }))
  add(routesArea(core, { messages, lists, signingKeys, queue: webhooks.posts, scanners, observe }))
  add(domainReportsArea(core))
  add(dynamicPoolsArea(core, { known: addresses, figures: metrics.figures, assigned: ips.assigned }))
  add(logsArea(core, { ...bounces, figures: metrics.figures }))
  add(healthScoreArea(core, metrics.figures))
  add(backupArea(core, parts.secret))
  const { findings: reputation } = add(reputationArea(core, addresses))
  const blocklists = add(blocklistsArea(core, { known: addresses, blocks: ips.blocks }))
  const { known: sinks } = add(eventSinksArea(core))
  const alerts = add(
    alertsArea(core, {
      ...{ webhooks, certificates, bounces, figures: parts.figures ?? metrics.figures },
      ...{ userDirectory: accounts.userDirectory, delivery, sendMail },
      ...{ blocks: ips.blocks, relays, content, standings, reputation, blocklists, sinks },
    }),
  )
  blocklists.notifyBy(alerts.events)
  add(
    standingArea(core, {
      ...{ known: standings, wakeDelivery: delivery.wake, sendMail },
      notices: alerts.events,
      contentFigures: content.check && content.figures,
    }),
  )
  add(validationArea(core, { lists: lists.store, judge, events: alerts.events }))
  const trial = { accept: messages.accept, tracker: previewTracker, scanners }
  add(placementArea(core, { ...trial, usageLimits: alerts.usageLimits }))
  add(senderRulesArea(core, { ...metrics, unsubscribable }))
  add(preflightArea(core, { ...trial, inbox }))
  add(tlsReportsArea(core, { sendMime: messages.sendReport, posts: webhooks.posts }))
  add(systemArea(core, { ...parts, bounces, certificates, alerts, relays: relays.states, scanners }))
  add(exportsArea(core, () => areas.flatMap(({ operations = [] }) => operations)))
  add(personArea(core, messages))
  const prometheus = add(
    prometheusArea(core, { delivery, alerts, jobs: parts.jobs, relays: relays.states, content, sinks }),
  )
  for (const build of parts.further) add(await build(core))
  // Last: it keeps events for the followers of all.
  const followers = areas.flatMap(({ follower }) => follower ?? [])
  add(await eventsArea(core, followers))
  return { accounts, certificates, domains, messages, prometheus }
}

/** Removes what is held of a domain or an account by all areas, in reverse order. */
const removalsBy = (areas: readonly Area[]) => ({
  async ofDomain(domain: Domain): Promise<void> {
    for (const area of areas.toReversed()) await area.domainDeleted?.(domain)
  },
  async ofAccount(accountId: string, signal: AbortSignal): Promise<void> {
    for (const area of areas.toReversed()) {
      signal.throwIfAborted()
      await area.accountDeleted?.(accountId, signal)
    }
  },
})
