/**
 * Signing in with the provider: the browser is sent there and comes back to CALLBACK_PATH with a code.
 *
 * Anybody may cause requests to the provider by coming back with a wrong code, so those are limited per network and at a
 * time.
 */
import { networkOf } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import { HourlyQuota } from '../accounts/hourly-quota.ts'
import type { User } from '../accounts/user-directory.ts'
import type { SignInContext } from '../sign-in/session-opening.ts'
import type { Attempt, Attempts } from './attempts.ts'
import type { Linking } from './linking.ts'
import type { Provider } from './provider.ts'
import { SignInRefused } from './refused.ts'

export type OidcSignIn = ReturnType<typeof createOidcSignIn>

/** A large office behind one address signs in within an hour. */
const PER_NETWORK_MAX = 1_000
const AT_A_TIME_MAX = 50
const BUSY = 'Too many people are signing in. Try again in a few minutes'

interface OidcSignInParts {
  label: string
  provider: Provider
  attempts: Attempts
  linking: Linking
  clock: Clock
  isExempt(address: string): boolean
}

export function createOidcSignIn(parts: OidcSignInParts) {
  const { label, provider, attempts, linking, clock, isExempt } = parts
  const ofNetworks = new HourlyQuota(clock, PER_NETWORK_MAX)
  let running = 0

  return {
    /** Text of the button: "Sign in with <label>". */
    label,
    /** Where the browser is to go, and the attempt for its cookie. @throws SignInRefused */
    async begin(isProof: boolean): Promise<{ url: string; attempt: Attempt }> {
      const attempt = attempts.begin(isProof)
      return { url: await provider.authorizationUrl(attempt), attempt }
    },
    /** The user, authenticated, and whether just now. `query`: of the redirect. @throws SignInRefused */
    async complete(
      query: URLSearchParams,
      attempt: Attempt | null,
      { remoteAddress, requestId }: SignInContext,
    ): Promise<{ user: User; isFresh: boolean }> {
      if (attempt === null || query.get('state') !== attempt.state)
        throw new SignInRefused('This sign-in was begun in another browser or window, or too long ago', 400)
      if (running >= AT_A_TIME_MAX) throw new SignInRefused(BUSY, 503)
      if (!isExempt(remoteAddress) && ofNetworks.take(networkOf(remoteAddress)) > 0)
        throw new SignInRefused(BUSY, 429)
      running += 1
      try {
        const identity = await provider.identify(query, attempt)
        const { isFresh } = identity
        if (attempt.isProof && !isFresh) throw new SignInRefused(`${label} has not asked again who you are`)
        const completion = attempts.complete(attempt)
        const user = await linking.signIn({ identity, completion, visitor: { remoteAddress, requestId } })
        return { user, isFresh }
      } finally {
        running -= 1
      }
    },
  }
}
