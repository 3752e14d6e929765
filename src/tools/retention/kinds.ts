/**
 * What is kept, and for how long: the kinds of data that end by their age, and those with personal data that people
 * remove. `tables` names them as the database does; what else there is, `tools/system/sizes/table-kinds.ts` says.
 */
import { DAY_MS } from '../../base/time/durations.ts'
import { KEPT_MS as EXPORT_KEPT_MS } from '../../carry/exports/store.ts'
import { TLS_RESULTS_DAYS } from '../../mail/deliver/attempt/transcripts.ts'
import { KEEP_DAYS_MIN } from '../../mail/stored/past-deliveries.ts'
import type { Config } from '../../platform/config/config.ts'
import { KEPT_KINDS, type KeptKind } from '../../platform/store/kept-days.ts'
import type { Schema } from '../../platform/store/schema.ts'
import { KEPT_MS as REPORT_KEPT_MS } from '../../receiving/domain-reports/area.ts'
import { FINISHED_KEPT_MS as UPLOAD_KEPT_MS } from '../../sending/lists/upload-tasks.ts'
import { WINDOW_DAYS_MAX } from '../../sending/suppressions/policy.ts'
import { KEPT_MS as LINK_KEPT_MS } from '../../sending/tracking/links/links.ts'
import { KEPT_MS as FIGURES_KEPT_MS } from '../../watching/metrics/storage/removal.ts'
import { KEEP_MS as ATTEMPT_KEPT_MS } from '../../watching/webhooks/attempts.ts'
import { KEPT_MS as PLACEMENT_KEPT_MS } from '../placement/area.ts'
import { KEPT_MS as VALIDATION_KEPT_MS } from '../validation/bulk/removal.ts'

export interface KindOfData {
  kind: string
  /** In plain words, for people. */
  title: string
  /** Personal data in it; null: none. */
  personal: string | null
  tables: readonly (keyof Schema)[]
  /** Null: until somebody removes it. For what accounts may set, `keptBounds` has the days. */
  days: ((config: Config) => number) | null
  /** The setting of the operator; null: none. */
  setting: string | null
  /** Since when the days count. */
  since: string
}

const FROM_START = 'it was recorded'
/** What need not be said of a kind; whether it is personal, and how long it is kept, is said of each. */
const OTHERWISE = { setting: null, since: '' }

const GIVEN: readonly (Omit<KindOfData, keyof typeof OTHERWISE> & Partial<KindOfData>)[] = [
  {
    kind: 'messages',
    title: 'Messages',
    personal: 'addresses, subject and content',
    tables: ['messages', 'deliveries'],
    days: (config) => config.messageRetentionDays,
    setting: 'SENDWRIGHT_MESSAGE_RETENTION_DAYS',
    since: 'the message was delivered to its last recipient, or given up',
  },
  {
    kind: 'events',
    title: 'Events',
    personal: 'recipient, sender and subject; for opens and clicks the IP address and the browser',
    tables: ['events', 'event_index', 'event_tags', 'event_segments'],
    days: (config) => config.eventRetentionDays,
    setting: 'SENDWRIGHT_EVENT_RETENTION_DAYS',
    since: 'they happened',
  },
  {
    kind: 'dialogues',
    title: 'Dialogues with mail servers',
    personal: 'recipient',
    tables: ['transcripts'],
    days: (config) => config.transcriptRetentionDays,
    setting: 'SENDWRIGHT_TRANSCRIPT_RETENTION_DAYS',
    since: 'the attempt',
  },
  {
    kind: 'delivery_facts',
    title: 'Facts about deliveries, to recognise late bounces, complaints and clicks',
    personal: 'recipient, and the variables of the message',
    tables: ['past_messages', 'past_deliveries'],
    days: (config) => Math.max(config.eventRetentionDays, KEEP_DAYS_MIN),
    since: 'the message was removed',
  },
  {
    kind: 'links',
    title: 'Targets of long tracked links',
    personal: 'what the links contain',
    tables: ['tracking_links'],
    days: () => LINK_KEPT_MS / DAY_MS,
    since: 'they were last sent',
  },
  {
    kind: 'captured_mail',
    title: 'Captured mail, where the service does not deliver',
    personal: 'addresses, subject and content',
    tables: ['inbox', 'inbox_words'],
    days: (config) => config.inboxRetentionDays,
    setting: 'SENDWRIGHT_INBOX_RETENTION_DAYS',
    since: 'it was captured',
  },
  {
    kind: 'suppressions',
    title: 'Suppressions',
    personal: 'address and reason',
    tables: ['suppressions', 'unsubscribe_tags'],
    days: null,
  },
  {
    kind: 'counted_bounces',
    title: 'Bounces counted for suppressions',
    personal: 'address',
    tables: ['counted_bounces'],
    days: () => WINDOW_DAYS_MAX,
    since: 'the bounce',
  },
  {
    kind: 'lists',
    title: 'Mailing lists and their members',
    personal: 'address, name and variables',
    tables: ['lists', 'list_members'],
    days: null,
  },
  {
    kind: 'consent',
    title: 'How people came onto lists, and left them',
    personal: 'address, IP address and browser',
    tables: ['consent_trail'],
    days: null,
  },
  {
    kind: 'list_uploads',
    title: 'Results of uploads to mailing lists',
    personal: null,
    tables: ['list_uploads'],
    days: () => UPLOAD_KEPT_MS / DAY_MS,
    since: 'the upload ended',
  },
  {
    kind: 'validation',
    title: 'Validated lists of addresses',
    personal: 'addresses',
    tables: ['validation_jobs', 'validation_addresses', 'validation_probes'],
    days: () => VALIDATION_KEPT_MS / DAY_MS,
    since: 'the validation ended',
  },
  {
    kind: 'placement',
    title: 'Tests of inbox placement',
    personal: null,
    tables: ['placement_tests', 'placement_seeds'],
    days: () => PLACEMENT_KEPT_MS / DAY_MS,
    since: 'the test',
  },
  {
    kind: 'webhook_attempts',
    title: 'Attempts of webhooks',
    personal: null,
    tables: ['webhook_attempts'],
    days: () => ATTEMPT_KEPT_MS / DAY_MS,
    since: 'the attempt',
  },
  {
    kind: 'exports',
    title: 'Exports of lists',
    personal: 'what the exported list contains',
    tables: ['exports'],
    days: () => EXPORT_KEPT_MS / DAY_MS,
    since: 'the request',
  },
  {
    kind: 'audit',
    title: 'Audit log',
    personal: 'users of the dashboard, their IP addresses, and the names of what they changed',
    tables: ['audit'],
    days: (config) => config.auditRetentionDays,
    setting: 'SENDWRIGHT_AUDIT_RETENTION_DAYS',
    since: FROM_START,
  },
  {
    kind: 'calls_of_keys',
    title: 'Last calls of API keys',
    personal: 'IP addresses of callers',
    tables: ['key_requests'],
    days: (config) => config.requestLogDays,
    setting: 'SENDWRIGHT_REQUEST_LOG_DAYS',
    since: FROM_START,
  },
  {
    kind: 'users',
    title: 'Users of the dashboard',
    personal: 'name and address',
    tables: ['users', 'sessions'],
    days: null,
  },
  {
    kind: 'reports',
    title: 'Reports of receivers about domains',
    personal: null,
    tables: ['domain_reports', 'domain_report_totals'],
    days: () => REPORT_KEPT_MS / DAY_MS,
    since: FROM_START,
  },
  {
    kind: 'tls_results',
    title: 'Results of encrypted connections, by domain',
    personal: null,
    tables: ['tls_results'],
    days: () => TLS_RESULTS_DAYS,
    since: FROM_START,
  },
  {
    kind: 'failures',
    title: 'Classified failures, addresses masked',
    personal: null,
    tables: ['classified_failures'],
    days: (config) => config.eventRetentionDays,
    setting: 'SENDWRIGHT_EVENT_RETENTION_DAYS',
    since: FROM_START,
  },
  {
    kind: 'statistics',
    title: 'Statistics: counts only',
    personal: null,
    tables: ['figures', 'figure_packs'],
    days: () => FIGURES_KEPT_MS.day / DAY_MS,
    since: FROM_START,
  },
]

export const KINDS_OF_DATA = GIVEN.map((kind): KindOfData => ({ ...OTHERWISE, ...kind }))

export const isKeptKind = (kind: string): kind is KeptKind => (KEPT_KINDS as readonly string[]).includes(kind)
