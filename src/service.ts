/**
 * The composition root: builds every part from the configuration by plain calls, starts and stops them. No
 * other file knows all parts.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { ensureFirstAccount, type FirstAccount } from './accounts/first-start.ts'
import { createKeys, type Keys } from './accounts/keys.ts'
import { localKey } from './accounts/local-key.ts'
import { accountRoutes } from './accounts/routes.ts'
import { createSessions, type Sessions } from './accounts/sessions.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { newId } from './base/ids.ts'
import { parseCidr } from './base/ip.ts'
import type { Config } from './config.ts'
import { createDelivery, type Delivery } from './delivery/engine.ts'
import { createQueue } from './delivery/queue.ts'
import { deliveryOfReturnPath } from './delivery/return-path.ts'
import { createTransport, type Routing } from './delivery/transport.ts'
import { createResolver, type Resolver } from './dns/resolver.ts'
import { systemServers } from './dns/system-servers.ts'
import { createSigningKeys } from './domain-keys/signing-keys.ts'
import { createSandbox } from './domains/create-domain.ts'
import { createDomainDirectory, type DomainDirectory } from './domains/directory.ts'
import { domainRoutes } from './domains/routes.ts'
import { eventRoutes } from './events/routes.ts'
import type { Authenticator } from './http/auth.ts'
import type { Operation } from './http/operation.ts'
import { readPages } from './http/pages.ts'
import { createRateLimiter, DEFAULT_LIMITS } from './http/rate-limit.ts'
import { createHttpServer, type HttpServer } from './http/server.ts'
import { verifyOwnSignatures } from './inbox/authentication.ts'
import { createInbox } from './inbox/inbox.ts'
import { type CaptureListener, startCaptureListener } from './inbox/listener.ts'
import { inboxRoutes } from './inbox/routes.ts'
import type { AcceptParts } from './messages/accept.ts'
import { prepareDelivery } from './messages/prepare.ts'
import { createMessageRecords } from './messages/records.ts'
import { messageRoutes } from './messages/routes.ts'
import { createHostNames } from './outgoing/host-names.ts'
import { createHttpClient, type HttpClient } from './outgoing/http-client.ts'
import { createPostQueue } from './outgoing/post-queue.ts'
import { type BlobStore, openBlobs } from './store/blobs.ts'
import { openStore } from './store/open-store.ts'
import { createSealer, loadSecret, type Sealer } from './store/sealing.ts'
import type { Store } from './store/store.ts'
import { accountWebhookRoutes } from './webhooks/account-routes.ts'
import { createAccountWebhooks } from './webhooks/account-webhooks.ts'
import { attemptRoutes } from './webhooks/attempt-routes.ts'
import { createAttemptLog } from './webhooks/attempts.ts'
import { domainWebhookRoutes } from './webhooks/domain-routes.ts'
import { createDomainWebhooks } from './webhooks/domain-webhooks.ts'
import { createRegistry } from './webhooks/registry.ts'
import { signingKeyRoutes } from './webhooks/signing-key.ts'
import { createWebhookKind, createWebhooks, WEBHOOK, type Webhooks } from './webhooks/webhooks.ts'

export interface Service {
  /** Port of the HTTP listener, also when the configured one was 0. */
  port: number
  first: FirstAccount
  sessions: Sessions
  /** Finishes what is running, within about 30 seconds, and closes everything. */
  stop(): Promise<void>
}

/** Things that tests replace; the rest is real. */
export interface ServiceOverrides {
  clock?: Clock
  random?: () => number
}

/** Attempts get this long to end on a stop; R12 allows 30 s for all of it. */
const DRAIN_MS = 20_000
/** A POST that is cut off is repeated after the next start, under the same event id. */
const OUTGOING_DRAIN_MS = 3_000

/** Starts the whole service. What was opened before a failing step is closed again. */
export async function startService(
  config: Config,
  log: Logger,
  overrides: ServiceOverrides = {},
): Promise<Service> {
  const clock = overrides.clock ?? systemClock
  const random = overrides.random ?? Math.random
  /** Closers of what is open, run from the last to the first. */
  const open: (() => Promise<void> | void)[] = []
  const stop = async () => {
    for (const close of open.splice(0).reverse()) {
      await Promise.resolve(close()).catch((error: unknown) =>
        log.error({ err: error }, 'cannot stop a part'),
      )
    }
  }
  try {
    const sealer = createSealer(loadSecret(config.secret, config.dataFolder))
    const store = await openStore(config)
    open.push(() => store.close())
    const blobs = await openBlobs(config.dataFolder)
    const keys = createKeys(store, sealer, clock)
    const sessions = createSessions(store, sealer, clock)
    const domains = createDomainDirectory(store, clock)
    const first = await ensureFirstAccount(
      {
        store,
        sealer,
        keys,
        clock,
        createSandbox: (id, name) => createSandbox({ store, sealer, clock }, id, name),
      },
      config.apiKey,
    )
    const core = { config, log, clock, random, store, blobs, sealer, domains }
    const outgoing = await startOutgoing(core, open)
    const parts = await startParts(core, outgoing, open)
    const authenticator = createAuthenticator(keys, sessions, localKey(sealer), first.accountId)
    const http = createHttp(core, authenticator)
    http.register([
      ...messageRoutes({
        ...parts.accept,
        headerPrefixes: [config.headerPrefix, ...config.headerPrefixAliases],
      }),
      ...eventRoutes({ store, domains, clock, sealer, baseUrl: config.publicUrl }),
      ...domainRoutes({ store, domains }),
      ...outgoing.routes,
      ...inboxRoutes(parts.inbox, config.publicUrl),
      ...accountRoutes({
        keys,
        sessions,
        publicUrl: config.publicUrl,
        ownsDomain: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
        describeSystem: () => describeSystem(core),
      }),
    ])
    const { port } = await http.listen()
    open.push(() => http.close())
    await outgoing.start()
    await parts.delivery.start()
    return { port, first, sessions, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Core {
  config: Config
  log: Logger
  clock: Clock
  random: () => number
  store: Store
  blobs: BlobStore
  sealer: Sealer
  domains: DomainDirectory
}

/** The parts behind the API: captured mail, and the way of a message from acceptance to a server. */
async function startParts(core: Core, { webhooks }: Outgoing, open: (() => Promise<void> | void)[]) {
  const { config, log, clock, random, store, blobs, sealer, domains } = core
  const { headerPrefix, storageUrl } = config
  const returnPathMac = (data: Uint8Array) => sealer.mac('return-path', data)
  const inbox = createInbox({
    store,
    blobs,
    clock,
    headerPrefix,
    ownerOf: (returnPath) => ownerOf(store, deliveryOfReturnPath(returnPath, returnPathMac)),
    authenticate: (raw) => verifyOwnSignatures(raw, store),
  })
  let capture: CaptureListener | null = null
  if (config.delivery.kind === 'capture') {
    const listener = await startCaptureListener(inbox.receive, log)
    open.push(() => listener.close())
    capture = listener
  }
  const records = createMessageRecords(store, blobs)
  const signingKeys = createSigningKeys(store, sealer, clock)
  const prepareParts = {
    records,
    domains,
    signingKeys,
    blobs,
    clock,
    returnPathMac,
    headerPrefix,
    storageUrl,
  }
  const delivery: Delivery = createDelivery({
    queue: createQueue(store, newId()),
    transport: createTransport({
      routing: routingOf(config, capture, clock, open),
      heloName: config.hostname,
      clock,
      random,
    }),
    prepare: (claimed) => prepareDelivery(prepareParts, claimed),
    consequences: (_delivery, events) => webhooks.outboxStatements(events),
    clock,
    log,
    random,
    retryScheduleMs: config.retryScheduleMs,
  })
  open.push(() => delivery.stop(DRAIN_MS))
  const accept: AcceptParts = {
    store,
    blobs,
    domains,
    records,
    clock,
    headerPrefix,
    storageUrl,
    allowUnverified: config.delivery.kind === 'capture',
    wakeDelivery: () => delivery.wake(),
    outbox: (events) => webhooks.outboxStatements(events),
  }
  return { inbox, delivery, accept }
}

interface Outgoing {
  client: HttpClient
  webhooks: Webhooks
  routes: Operation[]
  start(): Promise<void>
}

/** What leaves by HTTP: the client that every area shares, the queue of POSTs, webhooks. */
async function startOutgoing(core: Core, open: (() => Promise<void> | void)[]): Promise<Outgoing> {
  const { config, log, clock, store, sealer, domains } = core
  const { headerPrefix, storageUrl } = config
  const resolver = createResolver({ servers: config.dnsServers ?? systemServers(), clock })
  open.push(() => resolver.close())
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  const client = createHttpClient({ resolve: createHostNames(resolver, clock), allow, clock })
  open.push(() => client.close())
  const registry = createRegistry(store, clock, log)
  open.push(() => registry.stop())
  await registry.start()
  const webhookKind = createWebhookKind({
    store,
    sealer,
    registry,
    clock,
    headerPrefix,
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
  const webhooks = createWebhooks({
    store,
    sealer,
    registry,
    queue,
    client,
    clock,
    headerPrefix,
    storageUrl,
  })
  const stored = createDomainWebhooks(store, registry)
  return {
    client,
    webhooks,
    routes: [
      ...domainWebhookRoutes({ domains, stored, client, webhooks }),
      ...accountWebhookRoutes(createAccountWebhooks(store, registry, clock), client),
      ...attemptRoutes({ attempts, webhooks, domains, clock, baseUrl: config.publicUrl }),
      ...signingKeyRoutes({ store, sealer }),
    ],
    async start() {
      attempts.start()
      await queue.start()
    },
  }
}

/** Capture is a relay like any other: the listener of our own inbox. */
function routingOf(
  config: Config,
  capture: CaptureListener | null,
  clock: Clock,
  open: (() => void)[],
): Routing {
  if (capture) return { kind: 'relay', host: capture.host, port: capture.port, auth: capture.auth }
  if (config.delivery.kind === 'relay') return config.delivery
  const resolver: Resolver = createResolver({ servers: config.dnsServers ?? systemServers(), clock })
  open.push(() => resolver.close())
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  return { kind: 'direct', port: config.mxPort, resolver, allow }
}

async function ownerOf(store: Store, deliveryId: string | null) {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
    .select(['deliveries.account_id', 'messages.domain_name', 'messages.id as storage_key'])
    .where('deliveries.id', '=', deliveryId)
    .executeTakeFirst()
  return row
    ? { deliveryId, accountId: row.account_id, domainName: row.domain_name, storageKey: row.storage_key }
    : null
}

/** `local` authenticates the command line on this machine, as admin of the first account. */
function createAuthenticator(
  keys: Keys,
  sessions: Sessions,
  local: (secret: string) => boolean,
  firstAccountId: string,
): Authenticator {
  return {
    async key(secret) {
      if (local(secret)) return { accountId: firstAccountId, keyId: 'local', role: 'admin', kind: 'user' }
      return keys.authenticate(secret)
    },
    async session(cookie) {
      const session = await sessions.find(cookie)
      if (!session) return null
      return { accountId: session.accountId, keyId: session.id, role: session.role, kind: 'session' }
    },
    subaccount: async () => null,
    addressAllowed: async () => true,
  }
}

function createHttp({ config, log, clock, blobs, store }: Core, authenticator: Authenticator): HttpServer {
  const sending = { ...DEFAULT_LIMITS.sending, count: config.rateLimit ?? 0 }
  return createHttpServer({
    host: config.host,
    port: config.port,
    logger: log,
    clock,
    baseUrl: config.publicUrl,
    otherBaseUrls: [config.storageUrl, config.trackingUrl],
    headerPrefix: config.headerPrefix,
    headerPrefixAliases: config.headerPrefixAliases,
    authRealm: config.authRealm,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    authenticator,
    limiter: createRateLimiter({
      clock,
      limits: { ...DEFAULT_LIMITS, sending },
      off: config.rateLimit === null,
    }),
    spool: blobs,
    pages: readPages(join(import.meta.dirname, '../web/dist')),
    pagesPrefix: '/inbox/',
    isReady: async () => ({ ready: await store.ping().catch(() => false) }),
  })
}

const STARTED_AT = Date.now()

async function describeSystem({ config, store }: Core): Promise<Record<string, unknown>> {
  const rows = await store.db
    .selectFrom('deliveries')
    .select(['state', (of) => of.fn.countAll<number>().as('count')])
    .where('state', 'in', ['scheduled', 'queued', 'sending'])
    .groupBy('state')
    .execute()
  const count = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0)
  return {
    version: VERSION,
    mode: config.delivery.kind,
    database: store.kind,
    uptime_seconds: Math.floor((Date.now() - STARTED_AT) / 1000),
    queue: { scheduled: count('scheduled'), queued: count('queued'), sending: count('sending') },
  }
}

export const VERSION = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as { version: string }
).version
