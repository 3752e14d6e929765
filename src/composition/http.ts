/** Puts the HTTP server together. */
import { join } from 'node:path'
import type { AuditLog } from '../accounts/audit.ts'
import type { FailedSignIns } from '../accounts/failed-sign-ins.ts'
import type { Keys } from '../accounts/keys.ts'
import { LOCAL_KEY_ID } from '../accounts/local-key.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Authenticator } from '../http/auth.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import type { Idempotency } from '../http/idempotency.ts'
import { readPages } from '../http/pages.ts'
import { createRateLimiter, DEFAULT_LIMITS, type RateLimiter } from '../http/rate-limit.ts'
import { createHttpServer, type HttpServer } from '../http/server.ts'
import type { StoreFault } from '../store/store.ts'
import type { Certificates } from './certificates.ts'
import type { Core } from './core.ts'

/** `local` authenticates the command line on this machine, as admin of the first account. */
export function createAuthenticator(
  keys: Keys,
  sessions: Sessions,
  local: (secret: string) => boolean,
  firstAccountId: string,
): Authenticator {
  return {
    key(secret) {
      if (local(secret))
        return { accountId: firstAccountId, keyId: LOCAL_KEY_ID, role: 'admin', kind: 'user' }
      return keys.authenticate(secret)
    },
    async session(cookie) {
      const session = await sessions.find(cookie)
      if (!session) return null
      const { accountId, id, role, keyId: sessionKeyId } = session
      return { accountId, keyId: id, role, kind: 'session', sessionKeyId }
    },
    subaccount: async () => null,
    addressAllowed: () => true,
  }
}

/** Open to everybody: without the names of files, which the log has. */
const NOT_READY: Record<StoreFault['kind'], string> = {
  damaged: 'The database is damaged; the log and "sendwright doctor" say what to do',
  disk: 'The disk of the database failed; restart the service once it works',
}

/** Wrong keys and cookies stand in the audit log, besides that they cost time. */
export function auditedAttempts(attempts: FailedAttempts, failed: Pick<FailedSignIns, 'note'>) {
  return {
    ...attempts,
    wrongKey(address: string) {
      failed.note({ remoteAddress: address, way: 'api' })
      attempts.wrongKey(address)
    },
  }
}

export function createLimiter({ config, clock }: Core): RateLimiter {
  const { rateLimit, recipientsPerMinute, bytesPerMinute } = config
  const limits = {
    ...DEFAULT_LIMITS,
    sending: { ...DEFAULT_LIMITS.sending, count: rateLimit ?? 0 },
    'sending-recipients': { ...DEFAULT_LIMITS['sending-recipients'], count: recipientsPerMinute },
    'sending-bytes': { ...DEFAULT_LIMITS['sending-bytes'], count: bytesPerMinute },
  }
  return createRateLimiter({
    clock,
    limits,
    off: config.rateLimit === null,
  })
}

export function createHttp(
  { config, log, clock, spool, store, bodiesIn }: Core,
  authenticator: Authenticator,
  limiter: RateLimiter,
  failedAttempts: FailedAttempts,
  idempotency: Idempotency,
  certificates: Certificates,
  audit: AuditLog,
): HttpServer {
  return createHttpServer({
    host: config.host,
    port: config.port,
    ...(certificates.tls !== null && { tls: certificates.tls }),
    strictTransport: certificates.strictTransport,
    logger: log,
    clock,
    baseUrl: config.publicUrl,
    otherBaseUrls: [config.storageUrl, config.trackingUrl].filter((url) => url !== null),
    headerPrefix: config.headerPrefix,
    headerPrefixAliases: config.headerPrefixAliases,
    authRealm: config.authRealm,
    corsOrigins: config.corsOrigins,
    connectionsPerClientMax: config.httpConnectionsPerIpMax,
    trustedProxies: config.trustedProxies,
    authenticator,
    limiter,
    failedAttempts,
    idempotency,
    largeBodies: bodiesIn,
    audit,
    spool,
    pages: readPages(join(import.meta.dirname, '../../web/dist')),
    pagesPrefixes: ['/inbox', '/domains'],
    async isReady() {
      const fault = store.fault()
      if (fault) return { ready: false, reason: NOT_READY[fault.kind] }
      return { ready: await store.ping().catch(() => false) }
    },
  })
}
