/** Alerts, their hits, channel settings and event types over HTTP (alerts.md section 2). */

import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { mayAccess } from '../../platform/http/rights/auth.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import { alertView, hitView, type ParentId } from './alert.ts'
import type { AlertStore } from './alert-store.ts'
import { givenAlert } from './given-alert.ts'
import type { Hits } from './hits.ts'
import { type AlertSettings, givenSetting, settingId, settingView } from './settings.ts'
import {
  ALERT,
  ALERT_BODY,
  ALERT_POST,
  ALERTS,
  CHANGED_SETTING,
  EVENT_TYPE_LIST,
  EVENT_TYPES,
  HITS,
  SETTING,
  SETTING_BODY,
  SETTINGS,
} from './shapes.ts'
import type { Slack, Workspace } from './slack.ts'

interface AlertRouteParts extends Pick<Core, 'accounts' | 'clock'> {
  alerts: AlertStore
  hits: Hits
  parentOf(accountId: string): Promise<ParentId>
}

const PATH = '/v1/thresholds/alerts/send'
const ONE = `${PATH}/{name}` as const
const api = operationsOf({ tag: 'Alerts', auth: { area: 'alerts' }, rateLimit: 'analytics' })
export const TAG = 'Alerts'
export const READ = { area: 'alerts', access: 'read' } as const

const GIVEN = ['name', 'metric', 'comparator', 'limit', 'dimension', 'period']

export function alertRoutes(parts: AlertRouteParts): Operation[] {
  const { alerts, hits, accounts, parentOf, clock } = parts

  /** The account that the alert is for. @throws BadRequest for a subaccount that the caller does not have */
  async function ownerOf(callerId: string, subaccountId: string | null, dimension: string): Promise<string> {
    const owner = subaccountId ?? callerId
    const found = await accounts.byId(owner)
    const isOwn = owner === callerId || (found?.parentId === callerId && found.status !== 'closed')
    if (!isOwn) throw new BadRequest(`invalid subaccount_id: ${quotable(owner)}`)
    if (dimension === 'subaccount' && found?.parentId) throw new BadRequest('invalid dimension: subaccount')
    return owner
  }

  return [
    api.get(PATH, {
      id: 'listAlerts',
      summary: 'List the alerts of the account and its subaccounts',
      answers: { 200: ALERTS },
      async handler({ caller }) {
        const found = await alerts.list(caller.accountId)
        const items = found.alerts.map(async (alert) => alertView(alert, await parentOf(alert.accountId)))
        return { items: await Promise.all(items), total: found.total }
      },
    }),
    api.post(PATH, {
      id: 'createAlert',
      audit: { given: GIVEN, made: ['id'] },
      summary: 'Create an alert on a rate',
      body: ALERT_BODY,
      answers: { 200: ALERT },
      async handler({ params, caller }) {
        const { subaccountId, ...definition } = givenAlert(params.json())
        const owner = await ownerOf(caller.accountId, subaccountId, definition.dimension)
        const alert = await alerts.create(owner, definition, Math.floor(clock.now()))
        return alertView(alert, await parentOf(owner))
      },
    }),
    api.get(ONE, {
      id: 'readAlert',
      summary: 'Read one alert',
      answers: { 200: ALERT },
      async handler({ path, caller }) {
        const alert = await alerts.find(caller.accountId, path.name)
        return alertView(alert, await parentOf(alert.accountId))
      },
    }),
    api.put(ONE, {
      id: 'replaceAlert',
      audit: { given: GIVEN },
      summary: 'Replace an alert; absent members return to their defaults',
      body: ALERT_BODY,
      answers: { 200: message('Alert updated', 'Replaced') },
      async handler({ params, path, caller }) {
        const alert = await alerts.find(caller.accountId, path.name)
        const { subaccountId, ...definition } = givenAlert(params.json())
        // An alert stays with its account.
        const named = subaccountId ?? alert.accountId
        if (named !== alert.accountId) throw new BadRequest(`invalid subaccount_id: ${quotable(named)}`)
        if (alert.accountId !== caller.accountId || definition.dimension === 'subaccount')
          await ownerOf(caller.accountId, alert.accountId, definition.dimension)
        await alerts.replace(alert, definition, Math.floor(clock.now()))
        return { message: 'Alert updated' }
      },
    }),
    api.delete(ONE, {
      id: 'deleteAlert',
      summary: 'Delete an alert and its hits',
      answers: { 200: message('Alert deleted', 'Deleted') },
      async handler({ path, caller }) {
        await alerts.remove(await alerts.find(caller.accountId, path.name))
        return { message: 'Alert deleted' }
      },
    }),
    api.get('/v1/thresholds/hits', {
      id: 'listAlertHits',
      summary: 'List the hits of the alerts, newest first',
      description: 'Those of the first account include the hits of the checks of the service itself.',
      answers: { 200: HITS },
      async handler({ caller }) {
        const found = await hits.list(caller.accountId)
        const items = found.hits.map(async (hit) => hitView(hit, await parentOf(hit.account_id)))
        return { items: await Promise.all(items), total: found.total }
      },
    }),
  ]
}

interface SettingRouteParts {
  settings: AlertSettings
  client: HttpClient
  clock: Clock
  slack: Slack
  /** The key that the account's webhooks are signed with. */
  signingKey(accountId: string): Promise<string>
}

const SETTINGS_PATH = '/v1/alerts/settings'
const SETTING_GIVEN = ['event_type', 'channel']

export function alertSettingRoutes(parts: SettingRouteParts): Operation[] {
  const { settings, client, clock, slack } = parts
  const given = (document: unknown, accountId: string) =>
    givenSetting(document, client, async () => (await slack.find(accountId)) !== null)
  return [
    api.get('/v1/alerts', {
      aliases: ['/v1/alerts/events'],
      id: 'listAlertEvents',
      summary: 'List the event types that notices can be sent for',
      answers: { 200: EVENT_TYPE_LIST },
      handler: async () => ({ events: EVENT_TYPES }),
    }),
    api.get(SETTINGS_PATH, {
      id: 'listAlertSettings',
      summary: 'List where notices go',
      description: 'The signing key is empty for roles that may not read the account.',
      answers: { 200: SETTINGS },
      async handler({ caller }) {
        const events = (await settings.list(caller.accountId)).map(settingView)
        const mayReadKey = mayAccess(caller.role, 'account', 'read')
        const key = mayReadKey ? await parts.signingKey(caller.accountId) : ''
        const workspace = await slack.find(caller.accountId)
        return { events, webhooks: { signing_key: key }, slack: workspace === null ? {} : masked(workspace) }
      },
    }),
    api.post(`${SETTINGS_PATH}/events`, {
      aliases: [SETTINGS_PATH],
      id: 'addAlertSetting',
      webhooks: { alert: ALERT_POST },
      audit: { given: SETTING_GIVEN, made: ['id'] },
      summary: 'Send the notices of an event type to a channel',
      description: 'A webhook must answer a GET with 200 first.',
      body: SETTING_BODY,
      answers: { 200: SETTING },
      async handler({ params, caller }) {
        const setting = await given(params.json(), caller.accountId)
        return settingView(await settings.add(caller.accountId, setting, Math.floor(clock.now())))
      },
    }),
    api.put(`${SETTINGS_PATH}/events/{id}`, {
      aliases: [`${SETTINGS_PATH}/{id}`],
      id: 'changeAlertSetting',
      audit: { given: SETTING_GIVEN },
      summary: 'Replace a setting',
      body: SETTING_BODY,
      answers: { 200: CHANGED_SETTING },
      async handler({ params, path, caller }) {
        const id = settingId(path.id)
        const setting = { id, ...(await given(params.json(), caller.accountId)) }
        const changed = settingView(await settings.change(caller.accountId, setting))
        return { message: 'Alert setting updated', ...changed }
      },
    }),
    api.delete(`${SETTINGS_PATH}/events/{id}`, {
      aliases: [`${SETTINGS_PATH}/{id}`],
      id: 'deleteAlertSetting',
      summary: 'Remove a setting',
      answers: { 200: message('Alert setting deleted', 'Removed') },
      async handler({ path, caller }) {
        await settings.remove(caller.accountId, settingId(path.id))
        return { message: 'Alert setting deleted' }
      },
    }),
  ]
}

/** The token as people recognise it: its kind. */
const masked = ({ token, ...workspace }: Workspace) => ({
  token: `${/^[a-z]+-/.exec(token)?.[0] ?? ''}****`,
  ...workspace,
})
