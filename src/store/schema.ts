/**
 * The tables as Kysely sees them; their meaning stands beside their columns in migrations/.
 * Flags are 0 or 1, times Unix milliseconds, `*_json` JSON text, in both databases alike.
 */
import type { Generated } from 'kysely'

export type Flag = 0 | 1

export interface AccountRow {
  id: string
  parent_id: string | null
  name: string
  signing_key_sealed: Uint8Array
  created_at: number
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
  created_at: number
  updated_at: number
}

export interface LoginLinkRow {
  digest: string
  account_id: string
  expires_at: number
}

export interface SessionRow {
  digest: string
  account_id: string
  role: string
  created_at: number
  expires_at: number
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
  dkim_authority: string
  created_at: number
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
  created_at: number
  updated_at: number
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
  url: string
  position: number
}

export interface AccountWebhookRow {
  id: string
  account_id: string
  url: string
  description: string
  event_types_json: string
  created_at: number
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

export interface Schema {
  accounts: AccountRow
  api_keys: ApiKeyRow
  login_links: LoginLinkRow
  sessions: SessionRow
  domains: DomainRow
  dkim_keys: DkimKeyRow
  messages: MessageRow
  deliveries: DeliveryRow
  events: EventRow
  inbox: InboxRow
  outgoing_posts: OutgoingPostRow
  outgoing_leases: OutgoingLeaseRow
  domain_webhooks: DomainWebhookRow
  account_webhooks: AccountWebhookRow
  webhook_changes: { id: number; version: number }
  webhook_attempts: WebhookAttemptRow
}
