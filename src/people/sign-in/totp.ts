/** Time-based one-time passwords (RFC 6238): six digits, SHA-1, steps of 30 s, the values that authenticator apps expect. */
import { createHmac, randomBytes } from 'node:crypto'
import { toBase32 } from '../../base/base32.ts'
import { equalSecrets } from '../../platform/store/secrets/sealing.ts'

/** RFC 4226 §4 R6 recommends 160 bits. */
const SECRET_BYTES = 20
const STEP_MS = 30_000
const DIGITS = 6
/** Steps before and after the current one: RFC 6238 §5.2 recommends at most one. */
const WINDOW_STEPS = 1

export const newTotpSecret = (): Buffer => randomBytes(SECRET_BYTES)

/** The code of a step. RFC 4226 §5.3. */
export function totpCode(secret: Uint8Array, step: number, digits = DIGITS, hash = 'sha1'): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac(hash, secret).update(counter).digest()
  const offset = (mac.at(-1) as number) & 0xf
  const number = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits
  return String(number).padStart(digits, '0')
}

export const totpStep = (nowMs: number) => Math.floor(nowMs / STEP_MS)

/** The step of the code, near `nowMs` and after `lastStep`; null: none. Constant-time. */
export function matchingStep(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  lastStep: number,
): number | null {
  let found: number | null = null
  for (let ahead = -WINDOW_STEPS; ahead <= WINDOW_STEPS; ahead++) {
    const step = totpStep(nowMs) + ahead
    if (equalSecrets(totpCode(secret, step), code) && step > lastStep) found = step
  }
  return found
}

/** Authenticator apps read it from a QR code or link. */
export function otpauthUrl(secret: Uint8Array, issuer: string, account: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = new URLSearchParams({ secret: totpText(secret), issuer })
  return `otpauth://totp/${label}?${query}`
}

/** The secret for typing. */
export const totpText = (secret: Uint8Array) => toBase32(secret).toUpperCase()
