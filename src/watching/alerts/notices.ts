/**
 * Notices about hits (alerts.md rules 5, 6, 9 to 11). Each is a row, written in the transaction that changes its hit, so
 * that there is exactly one for each target, also after a crash. Mail is sent by a job, webhooks and Slack by the
 * queue of POSTs (notice-sending.ts).
 */

import { Lazy } from '../../base/flow/cache.ts'
import { newId } from '../../base/ids.ts'
import { loggableUrl } from '../../base/printable.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { UserDirectory } from '../../people/accounts/user-directory.ts'
import { laneOf, type NewPost } from '../../platform/posts/post-rows.ts'
import type { AlertHitRow, AlertNoticeRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement } from '../../platform/store/store.ts'
import type { WebhooksArea } from '../webhooks/area.ts'
import { maskedUrl } from '../webhooks/webhook-url.ts'
import { type AlertMetric, type Channel, hitView, type ParentId } from './alert.ts'
import type { NoticeKind, NoticesOf } from './hits.ts'
import type { AlertSettings, EventSetting, EventType } from './settings.ts'
import type { ALERT, HIT, OWN_CHECK_VIEW } from './shapes.ts'

/** The kinds of these POSTs in the queue. */
export const POST_KINDS = { webhook: 'alert-webhook', slack: 'alert-slack' } as const

/** `content_json` by channel. */
export interface MailContent {
  subject: string
  /** Plain text of several lines. */
  text: string
}
export interface WebhookContent extends Pick<NoticeAbout, 'alert'> {
  event: EventType
  hit: Of<typeof HIT>
}
export interface SlackContent {
  text: string
  /** A channel of the account's workspace; absent: the incoming webhook of the setting. */
  channel?: string
}

/** What is told about the hits of a source, and on which channels. */
interface NoticeAbout {
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
  /** Base address of Slack's Web API. */
  slackUrl: string
  clock: Clock
}

/** Mails about one change. */
const RECIPIENTS_MAX = 100

/** Collects notices, and the POSTs of those that are not mail, for one transaction. `hitId`: empty without a hit. */
function collectNotices(
  { posts, slackUrl }: Pick<NoticeParts, 'posts' | 'slackUrl'>,
  accountId: string,
  hitId: string,
  now: number,
) {
  const rows: AlertNoticeRow[] = []
  const newPosts: NewPost[] = []
  const add = (row: Pick<AlertNoticeRow, 'channel' | 'setting_id' | 'recipient'>, content: object) => {
    const id = newId(now)
    const content_json = JSON.stringify(content)
    rows.push({
      ...{ id, account_id: accountId, hit_id: hitId },
      ...row,
      ...{ content_json, due_at: now, created_at: now },
    })
    return id
  }
  return {
    mail: (recipient: string, setting_id: string | null, content: MailContent) =>
      add({ channel: 'email', setting_id, recipient }, content),
    /** To the URL of a setting: `document`, or the words in Slack's form; without a URL to each of its channels. */
    post(setting: EventSetting, words: MailContent, document: object) {
      const { id: setting_id, channel, settings } = setting
      if (channel === 'email') return
      const { url, channel_ids = [] } = settings
      const text = slackText(words)
      const contents: object[] =
        channel === 'webhook'
          ? [document]
          : url === undefined
            ? channel_ids.map((id) => ({ text, channel: id }))
            : [{ text }]
      for (const content of contents)
        newPosts.push({
          kind: POST_KINDS[channel],
          accountId,
          url: loggableUrl(url ?? slackUrl),
          lane: laneOf(url === undefined ? `${slackUrl} ${accountId}` : maskedUrl(url)),
          subject: add({ channel, setting_id, recipient: '' }, content),
        })
    },
    statements: () => [...insertMany('alert_notices', rows), ...posts.statements(newPosts)],
  }
}

/** The notices about the hits of one source. Targets are read once, when the first notice needs them. */
export function noticesAbout(parts: NoticeParts, about: NoticeAbout): NoticesOf {
  const targets = new Lazy(() => parts.settings.list(about.accountId))
  const admins = new Lazy(() => adminsOf(parts.userDirectory, about.accountId))
  return async (hit, kind) => {
    const types = new Set<EventType>(['send_alert', ...(about.eventTypes ? [about.eventTypes[kind]] : [])])
    const wanted = (await targets.get()).filter(
      ({ eventType, channel }) => types.has(eventType) && about.channels.includes(channel),
    )
    const now = Math.floor(parts.clock.now())
    const words = noticeText(hit, kind, about.advice(hit), now)
    const notices = collectNotices(parts, about.accountId, hit.id, now)
    if (about.channels.includes('email'))
      for (const [email, settingId] of await recipientsOf(wanted, admins))
        notices.mail(email, settingId, words)
    for (const setting of wanted) {
      const content: WebhookContent = {
        event: setting.eventType,
        alert: about.alert,
        hit: hitView(hit, about.parentId),
      }
      notices.post(setting, words, content)
    }
    return notices.statements()
  }
}

/**
 * Notices about something that has happened once, such as the end of a validation job (alerts.md section 2): to the targets
 * that the account's settings name for its event type, and to nobody without such settings. They have no hit: the event is
 * over when it is known.
 */
export function createEventNotices({
  settings,
  posts,
  slackUrl,
  clock,
  changed,
}: NoticeParts & { changed(): void }) {
  return {
    /** For the transaction of the event; to be committed right away or not at all. */
    async statements({ accountId, type, subject, text, details }: AlertEvent): Promise<Statement[]> {
      const notices = collectNotices({ posts, slackUrl }, accountId, '', Math.floor(clock.now()))
      for (const setting of await settings.list(accountId)) {
        if (setting.eventType !== type) continue
        if (setting.channel !== 'email') notices.post(setting, { subject, text }, { event: type, ...details })
        else
          for (const email of setting.settings.emails ?? [])
            notices.mail(email, setting.id, { subject, text })
      }
      return notices.statements()
    },
    /** The statements are committed. */
    written: changed,
  }
}

interface AlertEvent {
  accountId: string
  type: EventType
  subject: string
  /** Plain text of several lines. */
  text: string
  /** Members of the webhook's document besides `event`. */
  details: Readonly<Record<string, unknown>>
}

export type EventNotices = ReturnType<typeof createEventNotices>

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

/** Addresses of the admins who can sign in. */
async function adminsOf(userDirectory: NoticeParts['userDirectory'], accountId: string): Promise<string[]> {
  const { rows } = await userDirectory.list(accountId, { role: 'admin', limit: RECIPIENTS_MAX, skip: 0 })
  return rows
    .filter(({ is_disabled, password_hash }) => is_disabled === 0 && password_hash !== null)
    .map(({ email }) => email)
}

/** What the owner of a threshold alert should look at. */
export const METRIC_ADVICE: Readonly<Record<AlertMetric, string>> = {
  hard_bounce_rate:
    'Many addresses do not exist. Stop the mailing, see which list they came from, and look at the failed events of this time.',
  temporary_fail_rate:
    'Receivers defer much mail. Look at the replies in the failed events of this time; send more slowly if they speak of rates.',
  delivered_rate:
    'Look at the failed events of this time: their replies say why receivers do not take the mail.',
  complained_rate:
    'Recipients call the mail spam. Stop the mailing, and see whether they asked for it and can unsubscribe easily.',
}

const SUBJECT_NAME_MAX = 80

/** `advice`: what to do; of the service's own checks the hit has it. `nowMs`: when the change was seen. */
export function noticeText(hit: AlertHitRow, kind: NoticeKind, advice: string, nowMs: number): MailContent {
  const name = hit.name.length > SUBJECT_NAME_MAX ? `${hit.name.slice(0, SUBJECT_NAME_MAX)}...` : hit.name
  const about = hit.dimension === '' ? '' : ` for ${hit.dimension} ${hit.dimension_value}`
  const figure = `${hit.metric}${about}: ${hit.latest_value} (the alert is for ${hit.comparator} ${hit.limit_text})`
  const since = formatRfc3339(new Date(hit.since_at))
  if (kind === 'resolved') {
    const until = formatRfc3339(new Date(nowMs))
    return {
      subject: `Resolved: ${name}${about}`,
      text: `The alert "${hit.name}" is over.\n\nLast figure: ${figure}\nSince: ${since}\nUntil: ${until}\n`,
    }
  }
  return {
    subject: `Alert: ${name}${about}`,
    text: `The alert "${hit.name}" has triggered.\n\nFigure: ${figure}\nSince: ${since}\n\n${advice}\n\nA notice follows when it is over.\n`,
  }
}

/** Slack reads these characters as markup. */
export const slackText = ({ subject, text }: MailContent): string =>
  `${subject}\n${text}`.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
