/**
 * Variable envelope return paths: `bounce+<token>@<mailfrom host>` names one delivery, so a bounce finds its
 * recipient whatever the bounce message looks like, and a forged one finds nothing. The token is the
 * delivery's id and a MAC in base 32 without letter case, since some servers fold the case of local parts.
 */
import { timingSafeEqual } from 'node:crypto'
import { bytesToId, idToBytes } from '../base/ids.ts'

const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const ID_BYTES = 16
/** 64 bits: a forger has no oracle but the bounce table, and each guess costs a mail. */
const MAC_BYTES = 8
const TOKEN_PATTERN = /^[a-z2-7]{39}$/

export const BOUNCE_PREFIX = 'bounce+'

/** HMAC under a key of this purpose. */
export type ReturnPathMac = (data: Uint8Array) => Uint8Array

/** The token of a delivery: 39 characters of `a-z2-7`. */
export function deliveryToken(deliveryId: string, mac: ReturnPathMac): string {
  const id = idToBytes(deliveryId)
  if (!id) throw new RangeError(`"${deliveryId}" is not a delivery id`)
  return toBase32(Buffer.concat([id, mac(id).subarray(0, MAC_BYTES)]))
}

/** The delivery that a token names, or null if it was not made here. */
export function readDeliveryToken(token: string, mac: ReturnPathMac): string | null {
  const folded = token.toLowerCase()
  if (!TOKEN_PATTERN.test(folded)) return null
  const bytes = fromBase32(folded)
  const id = bytes.subarray(0, ID_BYTES)
  const given = bytes.subarray(ID_BYTES, ID_BYTES + MAC_BYTES)
  return timingSafeEqual(given, mac(id).subarray(0, MAC_BYTES)) ? bytesToId(id) : null
}

/** The envelope sender of a delivery. */
export function returnPathOf(deliveryId: string, mailfromHost: string, mac: ReturnPathMac): string {
  return `${BOUNCE_PREFIX}${deliveryToken(deliveryId, mac)}@${mailfromHost}`
}

/** The delivery that a return path names, or null. */
export function deliveryOfReturnPath(address: string, mac: ReturnPathMac): string | null {
  const local = address.slice(0, address.lastIndexOf('@'))
  if (!local.toLowerCase().startsWith(BOUNCE_PREFIX)) return null
  return readDeliveryToken(local.slice(BOUNCE_PREFIX.length), mac)
}

function toBase32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xffff
    bits += 8
    for (; bits >= 5; bits -= 5) text += DIGITS[(held >> (bits - 5)) & 31]
  }
  return bits > 0 ? text + DIGITS[(held << (5 - bits)) & 31] : text
}

function fromBase32(text: string): Buffer {
  const bytes: number[] = []
  let bits = 0
  let held = 0
  for (const digit of text) {
    held = ((held << 5) | DIGITS.indexOf(digit)) & 0xffff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes.push((held >> bits) & 0xff)
    }
  }
  return Buffer.from(bytes)
}
