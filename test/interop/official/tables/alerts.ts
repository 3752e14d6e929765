/** Alerts: mailgun-go's alerts.go, mailgun-java's MailgunAlertsApi. */
import type { CallTable } from '../tables.ts'

const SETTING = {
  event_type: 'ip_listed',
  channel: 'email',
  settings: { emails: ['mail1@example.com', 'mail2@example.com'] },
}

export const TABLE: CallTable = {
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
    {
      ...{ client: 'java', call: 'listAlertEvents', method: 'GET', path: '/v1/alerts/events' },
      response: { events: ['x'] },
    },
  ],
}
