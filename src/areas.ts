/**
 * The areas of the service, each built from the core and from the areas above it. What each is and does, its own
 * `area.ts` says; a new one is a line here.
 */
import type { Keys } from './accounts/api-keys.ts'
import { type AccountsArea, accountsArea } from './accounts/area.ts'
import { oidcArea } from './accounts/oidc/area.ts'
import { sandboxArea } from './accounts/sandbox/area.ts'
import { subaccountsArea } from './accounts/subaccounts/area.ts'
import { usersArea } from './accounts/users/area.ts'
import { alertsArea } from './alerts/area.ts'
import type { Area } from './area.ts'
import { backupArea } from './backup/area.ts'
import type { Clock } from './base/clock.ts'
import { bouncesArea } from './bounces/area.ts'
import { type CertificatesArea, certificatesArea } from './certificates/area.ts'
import type { Core } from './core.ts'
import { openShaping } from './delivery/shaping/shaping.ts'
import { domainReportsArea } from './domain-reports/area.ts'
import { type DomainsArea, domainsArea } from './domains/area.ts'
import { dynamicPoolsArea } from './dynamic-pools/area.ts'
import { eventsArea } from './events/area.ts'
import { inboxArea } from './inbox/area.ts'
import { ipsArea } from './ips/area.ts'
import { addressesForDomains, openAddresses } from './ips/known-addresses.ts'
import type { JobReport } from './jobs/job-context.ts'
import { listsArea } from './lists/area.ts'
import { logsArea } from './logs/area.ts'
import { limitNoticesArea, messageLimitsArea } from './message-limits/area.ts'
import { type MessagesArea, messagesArea, type SendingOverrides } from './messages/area.ts'
import { createKnownDeliveries } from './messages/stored/known-deliveries.ts'
import { metricsArea } from './metrics/area.ts'
import type { Figures } from './metrics/figures.ts'
import { placementArea } from './placement/area.ts'
import { preflightArea } from './preflight/area.ts'
import { type PrometheusArea, prometheusArea } from './prometheus/area.ts'
import { queueApiArea } from './queue-api/area.ts'
import { rateLimitsArea } from './rate-limits/area.ts'
import { routesArea } from './routes/area.ts'
import { senderRulesArea } from './sender-rules/area.ts'
import { suppressionsArea } from './suppressions/area.ts'
import { systemArea } from './system/area.ts'
import { tagsArea } from './tags/area.ts'
import { templatesArea } from './templates/area.ts'
import { tlsReportsArea } from './tls-reports/area.ts'
import { trackingArea } from './tracking/area.ts'
import { validationArea } from './validation/area.ts'
import { webhooksArea } from './webhooks/area.ts'

export interface AreaParts {
  keys: Keys
  secret: string
  jobs(): Promise<JobReport[]>
  systemClock: Clock
  isExempt: ((address: string) => boolean) | undefined
  sending: SendingOverrides
  /** Of alerts on rates; undefined: those that are counted. */
  figures: Figures | undefined
  /** Further areas, for tests. */
  further: readonly ((core: Core) => Area | Promise<Area>)[]
}

/** Those that the listeners need by name. */
export interface NamedAreas {
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
  const known = createKnownDeliveries({ ...core, storageUrl: core.config.storageUrl })

  const accounts = add(accountsArea(core, parts.keys, parts.isExempt))
  const addresses = await openAddresses(core.store, core.clock, core.config, core.firstAccountId)
  const domains = add(
    await domainsArea(core, {
      addresses: addressesForDomains(addresses),
      setPostmasterPassword: accounts.credentials.setSystem,
      async removeAll(domain) {
        for (const area of areas.toReversed()) await area.domainDeleted?.(domain)
      },
    }),
  )
  const { signingKeys } = domains
  const templates = add(templatesArea(core))
  const lists = add(listsArea(core))
  const { check: suppressions } = add(suppressionsArea(core))
  const webhooks = add(await webhooksArea(core))
  const certificates = add(await certificatesArea(core))
  const { capture } = add(await inboxArea(core))
  const bounces = add(bouncesArea(core, { known, isOwnHost: domains.isMailHost }))
  const metrics = add(metricsArea(core, bounces))
  // Below metrics: it keeps the usage of a deleted domain before its counters are removed.
  const messageLimits = add(messageLimitsArea(core))
  const { limits } = messageLimits
  add(rateLimitsArea(core))
  const shaping = await openShaping({
    ...{ file: core.config.shapingFile, dataFolder: core.config.dataFolder },
    ...{ clock: core.clock, log: core.log },
  })
  const ips = add(ipsArea(core, { known: addresses, figures: metrics.figures, shaping: shaping.current }))
  const { known: tags } = add(tagsArea(core, metrics))
  const { tracker, previewTracker, unsubscribable } = add(
    await trackingArea(core, { ...certificates, known, lists: lists.store }),
  )
  const { judge } = bounces
  const { countArchived } = metrics
  const messages = add(
    await messagesArea(
      core,
      {
        ...{ signingKeys, tags, templates, lists, suppressions, tracker },
        ...{ judge, capture, limits, ips, shaping, countArchived },
      },
      parts.sending,
    ),
  )
  add(usersArea(core, accounts, messages.sendSystemMail))
  add(oidcArea(core, accounts, messages.sendSystemMail))
  add(sandboxArea(core, messages.sendSystemMail))
  add(limitNoticesArea(core, messageLimits, messages.sendSystemMail))
  add(
    subaccountsArea(core, {
      addAccount: webhooks.addAccount,
      wakeDelivery: messages.delivery.wake,
      removeDomains: domains.removeAllOf,
      async removeAll(accountId, signal) {
        for (const area of areas.toReversed()) {
          signal.throwIfAborted()
          await area.accountDeleted?.(accountId, signal)
        }
      },
    }),
  )
  add(queueApiArea(core, messages))
  add(routesArea(core, { messages, lists, signingKeys, queue: webhooks.posts }))
  add(domainReportsArea(core))
  add(dynamicPoolsArea(core, { known: addresses, figures: metrics.figures, assigned: ips.assigned }))
  add(logsArea(core, { ...bounces, figures: metrics.figures }))
  add(backupArea(core, parts.secret))
  const alerts = add(
    alertsArea(core, {
      ...{ webhooks, certificates, bounces, figures: parts.figures ?? metrics.figures },
      userDirectory: accounts.userDirectory,
      delivery: messages.delivery,
      blocks: ips.blocks,
      sendMail: messages.sendSystemMail,
    }),
  )
  add(validationArea(core, { lists: lists.store, judge, events: alerts.events }))
  add(placementArea(core, { accept: messages.accept, tracker: previewTracker }))
  add(senderRulesArea(core, { ...metrics, unsubscribable }))
  add(preflightArea(core, { accept: messages.accept, tracker: previewTracker }))
  add(tlsReportsArea(core, { sendMime: messages.sendTlsReport, posts: webhooks.posts }))
  add(systemArea(core, { ...parts, bounces, certificates, alerts }))
  const prometheus = add(prometheusArea(core, { delivery: messages.delivery, alerts, jobs: parts.jobs }))
  for (const build of parts.further) add(await build(core))
  // Last: it keeps events for the followers of all.
  add(
    await eventsArea(
      core,
      areas.flatMap(({ follower }) => follower ?? []),
    ),
  )
  return { accounts, certificates, domains, messages, prometheus }
}
