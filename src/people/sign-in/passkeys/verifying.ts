/**
 * What a browser returns for a passkey, checked by `@simplewebauthn/server`, which is loaded at the first use: most
 * services have no passkeys, and it takes 12 MB of heap.
 *
 * Attestations are neither requested nor accepted: nobody here decides by the make of an authenticator, and the library
 * would read certificates, and fetch lists of revoked ones, at addresses that a stranger chooses.
 */

import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isPlainObject } from '../../../base/values.ts'
import type { PasskeyRow } from '../../../platform/store/schema.ts'

/** Where passkeys are valid. */
export interface RelyingParty {
  /** Host name, WebAuthn §5.1.2. */
  id: string
  origin: string
}

/** A response of a browser in the form of WebAuthn §5.1, with texts in base64url. */
export interface BrowserResponse {
  id: string
  challenge: string
  value: RegistrationResponseJSON | AuthenticationResponseJSON
}

export interface NewCredential {
  credentialId: string
  publicKey: Uint8Array
  counter: number
  transports: string
}

export type StoredCredential = Pick<PasskeyRow, 'credential_id' | 'public_key' | 'counter'>

/** Ed25519, ECDSA with P-256, and RSA with SHA-256, for Windows (RFC 9053 §2). */
export const ALGORITHMS = [-8, -7, -257] as const
/** Several times of what authenticators send. */
const LENGTH_MAX = 8_192
/** WebAuthn §5.8.4 knows six; further ones may come. */
const TRANSPORTS_MAX = 8

/** Null for anything that is no response of a browser. */
export function readBrowserResponse(text: string): BrowserResponse | null {
  if (text.length > LENGTH_MAX) return null
  try {
    const value: unknown = JSON.parse(text)
    if (!isPlainObject(value) || !isPlainObject(value['response'])) return null
    const { id, response } = value
    const { clientDataJSON } = response
    if (typeof id !== 'string' || typeof clientDataJSON !== 'string') return null
    const client: unknown = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
    if (!isPlainObject(client) || typeof client['challenge'] !== 'string') return null
    const known = value as unknown as BrowserResponse['value']
    return { id, challenge: client['challenge'], value: known }
  } catch {
    return null
  }
}

/** The new credential; null: the response is not valid. */
export async function verifyNew(
  { challenge, value }: BrowserResponse,
  { id: expectedRPID, origin: expectedOrigin }: RelyingParty,
): Promise<NewCredential | null> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  try {
    const response = value as RegistrationResponseJSON
    const attestation = decodeAttestationObject(
      new Uint8Array(Buffer.from(response.response.attestationObject, 'base64url')),
    )
    const isSelf = attestation.get('fmt') === 'packed' && attestation.get('attStmt').get('x5c') === undefined
    if (attestation.get('fmt') !== 'none' && !isSelf) return null
    const { registrationInfo: made } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin,
      expectedRPID,
      requireUserVerification: false,
      supportedAlgorithmIDs: [...ALGORITHMS],
    })
    if (made === undefined) return null
    const { id, publicKey, counter } = made.credential
    return { credentialId: id, publicKey, counter, transports: transportsOf(response) }
  } catch {
    return null
  }
}

/** The authenticator's new count and whether it has verified its user; null: the response is not valid. */
export async function verifyKnown(
  { challenge, value }: BrowserResponse,
  { id: expectedRPID, origin: expectedOrigin }: RelyingParty,
  { credential_id: id, public_key: publicKey, counter }: StoredCredential,
): Promise<{ counter: number; isUserVerified: boolean } | null> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: value as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin,
      expectedRPID,
      credential: { id, publicKey: new Uint8Array(publicKey), counter },
      requireUserVerification: false,
    })
    if (!verified) return null
    return { counter: authenticationInfo.newCounter, isUserVerified: authenticationInfo.userVerified }
  } catch {
    return null
  }
}

const transportsOf = ({ response: { transports } }: RegistrationResponseJSON): string =>
  (Array.isArray(transports) ? transports : [])
    .filter((name) => typeof name === 'string' && /^[a-z-]{1,32}$/.test(name))
    .slice(0, TRANSPORTS_MAX)
    .join(',')
