/**
 * Protects passwords, which people choose, against guessing over HTTP and SMTP (decision 50). Only a limited number of
 * them is checked:
 *
 * 1. From a network where the login succeeded before, attempts are checked at once, within a budget of their own.
 *    Concurrent ones may exceed it, by one for each connection.
 * 2. Others from one /20 (IPv6: /48) are checked one after the other: concurrent ones would all pass before the first
 *    has failed. One that waited is checked by the first rule if the login succeeded meanwhile.
 * 3. When an address or its networks have used up their budget, the password is not checked.
 * 4. A failure counts, whether the login exists or not.
 *
 * So nobody can lock out an owner from a network where the login succeeded before, nor from a network without failures.
 * Exempt addresses, by default loopback, are always checked at once.
 */

import { Turns } from '../../../base/flow/turns.ts'
import { networkOf, networksOf } from '../../../base/net/client-networks.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import type { FailedAttempts } from './failed-attempts.ts'

/** Networks from which each login has succeeded. */
export interface KnownPlaces {
  isKnown(login: string, network: string): Promise<boolean>
  /** Never rejects. */
  note(login: string, network: string): Promise<void>
}

export interface GuessingGuard {
  /**
   * Runs `check` within the limits; null counts as a failure.
   * @throws TooManyRequests over a budget, TooManyWaiting when too many wait; then it was not run
   */
  run<T>(address: string, login: string, check: () => Promise<T | null>): Promise<T | null>
  isKnownPlace(address: string, login: string): Promise<boolean>
  /** Notes that the login succeeded from there. Never rejects. */
  succeeded(address: string, login: string): Promise<void>
}

/** `waitingMax`: attempts that wait for each /20; default no limit, where connections limit them. */
export function createGuessingGuard(
  attempts: Pick<FailedAttempts, 'isExempt' | 'failed' | 'blockedMs' | 'blockedAtKnownPlaceMs'>,
  places: KnownPlaces,
  waitingMax?: number,
): GuessingGuard {
  const turns = new Turns(waitingMax)
  const isKnownPlace = (address: string, login: string) => places.isKnown(login, networkOf(address))

  /** Looks the place up again only if it matters. */
  async function blockedElsewhereMs(address: string, login: string): Promise<number> {
    const blockedMs = attempts.blockedMs(address)
    const isKnown = blockedMs > 0 && (await isKnownPlace(address, login))
    return isKnown ? attempts.blockedAtKnownPlaceMs(address, login) : blockedMs
  }

  async function checked<T>(
    blockedMs: number,
    address: string,
    login: string,
    check: () => Promise<T | null>,
  ) {
    if (blockedMs > 0) throw new TooManyRequests(blockedMs / 1000)
    const found = await check()
    if (found === null) attempts.failed(address, login)
    return found
  }

  return {
    isKnownPlace,
    succeeded: (address, login) => places.note(login, networkOf(address)),
    async run(address, login, check) {
      if (attempts.isExempt(address)) return check()
      if (await isKnownPlace(address, login))
        return checked(attempts.blockedAtKnownPlaceMs(address, login), address, login, check)
      return turns.run(networksOf(address)[2], async () =>
        checked(await blockedElsewhereMs(address, login), address, login, check),
      )
    },
  }
}
