/** Routes: rules for received mail, its reception and its POSTs. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { MessagesArea } from '../../mail/messages/area.ts'
import type { PostQueue } from '../../platform/posts/post-queue.ts'
import type { ContentCheckArea } from '../../sending/content-check/area.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import type { ListsArea } from '../../sending/lists/area.ts'
import { createForwardedCopies } from './forward/forwarded-copies.ts'
import { createRoutePosts } from './forward/posts.ts'
import { createGreylist } from './greylist.ts'
import { createListPosts } from './list-posts.ts'
import { createMailCheck, type FindingObserver } from './mail-check.ts'
import { WorkTurns } from './match/pattern-work.ts'
import { createRouteReception } from './reception.ts'
import { routeRoutes } from './routes.ts'
import { createRoutes } from './service.ts'
import { createSpamScorer } from './spam/scoring.ts'
import { createKnownRoutes, createRouteStore } from './store.ts'

interface RoutesUses {
  messages: Pick<MessagesArea, 'accept' | 'received' | 'records' | 'largeTexts'>
  lists: Pick<ListsArea, 'store' | 'listDomains'>
  signingKeys: SigningKeys
  queue: PostQueue
  scanners: ContentCheckArea['scanners']
  /** Gets the results of mail that is checked here; undefined: nobody wants to know. */
  observe: FindingObserver | undefined
}

export function routesArea(
  core: Core,
  { messages, lists, signingKeys, queue, scanners, observe }: RoutesUses,
): Area {
  const { config, store, sealer, clock, log, httpClient: client } = core
  const { hostname, headerPrefix, headerPrefixAliases, acceptUnrouted, storageUrl } = config
  const table = createRouteStore(store, sealer)
  const known = createKnownRoutes(table, clock, core.store.changes)
  const greylist = createGreylist(store, clock)
  const turns = new WorkTurns()
  const copies = createForwardedCopies(store, clock)
  const posts = createRoutePosts({
    ...core,
    queue,
    records: messages.records,
    largeTexts: messages.largeTexts,
    storageUrl,
    scheduleMs: config.inboundScheduleMs,
  })
  return {
    operations: routeRoutes(createRoutes({ table, known, client, clock, turns }), table),
    mailReader: createRouteReception({
      ...core,
      known,
      posts,
      signingKeys,
      received: messages.received,
      check: createMailCheck({ resolver: core.resolver, hostname, clock, log, observe }),
      score: createSpamScorer({ ...core, scanners }),
      virus: scanners.virus,
      hostname,
      headerPrefix,
      headerPrefixAliases,
      acceptUnrouted,
      lists: createListPosts({
        ...core,
        ...{ lists: lists.store, listDomains: lists.listDomains, headerPrefix },
        queueLimits: messages.accept.queueLimits,
        unlimited: config.rateLimit === null,
      }),
      greylist: config.greylist ? greylist : null,
      copies,
      turns,
    }),
    jobs: [greylist.job, copies.job],
    domainDeleted: ({ id }) => posts.removeDomain(id),
    stop: () => posts.close(),
    async accountDeleted(accountId) {
      await table.removeAll(accountId)
      known.changed(accountId)
    },
  }
}
