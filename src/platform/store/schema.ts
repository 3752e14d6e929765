// Made by `node scripts/store-tables.ts` from the migrations, which document the columns.
// In both databases flags are 0 or 1, times Unix milliseconds, and `*_json` JSON text.
import type { Generated } from 'kysely'

export type Flag = 0 | 1
export type DeliveryState =
  | 'scheduled' | 'queued' | 'sending' | 'delivered' | 'bounced' | 'expired' | 'suppressed' | 'rejected' | 'cancelled'
export type ConsentAction =
  | 'added' | 'pending' | 'confirmed' | 'declined' | 'expired' | 'unsubscribed' | 'resubscribed' | 'removed' | 'imported'
export type ConsentSource =
  | 'api' | 'dashboard' | 'form' | 'import' | 'unsubscribe_link' | 'one_click' | 'preference_page' | 'mail'
export type SuppressionKind = 'bounces' | 'complaints' | 'unsubscribes' | 'whitelists'

/** A row of which inserts may leave out the named columns. */
type WithDefaults<Row, Names extends keyof Row> = {
  [Name in keyof Row]: Name extends Names ? Generated<Row[Name]> : Row[Name]
}

export interface AccountChangeRow {
  account_id: string; changed_at: number; due_at: number; attempts: number
}
export interface AccountDayRow {
  name: string; day_at: number; used: number
}
export interface AccountRateLimitRow {
  account_id: string; name: string; count: number
}
export interface AccountSettingsRow {
  account_id: string; inactive_session_seconds: number | null; absolute_session_seconds: number | null
  logout_redirect_url: string | null; webhooks_redact_pii: Flag; ai_insights: Flag
}
export interface AccountTagRow {
  account_id: string; tag_key: string; tag: string; description: string; first_seen: number; last_seen: number
}
export interface AccountWebhookRow {
  id: string; account_id: string; url: string; description: string; event_types_json: string
  created_at: number; credentials_sealed: Uint8Array | null
}
export interface AccountRow {
  id: string; parent_id: string | null; name: string; signing_key_sealed: Uint8Array; created_at: number
  status: string; disabled_json: string | null; features_json: string; updated_at: number
}
export interface AcmeAccountRow {
  directory: string; key_sealed: Uint8Array; url: string | null; contact: string
}
export interface AcmeChallengeRow {
  token: string; host: string; answer: string; ends_at: number
}
export interface AlertHitRow {
  id: string; account_id: string; source: string; name: string; metric: string; comparator: string
  limit_text: string; dimension: string; dimension_value: string; latest_value: string; advice: string
  triggered: Flag; misses: number; since_at: number; created_at: number; updated_at: number
  expires_at: number | null
}
export interface AlertNoticeRow {
  id: string; account_id: string; hit_id: string; channel: string; setting_id: string | null
  recipient: string; content_json: string; due_at: number; created_at: number
}
export interface AlertSettingRow {
  id: string; account_id: string; event_type: string; channel: string; settings_sealed: Uint8Array
  created_at: number
}
export interface AlertSlackRow {
  account_id: string; workspace_sealed: Uint8Array; updated_at: number
}
export interface AlertRow {
  id: string; account_id: string; name: string; description: string; account_group: string | null
  metric: string; comparator: string; limit_text: string; dimension: string; channels_json: string
  filters_json: string; period: string; created_at: number; updated_at: number; last_checked_at: number | null
}
export interface ApiKeyRow {
  id: string; account_id: string; kind: string; role: string; secret_hmac: string; secret_end: string
  description: string; domain_name: string | null; requestor: string | null; user_name: string | null
  expires_at: number | null; disabled_reason: string | null; created_at: number; updated_at: number
  user_id: string | null
}
export interface ArchiveOutboxRow {
  id: string; account_id: string; delivery_id: string; url: string; head: string; state: string
  attempts: number; due_at: number; created_at: number; domain_name: string
}
export interface AuditRow {
  id: string; account_id: string; key_id: string; remote_address: string; action: string; subject: string
  detail_json: string; created_at: number; request_id: string | null; parent_account_id: string | null
  status: number | null; user_id: string | null
}
export interface BlocklistCheckRow {
  list: string; subject: string; checked_at: number | null; next_at: number; listed_since: number | null
  listed_at: number | null; code: string; misses: number
}
export interface BlocklistEventRow {
  id: string; account_id: string; kind: 'ip' | 'domain'; subject: string; list: string
  event: 'listed' | 'delisted'; created_at: number
}
export interface BlocklistStateRow {
  list: string; kind: 'ipv4' | 'ipv6' | 'domain'; fault: string; checked_at: number
}
export interface BlocklistUserRow {
  list: string; site: string; provider: string; seen_at: number
}
export interface CallerAddressRow {
  account_id: string; address: string; description: string; created_at: number
}
export interface CertificateRow {
  host: string; account_id: string; domain_id: string; chain: string | null; key_sealed: Uint8Array | null
  expires_at: number | null; issued_at: number | null; requested: Flag; error: string | null
  due_at: number | null; attempts: number; orders_json: string; claim: string | null
  claimed_until: number | null; created_at: number
}
export interface ClassifiedFailureRow {
  id: number; account_id: string; domain_name: string; recipient_domain: string; provider: string
  sending_ip: string | null; tags_json: string | null; rule_id: string; entity: string; category: string
  severity: 'PERMANENT' | 'TEMPORARY'; critical: Flag; sample: string; failed_at: number
}
export interface ConfirmationMailRow {
  address_key: string; list_id: string; mailed_at: number
}
export interface ConsentTrailRow {
  account_id: string; address_key: string; id: string; list_id: string | null; list_address: string | null
  domain_name: string; topic: string | null; action: ConsentAction; source: ConsentSource; ip: string | null
  user_agent: string | null; called_by: string | null; at: number; expires_at: number | null
}
export interface ContentCheckRow {
  account_id: string; hour: number; domain_name: string; checked: number; bad: number
}
export interface ContentDecisionRow {
  digest: string; account_id: string; decision: string; decided_at: number
}
export interface ContentHoldRow {
  message_pk: string; digest: string; account_id: string; domain_name: string; reason: string; held_at: number
  decision: string | null; decided_at: number | null; holds: number
}
export interface CountedBounceRow {
  event_id: string; domain_id: string; address: string; severity: 'hard' | 'soft'; bounced_at: number
}
export interface CountedVisitRow {
  visit: string; counted_at: number
}
export interface CredentialRow {
  login: string; account_id: string; domain_id: string; password_hash: string | null; is_system: Flag
  changed_at: number; created_at: number
}
export interface DeliveryRow {
  id: string; account_id: string; domain_id: string; message_pk: string; recipient: string
  recipient_domain: string; recipient_header: string; variables_json: string | null; state: DeliveryState
  due_at: number; expires_at: number; attempts: number; lease_owner: string | null; lease_token: string | null
  lease_until: number | null; reason: string; last_code: number | null; last_reply: string | null
  created_at: number; updated_at: number; list_json: string | null; paused_due_at: number | null
  source_key: string
}
export interface DeliveryOverrideRow {
  site: string; paused_at: number | null; pause_reason: string; pause_until: number | null
  connections: number | null; rate: string | null; limits_until: number | null
}
export interface DeliveryReportRow {
  delivery_id: string; kind: 'bounce' | 'complaint'; status: string; account_id: string; event_id: string
  created_at: number
}
export interface DisabledQueueRow {
  domain_id: string; queue: string; until: number
}
export interface DkimKeyRow {
  id: string; account_id: string; authority: string; selector: string; algorithm: string
  private_key_sealed: Uint8Array; public_record: string; active: Flag; created_at: number
  next_selector: string | null; check_json: string | null; activates: Flag; managed: Flag
}
export interface DmarcPolicyRow {
  day: string; domain: string; root: string; record: string; network: string
}
export interface DmarcReportRow {
  day: string; domain: string; uri: string; id: string; created_at: number
}
export interface DmarcResultRow {
  day: string; domain: string; row_hash: string; row_json: string; messages: number
}
export interface DnsChangeRow {
  id: string; account_id: string; domain_id: string; provider: string; undoes: string | null
  state: 'writing' | 'done' | 'failed' | 'undone'; changes_json: string; error: string | null
  created_at: number; updated_at: number
}
export interface DnsProviderRow {
  account_id: string; name: string; kind: 'rfc2136' | 'cloudflare' | 'route53' | 'desec' | 'hetzner'
  settings_json: string; secret_sealed: Uint8Array; created_at: number; updated_at: number
}
export interface DomainDeletionRow {
  domain_id: string; name: string; domain_json: string; due_at: number; attempts: number; account_id: string
}
export interface DomainDnsRow {
  domain_id: string; checks_json: string; state_since: number; next_check_at: number
}
export interface DomainIpRow {
  domain_id: string; ip: string; account_id: string
}
export interface DomainReportTotalRow {
  domain_id: string; type: DomainReportRow['type']; day_at: number; name: string; account_id: string
  passed: number; failed: number; quarantined: number; rejected: number
}
export interface DomainReportRow {
  id: string; account_id: string; domain_id: string; type: 'dmarc' | 'tls' | 'complaint'; sender: string
  authenticated: Flag; organization: string; contact: string; report_id: string; begin_at: number
  end_at: number; received_at: number; passed: number; failed: number; row_count: number; rows_json: string
}
export interface DomainWebhookRow {
  account_id: string; domain_name: string; event_type: string; url: string; position: number
  credentials_sealed: Uint8Array | null
}
export interface DomainRow {
  id: string; account_id: string; name: string; type: string; state: string; disabled_json: string | null
  spam_action: string; wildcard: Flag; require_tls: Flag; skip_verification: Flag
  use_automatic_sender_security: Flag; encrypt_incoming_message: Flag; web_prefix: string; web_scheme: string
  message_ttl_seconds: number; archive_to: string | null; mailfrom_host: string; dkim_authority: string
  created_at: number; signing_authority: string | null; dkim_unverified: Flag; verified: Flag
  tracking_valid: Flag; sending_ips_json: string | null; sending_pool_id: string | null
  dynamic_pool_id: string | null; return_path_valid: Flag; cfbl_address: Flag; feedback_id: Flag
  mta_sts: 'off' | 'testing' | 'enforce' | 'none'; mta_sts_max_age: number; send_window: string | null
}
export interface DynamicPoolDomainRow {
  domain_id: string; account_id: string; owner_id: string; name: string; band: string; registered_at: number
  is_pinned: Flag; next_check_at: number; clean_checks: number; processed: number; bounce_ppm: number | null
  complaint_ppm: number | null
}
export interface DynamicPoolHistoryRow {
  id: string; owner_id: string; account_id: string; account_name: string; domain_id: string
  domain_name: string; new_band: string; prev_band: string; reason: string; processed: number | null
  bounce_ppm: number | null; complaint_ppm: number | null; initiated_by: string; at: number
}
export interface DynamicPoolMemberRow {
  ip: string; pool_id: string; added_at: number
}
export interface DynamicPoolTaskRow {
  account_id: string; with_subaccounts: Flag; initiated_by: string; position: string; updated_at: number
}
export interface DynamicPoolRow {
  id: string; account_id: string; band: string
}
export interface EventFollowerRow {
  name: string; tx: number; seq: number
}
export interface EventIndexRow {
  seq: number; account_id: string; domain_name: string; event: string; timestamp_us: number
  message_id: string | null; recipient_hash: number | null; segment: number
}
export interface EventIndexPlaceRow {
  seq: number
}
export interface EventKeyRow {
  seq: number; account_id: string; domain_name: string; event: string; timestamp_us: number
  message_id: string | null; tx: number; recipient_hash: number | null
}
export interface EventSegmentRow {
  segment: number; low_us: number; high_us: number
}
export interface EventSinkRow {
  name: string; kind: 'http' | 's3' | 'syslog' | 'stdout' | 'nats' | 'amqp' | 'kafka'; settings_json: string
  secret_sealed: Uint8Array | null; sent: number; sent_at: number | null; skipped: number
  skipped_from: number | null; skipped_to: number | null; failing_since: number | null
  last_error: string | null; created_at: number; updated_at: number
}
export interface EventTagKeyRow {
  domain_name: string; tag: string; event: string; timestamp_us: number; seq: number
}
export interface EventTagRow {
  domain_name: string; tag: string; event: string; timestamp_us: number; seq: number
}
export interface EventRow {
  seq: number; id: string; account_id: string; domain_name: string; event: string; timestamp_us: number
  recipient: string | null; message_id: string | null; payload_json: string; tx: number
  tags_json: string | null; recipient_hash: number | null
}
export interface ExportRow {
  id: string; account_id: string; url: string; body: string; area: string; role: string; status: string
  next_page: string; records: number; size_bytes: number; blobs_json: string; fault: string; tries: number
  lease_token: string | null; lease_owner: string | null; lease_until: number; stepped_at: number
  created_at: number; key_id: string; user_id: string
}
export interface FeatureUsageRow {
  account_id: string; day_at: number; metric: string; count: number
}
export interface FigurePackRow {
  scope: number; unit: number; start_at: number; part: number; entries: number; packed: Uint8Array
}
export interface FigurePlaceRow {
  unit: number; written: number; until: number
}
export interface FigureScopeRow {
  no: number; account_id: string; domain_name: string; pairs_since: number
}
export interface FigureRow {
  scope: number; split: number; unit: number; start_at: number; tag: string; recipient_domain: string
  provider: string; ip: string; pool: string; country: string; device: string; bot: string
  accepted_incoming: number | null; accepted_outgoing: number | null; delivered_smtp: number | null
  delivered_http: number | null; delivered_optimized: number | null; delivered_first: number | null
  delivered_later: number | null; failed_temporary: number | null; failed_temporary_espblock: number | null
  rate_limited: number | null; failed_permanent: number | null; failed_suppress_bounce: number | null
  failed_suppress_unsubscribe: number | null; failed_suppress_complaint: number | null
  failed_bounce: number | null; failed_soft: number | null; failed_delayed_bounce: number | null
  failed_old: number | null; failed_permanent_espblock: number | null; failed_webhook: number | null
  failed_optimized: number | null; stored: number | null; opened: number | null; opened_unique: number | null
  clicked: number | null; clicked_unique: number | null; unsubscribed: number | null
  complained: number | null; accepted_listed: number | null; archived: number | null
  test_delivered: number | null
}
export interface FormMailRow {
  subject: string; day: number; mails: number
}
export interface ForwardedCopyRow {
  mail: string; address: string; expires_at: number
}
export interface GmailDayRow {
  domain_id: string; day: number; spam_rate: number | null; spf_rate: number | null; dkim_rate: number | null
  dmarc_rate: number | null; tls_rate: number | null; error_rate: number | null; errors_json: string
  loops_json: string
}
export interface GmailDomainRow {
  domain_id: string; compliance_json: string; read_through: number | null; read_at: number
  failure: string | null
}
export interface GreylistRow {
  key: string; since_at: number; expires_at: number
}
export interface IdempotencyKeyRow {
  account_id: string; key: string; digest: string; status: number | null; body_sealed: Uint8Array | null
  expires_at: number
}
export interface InboxRow {
  id: string; account_id: string; domain_name: string; delivery_id: string | null; storage_key: string | null
  received_at: number; envelope_from: string; envelope_to_json: string; from_header: string; to_header: string
  subject: string; message_id: string; tags_json: string; size_bytes: number; authentication_json: string
  raw: Uint8Array | null; raw_blob: string | null; restricted: Flag
}
export interface InboxFaultRow {
  id: number; faults_json: string; updated_at: number
}
export interface InboxWordRow {
  inbox_id: string; words: string
}
export interface InstallationRow {
  name: string; value: Uint8Array
}
export interface IpBlockRow {
  ip: string; site: string; provider: string; reply: string; since_at: number; until_at: number
  pause_ms: number; times: number; cleared_at: number | null; listed_by: string | null
}
export interface IpChangeRow {
  id: number; version: number
}
export interface IpNameRow {
  ip: string; good_at: number
}
export interface IpPoolDelegationRow {
  subaccount_id: string; pool_id: string; created_at: number
}
export interface IpPoolMemberRow {
  ip: string; pool_id: string; linked_at: number
}
export interface IpPoolRow {
  id: string; account_id: string; name: string; description: string; created_at: number
}
export interface IpTaskRow {
  id: string; account_id: string; kind: string; params_json: string; position: string; created_at: number
  updated_at: number
}
export interface IpWarmupProviderRow {
  ip: string; provider: string; stage: number; stage_started_at: number; window_used: number
  window_diverted: number; wanted_before: number; sent_before: number; hour_started_at: number
  hour_used: number; hour_diverted: number
}
export interface IpWarmupRow {
  ip: string; account_id: string; stage: number; plan_started_at: number; stage_started_at: number
  updated_at: number; window_started_at: number; window_used: number; stage_used: number; start_volume: number
  hour_started_at: number; hour_used: number; hour_diverted: number; history_json: string
  paused_at: number | null
}
export interface IpRow {
  ip: string; is_dedicated: Flag; account_id: string | null; is_enabled: Flag; warms_when_assigned: Flag
  rdns: string; is_bound: Flag | null; is_confirmed: Flag | null; fault: string; checked_at: number | null
  seen_at: number; created_at: number
}
export interface JobRow {
  name: string; lease_owner: string; lease_until: number; next_run_at: number; last_started_at: number
  last_ended_at: number | null; last_error: string | null
}
export interface KeyRequestRow {
  id: string; account_id: string; key_id: string; method: string; path: string; operation: string
  form: 'query' | 'form' | 'multipart' | 'json'; given_json: string; status: number; message: string | null
  duration_ms: number; remote_address: string; request_id: string; acted_for: string | null
  created_at: number
}
export interface ListExpansionRow {
  id: string; account_id: string; domain_id: string; message_pk: string; list_id: string; list_address: string
  list_header_id: string; headers_json: string; exclude_json: string; position: string; copies: number
  state: 'running' | 'done'; lease_owner: string | null; lease_until: number; created_at: number
  updated_at: number; post_key: string | null
}
export interface ListMemberRow {
  list_id: string; address_key: string; address: string; name: string; vars_json: string; subscribed: Flag
  by_link: Flag; pending_id: string | null; pending_until: number | null; pending_mail_at: number | null
  pending_source: ConsentSource | null; is_rejoining: Flag
}
export interface ListUploadRow {
  id: string; account_id: string; list_id: string; format: 'json' | 'csv'; is_upsert: Flag; subscribed: Flag
  entries_json: string; done: number; upserted_count: number; failed_count: number; state: 'running' | 'done'
  lease_owner: string | null; lease_until: number; created_at: number; updated_at: number; is_confirmed: Flag
  called_by: string | null
}
export interface ListRow {
  id: string; account_id: string; domain_name: string; address: string; address_key: string; name: string
  description: string; access_level: string; reply_preference: string; header_id: string; header_key: string
  members_count: number; version: number; created_at: number; title: string; language: string; is_opt_in: Flag
  is_form_open: Flag; form_redirect: string | null; confirm_days: number; confirm_template: string | null
  mails_day: number; mails_count: number; page_template: string | null
}
export interface LoginLinkRow {
  digest: string; account_id: string; key_id: string | null; created_at: number; expires_at: number
  user_id: string | null; user_epoch: number | null
}
export interface LoginPlaceRow {
  login: string; network: string; last_at: number
}
export interface MessageLimitRow {
  account_id: string; monthly_limit: number | null; month_at: number; used: number; is_stopped: Flag
  reached_percent: number; notified_percent: number; recount_at: number | null
}
export interface MessageRow {
  id: string; account_id: string; domain_id: string; domain_name: string; message_id: string
  summary_json: string; options_json: string; content_kind: string; content: Uint8Array | null
  content_blob: string | null; blobs_json: string; created_at: number
}
export interface MetChallengeRow {
  digest: string; expires_at: number
}
export interface MonitoredDomainRow {
  account_id: string; name: string; is_removed: Flag; txt_record: string; verified_at: number | null
  next_look_at: number | null; looked_until: number | null; created_at: number
}
export interface MonitoredIpRow {
  account_id: string; ip: string; ip_pool: string; description: string; is_removed: Flag; created_at: number
}
export interface MtaStsPolicyRow {
  domain: string; policy_id: string; policy_text: string; expires_at: number
}
export interface NodeRow {
  id: string; host: string; roles_json: string; addresses_json: string; version: string; state: string
  started_at: number; last_seen_at: number
}
export interface OidcSignInRow {
  digest: string; expires_at: number
}
export interface OutgoingLeaseRow {
  lane: string; owner: string; token: string; until_at: number
}
export interface OutgoingPostRow {
  id: string; kind: string; account_id: string; lane: string; url: string; subject: string; attempts: number
  due_at: number; created_at: number
}
export interface PasskeyRow {
  id: string; user_id: string; credential_id: string; public_key: Uint8Array; counter: number
  transports: string; name: string; created_at: number; last_used_at: number | null
}
export interface PastDeliveryRow {
  id: string; account_id: string; domain_id: string; message_pk: string; recipient: string
  recipient_domain: string; recipient_header: string; variables_json: string | null; list_json: string | null
  state: DeliveryState; provider: string | null; sending_ip: string | null; delivered_at: number | null
  headers_json: string | null; removed_at: number; attempts: number
}
export interface PastMessageRow {
  id: string; account_id: string; domain_id: string; domain_name: string; message_id: string
  summary_json: string; removed_at: number
}
export interface PersonTaskRow {
  id: string; account_id: string; everywhere: Flag; kind: 'export' | 'erase'; dry_run: Flag
  state: 'queued' | 'running' | 'done' | 'failed'; address_sealed: Uint8Array | null; address_hash: string
  position_json: string; counts_json: string; blobs_json: string; report_json: string | null; fault: string
  tries: number; lease_token: string | null; lease_owner: string | null; lease_until: number
  stepped_at: number; created_at: number; finished_at: number | null
}
export interface PlacementSeedRow {
  test_id: string; address: string; provider: string; state: 'pending' | 'delivered' | 'missing'
  destination: string; category: string; seconds: number | null; facts_json: string; problem: string
}
export interface PlacementTestRow {
  id: string; account_id: string; list_id: string; sender: string; subject: string; message_id: string | null
  status: 'processing' | 'completed'; created_at: number; updated_at: number; share_id: string; shared: Flag
  share_until: number; spam_json: string | null
}
export interface PublicKeyRow {
  account_id: string; id: string; secret_hmac: string; created_at: number
}
export interface RecoveryCodeRow {
  user_id: string; digest: string
}
export interface RelayDayRow {
  name: string; day_at: number; used: number
}
export interface RelayRuleRow {
  id: number; rules_json: string; updated_at: number
}
export interface RelayTokenRow {
  login: string; relay: string; revision: number; access_sealed: Uint8Array | null; obtained_at: number | null
  expires_at: number | null; refresh_sealed: Uint8Array | null; generation: number; failure: string | null
  failed_at: number | null; retry_at: number | null; taken_by: string | null; taken_until: number
  updated_at: number
}
export interface RelayRow {
  name: string; host: string; port: number; tls: 'starttls' | 'implicit' | 'none'; allow_unverified: Flag
  mechanism: 'auto' | 'plain' | 'login' | 'cram-md5' | 'xoauth2' | 'oauthbearer' | null
  username: string | null; password_sealed: Uint8Array | null; oauth_json: string | null
  client_secret_sealed: Uint8Array | null; refresh_token_sealed: Uint8Array | null; connections: number | null
  messages_per_connection: number | null; messages_per_second: number | null; messages_per_day: number | null
  max_message_size: number | null; alters_return_path: Flag; alters_message_id: Flag
  offered_json: string | null; revision: number; created_at: number; updated_at: number
  return_path: string | null
}
export interface RemovedFileRow {
  name: string; removed_at: number
}
export interface RemovedUsageRow {
  account_id: string; domain_id: string; month_at: number; accepted: number
}
export interface ReputationSourceRow {
  name: string; settings_json: string; secrets_sealed: Uint8Array; revision: number; created_at: number
  updated_at: number; read_through: number | null; read_at: number | null; next_at: number; failures: number
  failing_since: number | null; failed_at: number | null; failure: string | null
}
export interface RetentionSettingRow {
  account_id: string; domain_id: string; kind: string; days: number
}
export interface RoutePostRow {
  id: string; account_id: string; domain_id: string; message_pk: string; recipient: string; kind: string
  url_sealed: Uint8Array; created_at: number
}
export interface RouteRow {
  id: string; account_id: string; priority: number; description: string; expression: string
  actions_sealed: Uint8Array; created_at: number
}
export interface SandboxMailRow {
  account_id: string; address: string; sent_at: number
}
export interface SandboxRecipientRow {
  account_id: string; address: string; is_activated: Flag; token_digest: string | null
  token_expires_at: number; created_at: number
}
export interface SeedListRow {
  id: string; account_id: string; name: string; target_email: string; sending_domains_json: string
  seed_filter: string; provider_filter: string; remote_id: string; is_auto: Flag; created_at: number
  updated_at: number; last_result_at: number | null
}
export interface SenderSecurityRow {
  domain_id: string; account_id: string; domain_name: string; sid: string; state: string
  active_selector: string | null; rotation_enabled: Flag; rotation_interval: string; rotated_at: number
  grace_until: number | null; rotation_json: string | null
}
export interface SessionRow {
  id: string; digest: string; account_id: string; key_id: string | null; remote_address: string
  user_agent: string; created_at: number; last_used_at: number; expires_at: number; user_id: string | null
  user_epoch: number | null; proved_at: number | null
}
export interface SharedFigureRow {
  id: string; account_id: string; digest: string; title: string; query_json: string; key_id: string
  user_id: string | null; created_at: number; expires_at: number
}
export interface SharedIpExclusionRow {
  account_id: string
}
export interface SizeSampleRow {
  node: string; at: number; kind: string; bytes: number; row_count: number
}
export interface SndsBlockRow {
  first_ip: string; last_ip: string; detail: string
}
export interface SndsDayRow {
  ip: string; day: number; recipients: number; filter_result: string; complaint_rate: string
  trap_hits: number; trap_period: string
}
export interface SnsTopicRow {
  arn: string; token: string; created_at: number; confirmed_at: number | null; subscription_at: number
}
export interface SpamTrapRow {
  address: string; note: string; created_at: number
}
export interface StandingCountRow {
  account_id: string; domain_name: string; hour_at: number; sent: number; bounced: number
  unknown_users: number; complained: number; trapped: number; first_at: number
}
export interface StandingPolicyRow {
  account_id: string; policy: string; limits_json: string | null; new_account_daily: number
  updated_at: number
}
export interface StandingRow {
  account_id: string; domain_name: string; state: string; code: string; reason: string; figures_json: string
  per_minute: number | null; since_at: number; until_at: number | null; told_json: string; is_told: Flag
  is_settled: Flag
}
export interface SuppressionImportRow {
  id: string; account_id: string; domain_id: string; kind: SuppressionKind; blob: string; rows_done: number
  rows_bad: number; attempts: number; lease_token: string | null; lease_owner: string | null
  lease_until: number; created_at: number
}
export interface SuppressionPolicyRow {
  domain_id: string; hard_bounces_to_suppress: number; soft_bounces_to_suppress: number; window_days: number
  lifetime_days: number
}
export interface SuppressionRow {
  domain_id: string; kind: SuppressionKind; address: string; account_id: string; code: string; detail: string
  event_id: string | null; expires_at: number | null; created_at: number
}
export interface TagRow {
  account_id: string; domain_id: string; tag_key: string; tag: string; first_seen: number; description: string
  last_seen: number
}
export interface TemplateVersionRow {
  id: string; template_id: string; tag: string; content: string; mjml: string; headers_json: string
  comment: string; active: Flag; created_at: number; sample_json: string
}
export interface TemplateRow {
  id: string; account_id: string; scope: string; domain_id: string | null; name: string; description: string
  created_by: string; created_at: number
}
export interface TlsReportRow {
  day: string; domain: string; uri: string; id: string; content: Uint8Array | null; created_at: number
}
export interface TlsResultRow {
  day: string; recipient_domain: string; policy_domain: string; policy_type: string; mx_host: string
  result_type: string; sending_ip: string; sessions: number
}
export interface TrackingLinkRow {
  id: string; account_id: string; url: string; created_at: number; used_at: number
}
export interface TrackingSettingsRow {
  domain_id: string; account_id: string; opens: Flag; opens_at_top: Flag; clicks: string; unsubscribe: Flag
  html_footer: string | null; text_footer: string | null; unsubscribe_on_bulk: Flag
  preferences_json: string | null
}
export interface TranscriptRow {
  delivery_id: string; attempt: number; account_id: string; started_at: number; mx_host: string
  lines_json: string
}
export interface UnsubscribeTagRow {
  domain_id: string; address: string; tag_key: string; tag: string; undo_json: string | null
}
export interface UsageHourRow {
  account_id: string; metric: string; hour_at: number; domain_name: string; count: number
}
export interface UsageLimitRow {
  id: string; account_id: string; name: string; description: string; account_group: string | null
  metric: string; comparator: string; limit_text: string; dimension: string; channels_json: string
  filters_json: string; period: string; created_at: number; updated_at: number; last_checked_at: number | null
}
export interface UserIdentityRow {
  issuer: string; subject: string; user_id: string; linked_at: number
}
export interface UserPlaceRow {
  login: string; network: string; last_at: number
}
export interface UserTokenRow {
  digest: string; user_id: string; purpose: string; created_at: number; expires_at: number
}
export interface UserRow {
  id: string; account_id: string; email: string; name: string; role: string; is_master: Flag
  is_disabled: Flag; password_hash: string | null; password_updated_at: number | null; session_epoch: number
  totp_sealed: Uint8Array | null; totp_pending_sealed: Uint8Array | null; totp_created_at: number | null
  totp_step: number; totp_failures: number; totp_failures_since: number; opened_ip: string | null
  last_sign_in_at: number | null; created_at: number; auth_method: string; passkeys: number
  provider_sign_in_at: number | null; language: string | null; time_zone: string | null
}
export interface ValidationAddressRow {
  job_id: string; no: number; hash: string; address: string; result_json: string | null
}
export interface ValidationJobRow {
  id: string; account_id: string; kind: string; list_id: string; mailing_list_id: string | null
  blob: string | null; status: string; dropping: Flag; quantity: number; read_up_to: string; addresses: number
  done: number; done_up_to: number; tries: number; counts_json: string; lease_token: string | null
  lease_owner: string | null; lease_until: number; stepped_at: number; created_at: number
  ended_at: number | null
}
export interface ValidationProbeRow {
  key: string; result: string; until_at: number
}
export interface WebhookAttemptRow {
  id: string; account_id: string; domain_name: string; event_id: string; event_type: string; url: string
  attempt: number; status: 'ok' | 'failing' | 'given-up'; status_code: number | null; error: string | null
  response: string; duration_ms: number; next_attempt_at: number | null; created_at: number
  recipient: string | null; subject: string | null
}
export interface WebhookChangeRow {
  id: number; version: number
}

export interface Schema {
  account_changes: AccountChangeRow; account_days: AccountDayRow; account_rate_limits: AccountRateLimitRow
  account_settings: WithDefaults<AccountSettingsRow, 'webhooks_redact_pii' | 'ai_insights'>
  account_tags: AccountTagRow; account_webhooks: AccountWebhookRow
  accounts: WithDefaults<AccountRow, 'status' | 'features_json' | 'updated_at'>; acme_accounts: AcmeAccountRow
  acme_challenges: AcmeChallengeRow; alert_hits: AlertHitRow; alert_notices: AlertNoticeRow
  alert_settings: AlertSettingRow; alert_slack: AlertSlackRow; alerts: AlertRow; api_keys: ApiKeyRow
  archive_outbox: ArchiveOutboxRow; audit: AuditRow; blocklist_checks: BlocklistCheckRow
  blocklist_events: BlocklistEventRow; blocklist_states: BlocklistStateRow; blocklist_users: BlocklistUserRow
  caller_addresses: CallerAddressRow; certificates: CertificateRow
  classified_failures: WithDefaults<ClassifiedFailureRow, 'id'>; confirmation_mails: ConfirmationMailRow
  consent_trail: ConsentTrailRow; content_checks: ContentCheckRow; content_decisions: ContentDecisionRow
  content_holds: ContentHoldRow; counted_bounces: CountedBounceRow; counted_visits: CountedVisitRow
  credentials: CredentialRow; deliveries: DeliveryRow; delivery_overrides: DeliveryOverrideRow
  delivery_reports: DeliveryReportRow; disabled_queues: DisabledQueueRow; dkim_keys: DkimKeyRow
  dmarc_policies: DmarcPolicyRow; dmarc_reports: DmarcReportRow; dmarc_results: DmarcResultRow
  dns_changes: DnsChangeRow; dns_providers: DnsProviderRow; domain_deletions: DomainDeletionRow
  domain_dns: DomainDnsRow; domain_ips: DomainIpRow; domain_report_totals: DomainReportTotalRow
  domain_reports: DomainReportRow; domain_webhooks: DomainWebhookRow; domains: DomainRow
  dynamic_pool_domains: DynamicPoolDomainRow; dynamic_pool_history: DynamicPoolHistoryRow
  dynamic_pool_members: DynamicPoolMemberRow; dynamic_pool_tasks: DynamicPoolTaskRow
  dynamic_pools: DynamicPoolRow; event_followers: EventFollowerRow
  event_index: WithDefaults<EventIndexRow, 'seq' | 'segment'>; event_index_place: EventIndexPlaceRow
  event_keys: WithDefaults<EventKeyRow, 'seq'>; event_segments: WithDefaults<EventSegmentRow, 'segment'>
  event_sinks: EventSinkRow; event_tag_keys: EventTagKeyRow; event_tags: EventTagRow
  events: WithDefaults<EventRow, 'seq' | 'tx'>; exports: ExportRow; feature_usage: FeatureUsageRow
  figure_packs: FigurePackRow; figure_places: FigurePlaceRow
  figure_scopes: WithDefaults<FigureScopeRow, 'no' | 'pairs_since'>; figures: FigureRow
  form_mails: FormMailRow; forwarded_copies: ForwardedCopyRow; gmail_days: GmailDayRow
  gmail_domains: GmailDomainRow; greylist: GreylistRow; idempotency_keys: IdempotencyKeyRow; inbox: InboxRow
  inbox_faults: InboxFaultRow; inbox_words: InboxWordRow; installation: InstallationRow; ip_blocks: IpBlockRow
  ip_changes: IpChangeRow; ip_names: IpNameRow; ip_pool_delegations: IpPoolDelegationRow
  ip_pool_members: IpPoolMemberRow; ip_pools: IpPoolRow; ip_tasks: IpTaskRow
  ip_warmup_providers: IpWarmupProviderRow; ip_warmups: IpWarmupRow; ips: IpRow; jobs: JobRow
  key_requests: KeyRequestRow; list_expansions: ListExpansionRow; list_members: ListMemberRow
  list_uploads: ListUploadRow; lists: ListRow; login_links: LoginLinkRow; login_places: LoginPlaceRow
  message_limits: MessageLimitRow; messages: MessageRow; met_challenges: MetChallengeRow
  monitored_domains: MonitoredDomainRow; monitored_ips: MonitoredIpRow; mta_sts_policies: MtaStsPolicyRow
  nodes: NodeRow; oidc_sign_ins: OidcSignInRow; outgoing_leases: OutgoingLeaseRow
  outgoing_posts: OutgoingPostRow; passkeys: PasskeyRow; past_deliveries: PastDeliveryRow
  past_messages: PastMessageRow; person_tasks: PersonTaskRow; placement_seeds: PlacementSeedRow
  placement_tests: PlacementTestRow; public_keys: PublicKeyRow; recovery_codes: RecoveryCodeRow
  relay_days: RelayDayRow; relay_rules: RelayRuleRow; relay_tokens: RelayTokenRow; relays: RelayRow
  removed_files: RemovedFileRow; removed_usage: RemovedUsageRow; reputation_sources: ReputationSourceRow
  retention_settings: RetentionSettingRow; route_posts: RoutePostRow; routes: RouteRow
  sandbox_mails: SandboxMailRow; sandbox_recipients: SandboxRecipientRow; seed_lists: SeedListRow
  sender_security: SenderSecurityRow; sessions: SessionRow; shared_figures: SharedFigureRow
  shared_ip_exclusions: SharedIpExclusionRow; size_samples: SizeSampleRow; snds_blocks: SndsBlockRow
  snds_days: SndsDayRow; sns_topics: SnsTopicRow; spam_traps: SpamTrapRow; standing_counts: StandingCountRow
  standing_policies: StandingPolicyRow; standings: StandingRow; suppression_imports: SuppressionImportRow
  suppression_policies: SuppressionPolicyRow; suppressions: SuppressionRow; tags: TagRow
  template_versions: TemplateVersionRow; templates: TemplateRow; tls_reports: TlsReportRow
  tls_results: TlsResultRow; tracking_links: TrackingLinkRow; tracking_settings: TrackingSettingsRow
  transcripts: TranscriptRow; unsubscribe_tags: UnsubscribeTagRow; usage_hours: UsageHourRow
  usage_limits: UsageLimitRow; user_identities: UserIdentityRow; user_places: UserPlaceRow
  user_tokens: UserTokenRow; users: UserRow; validation_addresses: ValidationAddressRow
  validation_jobs: ValidationJobRow; validation_probes: ValidationProbeRow
  webhook_attempts: WebhookAttemptRow; webhook_changes: WebhookChangeRow
}
