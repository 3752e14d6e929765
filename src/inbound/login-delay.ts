/** Failed SMTP logins cost a second each, and count with those over HTTP (auth-limits.md section 2, rule 4). */
import type { Clock } from '../base/clock.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'

const DELAY_MS = 1_000

/** Notes the failure; resolves when its reply may go out. */
export function createLoginDelay(
  clock: Clock,
  attempts: FailedAttempts,
): (remoteAddress: string) => Promise<void> {
  return async (remoteAddress) => {
    attempts.failed(remoteAddress)
    await new Promise<void>((resolve) => clock.setTimer(DELAY_MS, resolve))
    await attempts.delay(remoteAddress)
  }
}
