/** Where the notices of an event type go: mail addresses, webhooks, incoming webhooks of Slack (alerts.md section 2). */
import { randomUUID } from 'node:crypto'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { isPlainObject, quotable } from '../../base/values.ts'
import { emailOf } from '../../people/accounts/user-directory.ts'
import { type HttpClient, withAdvice } from '../../platform/posts/http-client.ts'
import { ifStale } from '../../platform/store/commits.ts'
import { countOf } from '../../platform/store/count.ts'
import type { AlertSettingRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import { authorization, bareUrl, maskedUrl, userInfoOf } from '../webhooks/webhook-url.ts'
import type { Channel } from './alert.ts'
import { invalid, known } from './given-alert.ts'
import { type CHANNEL_SETTINGS, CHANNELS, EVENT_TYPES, type SETTING } from './shapes.ts'

export type EventType = (typeof EVENT_TYPES)[number]
type ChannelSettings = Of<typeof CHANNEL_SETTINGS>

export interface EventSetting {
  id: string
  eventType: EventType
  channel: Channel
  settings: ChannelSettings
}

export type AlertSettings = ReturnType<typeof createAlertSettings>

/** Each is a notice for every hit. */
const SETTINGS_MAX = 50
const EMAILS_MAX = 10
const CHANNEL_IDS_MAX = 20
const CHANNEL_ID_LENGTH_MAX = 100
const SEALED_AS = 'alert-channel'

export function createAlertSettings(store: Store, sealer: Sealer) {
  const { db } = store
  const open = (row: AlertSettingRow): EventSetting => ({
    id: row.id,
    eventType: row.event_type as EventType,
    channel: row.channel as Channel,
    settings: JSON.parse(sealer.open(SEALED_AS, row.settings_sealed).toString()) as ChannelSettings,
  })
  const columns = ({ eventType, channel, settings }: Omit<EventSetting, 'id'>) => ({
    event_type: eventType,
    channel,
    settings_sealed: sealer.seal(SEALED_AS, JSON.stringify(settings)),
  })
  return {
    /** Oldest first. */
    async list(accountId: string): Promise<EventSetting[]> {
      const rows = await db
        .selectFrom('alert_settings')
        .selectAll()
        .where('account_id', '=', accountId)
        .orderBy('created_at')
        .orderBy('id')
        .limit(2 * SETTINGS_MAX)
        .execute()
      return rows.map(open)
    },
    /** @throws BadRequest over SETTINGS_MAX */
    async add(accountId: string, given: Omit<EventSetting, 'id'>, now: number): Promise<EventSetting> {
      const count = await countOf(db.selectFrom('alert_settings').where('account_id', '=', accountId))
      if (count >= SETTINGS_MAX) throw new BadRequest('maximum number of alert settings reached')
      const row = { id: randomUUID(), account_id: accountId, ...columns(given), created_at: now }
      await db.insertInto('alert_settings').values(row).execute()
      return { id: row.id, ...given }
    },
    /** @throws NotFound */
    async change(accountId: string, setting: EventSetting): Promise<EventSetting> {
      const changed = await db
        .updateTable('alert_settings')
        .set(columns(setting))
        .where('id', '=', setting.id)
        .where('account_id', '=', accountId)
        .executeTakeFirst()
      if (Number(changed.numUpdatedRows) === 0) throw notFound()
      return setting
    },
    /** With the notices that were to go there. @throws NotFound */
    async remove(accountId: string, id: string): Promise<void> {
      const sql = 'DELETE FROM alert_settings WHERE id = ? AND account_id = ?'
      await store
        .commit([
          { sql, values: [id, accountId], expectRows: 1 },
          { sql: 'DELETE FROM alert_notices WHERE setting_id = ?', values: [id] },
        ])
        .catch(ifStale(notFound))
    },
    /** Null: it was removed. */
    async find(id: string): Promise<(EventSetting & { accountId: string }) | null> {
      const row = await db.selectFrom('alert_settings').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? { ...open(row), accountId: row.account_id } : null
    },
  }
}

/** @throws NotFound for what cannot be an id */
export function settingId(text: string): string {
  if (!/^[0-9a-f-]{36}$/.test(text)) throw notFound()
  return text
}

const notFound = () => new NotFound('alert setting not found')

/**
 * Reads the setting in the body of a request, and tries its URL. `hasWorkspace`: the account has a token of Slack, so that
 * channels need no URL.
 * @throws BadRequest for a fault in it, or a webhook that does not answer 200 to a GET
 */
export async function givenSetting(
  document: unknown,
  client: HttpClient,
  hasWorkspace: () => Promise<boolean>,
): Promise<Omit<EventSetting, 'id'>> {
  const body = isPlainObject(document) ? document : {}
  const eventType = givenEventType(body['event_type'])
  const channel = known('channel', body['channel'] ?? '', CHANNELS)
  const given = isPlainObject(body['settings']) ? body['settings'] : {}
  if (channel === 'email')
    return { eventType, channel, settings: { emails: givenEmails('settings.emails', given['emails']) } }
  const channelIds = channelIdsOf(given['channel_ids'])
  const byWorkspace = channel === 'slack' && channelIds.length > 0 && isAbsent(given['url'])
  if (byWorkspace && (await hasWorkspace()))
    return { eventType, channel, settings: { channel_ids: channelIds } }
  const url = await callableUrl('settings.url', given['url'], client)
  if (channel === 'webhook') {
    await checkAnswer(client, url)
    return { eventType, channel, settings: { url } }
  }
  return { eventType, channel, settings: { url, ...(channelIds.length > 0 && { channel_ids: channelIds }) } }
}

export const givenEventType = (value: unknown): EventType => known('event_type', value ?? '', EVENT_TYPES)

const isAbsent = (value: unknown) => value === undefined || value === null || value === ''

/** @throws BadRequest for what is no URL that may be called now */
export async function callableUrl(name: string, url: unknown, client: HttpClient): Promise<string> {
  if (typeof url !== 'string' || url === '') throw new BadRequest(`${name} is required`)
  const fault = await client.fault(bareUrl(url))
  if (fault !== null)
    throw new BadRequest(`invalid ${name}: ${quotable(maskedUrl(url))}: ${withAdvice(fault)}`)
  return url
}

async function checkAnswer(client: HttpClient, url: string): Promise<void> {
  const outcome = await client.send({
    url: bareUrl(url),
    method: 'GET',
    headers: authorization(userInfoOf(url)),
  })
  if (outcome.kind === 'answered' && outcome.status === 200) return
  const answer = outcome.kind === 'answered' ? `it answered ${outcome.status}` : outcome.why
  throw new BadRequest(`webhook must answer a GET with 200: ${quotable(maskedUrl(url))}: ${answer}`)
}

/** @throws BadRequest for none, too many, or one that is no address */
export function givenEmails(name: string, value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0) throw new BadRequest(`${name} is required`)
  if (value.length > EMAILS_MAX) throw new BadRequest(`${name} has more than ${EMAILS_MAX} entries`)
  const emails = value.map((one: unknown) => {
    const email = typeof one === 'string' ? emailOf(one) : null
    if (email === null) throw invalid('email', one)
    return email
  })
  return [...new Set(emails)]
}

export function channelIdsOf(value: unknown): string[] {
  if (value === undefined || value === null) return []
  const isList = Array.isArray(value) && value.length <= CHANNEL_IDS_MAX
  if (!isList || value.some((id) => typeof id !== 'string' || id === '' || id.length > CHANNEL_ID_LENGTH_MAX))
    throw invalid('channel_ids', value)
  return value as string[]
}

export const settingView = ({ id, eventType, channel, settings }: EventSetting): Of<typeof SETTING> => ({
  id,
  event_type: eventType,
  channel,
  settings,
})
