/** Tokens that clients hand back: any bytes, authenticated, as text of `A-Z a-z 0-9 - _`. They can be read by anybody. */
import { equalSecrets, type Sealer } from './sealing.ts'

/** 128 bits of HMAC-SHA-256 (RFC 2104 §5 allows half). */
const MAC_BYTES = 16

/** `purpose`: tokens of another one are refused. */
export function signToken(sealer: Pick<Sealer, 'mac'>, purpose: string, body: Uint8Array): string {
  const mac = sealer.mac(purpose, body).subarray(0, MAC_BYTES)
  return Buffer.concat([mac, body]).toString('base64url')
}

/** Null for anything that `signToken` did not write with this secret, and for more than `lengthMax` characters. */
export function readToken(
  sealer: Pick<Sealer, 'mac'>,
  purpose: string,
  token: string,
  lengthMax: number,
): Buffer | null {
  if (token.length > lengthMax || !/^[\w-]+={0,2}$/.test(token)) return null
  const bytes = Buffer.from(token, 'base64url')
  const body = bytes.subarray(MAC_BYTES)
  const mac = sealer.mac(purpose, body).subarray(0, MAC_BYTES)
  return equalSecrets(mac, bytes.subarray(0, MAC_BYTES)) ? body : null
}
