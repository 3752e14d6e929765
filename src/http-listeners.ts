/** Builds the HTTP and HTTPS listeners. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { whenKnown } from './base/flow/cache.ts'
import type { Core } from './core.ts'
import type { AccountsArea } from './people/access/area.ts'
import { readPages } from './platform/http/answer/pages.ts'
import { createIdempotency } from './platform/http/limits/idempotency.ts'
import { createReadiness } from './platform/http/readiness.ts'
import { createHttpServer, type HttpServer } from './platform/http/server.ts'
import { createJob, type Job } from './platform/jobs/job.ts'
import type { CertificatesArea } from './sending/certificates/area.ts'
import type { PrometheusArea } from './watching/prometheus/area.ts'

const SWEEP_EVERY_MS = 600_000

/** First parts of the paths of the dashboard's pages (web/src/sections.ts): any path below them is its page. */
const PAGES = [
  ...['/overview', '/activity', '/statistics', '/sending', '/domains', '/webhooks', '/routes', '/delivery'],
  ...['/settings', '/inbox', '/docs', '/people'],
]

/** Shared by all services of a process, which keep what they have read of it. */
let dashboard: ReturnType<typeof readPages> | undefined

interface HttpUses {
  accounts: AccountsArea
  certificates: CertificatesArea
  prometheus: Pick<PrometheusArea, 'answered'>
}

/**
 * Without operations yet. `jobs`: what has to be repeated while it runs.
 * @param hasThread the listener without TLS has a thread of its own; default: where there are several processors
 */
export function createHttp(
  {
    config,
    log,
    clock,
    spool,
    store,
    sealer,
    limiter,
    bodiesIn,
    tracing,
    accounts: directory,
    firstAccountId,
  }: Core,
  { accounts, certificates, prometheus }: HttpUses,
  hasThread = availableParallelism() > 1,
): { http: HttpServer; jobs: Job[] } {
  dashboard ??= readPages(join(import.meta.dirname, '../web/dist'))
  const idempotency = createIdempotency({ store, clock, sealer })
  const http = createHttpServer({
    host: config.host,
    port: config.port,
    dataFolder: config.dataFolder,
    tls: certificates.tls,
    thread: hasThread,
    deadlines: {},
    strictTransport: certificates.strictTransport,
    httpsOrigin: certificates.httpsOrigin,
    httpsOnly: certificates.httpsOnly,
    logger: log,
    clock,
    baseUrl: config.publicUrl,
    otherBaseUrls: [config.storageUrl, config.trackingUrl].filter((url) => url !== null),
    headerPrefix: config.headerPrefix,
    // The dashboard uses our own name, whatever the configured one is.
    headerPrefixAliases: [...config.headerPrefixAliases, 'X-Service-'],
    authRealm: config.authRealm,
    corsOrigins: config.corsOrigins,
    connectionsPerClientMax: config.httpConnectionsPerIpMax,
    trustedProxies: config.trustedProxies,
    balancers: config.httpBalancers,
    authenticator: accounts.authenticator,
    limiter,
    failedAttempts: accounts.failedCalls,
    idempotency,
    largeBodies: bodiesIn,
    tracing,
    isStrict: (accountId) => whenKnown(directory.byId(accountId), (account) => account?.isStrict === true),
    audit: accounts.audit,
    requestLog: accounts.requestLog,
    firstAccountId,
    applied: () => store.changes.applied(),
    spool,
    observe: prometheus.answered,
    pages: dashboard,
    pagesPrefixes: PAGES,
    isReady: createReadiness(store, clock),
  })
  const retention = createJob({
    name: 'idempotency-retention',
    everyMs: SWEEP_EVERY_MS,
    scope: 'database',
    work: () => idempotency.sweep(),
  })
  return { http, jobs: [retention] }
}
