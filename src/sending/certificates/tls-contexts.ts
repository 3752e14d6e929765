/**
 * Chooses the certificate for a TLS client by the name it requests (SNI, RFC 6066 §3): a tracking host's own, one that
 * was ordered for a name of the service (own-certificates.ts), else that of the service. Loaded from the database on first use and again after a renewal on any node, without a
 * restart.
 */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import { createCache } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { isValid } from './certificate-state.ts'
import type { CertificateStore } from './certificate-store.ts'
import type { OwnCertificates } from './own-certificates.ts'

/** Common to all contexts of the HTTPS listener: only forward secrecy and authenticated encryption. */
export const MODERN_TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
} as const satisfies SecureContextOptions

export type TlsContexts = ReturnType<typeof createTlsContexts>

/** A renewal on another node takes effect after at most this time. */
const CACHED_MS = 10_000
/** A name takes about 100 bytes; clients may request any name, so unknown ones are cached too. */
const NAMES_MAX = 10_000
/** A context takes about 30 KB; the least recently used one is evicted and loaded again when needed. */
const CONTEXTS_MAX = 1_000
const HOST = /^(?=.{1,253}$)[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/
/** Half a year. */
const STRICT_MAX_SECONDS = 180 * 86_400

interface Version {
  issuedAt: number
  expiresAt: number
}

export function createTlsContexts(options: {
  certificates: CertificateStore
  /** The service's own identity. */
  fallback: () => SecureContext
  /** Names of the service, in lower case: a tracking host's certificate is never used for them. */
  ownHosts: ReadonlySet<string>
  own: OwnCertificates
  clock: Clock
  log: Logger
}) {
  const { certificates, fallback, ownHosts, own, clock, log } = options
  const contexts = new Map<string, { issuedAt: number; context: SecureContext }>()
  const versions = createCache<Version | null>({
    clock,
    ttlMs: CACHED_MS,
    entriesMax: NAMES_MAX,
    async load(host) {
      const row = await certificates.find(host)
      if (!row || !isValid(row, clock.now())) return null
      return { issuedAt: row.issued_at ?? 0, expiresAt: row.expires_at ?? 0 }
    },
  })

  async function versionOf(name: string): Promise<Version | null> {
    const host = name.toLowerCase()
    if (!HOST.test(host) || ownHosts.has(host)) return null
    const version = await versions.get(host)
    return version && version.expiresAt > clock.now() ? version : null
  }

  const ownContexts = new Map(
    [...own.hosts].map((host) => [host, own.contextsOf(host, MODERN_TLS, fallback)] as const),
  )
  const ownContext = (host: string): SecureContext => (ownContexts.get(host) ?? fallback)()

  async function load(host: string, { issuedAt }: Version): Promise<SecureContext | null> {
    const known = contexts.get(host)
    contexts.delete(host)
    const pair = known?.issuedAt === issuedAt ? null : await certificates.pair(host)
    const context = pair
      ? createSecureContext({ ...MODERN_TLS, cert: pair.chain, key: pair.key })
      : (known?.context ?? null)
    // Reinserted, so that the map is in order of use.
    if (context) contexts.set(host, { issuedAt, context })
    const oldest = contexts.keys().next()
    if (contexts.size > CONTEXTS_MAX && !oldest.done) contexts.delete(oldest.value)
    return context
  }

  return {
    /** For the listener's SNICallback. Never rejects: a name without a certificate of its own gets the service's. */
    async contextFor(name: string): Promise<SecureContext> {
      try {
        const version = await versionOf(name)
        const context = version && (await load(name.toLowerCase(), version))
        return context ?? ownContext(name.toLowerCase())
      } catch (error) {
        log.error({ err: error, host: name }, "cannot load a tracking host's certificate")
        return fallback()
      }
    },
    /** Whether https links to the host work now. */
    certificateActive: async (host: string): Promise<boolean> => (await versionOf(host)) !== null,
    /** Value of Strict-Transport-Security for the host; null: none. */
    async strictTransport(host: string): Promise<string | null> {
      const expiresAt = own.trustedUntil(host) ?? (await versionOf(host))?.expiresAt
      if (expiresAt === undefined) return null
      // Never longer than the certificate: after it links fall back to http (rule 12), which a browser must accept.
      const left = Math.floor((expiresAt - clock.now()) / 1000)
      return `max-age=${Math.min(left, STRICT_MAX_SECONDS)}`
    },
    /** Must be called when the host's certificate was replaced or removed. */
    changed(host: string): void {
      versions.forget(host)
      contexts.delete(host)
    },
  }
}
