/** Mail to the admins of an account when 80, 90 and 100 percent of its limit are used, each once a month. */
import type { Logger } from 'pino'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { MessageLimitRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Store } from '../../platform/store/store.ts'
import { adminMailboxes } from '../accounts/user-directory.ts'
import type { SystemMail } from '../users/mails.ts'
import { dueNotices, notifiedStatement } from './store.ts'

const EVERY_MS = 60_000
const NOTICES_PER_STEP = 50

export function createNotices(parts: { store: Store; log: Logger; sendMail: SystemMail }): Job {
  const { store, log, sendMail } = parts

  async function notify(row: MessageLimitRow): Promise<void> {
    const percent = row.reached_percent
    const mark = [notifiedStatement(row, percent)]
    const account = await store.db
      .selectFrom('accounts')
      .select(['name', 'parent_id'])
      .where('id', '=', row.account_id)
      .executeTakeFirstOrThrow()
    const to = await adminMailboxes(store, row.account_id, account.parent_id)
    try {
      if (to.length > 0) await sendMail({ to, ...noticeOf(row, account.name) }, mark)
      else {
        await store.commit(mark)
        log.warn(
          { account: row.account_id, percent },
          'a message limit is nearly used, and no admin has a mailbox',
        )
      }
    } catch (error) {
      // Another process has sent it, or the limit was changed.
      if (!(error instanceof StaleWrite)) throw error
    }
  }

  return createJob({
    name: 'message-limit-notices',
    everyMs: EVERY_MS,
    scope: 'database',
    async work(signal) {
      const due = await dueNotices(store, NOTICES_PER_STEP)
      for (const row of due) {
        signal.throwIfAborted()
        await notify(row)
      }
      return due.length === NOTICES_PER_STEP ? 'more' : undefined
    },
  })
}

function noticeOf(row: MessageLimitRow, accountName: string) {
  const percent = row.reached_percent
  const until = new Date(row.month_at)
  until.setUTCMonth(until.getUTCMonth() + 1)
  const effect =
    percent < 100
      ? 'When the limit is reached, further messages will be refused until then, or until the limit is raised.'
      : 'Further messages are refused until then. To send earlier, raise or delete the limit and enable sending again.'
  return {
    subject: `${percent} % of the monthly message limit are used`,
    text: `The account "${accountName}" may send to ${row.monthly_limit} recipients in this month, and has sent to ${row.used}.

A new month begins on ${until.toISOString().slice(0, 10)} (UTC). ${effect}
`,
  }
}
