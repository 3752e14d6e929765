/** Sends notices. The queue of POSTs sends webhooks, with signatures (rule 10), and Slack's form (rule 11); a job sends mail. */
import { createHmac } from 'node:crypto'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { HttpRequest } from '../../platform/posts/http-client.ts'
import type { PostKind, PreparedPost } from '../../platform/posts/post-attempts.ts'
import type { AlertNoticeRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { type SigningKeys, signedRequest } from '../webhooks/payload.ts'
import { signingKeysOf } from '../webhooks/signing-key.ts'
import { authorization, bareUrl, userInfoOf } from '../webhooks/webhook-url.ts'
import type { MailContent, SlackContent, WebhookContent } from './notices.ts'
import type { AlertSettings } from './settings.ts'
import { refusalIn, type Slack } from './slack.ts'

interface PostNoticeParts extends Pick<Core, 'store' | 'sealer' | 'clock'> {
  settings: AlertSettings
  slack: Slack
  headerPrefix: string
  scheduleMs: readonly number[]
}

export function postNoticeKinds(parts: PostNoticeParts): Record<'webhook' | 'slack', PostKind> {
  const { store, settings, scheduleMs } = parts

  /** A kind; `request` makes URL, headers and body of a notice. */
  const kind = (
    channel: 'webhook' | 'slack',
    request: (notice: AlertNoticeRow, url: string | undefined) => Promise<NoticeRequest | null>,
  ): PostKind => ({
    async prepare({ subject }) {
      const notice = await noticeOf(store, subject)
      // The setting may have been removed, or changed, since the notice was written.
      const target = notice?.setting_id ? await settings.find(notice.setting_id) : null
      if (!notice || target?.channel !== channel) return null
      const made = await request(notice, target.settings.url)
      return (
        made && {
          ...made,
          retryScheduleMs: scheduleMs,
          record: ({ status }) =>
            status === 'failing'
              ? []
              : [{ sql: 'DELETE FROM alert_notices WHERE id = ?', values: [notice.id] }],
        }
      )
    },
  })

  return {
    webhook: kind('webhook', async ({ account_id, content_json }, url) => {
      if (url === undefined) return null
      const keys = await signingKeysOf(store, parts.sealer, account_id)
      return webhookNotice(url, JSON.parse(content_json) as WebhookContent, keys, parts)
    }),
    slack: kind('slack', async ({ account_id, content_json }, url) => {
      const { text, channel } = JSON.parse(content_json) as SlackContent
      if (channel === undefined) return url === undefined ? null : incomingWebhook(url, text)
      const workspace = await parts.slack.find(account_id)
      return workspace && { ...noticeRequest(parts.slack.message(workspace.token, channel, text)), refusalIn }
    }),
  }
}

export type NoticeRequest = Required<Pick<PreparedPost, 'url' | 'headers' | 'body'>> &
  Pick<PreparedPost, 'refusalIn'>

const noticeRequest = ({ url, headers = {}, body = Buffer.alloc(0) }: HttpRequest): NoticeRequest => ({
  url,
  headers,
  body,
})

/** Signed as webhooks are, and besides over the whole body by `X-Sign` (rule 10). `url` may have user info. */
export function webhookNotice(
  url: string,
  content: object,
  keys: SigningKeys,
  { headerPrefix, clock }: Pick<PostNoticeParts, 'headerPrefix' | 'clock'>,
): NoticeRequest {
  const { body, headers } = signedRequest(content, keys, headerPrefix, clock.now())
  const sign = createHmac('sha256', keys.own).update(body).digest('hex')
  return {
    url: bareUrl(url),
    headers: { ...headers, 'x-sign': sign, ...authorization(userInfoOf(url)) },
    body,
  }
}

/** A text for an incoming webhook of Slack. */
export const incomingWebhook = (url: string, text: string): NoticeRequest => ({
  url: bareUrl(url),
  headers: { 'content-type': 'application/json', ...authorization(userInfoOf(url)) },
  body: Buffer.from(JSON.stringify({ text })),
})

const noticeOf = (store: Store, id: string) =>
  store.db.selectFrom('alert_notices').selectAll().where('id', '=', id).executeTakeFirst()

interface MailNoticeParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  sendMail: SystemMail
}

const EVERY_MS = MINUTE_MS
const BATCH_MAX = 50
/** After a failure: no domain may send yet, or the disk is full. */
const RETRY_MS = 5 * MINUTE_MS
/** Nobody is helped by older news. */
const GIVE_UP_MS = DAY_MS

/** Sends the notices that are mail. A notice is removed in the transaction that accepts its message: exactly one is sent. */
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
