/** Texts of the pages of alerts. */
import type { Alert, Channel, Metric } from './alerts-api.ts'
import type { AlertView } from './alerts-search.ts'

export const TEXT = {
  title: 'Alerts',
  lead: 'A notice when a rate passes its limit. The service’s own checks use the same channels.',
  view: 'Show',
  views: { hits: 'Now', alerts: 'Alerts', channels: 'Channels' } satisfies Record<AlertView, string>,
  add: 'Create an alert',
  create: 'Create',
  edit: 'Change the alert',
  save: 'Save',
  created: 'Alert created',
  saved: 'Alert saved',
  remove: 'Delete',
  removeOf: (name: string) => `Delete ${name}`,
  removed: 'Alert deleted',
  restored: 'The alert is back',
  name: 'Name',
  namePlaceholder: 'Bounces of a domain',
  description: 'Description',
  when: 'When',
  metric: 'Rate',
  metrics: {
    hard_bounce_rate: 'Bounces',
    temporary_fail_rate: 'Temporary failures',
    complained_rate: 'Complaints',
    delivered_rate: 'Delivered',
  } satisfies Record<Metric, string>,
  comparator: 'Is',
  comparators: {
    '>': 'above',
    '>=': 'at or above',
    '<': 'below',
    '<=': 'at or below',
    '=': 'exactly',
    '!=': 'not',
  } satisfies Record<Alert['comparator'], string>,
  limit: 'Limit in percent',
  dimension: 'For each',
  dimensions: {
    domain: 'domain',
    recipient_provider: 'provider',
    ip: 'sending address',
    ip_pool: 'pool',
    subaccount: 'subaccount',
  } satisfies Record<Alert['dimension'], string>,
  period: 'Over the last',
  periods: [
    ['1h', 'hour'],
    ['6h', '6 hours'],
    ['1d', 'day'],
    ['7d', '7 days'],
    ['30d', '30 days'],
  ] as const,
  channels: 'Tell by',
  channelNames: { email: 'Email', slack: 'Slack', webhook: 'Webhook' } satisfies Record<Channel, string>,
  sentence: ({ metric, comparator, limit, dimension, period }: Alert) =>
    `${TEXT.metrics[metric]} ${TEXT.comparators[comparator]} ${percent(limit)} over ${periodWords(period)}, for each ${TEXT.dimensions[dimension]}`,
  checked: 'Checked',
  never: 'not yet',
  noAlerts: 'No alerts',
  noAlertsWhy: 'Create one for bounces, and you know of a bad list before the providers block you.',
  hit: 'What',
  value: 'Now',
  since: 'Since',
  state: 'State',
  triggered: 'Lasts',
  resolved: 'Over',
  noHits: 'Nothing is wrong',
  noHitsWhy: 'When a rate passes the limit of an alert, or a check of the service fails, it shows here.',
  channel: 'Channel',
  addChannel: 'Add a channel',
  changeChannel: 'Change the channel',
  changeOf: (what: string) => `Change the channel of ${what}`,
  event: 'Notice about',
  events: {
    send_alert: 'Alerts and checks',
    validation_job: 'Finished validation of a list',
    validation_preview: 'Preview of a validation',
    ip_listed: 'Address put on a blocklist',
    ip_delisted: 'Address off a blocklist',
    domain_listed: 'Domain put on a blocklist',
    domain_delisted: 'Domain off a blocklist',
    sender_stopped: 'Sending slowed or held',
    sender_released: 'Sending released',
  } as Readonly<Record<string, string>>,
  target: 'To',
  emails: 'Email addresses',
  emailsWhy: 'Up to ten, one on each line.',
  url: 'URL',
  urlWhy: {
    email: '',
    slack: 'The address of an incoming webhook of Slack.',
    webhook: 'It is asked with a GET now and must answer with 200.',
  } satisfies Record<Channel, string>,
  channelSaved: 'Channel saved',
  testChannel: 'Test',
  testChannelOf: (what: string) => `Test the channel of ${what}`,
  channelTested: 'A test notice was sent',
  channelRemoved: 'Channel removed',
  channelRestored: 'The channel is back',
  removeChannel: 'Remove',
  removeChannelOf: (what: string) => `Remove the channel of ${what}`,
  noChannels: 'No channels',
  noChannelsWhy: 'Without one, notices go by email to all admins who can sign in.',
} as const

/** "7d" as "7 days", "1h" as "an hour"; others as they are. */
function periodWords(period: string): string {
  const words = TEXT.periods.find(([value]) => value === period)?.[1]
  if (words === undefined) return period
  return /^\d/.test(words) ? words : `${words === 'hour' ? 'an' : 'a'} ${words}`
}

/** ".05" as "5%". */
export const percent = (share: string) =>
  `${(Number(share) * 100).toLocaleString('en', { maximumFractionDigits: 4 })}%`
