/**
 * Limits guessing of users' passwords, by the rules of SMTP logins (inbound/login-guard.ts, decision 50):
 *
 * 1. From a network where the user has signed in before, attempts have a budget of their own.
 * 2. Other attempts from one /20 (IPv6: /48) are serialised: in parallel they would all pass before the first has failed.
 * 3. When an address or its networks have used up their budget, the password is not checked: 429.
 * 4. A failure counts, whether the user exists or not, and its response is delayed like others.
 *
 * So nobody can lock out a user from a network where the user has signed in before, nor from a network without failures.
 */

import { networkOf, networksOf } from '../../base/client-networks.ts'
import { TooManyRequests } from '../../base/errors.ts'
import { Turns } from '../../base/turns.ts'
import type { FailedAttempts } from '../../http/failed-attempts.ts'
import type { LoginPlaces } from '../login-places.ts'

export interface PasswordGuard {
  /**
   * Runs `check` within the limits; null counts as a wrong password.
   * @throws TooManyRequests, TooManyWaiting when it was not run
   */
  run<T>(address: string, login: string, check: () => Promise<T | null>): Promise<T | null>
  /** Records a successful sign-in. Never rejects. */
  succeeded(address: string, login: string): Promise<void>
  isKnownPlace(address: string, login: string): Promise<boolean>
}

/** Per /20: about half a second of work. */
const WAITING_MAX = 20

export function createPasswordGuard(attempts: FailedAttempts, places: LoginPlaces): PasswordGuard {
  const turns = new Turns(WAITING_MAX)
  const isKnownPlace = (address: string, login: string) => places.isKnown(login, networkOf(address))

  async function counted<T>(
    address: string,
    login: string,
    check: () => Promise<T | null>,
  ): Promise<T | null> {
    const found = await check()
    if (found === null) attempts.failed(address, login)
    return found
  }

  return {
    isKnownPlace,
    succeeded: (address, login) => places.note(login, networkOf(address)),
    async run(address, login, check) {
      const isKnown = await isKnownPlace(address, login)
      if (isKnown) refuse(attempts.blockedAtKnownPlaceMs(address, login))
      const found = isKnown
        ? await counted(address, login, check)
        : await turns.run(networksOf(address)[2], () => {
            refuse(attempts.blockedMs(address))
            return counted(address, login, check)
          })
      if (found === null) await attempts.delay(address, login)
      return found
    },
  }
}

/** @throws TooManyRequests */
function refuse(blockedMs: number): void {
  if (blockedMs > 0) throw new TooManyRequests(blockedMs / 1000)
}
