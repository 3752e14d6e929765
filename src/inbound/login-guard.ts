/**
 * SMTP logins against guessing (decision 50). Passwords are chosen by people, so only so many of them are looked at:
 *
 * 1. A login that was right from the client's network before goes ahead, within a budget of its own. Tries at the same
 *    time may exceed it, by one for each connection.
 * 2. Others from one /20 (IPv6: /48) take turns: at the same time they would all pass before the first has failed.
 * 3. Where an address or its networks have used up their budget, the password is not looked at: 421 after a second.
 * 4. A failure counts, and its reply takes a second or more.
 *
 * Loopback addresses are exempt from all but the second.
 */
import type { Clock } from '../base/clock.ts'
import { TooManyWaiting } from '../base/errors.ts'
import { type FailedAttempts, networkOf, networksOf } from '../http/failed-attempts.ts'
import { Refusal } from './replies.ts'
import type { SmtpLogin } from './session.ts'

const DELAY_MS = 1_000

export interface LoginGuardParts {
  attempts: FailedAttempts
  /** From which networks each login was right; `note` never rejects. */
  places: {
    isKnown(login: string, network: string): Promise<boolean>
    note(login: string, network: string): Promise<void>
  }
  /** Null: wrong. @throws TooManyWaiting when too many passwords wait to be looked at */
  check(login: string, password: string, address: string): Promise<SmtpLogin | null>
  clock: Clock
}

export interface LoginGuard {
  /** Null: wrong, and counted. @throws Refusal when it was not looked at */
  authenticate(login: string, password: string, remoteAddress: string): Promise<SmtpLogin | null>
  /** Resolves when the reply to a wrong login may go out. */
  loginFailed(remoteAddress: string, login: string): Promise<void>
}

export function createLoginGuard({ attempts, places, check, clock }: LoginGuardParts): LoginGuard {
  const turns = new Turns()

  async function counted(login: string, password: string, address: string): Promise<SmtpLogin | null> {
    const found = await check(login, password, address).catch((error: unknown) => {
      // RFC 4954 §6. It was not looked at.
      if (error instanceof TooManyWaiting) throw new Refusal('454 4.7.0 Temporary authentication failure')
      throw error
    })
    if (found === null) attempts.failed(address, login)
    else await places.note(found.login, networkOf(address))
    return found
  }

  const delay = () => new Promise<void>((resolve) => clock.setTimer(DELAY_MS, resolve))

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
        // Whoever was first in turn may have been right.
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

/** Tasks of one key run one after the other. As many wait as there are connections. */
class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const ran = (this.#last.get(key) ?? Promise.resolve()).then(task)
    const over = ran
      .catch(() => {}) // the caller's to handle
      .then(() => {
        if (this.#last.get(key) === over) this.#last.delete(key)
      })
    this.#last.set(key, over)
    return ran
  }
}
