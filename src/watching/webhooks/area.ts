/** Webhooks: registrations, the posts that events lead to, and the log of attempts. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createPostQueue, type PostQueue } from '../../platform/posts/post-queue.ts'
import { removeIndexedRows, removeRowsInPass } from '../../platform/store/account-rows.ts'
import { accountWebhookRoutes } from './account-routes.ts'
import { createAccountWebhooks } from './account-webhooks.ts'
import { attemptRoutes } from './attempt-routes.ts'
import { createAttemptLog } from './attempts.ts'
import { domainWebhookRoutes } from './domain-routes.ts'
import { createDomainWebhooks, removeDomainWebhooks } from './domain-webhooks.ts'
import { createRegistry, type Registry } from './registry.ts'
import { signingKeyRoutes } from './signing-key.ts'
import { createWebhookKind, createWebhooks, failingEndpoints, WEBHOOK } from './webhooks.ts'

/** A POST that is cut off is repeated after the next start, under the same event id. */
const DRAIN_MS = 3_000

export interface WebhooksArea extends Area {
  /** The one queue of POSTs, which other areas add their kinds to. */
  posts: PostQueue
  /** Endpoints that have taken nothing since a time in Unix milliseconds. */
  failingEndpoints(since: number): ReturnType<typeof failingEndpoints>
  /** A transaction that adds a subaccount: the webhooks of its parent get its first event. */
  addAccount: Registry['change']
}

export async function webhooksArea(core: Core): Promise<WebhooksArea> {
  const { config, log, clock, store, sealer, domains, httpClient: client, leaseOwner: owner, tracing } = core
  const { headerPrefix, storageUrl } = config
  const registry = createRegistry(store, sealer, clock, log)
  await registry.start()
  const common = { store, sealer, registry, clock, headerPrefix }
  const kind = createWebhookKind({
    ...common,
    scheduleMs: config.webhookScheduleMs,
    retryDelivered: config.webhookRetryDelivered,
    isTracing: tracing !== undefined,
  })
  const posts = createPostQueue({
    ...{ store, client, clock, log, owner, tracing },
    isOff: !config.roles.includes('jobs'),
  })
  core.nodes.onReturned(() => posts.leasesReturned())
  posts.addKind(WEBHOOK, kind)
  const attempts = createAttemptLog(store, clock, config.webhookRetentionBytes)
  const webhooks = createWebhooks({ ...common, queue: posts, client, storageUrl })
  const stored = createDomainWebhooks(store, sealer, registry)
  return {
    posts,
    failingEndpoints: (since) => failingEndpoints(store, since),
    addAccount: registry.change,
    operations: [
      ...domainWebhookRoutes({ domains, stored, client, webhooks }),
      ...accountWebhookRoutes(createAccountWebhooks(store, sealer, registry, clock), client),
      ...attemptRoutes({ attempts, webhooks, domains, clock, baseUrl: config.publicUrl }),
      ...signingKeyRoutes({ store, sealer }),
    ],
    jobs: [attempts.job],
    withEvents: { of: null, rows: webhooks.outboxStatements },
    async domainDeleted(domain) {
      await store.commit(removeDomainWebhooks(domain))
      await registry.refresh()
    },
    async accountDeleted(accountId, signal) {
      await registry.change(async (tx) => {
        for (const table of ['domain_webhooks', 'account_webhooks'] as const)
          await tx.deleteFrom(table).where('account_id', '=', accountId).execute()
      })
      await removeRowsInPass(core, 'outgoing_posts', 'id', accountId, signal)
      await removeIndexedRows(core, 'webhook_attempts', ['id'], 'account_id', accountId, signal)
    },
    start: () => posts.start(),
    async stop() {
      await posts.stop(DRAIN_MS)
      registry.stop()
    },
  }
}
