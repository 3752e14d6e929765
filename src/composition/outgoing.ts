/** Puts together what leaves by HTTP, and the resolver. */
import { newId } from '../base/ids.ts'
import { parseCidr } from '../base/ip.ts'
import { createResolver } from '../dns/resolver.ts'
import { systemServers } from '../dns/system-servers.ts'
import { createHostNames } from '../outgoing/host-names.ts'
import { createHttpClient } from '../outgoing/http-client.ts'
import { createPostQueue } from '../outgoing/post-queue.ts'
import { createPoster } from '../outgoing/poster.ts'
import { accountWebhookRoutes } from '../webhooks/account-routes.ts'
import { createAccountWebhooks } from '../webhooks/account-webhooks.ts'
import { attemptRoutes } from '../webhooks/attempt-routes.ts'
import { createAttemptLog } from '../webhooks/attempts.ts'
import { domainWebhookRoutes } from '../webhooks/domain-routes.ts'
import { createDomainWebhooks } from '../webhooks/domain-webhooks.ts'
import { createRegistry } from '../webhooks/registry.ts'
import { signingKeyRoutes } from '../webhooks/signing-key.ts'
import { createWebhookKind, createWebhooks, WEBHOOK } from '../webhooks/webhooks.ts'
import type { Closers, Core } from './core.ts'

/** A POST that is cut off is repeated after the next start, under the same event id. */
const OUTGOING_DRAIN_MS = 3_000

/** A host that is set up with no name server has one of its own, resolv.conf(5). */
const LOCAL_DNS = { host: '127.0.0.1', port: 53 }

export type Outgoing = Awaited<ReturnType<typeof startOutgoing>>

/** What leaves by HTTP: the client that every area shares, the queue of POSTs, webhooks; and the resolver. */
export async function startOutgoing(core: Core, open: Closers) {
  const { config, log, clock, store, sealer, domains } = core
  const { headerPrefix, storageUrl } = config
  const servers = config.dnsServers ?? systemServers()
  const resolver = createResolver({ servers: servers.length > 0 ? servers : [LOCAL_DNS], clock })
  open.push(() => resolver.close())
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  const client = createHttpClient({ resolve: createHostNames(resolver, clock), allow, clock })
  open.push(() => client.close())
  const registry = createRegistry(store, sealer, clock, log)
  open.push(() => registry.stop())
  await registry.start()
  const common = { store, sealer, registry, clock, headerPrefix }
  const webhookKind = createWebhookKind({
    ...common,
    scheduleMs: config.webhookScheduleMs,
    retryDelivered: config.webhookRetryDelivered,
  })
  const queue = createPostQueue({
    store,
    client,
    clock,
    log,
    owner: newId(),
    kinds: { [WEBHOOK]: webhookKind },
  })
  open.push(() => queue.stop(OUTGOING_DRAIN_MS))
  const attempts = createAttemptLog(store, clock, log)
  open.push(() => attempts.stop())
  const webhooks = createWebhooks({ ...common, queue, client, storageUrl })
  const stored = createDomainWebhooks(store, sealer, registry)
  return {
    resolver,
    allow,
    client,
    poster: createPoster(client),
    registry,
    webhooks,
    routes: [
      ...domainWebhookRoutes({ domains, stored, client, webhooks }),
      ...accountWebhookRoutes(createAccountWebhooks(store, sealer, registry, clock), client),
      ...attemptRoutes({ attempts, webhooks, domains, clock, baseUrl: config.publicUrl }),
      ...signingKeyRoutes({ store, sealer }),
    ],
    async start() {
      attempts.start()
      await queue.start()
    },
  }
}
