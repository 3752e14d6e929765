/**
 * Protects SMTP logins against guessing (decision 50). Passwords are chosen by people, so only a limited number of them
 * is checked:
 *
 * 1. A login that succeeded from the client's network before is checked at once, within a budget of its own. Concurrent
 *    attempts may exceed it, by one for each connection.
 * 2. Others from one /20 (IPv6: /48) are checked one after the other: concurrent ones would all pass before the first
 *    has failed.
 * 3. When an address or its networks have used up their budget, the password is not checked: 421 after a second.
 * 4. A failure counts, and its reply is delayed by a second or more.
 *
 * Loopback addresses are exempt from all but the second.
 */

import { networkOf, networksOf } from '../base/client-networks.ts'
import type { Clock } from '../base/clock.ts'
import { TooManyWaiting } from '../base/errors.ts'
import { pause } from '../base/pause.ts'
import { Turns } from '../base/turns.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import { Refusal } from './replies.ts'
import type { SmtpLogin } from './session.ts'

const DELAY_MS = 1_000

export interface LoginGuardParts {
  attempts: FailedAttempts
  /** Networks from which each login has succeeded; `note` never rejects. */
  places: {
    isKnown(login: string, network: string): Promise<boolean>
    note(login: string, network: string): Promise<void>
  }
  /** Null: wrong. @throws TooManyWaiting when too many passwords wait to be checked */
  check(login: string, password: string, address: string): Promise<SmtpLogin | null>
  clock: Clock
}

export interface LoginGuard {
  /** Null: wrong, and counted. @throws Refusal when it was not checked */
  authenticate(login: string, password: string, remoteAddress: string): Promise<SmtpLogin | null>
  /** Resolves when the reply to a wrong login may be sent. */
  loginFailed(remoteAddress: string, login: string): Promise<void>
}

export function createLoginGuard({ attempts, places, check, clock }: LoginGuardParts): LoginGuard {
  // At most one attempt waits per connection.
  const turns = new Turns()

  async function counted(login: string, password: string, address: string): Promise<SmtpLogin | null> {
    const found = await check(login, password, address).catch((error: unknown) => {
      // RFC 4954 §6. It was not checked.
      if (error instanceof TooManyWaiting) throw new Refusal('454 4.7.0 Temporary authentication failure')
      throw error
    })
    if (found === null) attempts.failed(address, login)
    else await places.note(found.login, networkOf(address))
    return found
  }

  const delay = () => pause(clock, DELAY_MS)

  async function refuse(): Promise<never> {
    await delay()
    throw new Refusal('421 4.7.0 Too many failed logins from your network', { closes: true })
  }

  return {
    async authenticate(user, password, address) {
      if (attempts.isExempt(address)) return check(user, password, address)
      const login = user.toLowerCase()
      const isKnownPlace = () => places.isKnown(login, networkOf(address))
      if (await isKnownPlace()) {
        if (attempts.blockedAtKnownPlaceMs(address, login) > 0) return refuse()
        return counted(login, password, address)
      }
      const found = await turns.run(networksOf(address)[2], async () => {
        // An attempt that was checked while this one waited may have succeeded.
        const isBlocked = attempts.blockedMs(address) > 0 && !(await isKnownPlace())
        return isBlocked ? BLOCKED : counted(login, password, address)
      })
      return found === BLOCKED ? refuse() : found
    },
    async loginFailed(address, login) {
      await delay()
      await attempts.delay(address, login)
    },
  }
}

const BLOCKED = Symbol('blocked')
