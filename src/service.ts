/**
 * The composition root: builds every part from the configuration by plain calls, starts and stops them. No
 * other file knows all parts.
 */
import { readFileSync } from 'node:fs'
import { networkInterfaces, uptime } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { auditRoutes } from './accounts/audit.ts'
import { credentialRoutes } from './accounts/credential-routes.ts'
import { createCredentials } from './accounts/credentials.ts'
import { ensureFirstAccount, type FirstAccount } from './accounts/first-start.ts'
import { createKeys, type Keys } from './accounts/keys.ts'
import { localKey } from './accounts/local-key.ts'
import { removeSendingKeys } from './accounts/on-domain-deleted.ts'
import { accountRoutes } from './accounts/routes.ts'
import { createSessions, type Sessions } from './accounts/sessions.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { failPoint } from './base/fail-point.ts'
import { newId } from './base/ids.ts'
import { type Cidr, classifyAddress, parseCidr } from './base/ip.ts'
import { createSteadyClock } from './base/steady-clock.ts'
import type { Config } from './config.ts'
import { createDelivery, type Delivery } from './delivery/engine.ts'
import { createQueue } from './delivery/queue.ts'
import { startRetention } from './delivery/retention.ts'
import { deliveryOfReturnPath } from './delivery/return-path.ts'
import { createStoredPolicies } from './delivery/stored-policies.ts'
import { createTlsResults } from './delivery/tls-results.ts'
import { transcriptStatement } from './delivery/transcript.ts'
import { createTransport, type Routing } from './delivery/transport.ts'
import { createResolver, type Resolver } from './dns/resolver.ts'
import { startResponder } from './dns/responder.ts'
import { systemServers } from './dns/system-servers.ts'
import { dkimZone } from './domain-keys/dkim-zone.ts'
import { removeKeys } from './domain-keys/on-domain-deleted.ts'
import { createRotations } from './domain-keys/rotation.ts'
import { rotationRoutes } from './domain-keys/rotation-routes.ts'
import { domainKeyRoutes } from './domain-keys/routes.ts'
import { createSigningKeys } from './domain-keys/signing-keys.ts'
import { createDnsChecks } from './domains/background.ts'
import { createSandbox } from './domains/create-domain.ts'
import { createDeletionJob, type OnDomainDeleted } from './domains/deletion.ts'
import { domainDeliveryRoutes } from './domains/delivery-routes.ts'
import { createDomainDirectory, type DomainDirectory } from './domains/directory.ts'
import { domainRoutes } from './domains/routes.ts'
import { createEventReader } from './events/query.ts'
import { createEventRetention, DAY_MS } from './events/retention.ts'
import { eventRoutes } from './events/routes.ts'
import type { Authenticator } from './http/auth.ts'
import { createFailedAttempts, type FailedAttempts } from './http/failed-attempts.ts'
import { createIdempotency, type Idempotency } from './http/idempotency.ts'
import type { Operation } from './http/operation.ts'
import { readPages } from './http/pages.ts'
import { createRateLimiter, DEFAULT_LIMITS, type RateLimiter } from './http/rate-limit.ts'
import { createHttpServer, type HttpServer } from './http/server.ts'
import { type SmtpListener, startSmtpListener } from './inbound/listener.ts'
import { createLoginDelay } from './inbound/login-delay.ts'
import { SMTP_LIMITS } from './inbound/session.ts'
import { createSubmission } from './inbound/submission.ts'
import { createTlsIdentity } from './inbound/tls-identity.ts'
import { verifyOwnSignatures } from './inbox/authentication.ts'
import { faultRoutes } from './inbox/fault-routes.ts'
import { createFaults } from './inbox/faults.ts'
import { createInbox } from './inbox/inbox.ts'
import { type CaptureListener, startCaptureListener } from './inbox/listener.ts'
import { inboxRoutes } from './inbox/routes.ts'
import { cancelExpansions, createExpansionJob } from './lists/expansion-job.ts'
import { listRoutes } from './lists/routes.ts'
import { createLists } from './lists/service.ts'
import { createListStore } from './lists/store.ts'
import { createTaskRunner, type TaskRunner } from './lists/task-runner.ts'
import { createUploadTasks } from './lists/upload-tasks.ts'
import { createArchiveSender } from './messages/archive.ts'
import { eventMessage } from './messages/copy.ts'
import { createListExpander, memberStatements } from './messages/lists.ts'
import { removeMail } from './messages/on-domain-deleted.ts'
import { messageRoutes } from './messages/routes.ts'
import { scheduledRoutes } from './messages/scheduled-routes.ts'
import { createSecondaryKeys } from './messages/secondary-keys.ts'
import { createSending, type Sending, type SendingParts } from './messages/sending.ts'
import { createSources } from './messages/sources.ts'
import { acceptSubmitted, submittingDomain } from './messages/submitted.ts'
import { sendTemplates } from './messages/templates.ts'
import { createHostNames } from './outgoing/host-names.ts'
import { createHttpClient } from './outgoing/http-client.ts'
import { createPostQueue } from './outgoing/post-queue.ts'
import { createPoster } from './outgoing/poster.ts'
import { queueRoutes } from './queue/routes.ts'
import { createQueueTotals } from './queue/totals.ts'
import { type BlobStore, openBlobs } from './store/blobs.ts'
import { type FreeSpace, watchFreeSpace } from './store/free-space.ts'
import { openStore } from './store/open-store.ts'
import { createSealer, loadSecret, type Sealer } from './store/sealing.ts'
import type { Store } from './store/store.ts'
import { bounceConsequences } from './suppressions/automatic.ts'
import { createSuppressionCheck } from './suppressions/check.ts'
import { createImports } from './suppressions/import.ts'
import { policyRoutes } from './suppressions/policy.ts'
import { suppressionRoutes } from './suppressions/routes.ts'
import { createSuppressions } from './suppressions/service.ts'
import { domainStatements } from './suppressions/store.ts'
import { PROBE_DOMAINS, runChecks } from './system/checks.ts'
import { systemRoutes } from './system/routes.ts'
import { createMjmlCompiler } from './templates/mjml.ts'
import { previewRoutes } from './templates/preview.ts'
import { createRenderer } from './templates/render.ts'
import { templateRoutes } from './templates/routes.ts'
import { createTemplates, type TemplateService } from './templates/service.ts'
import { createTrackingDirectory } from './tracking/settings.ts'
import { trackingSettingsRoutes } from './tracking/settings-routes.ts'
import { accountWebhookRoutes } from './webhooks/account-routes.ts'
import { createAccountWebhooks } from './webhooks/account-webhooks.ts'
import { attemptRoutes } from './webhooks/attempt-routes.ts'
import { createAttemptLog } from './webhooks/attempts.ts'
import { domainWebhookRoutes } from './webhooks/domain-routes.ts'
import { createDomainWebhooks, removeDomainWebhooks } from './webhooks/domain-webhooks.ts'
import { createRegistry } from './webhooks/registry.ts'
import { signingKeyRoutes } from './webhooks/signing-key.ts'
import { createWebhookKind, createWebhooks, WEBHOOK } from './webhooks/webhooks.ts'

export interface Service {
  /** Port of the HTTP listener, also when the configured one was 0. */
  port: number
  /** Of the SMTP listener; with TLS from the first byte null where that is off. */
  smtp: { port: number; implicitTlsPort: number | null }
  first: FirstAccount
  sessions: Sessions
  /** Finishes what is running, within about 30 seconds, and closes everything. */
  stop(): Promise<void>
}

/** Things that tests replace; the rest is real. */
export interface ServiceOverrides {
  clock?: Clock
  random?: () => number
  /** Other areas as sending sees them. */
  sending?: Partial<
    Pick<SendingParts, 'templates' | 'renderer' | 'tracker' | 'habits' | 'lists' | 'queuedMax'>
  >
}

/** Attempts get this long to end on a stop; R12 allows 30 s for all of it. */
const DRAIN_MS = 20_000
/** A POST that is cut off is repeated after the next start, under the same event id. */
const OUTGOING_DRAIN_MS = 3_000

/** A host that is set up with no name server has one of its own, resolv.conf(5). */
const LOCAL_DNS = { host: '127.0.0.1', port: 53 }

/** Starts the whole service. What was opened before a failing step is closed again. */
export async function startService(
  config: Config,
  log: Logger,
  overrides: ServiceOverrides = {},
): Promise<Service> {
  const clock = createSteadyClock(
    overrides.clock ?? systemClock,
    // A test's clock stands still while the machine's does not.
    () => (overrides.clock ? overrides.clock.monotonic() : uptime() * 1000),
    (aheadMs) => log.warn({ aheadMs }, 'the system clock was stepped; its new time counts after a restart'),
  )
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
    const space = await watchFreeSpace(config.dataFolder, config.freeSpaceMinBytes, clock, (enough) => {
      log.warn({ floor: config.freeSpaceMinBytes }, enough ? 'space is free again' : 'no space for new mail')
    })
    open.push(() => space.close())
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
    const core = {
      config,
      log,
      clock,
      random,
      store,
      blobs,
      space,
      sealer,
      domains,
      firstAccountId: first.accountId,
    }
    const templating = startTemplates(core, open)
    const sendingTemplates = sendTemplates(templating.templates, templating.renderer)
    const outgoing = await startOutgoing(core, open)
    const parts = await startParts(core, outgoing, open, { ...sendingTemplates, ...overrides.sending })
    const sandbox = await domains.byName(first.sandboxDomain)
    if (sandbox) await parts.credentials.setSystem(sandbox, null)
    const retention = createEventRetention({
      store,
      clock,
      log,
      days: config.eventRetentionDays,
      bytesMax: config.eventRetentionBytes,
    })
    open.push(() => retention.stop())
    await retention.start()
    const authenticator = createAuthenticator(keys, sessions, localKey(sealer), first.accountId)
    const limiter = createLimiter(core)
    const failedAttempts = createFailedAttempts(clock)
    const http = createHttp(core, authenticator, limiter, failedAttempts, parts.idempotency)
    const domainParts = await startDomains(
      core,
      parts,
      outgoing,
      templating.templates,
      first.accountId,
      limiter,
      open,
    )
    http.register([
      ...messageRoutes({
        ...parts.sending.accept,
        store: guarded(store, space),
        headerPrefixes: [config.headerPrefix, ...config.headerPrefixAliases],
        limiter,
      }),
      ...scheduledRoutes({ ...parts.sending.scheduled, domains, baseUrl: config.publicUrl }),
      ...eventRoutes({
        events: createEventReader(store, config.eventRetentionDays * DAY_MS),
        domains,
        clock,
        sealer,
        baseUrl: config.publicUrl,
      }),
      ...domainParts.routes,
      ...credentialRoutes(parts.credentials, domains),
      ...outgoing.routes,
      ...inboxRoutes(parts.inbox, config.publicUrl),
      ...faultRoutes(parts.faults, first.accountId),
      ...queueRoutes({
        store,
        delivery: parts.delivery,
        clock,
        totals: createQueueTotals(store, parts.delivery, clock),
        messageOf: async (id) => {
          const record = await parts.sending.records.byId(id)
          return record && eventMessage(record, config.storageUrl, record.id, record.summary)
        },
        baseUrl: config.publicUrl,
        firstAccountId: first.accountId,
      }),
      ...templateRoutes({ ...templating, domains, baseUrl: config.publicUrl }),
      ...previewRoutes({ ...templating, domains }),
      ...listRoutes({ ...startLists(core, open), clock, baseUrl: config.publicUrl }),
      ...suppressionRoutes({
        suppressions: createSuppressions(store, clock),
        domains,
        imports: parts.imports,
        baseUrl: config.publicUrl,
      }),
      ...policyRoutes({ store, domains, clock }),
      ...auditRoutes(store, config.publicUrl),
      ...systemRoutes(() => checkSystem(core, parts.resolver, overrides.clock ?? systemClock), clock),
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
    const smtp = await startSmtp(core, parts, limiter, failedAttempts)
    open.push(() => smtp.close(DRAIN_MS))
    await outgoing.start()
    await parts.delivery.start()
    parts.imports.start()
    return { port, smtp, first, sessions, stop }
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
  space: FreeSpace
  sealer: Sealer
  domains: DomainDirectory
  firstAccountId: string
}

/** The parts behind the API: captured mail, and the way of a message from acceptance to a server. */
async function startParts(
  core: Core,
  { resolver, allow, webhooks, poster }: Outgoing,
  open: (() => Promise<void> | void)[],
  overrides: ServiceOverrides['sending'],
) {
  const { config, log, clock, random, store, blobs, space, sealer, domains } = core
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
  const faults = createFaults(store, clock, random)
  let capture: CaptureListener | null = null
  if (config.delivery.kind === 'capture') {
    const recipientOf = (returnPath: string) =>
      recipientOfDelivery(store, deliveryOfReturnPath(returnPath, returnPathMac))
    const listener = await startCaptureListener(inbox.receive, log, { faults, recipientOf })
    open.push(() => listener.close())
    capture = listener
  }
  const signingKeys = createSigningKeys(store, sealer, clock)
  const leaseOwner = newId()
  const idempotency = createIdempotency({ store, clock })
  const sending = createSending({
    ...core,
    lists: createListExpander({
      store,
      lists: createListStore(store),
      domains,
      wake: () => expanding.wake(),
    }),
    signingKeys,
    suppressions: createSuppressionCheck(store, clock),
    secondaryKeys: createSecondaryKeys({
      signingKeys,
      ownsAuthority: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
      txt: async (name) => (await resolver.query(name, 'TXT')).records,
    }),
    sources: createSources({
      configured: config.sourceAddresses,
      hostAddresses: hostAddresses(),
      firstAccountId: core.firstAccountId,
    }),
    returnPathMac,
    headerPrefix,
    storageUrl,
    allowUnverified: config.delivery.kind === 'capture',
    leaseOwner,
    wakeDelivery: () => delivery.wake(),
    outbox: (events) => webhooks.outboxStatements(events),
    sweepAlso: () => idempotency.sweep(),
    ...overrides,
  })
  const tlsResults = createTlsResults(store, clock)
  open.push(() => tlsResults.close())
  const retention = startRetention(store, clock, (err) => log.error({ err }, 'cannot remove old dialogues'))
  open.push(() => retention.close())
  const delivery: Delivery = createDelivery({
    queue: createQueue(store, leaseOwner),
    transport: createTransport({
      routing: routingOf(core, capture, resolver, allow),
      heloName: config.hostname,
      clock,
      random,
      tlsResults,
    }),
    prepare: sending.prepare,
    consequences: (claimed, events, outcome) => [
      ...sending.consequences(claimed, events, outcome),
      ...bounceConsequences(claimed, events, outcome),
      ...webhooks.outboxStatements(events),
    ],
    keepTranscript: (claimed, result) => transcriptStatement(config.transcripts, claimed, result),
    mayClaim: () => space.enough,
    clock,
    log,
    random,
    retryScheduleMs: config.retryScheduleMs,
  })
  open.push(() => delivery.stop(DRAIN_MS))
  const expanding = startExpansions(core, sending, open)
  const archive = createArchiveSender({
    store,
    poster,
    bodyOf: sending.bodyOf,
    clock,
    log,
    scheduleMs: config.webhookScheduleMs,
  })
  open.push(() => archive.stop())
  archive.start()
  sending.retention.start()
  open.push(() => sending.retention.stop())
  const credentials = createCredentials(store, sealer, clock)
  const imports = createImports({ store, blobs, clock, log })
  open.push(() => imports.stop())
  return { inbox, faults, delivery, sending, idempotency, resolver, allow, signingKeys, credentials, imports }
}

type Parts = Awaited<ReturnType<typeof startParts>>

/** The SMTP ports: submission by clients that log in. */
function startSmtp(
  { config, log, clock, blobs }: Core,
  { sending, credentials }: Parts,
  limiter: RateLimiter,
  failedAttempts: FailedAttempts,
): Promise<SmtpListener> {
  const accept = {
    ...sending.accept,
    headerPrefixes: [config.headerPrefix, ...config.headerPrefixAliases],
  }
  return startSmtpListener({
    host: config.smtpHost,
    port: config.smtpPort,
    implicitTlsPort: config.smtpsPort,
    connectionsPerAddressMax: config.smtpConnectionsPerIpMax,
    session: {
      hostname: config.hostname,
      limits: {
        ...SMTP_LIMITS,
        messagesMax: config.smtpMessagesPerConnectionMax,
        idleMs: config.smtpIdleMs,
      },
      authWithoutTls: (address) =>
        config.smtpAuthWithoutTls === 'anyone' ||
        (config.smtpAuthWithoutTls === 'loopback' && classifyAddress(address) === 'loopback'),
      secureContext: createTlsIdentity({
        files: config.smtpTls,
        dataFolder: config.dataFolder,
        hostname: config.hostname,
        minVersion: config.smtpTlsMinVersion,
        clock,
        log,
      }),
      authenticate: credentials.authenticate,
      loginFailed: createLoginDelay(clock, failedAttempts),
      submission: createSubmission({
        stillValid: credentials.stillValid,
        sendingDomain: async (login) => (await submittingDomain(accept, login)).name,
        limiter,
        submit: (mail) => acceptSubmitted(accept, mail),
      }),
      blobs,
      clock,
      log,
    },
  })
}

/** Domains, their keys and tracking settings: operations, and the work in the background. */
async function startDomains(
  core: Core,
  { resolver, allow, signingKeys, sending, credentials, imports }: Parts,
  { registry }: Outgoing,
  templates: TemplateService,
  firstAccountId: string,
  limiter: RateLimiter,
  open: (() => Promise<void> | void)[],
): Promise<{ routes: Operation[] }> {
  const { config, log, clock, store, blobs, sealer, domains } = core
  const tracking = createTrackingDirectory(store, clock)
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
    (domain) => tracking.remove(domain.id),
    removeSendingKeys(store),
    credentials.forgetDomain,
    ({ id }) => imports.forgetDomain(id),
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

function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
}

/** Templates with the threads that compile and render them; those start when they are first needed. */
function startTemplates({ config, store, domains, clock }: Core, open: (() => Promise<void> | void)[]) {
  const renderer = createRenderer()
  open.push(() => renderer.close())
  const mjml = createMjmlCompiler()
  open.push(() => mjml.close())
  const contentBytesMax = config.templateKbMax * 1024
  return { renderer, templates: createTemplates({ store, domains, clock, renderer, mjml, contentBytesMax }) }
}

/** Lists, and the background work of their uploads. */
function startLists({ store: database, domains, clock, log }: Core, open: (() => Promise<void> | void)[]) {
  const store = createListStore(database)
  const uploads = createUploadTasks({ store: database, lists: store, clock, owner: newId() })
  const runner = createTaskRunner({ clock, log, runOne: uploads.runOne })
  open.push(() => runner.stop())
  runner.start()
  return { lists: createLists({ lists: store, domains, clock }), store, uploads, wakeUploads: runner.wake }
}

/** Copies of posts to lists, made in the background. */
function startExpansions(
  { store, clock, log }: Core,
  { accept }: Sending,
  open: (() => Promise<void> | void)[],
): TaskRunner {
  const job = createExpansionJob({
    store,
    lists: createListStore(store),
    clock,
    owner: newId(),
    insertDeliveries: (expansion, members) => memberStatements(accept, expansion, members),
    inserted: accept.wakeDelivery,
  })
  const runner = createTaskRunner({ clock, log, runOne: job.runOne })
  open.push(() => runner.stop())
  runner.start()
  return runner
}

type Outgoing = Awaited<ReturnType<typeof startOutgoing>>

/** What leaves by HTTP: the client that every area shares, the queue of POSTs, webhooks; and the resolver. */
async function startOutgoing(core: Core, open: (() => Promise<void> | void)[]) {
  const { config, log, clock, store, sealer, domains } = core
  const { headerPrefix, storageUrl } = config
  const servers = config.dnsServers ?? systemServers()
  const resolver = createResolver({ servers: servers.length > 0 ? servers : [LOCAL_DNS], clock })
  open.push(() => resolver.close())
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  const client = createHttpClient({ resolve: createHostNames(resolver, clock), allow, clock })
  open.push(() => client.close())
  const registry = createRegistry(store, clock, log)
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
  const stored = createDomainWebhooks(store, registry)
  return {
    resolver,
    allow,
    client,
    poster: createPoster(client),
    registry,
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
  { config, clock, store }: Core,
  capture: CaptureListener | null,
  resolver: Resolver,
  allow: readonly Cidr[],
): Routing {
  if (capture) return { kind: 'relay', host: capture.host, port: capture.port, auth: capture.auth }
  if (config.delivery.kind === 'relay') return config.delivery
  const policies = createStoredPolicies({ store, resolver, clock, allow })
  return { kind: 'direct', port: config.mxPort, resolver, allow, policies }
}

/** The store as those see it who accept mail: nothing is taken in below the floor of free space. */
function guarded(store: Store, space: FreeSpace): Store {
  return {
    ...store,
    async commit(unit) {
      space.check()
      failPoint('accept-before-commit')
      const results = await store.commit(unit)
      failPoint('accept-after-commit')
      return results
    },
  }
}

async function recipientOfDelivery(store: Store, deliveryId: string | null): Promise<string | null> {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .select('recipient')
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  return row?.recipient ?? null
}

async function ownerOf(store: Store, deliveryId: string | null) {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
    .select(['deliveries.account_id', 'deliveries.variables_json', 'deliveries.list_json'])
    .select(['messages.domain_name', 'messages.id as message_pk'])
    .where('deliveries.id', '=', deliveryId)
    .executeTakeFirst()
  if (!row) return null
  // In batch mode every recipient's copy is a stored message of its own.
  const batch = row.variables_json !== null && row.list_json === null
  const storageKey = batch ? deliveryId : row.message_pk
  return { deliveryId, accountId: row.account_id, domainName: row.domain_name, storageKey }
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

function createLimiter({ config, clock }: Core): RateLimiter {
  const sending = { ...DEFAULT_LIMITS.sending, count: config.rateLimit ?? 0 }
  return createRateLimiter({
    clock,
    limits: { ...DEFAULT_LIMITS, sending },
    off: config.rateLimit === null,
  })
}

function createHttp(
  { config, log, clock, blobs, store }: Core,
  authenticator: Authenticator,
  limiter: RateLimiter,
  failedAttempts: FailedAttempts,
  idempotency: Idempotency,
): HttpServer {
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
    limiter,
    failedAttempts,
    idempotency,
    spool: blobs,
    pages: readPages(join(import.meta.dirname, '../web/dist')),
    pagesPrefixes: ['/inbox', '/domains'],
    isReady: async () => ({ ready: await store.ping().catch(() => false) }),
  })
}

function checkSystem({ config, store, clock }: Core, resolver: Resolver, system: Clock) {
  return runChecks({
    config,
    resolver,
    hostAddresses: hostAddresses(),
    probeDomains: PROBE_DOMAINS,
    async tryDatabase() {
      // Touches no row, but takes a write transaction to its end.
      await store.commit([{ sql: 'UPDATE accounts SET id = id WHERE 1 = 0', values: [] }])
      return `The database (${store.kind}) can be written.`
    },
    clockStepMs: () => system.now() - clock.now(),
    now: () => system.now(),
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
