/** Domains: their DNS checks, DKIM keys, rotation and deletion. */

import type { Area } from '../../area.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { removeIndexedRows } from '../../platform/store/account-rows.ts'
import { type Responder, startResponder } from '../../protocols/dns/responder.ts'
import { createDnsChecks } from './background.ts'
import type { SendingAddresses } from './create-domain.ts'
import { createDeletionJob, deleteDomainsOf, type OnDomainDeleted } from './deletion.ts'
import { domainDeliveryRoutes } from './delivery-routes.ts'
import { ownHostsOf } from './dns/own-hosts.ts'
import { createOwnRecordLooks } from './dns/own-record-looks.ts'
import { dkimZone } from './keys/dkim-zone.ts'
import { removeKeys } from './keys/on-domain-deleted.ts'
import { createRotations } from './keys/rotation.ts'
import { rotationRoutes } from './keys/rotation-routes.ts'
import { domainKeyRoutes } from './keys/routes.ts'
import { createSigningKeys, type SigningKeys } from './keys/signing-keys.ts'
import { isProven, ownerOf } from './names/name-owner.ts'
import { type DomainRouteParts, domainRoutes } from './routes.ts'

export interface DomainsArea extends Area {
  signingKeys: SigningKeys
  /** Whether mail to that host, in lower case, is for this service. */
  isMailHost(host: string): Promise<boolean>
  /** The account that owns that host, in lower case, and gets its mail; null: none. */
  accountOfMailHost(host: string): Promise<string | null>
  /** Deletes all domains of a closed account. False while something of them is left. */
  removeAllOf(accountId: string): Promise<boolean>
}

interface DomainsUses {
  postmasterLogin: DomainRouteParts['postmasterLogin']
  addresses: SendingAddresses
  /** Removes what all areas hold of a deleted domain. */
  removeAll: OnDomainDeleted
}

export async function domainsArea(
  core: Core,
  { postmasterLogin, removeAll, addresses }: DomainsUses,
): Promise<DomainsArea> {
  const { config, log, clock, store, sealer, domains, resolver, allow, limiter, httpClient } = core
  const signingKeys = createSigningKeys(store, sealer, clock)
  const { dnsTargets: targets } = config
  const dns = { resolver, allow, targets, spfIncludeHost: targets.spfIncludeHost }
  const common = { ...dns, store, sealer, clock, log, domains, signingKeys }
  const deletion = createDeletionJob({ store, domains, clock, log, removeAll })
  const ownRecords = createOwnRecordLooks(core)
  const parts = {
    ...common,
    limiter,
    ownRecords,
    removeAll,
    maxDomains: config.maxDomains,
    maxMessageTtlSeconds: config.maxMessageTtlSeconds,
    graceMs: config.dkimGraceDays * DAY_MS,
    ownHosts: ownHostsOf(config),
    publicUrl: config.publicUrl,
    addresses,
    httpClient,
    postmasterLogin,
    wakeDeletion: () => deletion.wake(),
  }
  const responder = await startZone(core)
  return {
    signingKeys,
    isMailHost: async (host) =>
      host === config.hostname.toLowerCase() ||
      (await domains.byName(host)) !== null ||
      (await accountOfMailHost(core, host)) !== null,
    accountOfMailHost: (host) => accountOfMailHost(core, host),
    async removeAllOf(accountId) {
      const isDone = await deleteDomainsOf(parts, accountId)
      if (!isDone) deletion.wake()
      return isDone
    },
    operations: [
      ...domainRoutes(parts),
      ...domainDeliveryRoutes(parts),
      ...domainKeyRoutes({ ...common, baseUrl: config.publicUrl }),
      ...rotationRoutes(common),
    ],
    jobs: [deletion, createDnsChecks(common), createRotations(common), ownRecords.job],
    domainDeleted: removeKeys(store, signingKeys),
    // Those of authorities that never became a domain.
    accountDeleted: (accountId, signal) =>
      removeIndexedRows(core, 'dkim_keys', ['id'], 'account_id', accountId, signal),
    stop: () => responder?.close(),
  }
}

/** The account that owns the host, if mail may come to it: as a domain, below one with `wildcard`, or as a return-path host. */
async function accountOfMailHost({ store, domains }: Core, host: string): Promise<string | null> {
  const owner = await ownerOf(domains, host)
  if (owner === null || !isProven(owner)) return null
  const { accountId, name, wildcard } = owner
  if (name === host || wildcard) return accountId
  const returnPath = store.db
    .selectFrom('domains')
    .select('id')
    .where('mailfrom_host', '=', host)
    .where('account_id', '=', accountId)
    .limit(1)
  return (await returnPath.executeTakeFirst()) === undefined ? null : accountId
}

/** The name server of delegated DKIM records; null where that is off. */
async function startZone({ config, store }: Core): Promise<Responder | null> {
  if (!config.dkimZoneListen || !config.dnsTargets.dkimZone) return null
  const zone = dkimZone(store, config.dnsTargets.dkimZone, config.hostname)
  return startResponder(config.dkimZoneListen, zone)
}
