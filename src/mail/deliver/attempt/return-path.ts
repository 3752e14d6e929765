/**
 * Variable envelope return paths: `bounce+<token>@<mailfrom host>` names one delivery, so a bounce is matched to its
 * recipient whatever the bounce message looks like, and a forged one is not. The token is the delivery's id and a MAC in
 * base 32 without letter case, since some servers fold the case of local parts.
 */
import { timingSafeEqual } from 'node:crypto'
import { fromBase32, toBase32 } from '../../../base/base32.ts'
import { bytesToId, idToBytes } from '../../../base/ids.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'

const ID_BYTES = 16
/** 64 bits: a forger's only oracle is the bounce table, and each guess costs a mail. */
const MAC_BYTES = 8
const TOKEN_LENGTH = 39

const BOUNCE_PREFIX = 'bounce+'

/** HMAC under a key of this purpose. */
export type ReturnPathMac = (data: Uint8Array) => Uint8Array

/** The MAC of this installation's return paths. */
export const returnPathMac =
  (sealer: Pick<Sealer, 'mac'>): ReturnPathMac =>
  (data) =>
    sealer.mac('return-path', data)

/** The token of a delivery: 39 characters of `a-z2-7`. */
export function deliveryToken(deliveryId: string, mac: ReturnPathMac): string {
  const id = idToBytes(deliveryId)
  if (!id) throw new RangeError(`"${deliveryId}" is not a delivery id`)
  return toBase32(Buffer.concat([id, mac(id).subarray(0, MAC_BYTES)]))
}

/** The delivery that a token names, or null if it was not made here. */
export function readDeliveryToken(token: string, mac: ReturnPathMac): string | null {
  const bytes = token.length === TOKEN_LENGTH ? fromBase32(token) : null
  if (!bytes) return null
  const id = bytes.subarray(0, ID_BYTES)
  const given = bytes.subarray(ID_BYTES, ID_BYTES + MAC_BYTES)
  return timingSafeEqual(given, mac(id).subarray(0, MAC_BYTES)) ? bytesToId(id) : null
}

/** The envelope sender of the delivery with this token. */
export function returnPathOf(token: string, mailfromHost: string): string {
  return `${BOUNCE_PREFIX}${token}@${mailfromHost}`
}

/** The delivery that a return path names, or null. */
export function deliveryOfReturnPath(address: string, mac: ReturnPathMac): string | null {
  const local = address.slice(0, address.lastIndexOf('@'))
  if (!local.toLowerCase().startsWith(BOUNCE_PREFIX)) return null
  return readDeliveryToken(local.slice(BOUNCE_PREFIX.length), mac)
}
