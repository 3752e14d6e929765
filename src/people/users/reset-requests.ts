/**
 * Requests for a new password by mail. They are answered before the user is looked up and processed afterwards, so that
 * neither the text nor the time of the response reveals whether the user exists.
 *
 * Requests per client address, mails per user and the backlog are limited.
 */
import { networkOf } from '../../base/net/ip.ts'
import { TooManyRequests, TooManyWaiting } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { auditStatement } from '../accounts/audit-log.ts'
import { HourlyQuota } from '../accounts/hourly-quota.ts'
import type { UserDirectory } from '../accounts/user-directory.ts'
import { resetMail, type SystemMail } from './mails.ts'
import type { UserTokens } from './user-tokens.ts'
import type { Visitor } from './users.ts'

export type ResetRequests = ReturnType<typeof createResetRequests>

interface ResetRequestParts extends Pick<Core, 'clock' | 'log'> {
  userDirectory: Pick<UserDirectory, 'byEmail'>
  tokens: UserTokens
  sendMail: SystemMail
  publicUrl: string
  isExempt(address: string): boolean
}

const PER_ADDRESS_MAX = 20
/** Links are valid for an hour, so this many are valid at a time. */
const PER_USER_MAX = 3
const BACKLOG_MAX = 100

export function createResetRequests(parts: ResetRequestParts) {
  const { clock, log, userDirectory, tokens, sendMail, publicUrl } = parts
  const ofAddresses = new HourlyQuota(clock, PER_ADDRESS_MAX)
  const ofUsers = new HourlyQuota(clock, PER_USER_MAX)
  let backlog = 0
  let last: Promise<void> = Promise.resolve()

  async function process(email: string, visitor: Visitor): Promise<void> {
    const user = await userDirectory.byEmail(email)
    if (user === null || user.is_disabled === 1 || user.password_hash === null) return
    if (ofUsers.take(user.id) > 0) return
    const { token, statements } = tokens.make('reset', user.id)
    const caller = { accountId: user.account_id, keyId: '' }
    const change = { action: 'password-reset.request', subject: user.id, detail: {} }
    await sendMail(resetMail(user.email, `${publicUrl}/#reset=${token}`, tokens.resetMinutes), [
      ...statements,
      auditStatement({ caller, ...visitor }, change, clock.now()),
    ])
  }

  return {
    /** @throws TooManyRequests, TooManyWaiting */
    add(email: string, visitor: Visitor): void {
      if (backlog >= BACKLOG_MAX) throw new TooManyWaiting(1)
      const waitMs = parts.isExempt(visitor.remoteAddress)
        ? 0
        : ofAddresses.take(networkOf(visitor.remoteAddress))
      if (waitMs > 0) throw new TooManyRequests(waitMs / 1000)
      backlog += 1
      last = last
        .then(() => process(email, visitor))
        .catch((error: unknown) => log.error({ err: error }, 'cannot send a password reset'))
        .then(() => {
          backlog -= 1
        })
    },
    /** Waits for the requests in the backlog. */
    stop: () => last,
  }
}
