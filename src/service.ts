/**
 * The composition root: builds every part from the configuration by plain calls, starts and stops them. The
 * areas with more than a few parts are put together in composition/; no other file knows all parts.
 */
import { uptime } from 'node:os'
import type { Logger } from 'pino'
import { createAuditLog } from './accounts/audit.ts'
import { auditRoutes } from './accounts/audit-routes.ts'
import { credentialRoutes } from './accounts/credential-routes.ts'
import { createFailedSignIns } from './accounts/failed-sign-ins.ts'
import { ensureFirstAccount, type FirstAccount } from './accounts/first-start.ts'
import { createKeys } from './accounts/keys.ts'
import { localKey } from './accounts/local-key.ts'
import { accountRoutes } from './accounts/routes.ts'
import { createSessions, type Sessions } from './accounts/sessions.ts'
import { backupRoutes } from './backup/routes.ts'
import { createByteBudget } from './base/byte-budget.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { bodiesBytes, memoryBytes } from './base/memory.ts'
import { createSteadyClock } from './base/steady-clock.ts'
import { startBackups } from './composition/backup.ts'
import { startBounces } from './composition/bounces.ts'
import { createCertificates } from './composition/certificates.ts'
import type { Closers, SendingOverrides } from './composition/core.ts'
import { createCounters } from './composition/counters.ts'
import { startDomains } from './composition/domains.ts'
import { startEventIndex } from './composition/event-index.ts'
import { auditedAttempts, createAuthenticator, createHttp, createLimiter } from './composition/http.ts'
import { startLists } from './composition/lists.ts'
import { DRAIN_MS, guarded, startMail } from './composition/mail.ts'
import { startOutgoing } from './composition/outgoing.ts'
import { receptionOf } from './composition/reception.ts'
import { startSmtp } from './composition/smtp.ts'
import { checkSystem, describeSystem } from './composition/system.ts'
import { startTemplates } from './composition/templates.ts'
import { createTracking } from './composition/tracking.ts'
import { startVisits } from './composition/visits.ts'
import type { Config } from './config.ts'
import { createSandbox } from './domains/create-domain.ts'
import { createDomainDirectory } from './domains/directory.ts'
import { createEventReader } from './events/query.ts'
import { createEventRetention, DAY_MS } from './events/retention.ts'
import { eventRoutes } from './events/routes.ts'
import { createFailedAttempts } from './http/failed-attempts.ts'
import { faultRoutes } from './inbox/fault-routes.ts'
import { inboxRoutes } from './inbox/routes.ts'
import { listRoutes } from './lists/routes.ts'
import { eventMessage } from './messages/copy.ts'
import { messageRoutes } from './messages/routes.ts'
import { scheduledRoutes } from './messages/scheduled-routes.ts'
import { sendTemplates } from './messages/templates.ts'
import { queueRoutes } from './queue/routes.ts'
import { createQueueTotals } from './queue/totals.ts'
import { openBlobs } from './store/blobs.ts'
import { watchFreeSpace } from './store/free-space.ts'
import { openInstallation } from './store/installation.ts'
import { ownLeaseTimes } from './store/lease-times.ts'
import { exposureSentence, makePrivate } from './store/private-files.ts'
import { boundedSpool, spaceOf } from './store/spool-space.ts'
import { policyRoutes } from './suppressions/policy.ts'
import { suppressionRoutes } from './suppressions/routes.ts'
import { createSuppressions } from './suppressions/service.ts'
import { systemRoutes } from './system/routes.ts'
import { previewRoutes } from './templates/preview.ts'
import { templateRoutes } from './templates/routes.ts'

export interface Service {
  /** Port of the HTTP listener, also when the configured one was 0. */
  port: number
  /** Of the HTTPS listener; null where that is off. */
  httpsPort: number | null
  /** Of the SMTP listener; with TLS from the first byte null where that is off. */
  smtp: { port: number; implicitTlsPort: number | null }
  first: FirstAccount
  sessions: Sessions
  /** Finishes what is running, within about 30 seconds, and closes everything. */
  stop(): Promise<void>
}

/** What comes from outside: things that tests replace, and what the process wants to know of the service. */
export interface ServiceOverrides {
  clock?: Clock
  random?: () => number
  /** Free bytes of the disk that the data folder is on. */
  freeBytes?: () => Promise<number>
  /** Of the machine, or of the control group. */
  memoryBytes?: number
  /** Addresses whose failed logins and wrong keys do not count. Default: loopback. */
  isExempt?: (address: string) => boolean
  /** Other areas as sending sees them. */
  sending?: SendingOverrides
}

/** Before anything in the data folder is read: says what was open to other users, and what still is. */
async function keepFilesPrivate(folder: string, log: Logger): Promise<void> {
  const { mended, left } = await makePrivate(folder)
  for (const { path, mode } of mended)
    log.warn({ path, mode: mode.toString(8) }, 'other users had access to a file; it is private now')
  for (const file of left) log.warn({ path: file.path, mode: file.mode.toString(8) }, exposureSentence(file))
}

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
  const open: Closers = []
  const stop = async () => {
    for (const close of open.splice(0).reverse()) {
      await Promise.resolve(close()).catch((error: unknown) =>
        log.error({ err: error }, 'cannot stop a part'),
      )
    }
  }
  try {
    await keepFilesPrivate(config.dataFolder, log)
    const { store, sealer, secret } = await openInstallation(config, {
      // A test's clock turns while the database's does not.
      ...(overrides.clock && { leaseTimes: ownLeaseTimes }),
      onFault: (fault) => log.error({ err: fault }, fault.detail),
    })
    open.push(() => store.close())
    const blobs = await openBlobs(config.dataFolder)
    const space = await watchFreeSpace({
      folder: config.dataFolder,
      floorBytes: config.freeSpaceMinBytes,
      clock,
      files: store.files,
      freeBytes: overrides.freeBytes,
      onChange(enough) {
        log.warn(
          { floor: config.freeSpaceMinBytes },
          enough ? 'space is free again' : 'no space for new mail',
        )
      },
      onError: (err) => log.warn({ err }, 'cannot look after the free space'),
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
    const memory = overrides.memoryBytes ?? memoryBytes()
    const core = {
      config,
      log,
      clock,
      random,
      store,
      blobs,
      spool: boundedSpool(blobs, spaceOf(config.dataFolder, config.freeSpaceMinBytes)),
      space,
      sealer,
      domains,
      firstAccountId: first.accountId,
      bodiesIn: createByteBudget(bodiesBytes(memory), clock),
      bodiesOut: createByteBudget(bodiesBytes(memory), clock),
    }
    const templating = startTemplates(core, open)
    const sendingTemplates = sendTemplates(templating.templates, templating.renderer)
    const outgoing = await startOutgoing(core, open)
    const certificates = createCertificates(core, outgoing)
    const bounces = startBounces(core, open)
    const tracking = createTracking(core, certificates)
    const parts = await startMail(core, outgoing, tracking, bounces, open, {
      ...sendingTemplates,
      ...overrides.sending,
    })
    const sandbox = await domains.byName(first.sandboxDomain)
    if (sandbox) await parts.credentials.setSystem(sandbox, null)
    const counters = createCounters(core)
    const retention = createEventRetention({
      store,
      clock,
      log,
      days: config.eventRetentionDays,
      bytesMax: config.eventRetentionBytes,
      followers: counters.followers,
    })
    open.push(() => retention.stop())
    await retention.start()
    counters.start(open)
    startEventIndex(core, open)
    const authenticator = createAuthenticator(keys, sessions, localKey(sealer), first.accountId)
    const limiter = createLimiter(core)
    const failedAttempts = createFailedAttempts(clock, overrides.isExempt)
    const audit = createAuditLog({ store, clock, log, retentionDays: config.auditRetentionDays })
    audit.start()
    open.push(() => audit.stop())
    const failedSignIns = createFailedSignIns({ store, clock, log, firstAccountId: first.accountId })
    open.push(() => failedSignIns.close())
    const http = createHttp(
      core,
      authenticator,
      limiter,
      auditedAttempts(failedAttempts, failedSignIns),
      parts.idempotency,
      certificates,
      audit,
    )
    const domainParts = await startDomains(
      core,
      parts,
      outgoing,
      bounces,
      counters,
      templating.templates,
      tracking.settings,
      first.accountId,
      limiter,
      certificates,
      open,
    )
    const visits = await startVisits(core, parts, outgoing, tracking, open)
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
      ...visits.routes,
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
        sources: parts.sources,
        baseUrl: config.publicUrl,
        firstAccountId: first.accountId,
      }),
      ...templateRoutes({ ...templating, domains, baseUrl: config.publicUrl }),
      ...previewRoutes({ ...templating, domains }),
      ...listRoutes({ ...startLists(core, parts, open), clock, baseUrl: config.publicUrl }),
      ...suppressionRoutes({
        suppressions: createSuppressions(store, clock),
        domains,
        imports: parts.imports,
        baseUrl: config.publicUrl,
      }),
      ...policyRoutes({ store, domains, clock }),
      ...bounces.routes,
      ...counters.routes,
      ...auditRoutes(store, config.publicUrl),
      ...backupRoutes(startBackups(core, secret, open)),
      ...systemRoutes(
        () => checkSystem(core, parts.resolver, certificates, bounces, overrides.clock ?? systemClock),
        clock,
      ),
      ...accountRoutes({
        keys,
        sessions,
        failedAttempts,
        audit,
        failedSignIns,
        publicUrl: config.publicUrl,
        ownsDomain: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
        describeSystem: () => describeSystem(core),
      }),
    ])
    const { port, tlsPort = null } = await http.listen()
    open.push(() => http.close())
    // Behind the listeners: an authority looks for the answer to its challenge there.
    certificates.start()
    open.push(() => certificates.stop())
    const reception = receptionOf(core, {
      known: parts.known,
      rules: bounces.rules,
      alongside: (events) => [...outgoing.webhooks.outboxStatements(events), ...bounces.count(events)],
      tokens: tracking.tokens,
      unsubscriber: visits.unsubscriber,
    })
    const smtp = await startSmtp(core, parts, limiter, failedAttempts, reception, failedSignIns)
    open.push(() => smtp.close(DRAIN_MS))
    await outgoing.start()
    await parts.delivery.start()
    parts.imports.start()
    return { port, httpsPort: tlsPort, smtp, first, sessions, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
