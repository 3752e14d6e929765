/**
 * Page tokens: a page request in one path part of `A-Z a-z 0-9 - _`. They are authenticated, so that only tokens of
 * this installation are accepted. They do not expire: once retention has deleted their events, their pages are empty.
 */
import { equalSecrets, type Sealer } from '../store/sealing.ts'
import type { PageRequest } from './page-request.ts'

/** Authenticated, so that a token of another list or an older format is refused. */
const PURPOSE = 'event-page-1'
/** 128 bits of HMAC-SHA-256 (RFC 2104 §5 allows half). */
const MAC_BYTES = 16
/** Characters; the server accepts path parts up to 4 KB. */
const TOKEN_MAX = 4000

export function sealPage(sealer: Pick<Sealer, 'mac'>, page: PageRequest): string {
  const body = Buffer.from(JSON.stringify(page))
  const mac = sealer.mac(PURPOSE, body).subarray(0, MAC_BYTES)
  return Buffer.concat([mac, body]).toString('base64url')
}

/** Null for anything that `sealPage` did not write with this secret. */
export function openPage(sealer: Pick<Sealer, 'mac'>, token: string): PageRequest | null {
  if (token.length > TOKEN_MAX || !/^[\w-]+={0,2}$/.test(token)) return null
  const bytes = Buffer.from(token, 'base64url')
  const body = bytes.subarray(MAC_BYTES)
  const mac = sealer.mac(PURPOSE, body).subarray(0, MAC_BYTES)
  return equalSecrets(mac, bytes.subarray(0, MAC_BYTES)) ? (JSON.parse(body.toString()) as PageRequest) : null
}
