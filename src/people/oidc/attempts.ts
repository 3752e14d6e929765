/**
 * A sign-in that is on its way to the provider and back. It lies in a cookie of the browser, sealed, so that only this
 * browser completes it and nothing is stored for sign-ins that are never completed.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/time/clock.ts'
import { cookieValue } from '../../platform/http/rights/auth.ts'
import { withPod } from '../../platform/store/pods/pod.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Statement } from '../../platform/store/store.ts'

export interface Attempt {
  state: string
  nonce: string
  /** Code verifier of PKCE, RFC 7636 §4.1. */
  verifier: string
  /** Unix milliseconds. */
  expiresAt: number
  /** The person is to be asked again who they are, whatever session the provider has. */
  isProof: boolean
}

/** Unix milliseconds. */
export const begunAt = ({ expiresAt }: Attempt) => expiresAt - LIFETIME_MS

export type Attempts = ReturnType<typeof createAttempts>

const LIFETIME_MS = 10 * 60_000
const PURPOSE = 'oidc-attempt'
/** Several times of what a sealed attempt has. */
const COOKIE_LENGTH_MAX = 1_000

/** With the prefix, no neighbouring host can set it (RFC 6265bis §4.1.3.2); browsers accept it over TLS only. */
const nameOf = (isSecure: boolean) => `${isSecure ? '__Host-' : ''}sendwright_oidc`

// Lax: the way back is a navigation from the provider's site.
const cookieOf = (value: string, isSecure: boolean, maxAgeMs: number) =>
  `${nameOf(isSecure)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeMs / 1000}${isSecure ? '; Secure' : ''}`

/** 256 bits in base64url: 43 characters, as a PKCE verifier has at least (RFC 7636 §4.1). */
const unguessable = () => randomBytes(32).toString('base64url')

export function createAttempts(sealer: Sealer, clock: Clock, pod: string | null) {
  const nowMs = () => Math.floor(clock.now())

  function open(value: string): Attempt | null {
    if (value.length > COOKIE_LENGTH_MAX) return null
    try {
      return JSON.parse(sealer.open(PURPOSE, Buffer.from(value, 'base64url')).toString()) as Attempt
    } catch {
      return null
    }
  }

  return {
    begin: (isProof: boolean): Attempt => ({
      state: withPod(pod, unguessable()),
      nonce: unguessable(),
      verifier: unguessable(),
      expiresAt: nowMs() + LIFETIME_MS,
      isProof,
    }),
    /** Value of a Set-Cookie header. The older attempt of the browser is replaced. */
    cookie(attempt: Attempt, isSecure: boolean): string {
      const sealed = Buffer.from(sealer.seal(PURPOSE, JSON.stringify(attempt))).toString('base64url')
      return cookieOf(sealed, isSecure, LIFETIME_MS)
    },
    /** Value of a Set-Cookie header that removes the attempt. */
    noCookie: (isSecure: boolean) => cookieOf('', isSecure, 0),
    /** The attempt of this browser; null: none, expired, or not made here. */
    read(headers: IncomingHttpHeaders, isSecure: boolean): Attempt | null {
      const attempt = open(cookieValue(headers, nameOf(isSecure)) ?? '')
      return attempt === null || attempt.expiresAt <= nowMs() ? null : attempt
    },
    /** Fails the unit if the attempt was completed before. */
    complete({ state, expiresAt }: Attempt): Statement[] {
      const digest = sealer.mac(PURPOSE, state).toString('hex')
      return [
        { sql: 'DELETE FROM oidc_sign_ins WHERE expires_at <= ?', values: [nowMs()] },
        {
          sql: 'INSERT INTO oidc_sign_ins (digest, expires_at) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING',
          values: [digest, expiresAt],
          expectRows: 1,
        },
      ]
    },
  }
}
