/** Channel settings and event types over HTTP (alerts.md section 2). */

import { message } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { mayAccess } from '../../platform/http/rights/auth.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import { READ, TAG, WRITE } from './routes.ts'
import { type AlertSettings, givenSetting, settingId, settingView } from './settings.ts'
import { ALERT_POST, EVENT_TYPE_LIST, EVENT_TYPES, SETTING, SETTING_BODY, SETTINGS } from './shapes.ts'

interface SettingRouteParts {
  settings: AlertSettings
  client: HttpClient
  clock: Clock
  /** The key that the account's webhooks are signed with. */
  signingKey(accountId: string): Promise<string>
}

const PATH = '/v1/alerts/settings'
const COMMON = { tag: TAG, rateLimit: 'analytics' } as const
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
      answers: { 200: EVENT_TYPE_LIST },
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
      answers: { 200: SETTINGS },
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
      webhooks: { alert: ALERT_POST },
      audit: { given: GIVEN, made: ['id'] },
      summary: 'Send the notices of an event type to a channel',
      description: 'A webhook must answer a GET with 200 first.',
      auth: WRITE,
      body: SETTING_BODY,
      answers: { 200: SETTING },
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
      body: SETTING_BODY,
      answers: { 200: SETTING },
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
      answers: { 200: message('Alert setting deleted', 'Removed') },
      async handler({ path, caller }) {
        await settings.remove(caller.accountId, settingId(path.id))
        return { message: 'Alert setting deleted' }
      },
    }),
  ]
}
