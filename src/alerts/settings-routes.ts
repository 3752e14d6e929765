/** Channel settings and event types over HTTP (alerts.md section 2). */
import type { Clock } from '../base/clock.ts'
import { type Operation, operation } from '../http/operation.ts'
import { mayAccess } from '../http/rights.ts'
import type { HttpClient } from '../http-posts/http-client.ts'
import { CHANNELS } from './alert.ts'
import { READ, TAG, WRITE } from './routes.ts'
import { type AlertSettings, EVENT_TYPES, givenSetting, settingId, settingView } from './settings.ts'

export interface SettingRouteParts {
  settings: AlertSettings
  client: HttpClient
  clock: Clock
  /** The key that the account's webhooks are signed with. */
  signingKey(accountId: string): Promise<string>
}

const PATH = '/v1/alerts/settings'
const COMMON = { tag: TAG, params: [], rateLimit: 'analytics' } as const
const BODY = {
  description: 'Where the notices of an event type go',
  schema: {
    type: 'object',
    required: ['event_type', 'channel', 'settings'],
    properties: {
      event_type: { type: 'string', enum: EVENT_TYPES },
      channel: { type: 'string', enum: CHANNELS },
      settings: {
        type: 'object',
        properties: {
          emails: { type: 'array', items: { type: 'string' }, maxItems: 10 },
          url: { type: 'string', description: 'Of a webhook, or an incoming webhook of Slack' },
          channel_ids: { type: 'array', items: { type: 'string' }, maxItems: 20 },
        },
      },
    },
  },
} as const
const GIVEN = ['event_type', 'channel']

export function alertSettingRoutes({ settings, client, clock, signingKey }: SettingRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v1/alerts',
      aliases: ['/v1/alerts/events'],
      id: 'listAlertEvents',
      summary: 'List the event types that notices can be sent for',
      auth: READ,
      responses: { 200: { description: 'Event types' } },
      handler: async () => ({ events: EVENT_TYPES }),
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: PATH,
      id: 'listAlertSettings',
      summary: 'List where notices go',
      description: 'The signing key is empty for roles that may not read the account.',
      auth: READ,
      responses: { 200: { description: 'Settings of all channels' } },
      async handler({ caller }) {
        const events = (await settings.list(caller.accountId)).map(settingView)
        const mayReadKey = mayAccess(caller.role, 'account', 'read')
        const key = mayReadKey ? await signingKey(caller.accountId) : ''
        return { events, webhooks: { signing_key: key }, slack: {} }
      },
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: `${PATH}/events`,
      aliases: [PATH],
      id: 'addAlertSetting',
      audit: { given: GIVEN, made: ['id'] },
      summary: 'Send the notices of an event type to a channel',
      description: 'A webhook must answer a GET with 200 first.',
      auth: WRITE,
      body: BODY,
      responses: { 200: { description: 'The setting' } },
      async handler({ params, caller }) {
        const given = await givenSetting(params.json(), client)
        return settingView(await settings.add(caller.accountId, given, Math.floor(clock.now())))
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: `${PATH}/events/{id}`,
      aliases: [`${PATH}/{id}`],
      id: 'changeAlertSetting',
      audit: { given: GIVEN },
      summary: 'Replace a setting',
      auth: WRITE,
      body: BODY,
      responses: { 200: { description: 'The setting' } },
      async handler({ params, path, caller }) {
        const id = settingId(path.id)
        const given = await givenSetting(params.json(), client)
        return settingView(await settings.change(caller.accountId, { id, ...given }))
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: `${PATH}/events/{id}`,
      aliases: [`${PATH}/{id}`],
      id: 'deleteAlertSetting',
      summary: 'Remove a setting',
      auth: WRITE,
      responses: { 200: { description: 'Removed' } },
      async handler({ path, caller }) {
        await settings.remove(caller.accountId, settingId(path.id))
        return { message: 'Alert setting deleted' }
      },
    }),
  ]
}
