/** Sends the notices that are mail. A notice is removed in the transaction that accepts its message: exactly one is sent. */
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { AlertNoticeRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import type { MailContent } from './notices.ts'

interface MailNoticeParts {
  store: Store
  clock: Clock
  log: Logger
  sendMail: SystemMail
}

const EVERY_MS = MINUTE_MS
const BATCH_MAX = 50
/** After a failure: no domain may send yet, or the disk is full. */
const RETRY_MS = 5 * MINUTE_MS
/** Nobody is helped by older news. */
const GIVE_UP_MS = DAY_MS

export function createMailNotices({ store, clock, log, sendMail }: MailNoticeParts): Job {
  const due = () =>
    store.db
      .selectFrom('alert_notices')
      .selectAll()
      .where('channel', '=', 'email')
      .where('due_at', '<=', Math.floor(clock.now()))
      .orderBy('due_at')
      .orderBy('id')
      .limit(BATCH_MAX)
      .execute()

  async function send(notice: AlertNoticeRow): Promise<void> {
    const { subject, text } = JSON.parse(notice.content_json) as MailContent
    try {
      await sendMail({ to: notice.recipient, subject, text }, [removal(notice)])
    } catch (error) {
      // Its alert or setting was deleted meanwhile.
      if (error instanceof StaleWrite) return
      await postpone(notice, error)
    }
  }

  async function postpone(notice: AlertNoticeRow, error: unknown): Promise<void> {
    const now = Math.floor(clock.now())
    const isOld = notice.created_at <= now - GIVE_UP_MS
    log.warn(
      { err: error, notice: notice.id },
      isOld ? 'alert mail given up' : 'alert mail cannot be sent yet',
    )
    const sql = 'UPDATE alert_notices SET due_at = ? WHERE id = ?'
    const { sql: removalSql, values } = removal(notice)
    await store.commit([isOld ? { sql: removalSql, values } : { sql, values: [now + RETRY_MS, notice.id] }])
  }

  return createJob({
    name: 'alert-mail',
    everyMs: EVERY_MS,
    scope: 'database',
    async work(signal) {
      const rows = await due()
      for (const row of rows) {
        if (signal.aborted) return
        await send(row)
      }
      return rows.length === BATCH_MAX ? 'more' : undefined
    },
  })
}

const removal = ({ id }: AlertNoticeRow): Statement => ({
  sql: 'DELETE FROM alert_notices WHERE id = ?',
  values: [id],
  expectRows: 1,
})
