/**
 * Protects SMTP logins against guessing, by the rules of `platform/http/limits/failed-attempts.ts`. A password that is not checked is refused
 * with 421 after a second, and the reply to a wrong one is delayed by a second or more.
 */

import { pause } from '../../base/flow/pause.ts'
import { TooManyRequests, TooManyWaiting } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import {
  createGuessingGuard,
  type FailedAttempts,
  type KnownPlaces,
} from '../../platform/http/limits/failed-attempts.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { Refusal } from './replies.ts'
import type { SmtpLogin } from './session.ts'

const DELAY_MS = 1_000

interface LoginGuardParts {
  attempts: FailedAttempts
  places: KnownPlaces
  /** Null: wrong. @throws TooManyWaiting when too many passwords wait to be checked */
  check(login: string, password: string, address: string): Promise<SmtpLogin | null>
  clock: Clock
}

export function createLoginGuard({ attempts, places, check, clock }: LoginGuardParts) {
  // At most one attempt waits per connection.
  const guard = createGuessingGuard(attempts, places)
  const delay = () => pause(clock, DELAY_MS)

  async function refusalOf(error: unknown): Promise<unknown> {
    // RFC 4954 §6.
    if (error instanceof TooManyWaiting)
      return new Refusal(`${STATUS.loginUnchecked} Temporary authentication failure`)
    if (!(error instanceof TooManyRequests)) return error
    await delay()
    return new Refusal(`${STATUS.enough} Too many failed logins from your network`, { closes: true })
  }

  return {
    /** Null: wrong, and counted. @throws Refusal when it was not checked */
    async authenticate(user: string, password: string, address: string): Promise<SmtpLogin | null> {
      const checked = async () => {
        const found = await check(user, password, address)
        // Within the turn: attempts that wait for theirs then find the place known.
        if (found !== null && !attempts.isExempt(address)) await guard.succeeded(address, found.login)
        return found
      }
      return guard.run(address, user.toLowerCase(), checked).catch(async (error: unknown) => {
        throw await refusalOf(error)
      })
    },
    /** Resolves when the reply to a wrong login may be sent. */
    async loginFailed(address: string, login: string): Promise<void> {
      await delay()
      await attempts.delay(address, login)
    },
  }
}
