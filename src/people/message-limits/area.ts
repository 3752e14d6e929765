/**
 * Monthly message limits. The gate is built before the messages, which pass it; the mails about a limit are an area of
 * their own, built after them.
 */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { SystemMail } from '../users/mails.ts'
import { createMessageLimits, type MessageLimits } from './limits.ts'
import { monthOf } from './month.ts'
import { createNotices } from './notices.ts'
import { limitRoutes } from './routes.ts'
import { createLimitSettings } from './setting.ts'
import { keepUsageOf, passUsageToParent } from './store.ts'

export interface MessageLimitsArea extends Area {
  limits: MessageLimits
  /** Calls `listener` when a share is reached that mail is due about. */
  onReached(listener: () => void): void
}

export function messageLimitsArea({ store, clock, accounts }: Core): MessageLimitsArea {
  let reached = () => {}
  const limits = createMessageLimits({ store, clock, onReached: () => reached() })
  const settings = createLimitSettings({ store, clock, accounts, limits })
  return {
    limits,
    onReached(listener) {
      reached = listener
    },
    operations: limitRoutes({ settings, accounts }),
    jobs: [settings.job],
    domainDeleted: (domain) => keepUsageOf(store, domain, monthOf(clock.now())),
    async accountDeleted(accountId) {
      const values = [accountId]
      await passUsageToParent(store, accountId)
      await store.commit([{ sql: 'DELETE FROM message_limits WHERE account_id = ?', values }])
      limits.changed()
    },
  }
}

export function limitNoticesArea(
  { store, log }: Core,
  limits: Pick<MessageLimitsArea, 'onReached'>,
  sendMail: SystemMail,
): Area {
  const notices = createNotices({ store, log, sendMail })
  limits.onReached(() => notices.wake())
  return { jobs: [notices] }
}
