/**
 * Certificates of the service's own names: ordered by ACME and kept in the database, or the operator's file. They are read
 * once a minute and when another node announces a renewal, so that neither that nor a replaced file needs a restart. They are
 * held in memory, since every handshake and every page needs them.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import type { CertificateRow } from '../../platform/store/schema.ts'
import { isValid } from './certificate-state.ts'
import { type CertificatePair, type CertificateStore, isOwnRow } from './certificate-store.ts'

export type OwnCertificates = ReturnType<typeof createOwnCertificates>

export interface OwnCertificateState {
  host: string
  /** Unix milliseconds; null: none was issued yet. */
  expiresAt: number | null
  /** Why the last order failed; null: it did not, or there was none yet. */
  error: string | null
}

interface Held extends CertificatePair {
  issuedAt: number
  expiresAt: number
}

export function createOwnCertificates(options: {
  certificates: CertificateStore
  /** Names that certificates are ordered for, in lower case. */
  hosts: readonly string[]
  /** The operator's own files; null: none. */
  files: { certificateFile: string; keyFile: string } | null
  clock: Clock
  log: Logger
}) {
  const { certificates, files, clock, log } = options
  const hosts = new Set(options.hosts)
  const held = new Map<string, Held>()
  const followers = new Map<string, ((pair: CertificatePair) => void)[]>()
  let file: { pair: CertificatePair; certificate: X509Certificate } | null = null

  const validPair = (host: string): Held | null => {
    const pair = held.get(host)
    return pair !== undefined && pair.expiresAt > clock.now() ? pair : null
  }

  async function refreshHost(host: string): Promise<void> {
    const row = await certificates.find(host)
    if (row === null || !isOwnRow(row) || !isValid(row, clock.now())) return
    const { issued_at: issuedAt, expires_at: expiresAt } = row
    if (held.get(host)?.issuedAt === issuedAt) return
    const pair = await certificates.pair(host)
    if (pair === null) return
    held.set(host, { ...pair, issuedAt: issuedAt ?? 0, expiresAt: expiresAt ?? 0 })
    for (const apply of followers.get(host) ?? []) apply(pair)
  }

  async function refreshFile({ certificateFile, keyFile }: NonNullable<typeof files>): Promise<void> {
    try {
      const [chain, key] = await Promise.all([certificateFile, keyFile].map((name) => readFile(name, 'utf8')))
      if (chain === undefined || key === undefined || chain === file?.pair.chain) return
      createSecureContext({ cert: chain, key })
      file = { pair: { chain, key }, certificate: new X509Certificate(chain) }
      for (const apply of [...followers.values()].flat()) apply(file.pair)
    } catch {
      // A renewal may be half done; the listeners log it (receiving/sessions/tls-identity.ts), and the old one stays.
    }
  }

  return {
    /** Names that certificates are ordered for, in lower case. */
    hosts,
    /** Unix milliseconds until which other hosts trust what is served for the name; null: they do not, or it is no own name. */
    trustedUntil(host: string) {
      const pair = validPair(host)
      if (pair !== null) return pair.expiresAt
      const until = file === null ? 0 : fileTrustedUntil(file.certificate, host)
      return until > clock.now() ? until : null
    },
    /** The context of a handshake under that name: of the ordered certificate, or of `fallback` while there is none. */
    contextsOf(host: string, tlsOptions: SecureContextOptions, fallback: () => SecureContext) {
      let made: { pair: Held; context: SecureContext } | null = null
      return () => {
        const pair = validPair(host)
        if (pair === null) return fallback()
        if (made?.pair !== pair) {
          const context = createSecureContext({ ...tlsOptions, cert: pair.chain, key: pair.key })
          made = { pair, context }
        }
        return made.context
      }
    },
    /** Calls `apply` with each new pair of the name or of the files, with the name's present one at once. */
    follow(host: string, apply: (pair: CertificatePair) => void) {
      followers.set(host, [...(followers.get(host) ?? []), apply])
      const pair = validPair(host)
      if (pair !== null) apply(pair)
    },
    /** Reads database and file again. Never rejects. */
    async refresh() {
      for (const host of hosts)
        await refreshHost(host).catch((err: unknown) => log.error({ err, host }, 'cannot load a certificate'))
      if (files !== null) await refreshFile(files)
    },
    /** The state of each ordered name, for the operator. */
    async states() {
      const rows = await Promise.all([...hosts].map((host) => certificates.find(host)))
      return [...hosts].map((host, at) => stateOf(host, rows[at] ?? null))
    },
  }
}

const stateOf = (host: string, row: CertificateRow | null): OwnCertificateState => ({
  host,
  expiresAt: row?.expires_at ?? null,
  error: row?.error ?? null,
})

/** A certificate that signs itself is trusted by nobody else; 0 for another host too. */
function fileTrustedUntil(certificate: X509Certificate, host: string): number {
  const isSelfSigned = certificate.subject === certificate.issuer
  return isSelfSigned || certificate.checkHost(host) === undefined ? 0 : Date.parse(certificate.validTo)
}
