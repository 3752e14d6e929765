/**
 * The service's own certificate, for SMTP and HTTPS: the operator's files, or a self-signed one, made at the first start and
 * kept in the data folder. Files are read again when they change, so a renewed certificate needs no restart.
 */
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { selfSignedCertificate } from '../../base/net/certificate.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'

export interface TlsIdentityOptions {
  files: { certificateFile: string; keyFile: string } | null
  dataFolder: string
  hostname: string
  minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** As OpenSSL names them; default Node's. */
  ciphers?: string
  clock: Clock
  log: Logger
}

/** Nobody verifies it, and its expiry should not cause work. */
const OWN_VALID_MS = 3650 * DAY_MS
/** One that expires sooner is replaced at a start. */
const OWN_RENEW_MS = 90 * DAY_MS
/** The files are checked for changes at most this often. */
const LOOK_MS = MINUTE_MS

/** Returns the context for a handshake. @throws when the files cannot be read or do not match */
export function createTlsIdentity(options: TlsIdentityOptions): () => SecureContext {
  const { clock, log, minVersion, ciphers } = options
  const files = tlsIdentityFiles(options)
  const load = () =>
    createSecureContext({
      cert: readFileSync(files.certificateFile),
      key: readFileSync(files.keyFile),
      minVersion,
      ...(ciphers !== undefined && { ciphers }),
    })
  const stamp = () => `${statSync(files.certificateFile).mtimeMs} ${statSync(files.keyFile).mtimeMs}`
  let context = load()
  let seen = stamp()
  let lookAt = clock.monotonic() + LOOK_MS
  return () => {
    if (clock.monotonic() < lookAt) return context
    lookAt = clock.monotonic() + LOOK_MS
    try {
      const now = stamp()
      if (now !== seen) context = load()
      seen = now
    } catch (error) {
      // A renewal may be half done: the old one stays in use until the next check.
      log.warn({ err: error }, 'cannot read the new certificate')
    }
    return context
  }
}

/** The files of certificate and key; without the operator's they are made here. */
export function tlsIdentityFiles(options: TlsIdentityOptions): { certificateFile: string; keyFile: string } {
  return options.files ?? ownCertificate(options)
}

function ownCertificate({ dataFolder, hostname, clock }: TlsIdentityOptions) {
  const folder = join(dataFolder, 'tls')
  const certificateFile = join(folder, 'smtp.crt')
  const keyFile = join(folder, 'smtp.key')
  if (!isUsable(certificateFile, keyFile, hostname, clock.now())) {
    const now = clock.now()
    const validity = { from: new Date(now - DAY_MS), to: new Date(now + OWN_VALID_MS) }
    const { cert, key } = selfSignedCertificate([hostname], validity)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    replaceFile(keyFile, key)
    replaceFile(certificateFile, cert)
  }
  return { certificateFile, keyFile }
}

function isUsable(certificateFile: string, keyFile: string, hostname: string, now: number): boolean {
  if (!existsSync(certificateFile) || !existsSync(keyFile)) return false
  try {
    const certificate = new X509Certificate(readFileSync(certificateFile))
    createSecureContext({ cert: certificate.toString(), key: readFileSync(keyFile) })
    const named = certificate.checkHost(hostname) ?? certificate.checkIP(hostname)
    return named !== undefined && Date.parse(certificate.validTo) - now > OWN_RENEW_MS
  } catch {
    return false // truncated by a crash, or a pair that does not match: replaced
  }
}

function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
