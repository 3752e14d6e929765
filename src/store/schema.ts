/**
 * Row types of all tables for Kysely; the migrations document what the columns mean.
 * In both databases flags are 0 or 1, times Unix milliseconds, and `*_json` JSON text.
 */
import type { Generated } from 'kysely'
import type {
  CountedVisitRow,
  EventFollowerRow,
  FigurePackRow,
  FigurePlaceRow,
  FigureRow,
  FigureScopeRow,
} from './counter-rows.ts'

export type Flag = 0 | 1

export interface AccountRow {
  id: string
  parent_id: string | null
  name: string
  signing_key_sealed: Uint8Array
  created_at: number
  status: string
  disabled_json: string | null
  features_json: string
  updated_at: number
}

/** A limit of an account per calendar month, and its use; months are their start in Unix milliseconds. */
export interface MessageLimitRow {
  account_id: string
  monthly_limit: number | null
  month_at: number
  used: number
  is_stopped: Flag
  reached_percent: number
  notified_percent: number
  recount_at: number | null
}

/** What a deleted domain has sent in a month. */
export interface RemovedUsageRow {
  account_id: string
  domain_id: string
  month_at: number
  accepted: number
}

/** A rate limit that one account has instead of the general one. */
export interface AccountRateLimitRow {
  account_id: string
  name: string
  count: number
}

/** An address that sandbox domains of an account may send to, once its owner has agreed. */
export interface SandboxRecipientRow {
  account_id: string
  /** In lower case. */
  address: string
  is_activated: Flag
  /** Keyed digest of the token in the newest mail; null once it was used. */
  token_digest: string | null
  token_expires_at: number
  created_at: number
}

export interface AccountChangeRow {
  account_id: string
  changed_at: number
  due_at: number
  attempts: number
}

export interface ApiKeyRow {
  id: string
  account_id: string
  kind: string
  role: string
  secret_hmac: string
  secret_end: string
  description: string
  domain_name: string | null
  requestor: string | null
  user_name: string | null
  expires_at: number | null
  disabled_reason: string | null
  user_id: string | null
  created_at: number
  updated_at: number
}

export interface UserRow {
  id: string
  account_id: string
  email: string
  name: string
  role: string
  is_master: Flag
  is_disabled: Flag
  password_hash: string | null
  password_updated_at: number | null
  session_epoch: number
  totp_sealed: Uint8Array | null
  totp_pending_sealed: Uint8Array | null
  totp_created_at: number | null
  totp_step: number
  totp_failures: number
  totp_failures_since: number
  opened_ip: string | null
  last_sign_in_at: number | null
  created_at: number
  auth_method: string
}

export interface UserIdentityRow {
  issuer: string
  subject: string
  user_id: string
  linked_at: number
}

export interface OidcSignInRow {
  digest: string
  expires_at: number
}

export interface UserTokenRow {
  digest: string
  user_id: string
  purpose: string
  created_at: number
  expires_at: number
}

export interface RecoveryCodeRow {
  user_id: string
  digest: string
}

export interface AccountSettingsRow {
  account_id: string
  inactive_session_seconds: number | null
  absolute_session_seconds: number | null
  logout_redirect_url: string | null
  webhooks_redact_pii: Flag
  ai_insights: Flag
}

export interface PublicKeyRow {
  account_id: string
  id: string
  secret_hmac: string
  created_at: number
}

export interface CallerAddressRow {
  account_id: string
  address: string
  description: string
  created_at: number
}

export interface JobRow {
  name: string
  lease_owner: string
  lease_until: number
  next_run_at: number
  last_started_at: number
  last_ended_at: number | null
  last_error: string | null
}

export interface LoginLinkRow {
  digest: string
  account_id: string
  key_id: string | null
  user_id: string | null
  user_epoch: number | null
  created_at: number
  expires_at: number
}

export interface SessionRow {
  id: string
  digest: string
  account_id: string
  key_id: string | null
  user_id: string | null
  user_epoch: number | null
  remote_address: string
  user_agent: string
  created_at: number
  last_used_at: number
  expires_at: number
}

export interface LoginPlaceRow {
  login: string
  network: string
  last_at: number
}

export interface DomainRow {
  id: string
  account_id: string
  name: string
  type: string
  state: string
  disabled_json: string | null
  spam_action: string
  wildcard: Flag
  require_tls: Flag
  skip_verification: Flag
  use_automatic_sender_security: Flag
  encrypt_incoming_message: Flag
  web_prefix: string
  web_scheme: string
  message_ttl_seconds: number
  archive_to: string | null
  mailfrom_host: string
  return_path_valid: Flag
  dkim_authority: string
  created_at: number
  signing_authority: string | null
  dkim_unverified: Flag
  verified: Flag
  tracking_valid: Flag
  sending_ips_json: string | null
  sending_pool_id: string | null
  dynamic_pool_id: string | null
}

export interface DomainDnsRow {
  domain_id: string
  checks_json: string
  state_since: number
  next_check_at: number
}

export interface DomainDeletionRow {
  domain_id: string
  account_id: string
  name: string
  domain_json: string
  due_at: number
  attempts: number
}

export interface TrackingSettingsRow {
  domain_id: string
  account_id: string
  opens: Flag
  opens_at_top: Flag
  clicks: string
  unsubscribe: Flag
  html_footer: string | null
  text_footer: string | null
  unsubscribe_on_bulk: Flag
}

/** A tracking host's certificate and its pending order. */
export interface CertificateRow {
  host: string
  account_id: string
  domain_id: string
  chain: string | null
  key_sealed: Uint8Array | null
  expires_at: number | null
  issued_at: number | null
  requested: Flag
  error: string | null
  due_at: number | null
  attempts: number
  orders_json: string
  claim: string | null
  claimed_until: number | null
  created_at: number
}

export interface AcmeChallengeRow {
  token: string
  host: string
  answer: string
  ends_at: number
}

export interface AcmeAccountRow {
  directory: string
  key_sealed: Uint8Array
  url: string | null
  contact: string
}

export interface SenderSecurityRow {
  domain_id: string
  account_id: string
  domain_name: string
  sid: string
  state: string
  active_selector: string | null
  rotation_enabled: Flag
  rotation_interval: string
  rotated_at: number
  grace_until: number | null
  rotation_json: string | null
}

export interface DkimKeyRow {
  id: string
  account_id: string
  authority: string
  selector: string
  algorithm: string
  private_key_sealed: Uint8Array
  public_record: string
  active: Flag
  created_at: number
  next_selector: string | null
  check_json: string | null
  activates: Flag
  managed: Flag
}

export interface MessageRow {
  id: string
  account_id: string
  domain_id: string
  domain_name: string
  message_id: string
  summary_json: string
  options_json: string
  content_kind: string
  content: Uint8Array | null
  content_blob: string | null
  blobs_json: string
  created_at: number
}

export type DeliveryState =
  | 'scheduled'
  | 'queued'
  | 'sending'
  | 'delivered'
  | 'bounced'
  | 'expired'
  | 'suppressed'
  | 'rejected'
  | 'cancelled'

export interface DeliveryRow {
  id: string
  account_id: string
  domain_id: string
  message_pk: string
  recipient: string
  recipient_domain: string
  recipient_header: string
  variables_json: string | null
  list_json: string | null
  state: DeliveryState
  due_at: number
  expires_at: number
  attempts: number
  lease_owner: string | null
  lease_token: string | null
  lease_until: number | null
  reason: string
  last_code: number | null
  last_reply: string | null
  /** When it would be due if it were not paused. */
  paused_due_at?: number | null | undefined
  /** Source address key, written by messages/acceptance/source-addresses.ts; absent: '', the account's own or the system's choice. */
  source_key?: string | undefined
  created_at: number
  updated_at: number
}

export interface PastMessageRow {
  id: string
  account_id: string
  domain_id: string
  domain_name: string
  message_id: string
  summary_json: string
  removed_at: number
}

export interface PastDeliveryRow {
  id: string
  account_id: string
  domain_id: string
  message_pk: string
  recipient: string
  recipient_domain: string
  recipient_header: string
  variables_json: string | null
  list_json: string | null
  state: DeliveryState
  attempts: number
  provider: string | null
  sending_ip: string | null
  delivered_at: number | null
  headers_json: string | null
  removed_at: number
}

export interface EventRow {
  seq: Generated<number>
  id: string
  account_id: string
  domain_name: string
  event: string
  timestamp_us: number
  recipient: string | null
  message_id: string | null
  payload_json: string
  /** With `seq` the position in commit order; set by the database. */
  tx: Generated<number>
  /** JSON array of lower-case tags; null: none. */
  tags_json: string | null
  /** Hash of domain and recipient: `recipientHash` in src/events/event.ts. */
  recipient_hash: number | null
}

/** The searchable columns of an event; a row of the view `event_keys` (migration 0022). */
export interface EventKeyRow {
  seq: number
  tx: number
  account_id: string
  domain_name: string
  event: string
  timestamp_us: number
  message_id: string | null
  recipient_hash: number | null
}

/** SQLite: the same for events that are already indexed (src/events/indexing.ts). */
export interface EventIndexRow extends Omit<EventKeyRow, 'tx'> {
  /** Set by the database. */
  segment: Generated<number>
}

/** SQLite: the time range of a segment's events, in Unix microseconds. */
export interface EventSegmentRow {
  segment: number
  low_us: number
  high_us: number
}

/** Written by a trigger on `events`; on SQLite with the index. */
export interface EventTagRow {
  domain_name: string
  tag: string
  event: string
  timestamp_us: number
  seq: number
}

export interface RouteRow {
  id: string
  account_id: string
  priority: number
  description: string
  expression: string
  actions_sealed: Uint8Array
  created_at: number
}

export interface DomainReportRow {
  id: string
  account_id: string
  domain_id: string
  type: 'dmarc' | 'tls' | 'complaint'
  sender: string
  authenticated: Flag
  organization: string
  contact: string
  report_id: string
  begin_at: number
  end_at: number
  received_at: number
  passed: number
  failed: number
  row_count: number
  rows_json: string
}

export interface DomainReportTotalRow {
  domain_id: string
  type: DomainReportRow['type']
  day_at: number
  name: string
  account_id: string
  passed: number
  failed: number
  quarantined: number
  rejected: number
}

export interface RoutePostRow {
  id: string
  account_id: string
  domain_id: string
  message_pk: string
  recipient: string
  kind: string
  url_sealed: Uint8Array
  created_at: number
}

export interface InboxRow {
  id: string
  account_id: string
  domain_name: string
  delivery_id: string | null
  storage_key: string | null
  received_at: number
  envelope_from: string
  envelope_to_json: string
  from_header: string
  to_header: string
  subject: string
  message_id: string
  tags_json: string
  size_bytes: number
  authentication_json: string
  raw: Uint8Array | null
  raw_blob: string | null
  restricted: Flag
}

export interface ArchiveOutboxRow {
  id: string
  account_id: string
  domain_name: string
  delivery_id: string
  url: string
  head: string
  state: string
  attempts: number
  due_at: number
  created_at: number
}

export interface DisabledQueueRow {
  domain_id: string
  queue: string
  until: number
}

export interface IdempotencyKeyRow {
  account_id: string
  key: string
  digest: string
  status: number | null
  /** JSON of the response. */
  body_sealed: Uint8Array | null
  expires_at: number
}

export interface TemplateRow {
  id: string
  account_id: string
  scope: string
  domain_id: string | null
  name: string
  description: string
  created_by: string
  created_at: number
}

export interface TemplateVersionRow {
  id: string
  template_id: string
  tag: string
  content: string
  mjml: string
  headers_json: string
  comment: string
  active: Flag
  created_at: number
}

export interface CredentialRow {
  login: string
  account_id: string
  domain_id: string
  password_hash: string | null
  is_system: Flag
  changed_at: number
  created_at: number
}

export interface ListRow {
  id: string
  account_id: string
  domain_name: string
  address: string
  address_key: string
  name: string
  description: string
  access_level: string
  reply_preference: string
  header_id: string
  header_key: string
  members_count: number
  version: number
  created_at: number
}

export interface ListMemberRow {
  list_id: string
  address_key: string
  address: string
  name: string
  vars_json: string
  subscribed: Flag
  /** Unsubscribed by a link; set by the database. */
  by_link?: Flag | undefined
}

/** Columns that background tasks of lists have in common. */
export interface ListTaskRow {
  id: string
  account_id: string
  list_id: string
  state: 'running' | 'done'
  lease_owner: string | null
  lease_until: number
  created_at: number
  updated_at: number
}

export interface ListUploadRow extends ListTaskRow {
  format: 'json' | 'csv'
  is_upsert: Flag
  subscribed: Flag
  entries_json: string
  done: number
  upserted_count: number
  failed_count: number
}

export interface ListExpansionRow extends ListTaskRow {
  domain_id: string
  message_pk: string
  list_address: string
  list_header_id: string
  headers_json: string
  exclude_json: string
  /** Of a post from outside: the same for each transmission of a mail. */
  post_key: string | null
  position: string
  copies: number
}

export type SuppressionKind = 'bounces' | 'complaints' | 'unsubscribes' | 'whitelists'

export interface SuppressionRow {
  domain_id: string
  kind: SuppressionKind
  address: string
  account_id: string
  code: string
  detail: string
  event_id: string | null
  expires_at: number | null
  created_at: number
}

export interface UnsubscribeTagRow {
  domain_id: string
  address: string
  tag_key: string
  tag: string
  undo_json?: string | null | undefined
}

export interface SuppressionPolicyRow {
  domain_id: string
  hard_bounces_to_suppress: number
  soft_bounces_to_suppress: number
  window_days: number
  lifetime_days: number
}

export interface CountedBounceRow {
  event_id: string
  domain_id: string
  address: string
  severity: 'hard' | 'soft'
  bounced_at: number
}

export interface SuppressionImportRow {
  id: string
  account_id: string
  domain_id: string
  kind: SuppressionKind
  blob: string
  rows_done: number
  rows_bad: number
  attempts: number
  lease_token: string | null
  lease_owner: string | null
  lease_until: number
  created_at: number
}

export interface AuditRow {
  id: string
  account_id: string
  key_id: string
  remote_address: string
  action: string
  subject: string
  detail_json: string
  created_at: number
  request_id: string | null
  parent_account_id: string | null
  status: number | null
  user_id: string | null
}

export interface TranscriptRow {
  delivery_id: string
  attempt: number
  account_id: string
  started_at: number
  mx_host: string
  lines_json: string
}

export interface InboxFaultsRow {
  id: number
  faults_json: string
  updated_at: number
}

export interface MtaStsPolicyRow {
  domain: string
  policy_id: string
  policy_text: string
  expires_at: number
}

/** A TLS report by its receiver; migration 0112. */
export interface TlsReportRow {
  day: string
  domain: string
  uri: string
  id: string
  content: Uint8Array | null
  created_at: number
}

export interface TlsResultRow {
  day: string
  recipient_domain: string
  sending_ip: string
  policy_domain: string
  policy_type: string
  mx_host: string
  result_type: string
  sessions: number
}

export interface OutgoingPostRow {
  id: string
  kind: string
  account_id: string
  lane: string
  url: string
  subject: string
  attempts: number
  due_at: number
  created_at: number
}

export interface OutgoingLeaseRow {
  lane: string
  owner: string
  token: string
  until_at: number
}

export interface DomainWebhookRow {
  account_id: string
  domain_name: string
  event_type: string
  /** Without the secret part of its user info. */
  url: string
  position: number
  credentials_sealed: Uint8Array | null
}

export interface AccountWebhookRow {
  id: string
  account_id: string
  /** Without the secret part of its user info. */
  url: string
  description: string
  event_types_json: string
  created_at: number
  credentials_sealed: Uint8Array | null
}

export interface WebhookAttemptRow {
  id: string
  account_id: string
  domain_name: string
  event_id: string
  event_type: string
  url: string
  attempt: number
  status: 'ok' | 'failing' | 'given-up'
  status_code: number | null
  error: string | null
  response: string
  duration_ms: number
  next_attempt_at: number | null
  created_at: number
}

export interface TrackingLinkRow {
  id: string
  account_id: string
  url: string
  created_at: number
  used_at: number
}

export interface DeliveryReportRow {
  delivery_id: string
  kind: 'bounce' | 'complaint'
  status: string
  account_id: string
  event_id: string
  created_at: number
}

/** A classified failed attempt; written with its event. */
export interface ClassifiedFailureRow {
  id: Generated<number>
  account_id: string
  domain_name: string
  recipient_domain: string
  provider: string
  sending_ip: string | null
  tags_json: string | null
  rule_id: string
  entity: string
  category: string
  severity: 'PERMANENT' | 'TEMPORARY'
  critical: Flag
  sample: string
  failed_at: number
}

/** A tag that a domain has used. */
export interface TagRow {
  account_id: string
  domain_id: string
  /** In lower case. */
  tag_key: string
  /** The first spelling seen. */
  tag: string
  description: string
  /** 0: no message has carried it yet. */
  first_seen: number
  last_seen: number
}

/** A tag that an account has used on any of its domains. */
export type AccountTagRow = Omit<TagRow, 'domain_id'>

export interface AlertRow {
  id: string
  account_id: string
  name: string
  description: string
  account_group: string | null
  metric: string
  comparator: string
  limit_text: string
  dimension: string
  channels_json: string
  filters_json: string
  period: string
  created_at: number
  updated_at: number
  last_checked_at: number | null
}

export interface AlertHitRow {
  id: string
  account_id: string
  source: string
  name: string
  metric: string
  comparator: string
  limit_text: string
  dimension: string
  dimension_value: string
  latest_value: string
  advice: string
  triggered: Flag
  misses: number
  since_at: number
  created_at: number
  updated_at: number
  expires_at: number | null
}

export interface AlertSettingRow {
  id: string
  account_id: string
  event_type: string
  channel: string
  settings_sealed: Uint8Array
  created_at: number
}

export interface AlertNoticeRow {
  id: string
  account_id: string
  hit_id: string
  channel: string
  setting_id: string | null
  recipient: string
  content_json: string
  due_at: number
  created_at: number
}

export interface IpRow {
  ip: string
  is_dedicated: Flag
  account_id: string | null
  is_enabled: Flag
  warms_when_assigned: Flag
  rdns: string
  is_bound: Flag | null
  is_confirmed: Flag | null
  fault: string
  checked_at: number | null
  seen_at: number
  created_at: number
}

export interface DomainIpRow {
  domain_id: string
  ip: string
  account_id: string
}

export interface IpTaskRow {
  id: string
  account_id: string
  kind: string
  params_json: string
  position: string
  created_at: number
  updated_at: number
}

export interface IpPoolRow {
  id: string
  account_id: string
  name: string
  description: string
  created_at: number
}

export interface IpPoolMemberRow {
  ip: string
  pool_id: string
  linked_at: number
}

export interface IpPoolDelegationRow {
  subaccount_id: string
  pool_id: string
  created_at: number
}

export interface SizeSampleRow {
  node: string
  at: number
  kind: string
  bytes: number
  row_count: number
}

export interface IpWarmupRow {
  ip: string
  account_id: string
  stage: number
  plan_started_at: number
  stage_started_at: number
  updated_at: number
  window_started_at: number
  window_used: number
  stage_used: number
  start_volume: number
  hour_started_at: number
  hour_used: number
  hour_diverted: number
  history_json: string
  paused_at: number | null
}

export interface IpWarmupProviderRow {
  ip: string
  provider: string
  stage: number
  stage_started_at: number
  window_used: number
  window_diverted: number
  wanted_before: number
  sent_before: number
  hour_started_at: number
  hour_used: number
  hour_diverted: number
}

export interface DynamicPoolRow {
  id: string
  account_id: string
  band: string
}

export interface DynamicPoolMemberRow {
  ip: string
  pool_id: string
  added_at: number
}

/** Rates are millionths. */
export interface DynamicPoolDomainRow {
  domain_id: string
  account_id: string
  owner_id: string
  name: string
  band: string
  registered_at: number
  is_pinned: Flag
  next_check_at: number
  clean_checks: number
  processed: number
  bounce_ppm: number | null
  complaint_ppm: number | null
}

export interface DynamicPoolHistoryRow {
  id: string
  owner_id: string
  account_id: string
  account_name: string
  domain_id: string
  domain_name: string
  new_band: string
  prev_band: string
  reason: string
  processed: number | null
  bounce_ppm: number | null
  complaint_ppm: number | null
  initiated_by: string
  at: number
}

export interface DynamicPoolTaskRow {
  account_id: string
  with_subaccounts: Flag
  initiated_by: string
  position: string
  updated_at: number
}

export interface IpBlockRow {
  ip: string
  site: string
  provider: string
  reply: string
  since_at: number
  until_at: number
  pause_ms: number
  times: number
  cleared_at: number | null
}

export interface DeliveryOverrideRow {
  site: string
  paused_at: number | null
  pause_reason: string
  pause_until: number | null
  connections: number | null
  rate: string | null
  limits_until: number | null
}

export interface NodeRow {
  id: string
  host: string
  roles_json: string
  addresses_json: string
  version: string
  state: string
  started_at: number
  last_seen_at: number
}

export interface InstallationRow {
  name: string
  value: Uint8Array
}

/** A row whose named columns have defaults, so that inserts may leave them out. */
type WithDefaults<Row, Names extends keyof Row> = {
  [Name in keyof Row]: Name extends Names ? Generated<Row[Name]> : Row[Name]
}

/** A list of addresses that is validated, or was; migration 0110. */
export interface ValidationJobRow {
  id: string
  account_id: string
  kind: string
  list_id: string
  mailing_list_id: string | null
  blob: string | null
  status: string
  dropping: Flag
  quantity: number
  read_up_to: string
  addresses: number
  done: number
  done_up_to: number
  tries: number
  counts_json: string
  lease_token: string | null
  lease_owner: string | null
  lease_until: number
  stepped_at: number
  created_at: number
  ended_at: number | null
}

export interface ValidationAddressRow {
  job_id: string
  no: number
  hash: string
  address: string
  result_json: string | null
}

export interface ValidationProbeRow {
  key: string
  result: string
  until_at: number
}

/** How often an account has used what is no mail, by day. */
export interface FeatureUsageRow {
  account_id: string
  day_at: number
  metric: string
  count: number
}

/** Test mailboxes that messages are sent to together; migration 0111. */
export interface SeedListRow {
  id: string
  account_id: string
  name: string
  target_email: string
  sending_domains_json: string
  seed_filter: string
  provider_filter: string
  remote_id: string
  is_auto: Flag
  created_at: number
  updated_at: number
  last_result_at: number | null
}

/** A message sent to seeds. */
export interface PlacementTestRow {
  id: string
  account_id: string
  list_id: string
  sender: string
  subject: string
  message_id: string | null
  status: 'processing' | 'completed'
  created_at: number
  updated_at: number
  share_id: string
  shared: Flag
  share_until: number
  spam_json: string | null
}

/** What became of one seed's copy. */
export interface PlacementSeedRow {
  test_id: string
  address: string
  provider: string
  state: 'pending' | 'delivered' | 'missing'
  destination: string
  category: string
  seconds: number | null
  facts_json: string
  problem: string
}

export interface Schema {
  tls_reports: TlsReportRow
  seed_lists: SeedListRow
  placement_tests: PlacementTestRow
  placement_seeds: PlacementSeedRow
  validation_jobs: ValidationJobRow
  validation_addresses: ValidationAddressRow
  validation_probes: ValidationProbeRow
  feature_usage: FeatureUsageRow
  installation: InstallationRow
  classified_failures: ClassifiedFailureRow
  delivery_reports: DeliveryReportRow
  outgoing_posts: OutgoingPostRow
  outgoing_leases: OutgoingLeaseRow
  domain_webhooks: DomainWebhookRow
  account_webhooks: AccountWebhookRow
  webhook_changes: { id: number; version: number }
  webhook_attempts: WebhookAttemptRow
  tags: TagRow
  account_tags: AccountTagRow
  archive_outbox: ArchiveOutboxRow
  disabled_queues: DisabledQueueRow
  idempotency_keys: IdempotencyKeyRow
  credentials: CredentialRow
  accounts: WithDefaults<AccountRow, 'status' | 'disabled_json' | 'features_json' | 'updated_at'>
  account_changes: AccountChangeRow
  api_keys: ApiKeyRow
  public_keys: PublicKeyRow
  caller_addresses: CallerAddressRow
  jobs: JobRow
  nodes: NodeRow
  login_links: LoginLinkRow
  sessions: SessionRow
  login_places: LoginPlaceRow
  users: UserRow
  user_identities: UserIdentityRow
  oidc_sign_ins: OidcSignInRow
  user_tokens: UserTokenRow
  user_places: LoginPlaceRow
  recovery_codes: RecoveryCodeRow
  account_settings: WithDefaults<AccountSettingsRow, 'webhooks_redact_pii' | 'ai_insights'>
  message_limits: MessageLimitRow
  removed_usage: RemovedUsageRow
  account_rate_limits: AccountRateLimitRow
  sandbox_recipients: SandboxRecipientRow
  domains: DomainRow
  domain_dns: DomainDnsRow
  domain_deletions: DomainDeletionRow
  tracking_settings: TrackingSettingsRow
  tracking_links: TrackingLinkRow
  certificates: CertificateRow
  acme_challenges: AcmeChallengeRow
  acme_accounts: AcmeAccountRow
  dkim_keys: DkimKeyRow
  sender_security: SenderSecurityRow
  messages: MessageRow
  deliveries: DeliveryRow
  past_messages: PastMessageRow
  past_deliveries: PastDeliveryRow
  events: EventRow
  event_tags: EventTagRow
  event_keys: EventKeyRow
  event_tag_keys: EventTagRow
  event_index: EventIndexRow
  event_segments: EventSegmentRow
  event_followers: EventFollowerRow
  figure_scopes: FigureScopeRow
  figures: FigureRow
  figure_packs: FigurePackRow
  figure_places: FigurePlaceRow
  counted_visits: CountedVisitRow
  inbox: InboxRow
  routes: RouteRow
  route_posts: RoutePostRow
  domain_reports: DomainReportRow
  domain_report_totals: DomainReportTotalRow
  templates: TemplateRow
  template_versions: TemplateVersionRow
  lists: ListRow
  list_members: ListMemberRow
  list_uploads: ListUploadRow
  list_expansions: ListExpansionRow
  suppressions: SuppressionRow
  unsubscribe_tags: UnsubscribeTagRow
  suppression_policies: SuppressionPolicyRow
  counted_bounces: CountedBounceRow
  alerts: AlertRow
  alert_hits: AlertHitRow
  alert_settings: AlertSettingRow
  alert_notices: AlertNoticeRow
  suppression_imports: SuppressionImportRow
  audit: AuditRow
  transcripts: TranscriptRow
  inbox_faults: InboxFaultsRow
  ips: IpRow
  ip_changes: { id: number; version: number }
  shared_ip_exclusions: { account_id: string }
  domain_ips: DomainIpRow
  ip_tasks: IpTaskRow
  ip_pools: IpPoolRow
  ip_pool_members: IpPoolMemberRow
  ip_pool_delegations: IpPoolDelegationRow
  ip_warmup_providers: IpWarmupProviderRow
  ip_warmups: IpWarmupRow
  dynamic_pools: DynamicPoolRow
  dynamic_pool_members: DynamicPoolMemberRow
  dynamic_pool_domains: DynamicPoolDomainRow
  dynamic_pool_history: DynamicPoolHistoryRow
  dynamic_pool_tasks: DynamicPoolTaskRow
  delivery_overrides: DeliveryOverrideRow
  ip_blocks: IpBlockRow
  ip_names: { ip: string; good_at: number }
  size_samples: SizeSampleRow
  mta_sts_policies: MtaStsPolicyRow
  tls_results: TlsResultRow
}
