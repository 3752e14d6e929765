/** Limits guessing of users' passwords, by the rules of `platform/http/limits/failed-attempts.ts`. Responses to failures are delayed. */
import {
  createGuessingGuard,
  type FailedAttempts,
  type GuessingGuard,
} from '../../platform/http/limits/failed-attempts.ts'
import type { LoginPlaces } from './login-places.ts'

/** Per /20: about half a second of work. */
const WAITING_MAX = 20

export function createPasswordGuard(attempts: FailedAttempts, places: LoginPlaces): GuessingGuard {
  const guard = createGuessingGuard(attempts, places, WAITING_MAX)
  return {
    ...guard,
    async run(address, login, check) {
      const found = await guard.run(address, login, check)
      if (found === null) await attempts.delay(address, login)
      return found
    },
  }
}
