/** How the queue of POSTs sends notices: webhooks with signatures (rule 10), and Slack's form (rule 11). */
import type { Clock } from '../../base/time/clock.ts'
import type { PostKind, PreparedPost } from '../../platform/posts/post-attempts.ts'
import type { AlertNoticeRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import { signedRequest } from '../webhooks/payload.ts'
import { signingKeysOf } from '../webhooks/signing-key.ts'
import { authorization, bareUrl, userInfoOf } from '../webhooks/webhook-url.ts'
import type { SlackContent, WebhookContent } from './notices.ts'
import type { AlertSettings } from './settings.ts'

interface PostNoticeParts {
  store: Store
  sealer: Sealer
  clock: Clock
  settings: AlertSettings
  headerPrefix: string
  scheduleMs: readonly number[]
}

export function postNoticeKinds(parts: PostNoticeParts): Record<'webhook' | 'slack', PostKind> {
  const { store, settings, scheduleMs } = parts

  /** A kind; `request` makes headers and body of a notice. */
  const kind = (
    channel: 'webhook' | 'slack',
    request: (notice: AlertNoticeRow) => Promise<Pick<PreparedPost, 'headers' | 'body'>>,
  ): PostKind => ({
    async prepare({ subject }) {
      const notice = await noticeOf(store, subject)
      // The setting may have been removed, or changed, since the notice was written.
      const target = notice?.setting_id ? await settings.find(notice.setting_id) : null
      if (!notice || target?.settings.url === undefined || target.channel !== channel) return null
      const { url } = target.settings
      const { headers, body } = await request(notice)
      return {
        url: bareUrl(url),
        headers: { ...headers, ...authorization(userInfoOf(url)) },
        body,
        retryScheduleMs: scheduleMs,
        record: ({ status }) =>
          status === 'failing'
            ? []
            : [{ sql: 'DELETE FROM alert_notices WHERE id = ?', values: [notice.id] }],
      }
    },
  })

  return {
    webhook: kind('webhook', async ({ account_id, content_json }) => {
      const content = JSON.parse(content_json) as WebhookContent
      const keys = await signingKeysOf(store, parts.sealer, account_id)
      return signedRequest(content, keys, parts.headerPrefix, parts.clock.now())
    }),
    slack: kind('slack', async ({ content_json }) => {
      const { text } = JSON.parse(content_json) as SlackContent
      return { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify({ text })) }
    }),
  }
}

const noticeOf = (store: Store, id: string) =>
  store.db.selectFrom('alert_notices').selectAll().where('id', '=', id).executeTakeFirst()
