/**
 * Notices about hits (alerts.md rules 5, 6, 9 to 11). Each is a row, written in the transaction that changes its hit, so
 * that there is exactly one for each target, also after a crash. Mail is sent by a job (mail-notices.ts), webhooks and
 * Slack by the queue of POSTs (post-notices.ts).
 */

import { Lazy } from '../../base/flow/cache.ts'
import { newId } from '../../base/ids.ts'
import { loggableUrl } from '../../base/printable.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { UserDirectory } from '../../people/users/directory.ts'
import { laneOf, type NewPost } from '../../platform/posts/post-rows.ts'
import type { AlertHitRow, AlertNoticeRow } from '../../platform/store/schema.ts'
import { insertMany } from '../../platform/store/store.ts'
import type { WebhooksArea } from '../webhooks/area.ts'
import { maskedUrl } from '../webhooks/webhook-url.ts'
import { type Channel, hitView, type ParentId } from './alert.ts'
import type { NoticesOf } from './hits.ts'
import { type NoticeKind, noticeText, slackText } from './notice-texts.ts'
import type { AlertSettings, EventSetting, EventType } from './settings.ts'
import type { ALERT, HIT, OWN_CHECK_VIEW } from './shapes.ts'

/** The kinds of these POSTs in the queue. */
export const POST_KINDS = { webhook: 'alert-webhook', slack: 'alert-slack' } as const

/** `content_json` by channel. */
export interface MailContent {
  subject: string
  text: string
}
export interface WebhookContent extends Pick<NoticeAbout, 'alert'> {
  event: EventType
  hit: Of<typeof HIT>
}
export interface SlackContent {
  text: string
}

/** What is told about the hits of a source, and on which channels. */
export interface NoticeAbout {
  accountId: string
  parentId: ParentId
  channels: readonly Channel[]
  /** As the API shows it. */
  alert: Of<typeof ALERT> | Of<typeof OWN_CHECK_VIEW>
  advice(hit: AlertHitRow): string
  /** Whose settings name the targets, besides `send_alert`. */
  eventTypes?: Readonly<Record<NoticeKind, EventType>>
}

export interface NoticeParts {
  settings: AlertSettings
  userDirectory: Pick<UserDirectory, 'list'>
  posts: Pick<WebhooksArea['posts'], 'statements'>
  clock: Clock
}

/** Mails about one change. */
const RECIPIENTS_MAX = 100

/** The notices about the hits of one source. Targets are read once, when the first notice needs them. */
export function noticesAbout(parts: NoticeParts, about: NoticeAbout): NoticesOf {
  const targets = new Lazy(() => parts.settings.list(about.accountId))
  const admins = new Lazy(() => adminsOf(parts.userDirectory, about.accountId))
  return async (hit, kind) => {
    const types = new Set<EventType>(['send_alert', ...(about.eventTypes ? [about.eventTypes[kind]] : [])])
    const wanted = (await targets.get()).filter(
      ({ eventType, channel }) => types.has(eventType) && about.channels.includes(channel),
    )
    const notices: AlertNoticeRow[] = []
    const posts: NewPost[] = []
    const now = Math.floor(parts.clock.now())
    const words = noticeText(hit, kind, about.advice(hit), now)
    const notice = (channel: Channel, settingId: string | null, recipient: string, content: object) => {
      const row = {
        id: newId(now),
        account_id: about.accountId,
        hit_id: hit.id,
        channel,
        setting_id: settingId,
        recipient,
        content_json: JSON.stringify(content),
        due_at: now,
        created_at: now,
      }
      notices.push(row)
      return row.id
    }
    if (about.channels.includes('email')) {
      for (const [email, settingId] of await recipientsOf(wanted, admins))
        notice('email', settingId, email, words)
    }
    for (const setting of wanted) {
      const { id, channel, eventType, settings } = setting
      if (channel === 'email' || settings.url === undefined) continue
      const content: WebhookContent | SlackContent =
        channel === 'slack'
          ? { text: slackText(words) }
          : { event: eventType, alert: about.alert, hit: hitView(hit, about.parentId) }
      const noticeId = notice(channel, id, '', content)
      posts.push({
        kind: POST_KINDS[channel],
        accountId: about.accountId,
        url: loggableUrl(settings.url),
        lane: laneOf(maskedUrl(settings.url)),
        subject: noticeId,
      })
    }
    return [...insertMany('alert_notices', notices), ...parts.posts.statements(posts)]
  }
}

/** Addresses with the setting that names them; without such settings all admins (rule 9). */
async function recipientsOf(
  wanted: readonly EventSetting[],
  admins: Lazy<readonly string[]>,
): Promise<[email: string, settingId: string | null][]> {
  const named = new Map<string, string | null>()
  for (const { id, channel, settings } of wanted)
    if (channel === 'email')
      for (const email of settings.emails ?? []) named.set(email, named.get(email) ?? id)
  if (named.size === 0) for (const email of await admins.get()) named.set(email, null)
  return [...named].slice(0, RECIPIENTS_MAX)
}

/** Those who can sign in. */
async function adminsOf(userDirectory: NoticeParts['userDirectory'], accountId: string): Promise<string[]> {
  const { rows } = await userDirectory.list(accountId, { role: 'admin', limit: RECIPIENTS_MAX, skip: 0 })
  return rows
    .filter(({ is_disabled, password_hash }) => is_disabled === 0 && password_hash !== null)
    .map(({ email }) => email)
}
