/**
 * Page tokens: everything a page needs, in one path part of `A-Z a-z 0-9 - _`. They are authenticated, so
 * that only what we handed out comes back, and never expire by themselves: retention empties what they reach.
 */
import { equalSecrets, type Sealer } from '../store/sealing.ts'
import type { PageRequest } from './page-request.ts'

/** Bound into the code, so that a token of another list or an older form never passes. */
const PURPOSE = 'event-page-1'
/** 128 bits of HMAC-SHA-256 (RFC 2104 §5 allows half). */
const MAC_BYTES = 16
/** Of one path part, which the server accepts up to 4 KB. */
const TOKEN_MAX = 4000

/** Writes a token. */
export function sealPage(sealer: Pick<Sealer, 'mac'>, page: PageRequest): string {
  const body = Buffer.from(JSON.stringify(page))
  const mac = sealer.mac(PURPOSE, body).subarray(0, MAC_BYTES)
  return Buffer.concat([mac, body]).toString('base64url')
}

/** Reads a token; null for anything that `sealPage` did not write under this secret. */
export function openPage(sealer: Pick<Sealer, 'mac'>, token: string): PageRequest | null {
  if (token.length > TOKEN_MAX || !/^[\w-]+={0,2}$/.test(token)) return null
  const bytes = Buffer.from(token, 'base64url')
  const body = bytes.subarray(MAC_BYTES)
  const mac = sealer.mac(PURPOSE, body).subarray(0, MAC_BYTES)
  return equalSecrets(mac, bytes.subarray(0, MAC_BYTES)) ? (JSON.parse(body.toString()) as PageRequest) : null
}
