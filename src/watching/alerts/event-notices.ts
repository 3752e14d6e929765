/**
 * Notices about something that has happened once, such as the end of a validation job (alerts.md section 2): to the targets
 * that the account's settings name for its event type, and to nobody without such settings.
 */
import { newId } from '../../base/ids.ts'
import { loggableUrl } from '../../base/printable.ts'
import { laneOf, type NewPost } from '../../platform/posts/post-rows.ts'
import type { AlertNoticeRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement } from '../../platform/store/store.ts'
import { maskedUrl } from '../webhooks/webhook-url.ts'
import { slackText } from './notice-texts.ts'
import { type MailContent, type NoticeParts, POST_KINDS, type SlackContent } from './notices.ts'
import type { EventType } from './settings.ts'

export interface AlertEvent {
  accountId: string
  type: EventType
  subject: string
  /** Plain text of several lines. */
  text: string
  /** Members of the webhook's document besides `event`. */
  details: Readonly<Record<string, unknown>>
}

export interface EventNotices {
  /** For the transaction of the event; to be committed right away or not at all. */
  statements(event: AlertEvent): Promise<Statement[]>
  /** The statements are committed. */
  written(): void
}

export function createEventNotices({
  settings,
  posts: queue,
  clock,
  changed,
}: NoticeParts & { changed(): void }): EventNotices {
  return {
    async statements({ accountId, type, subject, text, details }) {
      const targets = (await settings.list(accountId)).filter(({ eventType }) => eventType === type)
      const now = Math.floor(clock.now())
      const notices: AlertNoticeRow[] = []
      const posts: NewPost[] = []
      const notice = (
        target: Pick<AlertNoticeRow, 'channel' | 'setting_id' | 'recipient'>,
        content: object,
      ) => {
        const id = newId(now)
        const content_json = JSON.stringify(content)
        // No hit: the event is over when it is known.
        notices.push({
          id,
          account_id: accountId,
          hit_id: '',
          ...target,
          content_json,
          due_at: now,
          created_at: now,
        })
        return id
      }
      for (const { id: setting_id, channel, settings: of } of targets) {
        if (channel === 'email') {
          const content: MailContent = { subject, text }
          for (const recipient of of.emails ?? []) notice({ channel, setting_id, recipient }, content)
          continue
        }
        if (of.url === undefined) continue
        const slack: SlackContent = { text: slackText({ subject, text }) }
        const content = channel === 'slack' ? slack : { event: type, ...details }
        posts.push({
          kind: POST_KINDS[channel],
          accountId,
          url: loggableUrl(of.url),
          lane: laneOf(maskedUrl(of.url)),
          subject: notice({ channel, setting_id, recipient: '' }, content),
        })
      }
      return [...insertMany('alert_notices', notices), ...queue.statements(posts)]
    },
    written: changed,
  }
}
