/** Puts together domains, their keys and tracking settings: operations, and the work in the background. */
import { removeSendingKeys } from '../accounts/on-domain-deleted.ts'
import type { Config } from '../config.ts'
import { startResponder } from '../dns/responder.ts'
import { dkimZone } from '../domain-keys/dkim-zone.ts'
import { removeKeys } from '../domain-keys/on-domain-deleted.ts'
import { createRotations } from '../domain-keys/rotation.ts'
import { rotationRoutes } from '../domain-keys/rotation-routes.ts'
import { domainKeyRoutes } from '../domain-keys/routes.ts'
import { createDnsChecks } from '../domains/background.ts'
import { createDeletionJob, type OnDomainDeleted } from '../domains/deletion.ts'
import { domainDeliveryRoutes } from '../domains/delivery-routes.ts'
import { ownHostsOf } from '../domains/own-hosts.ts'
import { domainRoutes } from '../domains/routes.ts'
import type { Operation } from '../http/operation.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { cancelExpansions } from '../lists/expansion-job.ts'
import { removeMail } from '../messages/on-domain-deleted.ts'
import { domainStatements } from '../suppressions/store.ts'
import type { TemplateService } from '../templates/service.ts'
import type { TrackingDirectory } from '../tracking/settings.ts'
import { trackingSettingsRoutes } from '../tracking/settings-routes.ts'
import { removeDomainWebhooks } from '../webhooks/domain-webhooks.ts'
import type { Bounces } from './bounces.ts'
import type { Certificates } from './certificates.ts'
import type { Closers, Core } from './core.ts'
import type { Counters } from './counters.ts'
import type { Mail } from './mail.ts'
import type { Outgoing } from './outgoing.ts'

/** Domains, their keys and tracking settings: operations, and the work in the background. */
export async function startDomains(
  core: Core,
  { resolver, allow, signingKeys, sending, credentials, imports, past, tags }: Mail,
  { registry }: Outgoing,
  bounces: Bounces,
  counters: Counters,
  templates: TemplateService,
  tracking: TrackingDirectory,
  firstAccountId: string,
  limiter: RateLimiter,
  certificates: Certificates,
  open: Closers,
): Promise<{ routes: Operation[] }> {
  const { config, log, clock, store, blobs, sealer, domains } = core
  const onDeleted: OnDomainDeleted[] = [
    // First, so that no further copies of posts come behind the removal of the mail. The lists themselves
    // stay, for the day the domain is made again (domains.md rule 24).
    async ({ id }) => void (await store.commit(cancelExpansions(id))),
    removeMail({
      store,
      blobs,
      records: sending.records,
      storageUrl: config.storageUrl,
      now: () => clock.now(),
    }),
    ({ id }) => past.removeDomain(id),
    (domain) => tracking.remove(domain.id),
    (domain) => certificates.removeDomain(domain.id),
    removeSendingKeys(store),
    credentials.forgetDomain,
    ({ id }) => imports.forgetDomain(id),
    bounces.forgetDomain,
    counters.forgetDomain,
    ({ id }) => tags.forgetDomain(id),
    async (domain) => void (await store.commit(domainStatements(domain.id))),
    ({ accountId, id, name }) => templates.removeAll({ accountId, domain: { id, name } }),
    removeKeys(store, signingKeys),
    async (domain) => {
      await store.commit(removeDomainWebhooks(domain))
      await registry.refresh()
    },
  ]
  const dns = {
    resolver,
    allow,
    targets: config.dnsTargets,
    spfIncludeHost: config.dnsTargets.spfIncludeHost,
  }
  const common = { ...dns, store, sealer, clock, log, domains, signingKeys }
  const deletion = createDeletionJob({ store, domains, clock, log, onDeleted })
  const background = [deletion, createDnsChecks(common), createRotations(common)]
  if (config.dkimZoneListen && config.dnsTargets.dkimZone) {
    const zone = dkimZone(store, config.dnsTargets.dkimZone, config.hostname)
    const responder = await startResponder(config.dkimZoneListen, zone)
    open.push(() => responder.close())
  }
  for (const job of background) {
    job.start()
    open.push(() => job.stop())
  }
  const parts = {
    ...common,
    limiter,
    onDeleted,
    maxDomains: config.maxDomains,
    maxMessageTtlSeconds: config.maxMessageTtlSeconds,
    graceMs: config.dkimGraceDays * 24 * 3_600_000,
    ownHosts: ownHostsOf(config),
    addresses: configuredAddresses(config, firstAccountId),
    setPostmasterPassword: credentials.setSystem,
    wakeDeletion: () => deletion.wake(),
  }
  return {
    routes: [
      ...domainRoutes(parts),
      ...domainDeliveryRoutes(parts),
      ...domainKeyRoutes({ ...common, baseUrl: config.publicUrl }),
      ...rotationRoutes(common),
      ...trackingSettingsRoutes({ domains, tracking }),
      ...certificates.routes,
    ],
  }
}

/** The addresses of SENDWRIGHT_IPS: shared ones are everybody's, the others the first account's. */
function configuredAddresses({ sourceAddresses }: Config, firstAccountId: string) {
  return {
    isAssigned: async (accountId: string, ip: string) =>
      sourceAddresses.some(
        (address) => address.ip === ip && (address.shared || accountId === firstAccountId),
      ),
    hasPool: async () => false,
  }
}
