/** Alerts: mailgun-go's alerts.go, mailgun-java's MailgunAlertsApi. */
import { createReceiver } from '../../../support/http-receiver.ts'
import { ownAddress } from '../../../support/service.ts'
import { createSlackServer } from '../../../support/slack.ts'
import type { CallTable, ClientCall } from '../tables.ts'

const SETTING = {
  event_type: 'ip_listed',
  channel: 'email',
  settings: { emails: ['mail1@example.com', 'mail2@example.com'] },
}
const HOOK = { event_type: 'ip_listed', channel: 'webhook', settings: { url: '{hook}' } }
const SLACK = { event_type: 'ip_listed', channel: 'slack', settings: { channel_ids: ['C1'] } }
const CHANNEL = { id: '', name: '', is_archived: false }
const PAGING = { first: '', last: '', next: '', previous: '' }

let hook = ''
let token = ''

const java = (
  call: string,
  method: ClientCall['method'],
  path: string,
  more: Partial<ClientCall> = {},
): ClientCall => ({
  client: 'java',
  call,
  method,
  path: `/v1/alerts${path}`,
  response: { message: '' },
  ...more,
})

export const TABLE: CallTable = {
  async surroundings(t) {
    const slack = await createSlackServer(ownAddress())
    const receiver = await createReceiver({ host: ownAddress() })
    t.after(() => Promise.all([slack.receiver.close(), receiver.close()]))
    hook = receiver.url
    token = slack.token
    return { SENDWRIGHT_SLACK_API_URL: slack.url }
  },
  prepare: async () => ({ hook, token }),
  calls: [
    {
      client: 'go',
      call: 'ListAlertsEvents',
      method: 'GET',
      path: '/v1/alerts',
      response: { events: ['x'] },
    },
    {
      ...{ client: 'go', call: 'AddAlert', method: 'POST', path: '/v1/alerts/settings' },
      json: SETTING,
      response: { id: '', ...SETTING },
      keep: { setting: 'id' },
    },
    {
      ...{ client: 'go', call: 'ListAlerts', method: 'GET', path: '/v1/alerts/settings' },
      response: { events: [SETTING], webhooks: { signing_key: '' }, slack: {} },
    },
    { client: 'go', call: 'DeleteAlert', method: 'DELETE', path: '/v1/alerts/settings/{setting}' },
    java('listAlertEvents', 'GET', '/events', { response: { events: ['x'] } }),
    java('addAlertEventSetting', 'POST', '/settings/events', {
      json: HOOK,
      response: { id: '', ...HOOK },
      keep: { setting: 'id' },
    }),
    java('updateAlertEventSetting', 'PUT', '/settings/events/{setting}', {
      json: { ...SETTING, event_type: 'ip_delisted' },
      response: { message: 'Alert setting updated' },
    }),
    java('testWebhook', 'POST', '/webhooks/test', {
      json: { event_type: 'ip_listed', url: '{hook}' },
      response: { message: 'Test webhook sent' },
    }),
    java('testEmail', 'POST', '/email/test', {
      json: { event_type: 'ip_listed', emails: ['t@example.com'] },
      response: { message: 'Test email sent' },
    }),
    java('listSlackChannels', 'GET', '/slack/channels', { response: { items: [], paging: PAGING } }),
    java('updateSlackSettings', 'PUT', '/settings/slack', {
      json: { token: '{token}', team_id: 'T9', team_name: 'MyTeam', scope: 'channels:read' },
      response: { message: 'Slack settings updated' },
    }),
    java('listAlertSettings', 'GET', '/settings', {
      response: {
        events: [SETTING],
        webhooks: { signing_key: '' },
        slack: { token: '', team_id: '', team_name: '', scope: '' },
      },
    }),
    java('listSlackChannels', 'GET', '/slack/channels?limit=10', {
      response: { items: [CHANNEL], paging: PAGING },
    }),
    java('getSlackChannel', 'GET', '/slack/channels/C1', { response: CHANNEL }),
    java('addAlertEventSetting', 'POST', '/settings/events', { json: SLACK, response: { id: '', ...SLACK } }),
    java('testSlack', 'POST', '/slack/test', {
      json: { event_type: 'ip_listed', channel_ids: ['C0', 'C1'] },
      response: { message: 'Test message sent' },
    }),
    java('resetWebhookSigningKey', 'PUT', '/settings/webhooks/signing_key', {
      response: { signing_key: '' },
    }),
    java('revokeSlackOAuth', 'DELETE', '/slack/oauth', {
      response: { message: 'Slack access token revoked' },
    }),
    java('deleteSlackSettings', 'DELETE', '/settings/slack', {
      response: { message: 'Slack settings deleted' },
    }),
    java('removeAlertEventSetting', 'DELETE', '/settings/events/{setting}', {
      response: { message: 'Alert setting deleted' },
    }),
  ],
}
