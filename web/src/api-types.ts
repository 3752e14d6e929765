/** Made by `node scripts/api-types.ts` from the API description: what the service returns. */

/** Envelope of the message */
export interface AcceptedEnvelope {
  /** Address of the sender */ sender: string
  /** Address of the recipient, or the URL of a POST */ targets: string
  /** How it is transported */ transport: 'smtp' | 'http'
}

/** A message to a recipient was accepted */
export interface AcceptedEvent {
  /** Type of the event */ event: 'accepted'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  message: AcceptedEventMessage
  storage: EventStorage
  envelope: AcceptedEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  /** How it was given */ method: 'http' | 'smtp'
  flags: AcceptedFlags
  /** Address of the sender; if known */ 'originating-ip'?: string
  /** Id of the API key or SMTP credential; if there was one */ 'api-key-id'?: string
  /** When delivery ends; present if the sender gave it; Unix seconds */ 'deliver-by'?: number
  /** Routes that matched; present for received mail */ routes?: EventRoute[]
  /** Parameters, and header fields under the prefix, that were not understood; present if there were any */ ignored?: string[]
}

/** The message that was accepted */
export interface AcceptedEventMessage {
  headers: EventMessageHeaders
  /** Attachments */ attachments: EventAttachment[]
  /** Size of the message; bytes */ size: number
  /** Addresses that the sender gave */ recipients: string[]
  /** When delivery begins; present if it was scheduled; Unix seconds */ 'scheduled-for'?: number
}

/** Kind of the message */
export interface AcceptedFlags {
  /** An account sent it; false: received mail */ 'is-authenticated': boolean
  /** Received mail; absent: sent by the account */ 'is-routed'?: boolean
  /** Sent in test mode: nothing is delivered */ 'is-test-mode': boolean
}

/** Stored and queued */
export interface AcceptedMessage {
  /** Message-Id in angle brackets */ id: string
  /** What was done */ message: 'Queued. Thank you.'
}

/** A message to a recipient was accepted */
export interface AcceptedWebhook {
  /** Type of the event */ event: 'accepted'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  message: AcceptedEventMessage
  storage: EventStorage
  envelope: AcceptedEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  /** How it was given */ method: 'http' | 'smtp'
  flags: AcceptedFlags
  /** Address of the sender; if known */ 'originating-ip'?: string
  /** Id of the API key or SMTP credential; if there was one */ 'api-key-id'?: string
  /** When delivery ends; present if the sender gave it; Unix seconds */ 'deliver-by'?: number
  /** Routes that matched; present for received mail */ routes?: EventRoute[]
  /** Parameters, and header fields under the prefix, that were not understood; present if there were any */ ignored?: string[]
  /** The domain of the message */ domain: { name: string }
}

/** A rate limit of an account */
export interface AccountRateLimit {
  /** What it limits */ name: 'sending' | 'sending-recipients' | 'sending-bytes' | 'domains' | 'analytics' | 'lists'
  /** How much fits into a window; 0: no limit */ count: number
  /** Length of the window; seconds */ window_seconds: number
  /** The general limit applies */ is_default: boolean
}

/** How an account stands */
export interface AccountStanding {
  /** The account */ account_id: string
  /** Of the account as a whole */ state: 'good' | 'warned' | 'slowed' | 'held'
  policy: AccountStandingPolicy
  figures: SendingFigures
  /** The account, and domains of it, that are stopped */ stopped: Standing[]
  /** What it may send today (UTC); absent: no limit */ daily_budget?: { limit: number; used: number }
}

/** The policy of an account */
export interface AccountStandingPolicy {
  /** Which figures stop a sender */ policy: 'off' | 'standard' | 'strict' | 'custom'
  limits?: StandingLimits
  /** It was set for this account */ is_own: boolean
}

/** A tag of an account, over all its domains */
export interface AccountTag {
  /** Id of the account */ account_id: string
  /** Id of its parent; empty for an account that is no subaccount */ parent_account_id: string
  /** Name of the account */ account_name: string
  /** The tag as it was first spelled */ tag: string
  /** Its description; may be empty */ description: string
  /** When a message first carried it; absent: none has */ first_seen?: string
  /** When a message last carried it, at most an hour late; absent: none has */ last_seen?: string
  /** By name of metric */ metrics: Record<string, number | string | null>
}

/** A page of tags */
export interface AccountTagPage {
  /** Tags */ items: AccountTag[]
  /** The page */ pagination: { sort: string; skip: number; limit: number; total?: number }
}

/** A webhook for the events of all domains */
export interface AccountWebhook {
  /** 24 hex digits */ webhook_id: string
  /** Free text */ description: string
  /** URL with its user info */ url: string
  /** Types of events */ event_types: ('accepted' | 'clicked' | 'opened' | 'unsubscribed' | 'delivered' | 'permanent_fail' | 'temporary_fail' | 'complained')[]
  /** When it was made */ created_at: string
}

/** A threshold on a rate of sending */
export interface Alert {
  /** UUID */ id: string
  /** Parent of the subaccount; present for its alerts */ parent_account_id?: string
  /** The subaccount; present for its alerts */ subaccount_id?: string
  /** Free text */ account_group?: string
  /** Unique in the account */ name: string
  /** Free text */ description: string
  /** What is judged */ metric: 'hard_bounce_rate' | 'temporary_fail_rate' | 'delivered_rate' | 'complained_rate'
  /** When it is true the alert triggers */ comparator: '=' | '!=' | '<' | '<=' | '>' | '>='
  /** Decimal from 0 to 1 */ limit: string
  /** Each value of it is judged alone */ dimension: 'domain' | 'ip' | 'ip_pool' | 'recipient_provider' | 'subaccount'
  /** Where notices go */ alert_channels: ('email' | 'slack' | 'webhook')[]
  /** All must be true */ filters: AlertFilter[]
  /** Time that is judged, 1h to 30d */ period: string
  /** When it was made */ created_at: string
  /** When it last changed */ updated_at: string
  /** When it was last checked; absent: never */ last_checked?: string
}

/** Targets of a channel */
export interface AlertChannelSettings {
  /** Mail addresses; of email */ emails?: string[]
  /** Of a webhook, or an incoming webhook of Slack */ url?: string
  /** Of slack: channels of the workspace, where there is no url */ channel_ids?: string[]
}

/** Mail that counts */
export interface AlertFilter {
  /** What is compared */ dimension: 'domain' | 'ip' | 'ip_pool' | 'recipient_provider' | 'subaccount'
  /** How, without letter case */ comparator: '=' | '!=' | 'contains' | 'not contains'
  /** With any of these */ values: string[]
}

/** A value for which an alert has triggered */
export interface AlertHit {
  /** Id of the hit */ id: string
  /** Parent of the subaccount; present for its alerts */ parent_account_id?: string
  /** The subaccount; present for its alerts */ subaccount_id?: string
  /** Name of the alert; own checks of the service begin with sendwright: */ name: string
  /** When it was made */ created_at: string
  /** When it last changed */ updated_at: string
  /** Whether it lasts */ triggered: boolean
  /** When it is removed; 0001-01-01T00:00:00Z while it lasts */ expires_at: string
  /** The figure, as decimal */ latest_value: string
  /** What is judged */ metric: string
  /** How it is compared */ comparator: '=' | '!=' | '<' | '<=' | '>' | '>='
  /** With what, as decimal */ limit: string
  /** What the value is of; absent: there is one value only */ dimension?: string
  /** The value */ dimension_value?: string
  /** Since when it is so; present in hits of own checks */ since?: string
  /** What is wrong and what to do; present in hits of own checks */ advice?: string
}

/** Where the notices of an event type go */
export interface AlertSetting {
  /** UUID */ id: string
  /** What is told */ event_type: 'send_alert' | 'validation_job' | 'validation_preview' | 'ip_listed' | 'ip_delisted' | 'domain_listed' | 'domain_delisted' | 'sender_stopped' | 'sender_released'
  /** Channel */ channel: 'email' | 'slack' | 'webhook'
  settings: AlertChannelSettings
}

/** An address or a domain that is never suppressed by a bounce */
export interface AllowlistEntry {
  /** What the entry allows */ type: 'address' | 'domain'
  /** Mail address or domain name */ value: string
  /** Why it is there */ reason: string
  /** When it was added */ createdAt: string
}

/** A page, by address */
export interface AllowlistPage {
  /** The items of this page */ items: AllowlistEntry[]
  paging: Paging
}

/** An API key without its secret */
export interface ApiKey {
  /** Identifier, also the end of the secret */ id: string
  /** Free text; empty if none was given */ description: string
  /** `domain` sends for one domain, `web` is of a user and short-lived */ kind: 'domain' | 'user' | 'web'
  /** Rights */ role: 'admin' | 'basic' | 'sending' | 'developer' | 'support'
  /** When it was created, UTC: `2026-01-31T12:00:00` */ created_at: string
  /** Last change, UTC */ updated_at: string
  /** When it expires, UTC; absent: never */ expires_at?: string
  /** Whether it is refused */ is_disabled: boolean
  /** Why; only if it is disabled */ disabled_reason?: string
  /** The domain that a key of kind `domain` sends for */ domain_name: string | null
  /** Mail address that was given with it */ requestor: string | null
  /** Free text */ user_name: string | null
  /** The pod that has the key; only where there are pods */ pod?: string
}

/** A domain that is not enrolled */
export interface AssignableDomain {
  /** Id of the account of the domain */ account_id: string
  /** Id of the domain */ id: string
  /** Name of the domain */ name: string
}

/** Envelope of an attempt */
export interface AttemptEnvelope {
  /** Address of the sender */ sender: string
  /** Address of the recipient, or the URL of a POST */ targets: string
  /** How it is transported */ transport: 'smtp' | 'http'
  /** Address that it left from; if known */ 'sending-ip'?: string
  /** Id of the pool that the sending address is in; if it is in one */ 'i-ip-pool-id'?: string
  /** Name of that pool */ 'i-ip-pool-name'?: string
}

/** Kind of the message and of the attempt */
export interface AttemptFlags {
  /** An account sent it; false: received mail */ 'is-authenticated': boolean
  /** Received mail that a route forwards */ 'is-routed': boolean
  /** Always false */ 'is-big': boolean
  /** Always false */ 'is-system-test': boolean
  /** Sent in test mode: nothing is delivered */ 'is-test-mode': boolean
  /** True for a failure that was reported after the delivery */ 'is-delayed-bounce'?: boolean
  /** True for the POST of a notice about a stored message */ 'is-callback'?: boolean
}

/** A change or a sign-in */
export interface AuditEntry {
  /** Identifier, ordered by time */ id: string
  /** Key or session that made the change; empty without one */ key_id: string
  /** User of that key or session */ user_id: string | null
  /** The parent that acted on behalf of the account */ parent_account_id: string | null
  /** From where it was made */ remote_address: string
  /** The request, as in the log */ request_id: string | null
  /** Noun and verb */ action: string
  /** What was changed, such as a domain */ subject: string
  /** HTTP status; null: the process ended before the call finished */ status: number | null
  /** Parameters and results that are no secrets, by names of the action */ detail: Record<string, unknown>
  /** When it was made */ created_at: string
}

/** A page of changes, newest first */
export interface AuditPage {
  /** The items of this page */ items: AuditEntry[]
  paging: Paging
}

/** A backup of the running service */
export interface Backup {
  /** Identifier */ id: string
  /** How far it is */ state: 'running' | 'done' | 'failed'
  /** How far one step is */ progress: { step: 'database' | 'blobs' | 'checksums' | 'integrity' | 'files'; doneBytes: number; totalBytes: number } | null
  /** What it contains; null until it is done */ manifest: { format: number; madeAt: string; version: string; schemaVersion: number; withSecret: boolean; counts: { messages: number; waiting: number; events: number; domains: number; blobs: number }; missingBlobs: string[]; sizeBytes: number } | null
  /** Why it failed, for the operator */ error: string | null
}

/** A domain was listed or delisted */
export interface BlocklistEvent {
  /** When it was found */ timestamp: string
  /** What happened */ event: 'listed' | 'delisted'
  /** Name of the domain */ domain: string
  /** Id of the account */ account_id: string
  /** Zone of the list, without a key */ list: string
  /** Name of the list */ name: string
}

/** An address to which mail could not be delivered */
export interface Bounce {
  /** Mail address in lower case */ address: string
  /** SMTP code */ code: string
  /** Error text of the receiving server */ error: string
  /** When it was added */ created_at: string
}

/** Bounces are permanent failures, delays temporary ones */
export interface BounceFigures {
  /** Number */ critical_bounce_count: number | null
  /** Number */ non_critical_bounce_count: number | null
  /** Number */ critical_delay_count: number | null
  /** Number */ non_critical_delay_count: number | null
  /** Number */ classified_failures_count: number | null
  /** Null: not counted */ delivered_smtp_count: number | null
  /** Whole percent of failures and deliveries; null: not known; percent */ critical_bounce_rate: number | null
  /** Whole percent of failures and deliveries; null: not known; percent */ non_critical_bounce_rate: number | null
  /** Whole percent of failures and deliveries; null: not known; percent */ critical_delay_rate: number | null
  /** Whole percent of failures and deliveries; null: not known; percent */ non_critical_delay_rate: number | null
}

/** Final failures that have the values of the groups in common */
export interface BounceGroup {
  /** With group subaccount.id */ subaccount?: { id: string }
  /** Domain */ domain?: { name: string }
  /** Rule that matched */ 'rule-id'?: string
  /** The category in words */ 'short-explanation'?: string
  /** Who refused: a receiver, a filter or a list */ 'entity-id'?: string
  /** Final failures */ bounced: { total: number }
}

/** Failures that have the values of the dimensions in common */
export interface BounceMetrics {
  /** Null unless account.name is asked */ 'account.id': string | null
  /** Null unless account.name is asked */ 'account.name': string | null
  /** Null unless entity-name is asked */ 'entity-name': string | null
  /** Not yet served */ 'recipient-provider': null
  /** Null unless recipient-domain is asked */ 'recipient-domain': string | null
  /** Null unless domain.name is asked */ 'domain.name': string | null
  /** Not yet served */ 'envelope.i-ip-pool-id': null
  /** Null unless envelope.i-ip-pool-name is asked */ 'envelope.i-ip-pool-name': string | null
  /** Null unless envelope.sending-ip is asked */ 'envelope.sending-ip': string | null
  /** Start of the interval; null unless timestamp is asked */ timestamp: string | null
  /** Tags of the message, joined by comma and blank; null unless tags are asked */ tags: string | null
  /** Null unless tag is asked */ tag: string | null
  /** Null unless criticality is asked */ criticality: string | null
  /** Null unless severity is asked */ severity: string | null
  /** Null unless category is asked */ category: string | null
  /** The rule; null unless group-id is asked */ 'group-id': string | null
  /** Null unless group-id is asked */ 'sample-text': string | null
  /** Null unless group-id is asked */ explanation: string | null
  metrics: BounceFigures
}

/** A page, by address */
export interface BouncePage {
  /** The items of this page */ items: Bounce[]
  paging: Paging
}

/** A rule by which failures are classified */
export interface BounceRule {
  /** Who refused: a receiver, a filter or a list */ entity_id: string
  /** Category of the rule */ class: 'BOUNCE' | 'ESPBLOCK' | 'BLACKLISTED' | 'CONTENT' | 'AUTHENTICATION' | 'RATELIMIT' | 'GREYLISTED' | 'MAILBOXFULL' | 'TECHNICAL' | 'GENERIC'
  /** The newest reply that matched, with addresses masked, or one that would match */ 'sample-text'?: string
  /** What the failure means, and what to do */ explanation: string
  /** The category in words */ 'short-explanation': string
}

/** A session of a browser */
export interface BrowserSession {
  /** Identifier; not its secret */ id: string
  /** The API key that opened it */ key_id: string | null
  /** The user that it belongs to; null as is `key_id`: the operator */ user_id: string | null
  /** From where it was opened */ remote_address: string
  /** Browser that opened it */ user_agent: string
  /** When it was opened */ created_at: string
  /** Last use, to within five minutes */ last_used_at: string
  /** When it ends at the latest */ expires_at: string
  /** The one that makes this call */ current: boolean
}

/** An address or network that may call */
export interface CallerAddress {
  /** IP address or CIDR network in canonical form */ ip_address: string
  /** Free text; empty if none was given */ description: string
}

/** Who calls */
export interface CallerIdentity {
  /** Kind of the key, or a session */ kind: 'user' | 'domain' | 'web' | 'public' | 'session'
  /** Role that decides about the rights */ role: 'admin' | 'developer' | 'support' | 'basic' | 'sending' | 'billing'
  /** By area of the rights table */ rights: { domains: 'RW' | 'R' | 'W' | '-'; 'messages:send': 'RW' | 'R' | 'W' | '-'; 'messages:stored': 'RW' | 'R' | 'W' | '-'; events: 'RW' | 'R' | 'W' | '-'; suppressions: 'RW' | 'R' | 'W' | '-'; allowlist: 'RW' | 'R' | 'W' | '-'; routes: 'RW' | 'R' | 'W' | '-'; templates: 'RW' | 'R' | 'W' | '-'; lists: 'RW' | 'R' | 'W' | '-'; ips: 'RW' | 'R' | 'W' | '-'; subaccounts: 'RW' | 'R' | 'W' | '-'; validation: 'RW' | 'R' | 'W' | '-'; alerts: 'RW' | 'R' | 'W' | '-'; sandbox: 'RW' | 'R' | 'W' | '-'; account: 'RW' | 'R' | 'W' | '-'; 'message-limits': 'RW' | 'R' | 'W' | '-'; keys: 'RW' | 'R' | 'W' | '-'; 'own-user': 'RW' | 'R' | 'W' | '-' }
  /** The user that the session or key belongs to */ user_id: string | null
  /** The same; null: there is none */ user: { name: string; email: string; language: string | null; time_zone: string | null } | null
  /** The account that the call is for */ account: { id: string; name: string; parent_id: string | null; is_first: boolean; strict_parameters: boolean }
  /** The account itself, or the parent that acts on behalf of it */ acting_account_id: string
}

/** A captured message */
export interface CapturedMail {
  /** Id of the captured message */ id: string
  /** When it was captured */ received_at: string
  /** Envelope */ envelope: { from: string; to: string[] }
  /** From as people read it */ from: string
  /** To as people read it */ to: string
  /** Subject */ subject: string
  /** Size; bytes */ size: number
  /** Tags of the message */ tags: string[]
  /** Id of the delivery; null: it is not known */ delivery_id: string | null
}

/** A page of captured mail, newest first */
export interface CapturedMailPage {
  /** The items of this page */ items: CapturedMail[]
  paging: Paging
}

/** A captured message, parsed */
export interface CapturedMessage {
  /** Id of the captured message */ id: string
  /** When it was captured */ received_at: string
  /** Envelope */ envelope: { from: string; to: string[] }
  /** From as people read it */ from: string
  /** To as people read it */ to: string
  /** Subject */ subject: string
  /** Size; bytes */ size: number
  /** Tags of the message */ tags: string[]
  /** Id of the delivery; null: it is not known */ delivery_id: string | null
  /** Sending domain */ domain: string
  /** Message-Id without angle brackets */ message_id: string
  /** Key of the stored message that was sent; null: it is not known */ storage_key: string | null
  /** Header fields in their order */ headers: ([string, string])[]
  /** Text part; null: there is none, or too many parts */ text: string | null
  /** HTML part; null: there is none, or too many parts */ html: string | null
  /** AMP part; null: there is none, or too many parts */ amp: string | null
  /** Attachments */ attachments: ({ n: number; name: string; 'content-type': string; size: number; 'content-id': string | null })[]
  /** How the signatures of the service verify */ authentication: { dkim: ({ result: string; domain: string; selector: string; reason?: string })[] }
}

/** How clicks are tracked */
export interface ClickTracking {
  /** Clicks are tracked, perhaps only those of the html part */ active: boolean
  /** Links of the text part stay as they are */ htmlonly: boolean
}

/** A link in the message was followed */
export interface ClickedEvent {
  /** Type of the event */ event: 'clicked'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': ClientInfo
  geolocation: Geolocation
  /** When the message was delivered; if known; Unix seconds */ 'delivered-at'?: number
  /** Target of the link as written in the message */ url: string
}

/** A link in the message was followed */
export interface ClickedWebhook {
  /** Type of the event */ event: 'clicked'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': WebhookClientInfo
  geolocation: WebhookGeolocation
  /** When the message was delivered; if known; Unix seconds */ 'delivered-at'?: number
  /** Target of the link as written in the message */ url: string
  /** The domain of the message */ domain: { name: string }
}

/** The client by its User-Agent */
export interface ClientInfo {
  /** Name */ 'client-name': string
  /** Operating system */ 'client-os': string
  /** `browser`, `mobile browser`, `email client`, `library`, `robot`, `feed reader`, `other` or `unknown` */ 'client-type': string
  /** `desktop`, `mobile`, `tablet`, `other` or `unknown` */ 'device-type': string
  /** User-Agent as sent */ 'user-agent': string
  /** `apple`, `gmail` or `generic`: not a person; else empty */ bot: string
}

/** The recipient called the message spam */
export interface ComplainedEvent {
  /** Type of the event */ event: 'complained'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'warn'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: EventMessage
  storage: EventStorage
  /** Envelope of the message; if known */ envelope?: { 'sending-ip'?: string }
}

/** The recipient called the message spam */
export interface ComplainedWebhook {
  /** Type of the event */ event: 'complained'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'warn'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: EventMessage
  storage: EventStorage
  /** Envelope of the message; if known */ envelope?: { 'sending-ip'?: string }
  /** The domain of the message */ domain: { name: string }
}

/** An address whose owner called mail spam */
export interface Complaint {
  /** Mail address in lower case */ address: string
  /** Number of complaints; always 1 */ count: number
  /** When it was added */ created_at: string
}

/** A page, by address */
export interface ComplaintPage {
  /** The items of this page */ items: Complaint[]
  paging: Paging
}

/** How an address came onto a list, or left it */
export interface ConsentChange {
  /** Address of the list, as it was; empty: it is about a topic of a domain */ list: string
  /** Title of the list; absent: it has none, or is gone */ list_title?: string
  /** Domain of the list or topic */ domain: string
  /** Tag that the person left or came back to; `*`: all mail of the domain */ topic?: string
  /** What happened */ action: 'added' | 'pending' | 'confirmed' | 'declined' | 'expired' | 'unsubscribed' | 'resubscribed' | 'removed' | 'imported'
  /** By which way */ source: 'api' | 'dashboard' | 'form' | 'import' | 'unsubscribe_link' | 'one_click' | 'preference_page' | 'mail'
  /** When */ at: string
  /** Address of the person, for what the person did */ ip?: string
  /** Browser or program of the person */ user_agent?: string
  /** Id of the user or key, for what the account did */ by?: string
}

/** What the content check found (content-check.md) */
export interface ContentCheckNote {
  /** What was done; `released`: it was held, and a person released it */ action: 'tag' | 'refuse' | 'released'
  /** What was found */ reason: string
  /** Points of the scorer; if it gave any */ score?: number
}

/** Messages of the same content that the content check keeps */
export interface ContentHold {
  /** Identifier of the content */ id: string
  /** Account that sends it */ account_id: string
  /** Sending domain */ domain: string
  /** Message-Id of one of the messages; empty: it is gone */ message_id: string
  /** Its From */ from: string
  /** Its subject */ subject: string
  /** Messages that wait */ messages: number
  /** What was found */ reason: string
  /** Since when the first waits */ held_at: string
}

/** The receiving server accepted the message */
export interface DeliveredEvent {
  /** Type of the event */ event: 'delivered'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  message: EventMessage
  storage: EventStorage
  envelope: AttemptEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  flags: AttemptFlags
  'delivery-status': DeliveryStatus
  'content-check'?: ContentCheckNote
  /** Name of the DKIM key that signed it; if it was signed */ 'primary-dkim'?: string
}

/** The receiving server accepted the message */
export interface DeliveredWebhook {
  /** Type of the event */ event: 'delivered'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  message: EventMessage
  storage: EventStorage
  envelope: AttemptEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  flags: AttemptFlags
  'delivery-status': DeliveryStatus
  'content-check'?: ContentCheckNote
  /** Name of the DKIM key that signed it; if it was signed */ 'primary-dkim'?: string
  /** The domain of the message */ domain: { name: string }
}

/** One message to one recipient */
export interface Delivery {
  /** Identifier of the delivery */ id: string
  /** Mail address */ recipient: string
  /** Where it is */ state: 'scheduled' | 'queued' | 'sending' | 'delivered' | 'bounced' | 'expired' | 'suppressed' | 'rejected' | 'cancelled'
  /** Attempts so far */ attempts: number
  /** When the message was accepted */ created_at: string
  /** Last change */ updated_at: string
  /** Next attempt; null: it does not wait for one */ next_attempt_at: string | null
  /** When it is given up */ expires_at: string
  /** Why it has not been sent yet, or how it ended */ reason: { code: string; sentence: string }
  /** Last lane of mail from this domain to this destination; null: none is known */ lane: string | null
  /** Last reply of a server; null: there was none */ last_reply: { code: number; text: string } | null
}

/** A page of deliveries */
export interface DeliveryPage {
  /** The items of this page */ items: Delivery[]
  paging: Paging
}

/** Why rates are what they are */
export interface DeliveryReasons {
  /** Beginning of the time, in whole hours */ start: string
  /** End of the time, exclusive */ end: string
  /** The domain that was asked for; null: all of the account */ domain: string | null
  /** Openings and clicks by kind of client */ visits: { all: Visits; people: Visits; machines: Record<string, Visits> }
  /** Providers, those with most mail first */ providers: ProviderReasons[]
  /** There were more failures than are read */ partial?: true
}

/** Outcome of an attempt */
export interface DeliveryStatus {
  /** SMTP or HTTP code of the response, or one of the service (events.md section 2) */ code: number
  /** Number of the attempt, from 1; 0: there was none */ 'attempt-no': number
  /** Text of the response */ message: string
  /** What the service says of it */ description: string
  /** Duration of the attempt; seconds */ 'session-seconds': number
  /** Enhanced status code (RFC 3463); if there was one */ 'enhanced-code'?: string
  /** Host that answered; if one was reached */ 'mx-host'?: string
  /** Whether TLS was used; if known */ tls?: boolean
  /** Whether the certificate was verified; if known */ 'certificate-verified'?: boolean
  /** Whether the host takes UTF-8 addresses and headers; if known */ utf8?: boolean
  /** Until the next attempt; in temporary failures; seconds */ 'retry-seconds'?: number
  /** `hard`: the mailbox does not exist; in permanent failures */ 'bounce-type'?: 'hard' | 'soft'
  /** Code of the last attempt; with code 602 */ 'last-code'?: number
  /** Message of the last attempt; with code 602 */ 'last-message'?: string
}

/** Mail of an address */
export interface DmarcAddressFigures {
  /** Address */ ip: string
  /** Messages that receivers reported */ email_count: number
  /** Messages that passed */ pass: number
  /** Messages that failed and were delivered all the same */ fail: number
  /** Messages that failed and were marked as suspicious */ quarantine: number
  /** Messages that failed and were rejected */ reject: number
}

/** A row of a report */
export interface DmarcAuthEvent {
  /** Address that the mail came from; other: all further ones */ source_ip: string
  /** Messages */ messages: number
  /** DKIM or SPF passes with alignment */ passed: boolean
  /** What the receiver did */ disposition: 'none' | 'quarantine' | 'reject'
  /** DKIM passes with alignment */ dkim: 'pass' | 'fail'
  /** SPF passes with alignment */ spf: 'pass' | 'fail'
  /** Domain of the header From */ header_from: string
  /** Why the receiver did not follow the policy */ reasons: string[]
  /** Results without alignment */ dkim_results: ({ domain: string; selector: string; result: string })[]
  /** Results without alignment */ spf_results: ({ domain: string; result: string })[]
  /** Name of the receiver, as it says */ reporter: string
  /** Begin of the reported period */ begin: string
}

/** Mail of a day */
export interface DmarcDay {
  /** Begin of the day, Unix seconds */ timestamp: number
  /** Messages that passed */ pass: number
  /** Messages that failed and were delivered all the same */ fail: number
  /** Messages that failed and were marked as suspicious */ quarantine: number
  /** Messages that failed and were rejected */ reject: number
}

/** Mail of a domain */
export interface DmarcDomain {
  /** Name */ domain: string
  /** Messages that receivers reported */ email_count: number
  /** Messages that passed */ pass: number
  /** Messages that failed and were delivered all the same */ fail: number
  /** Messages that failed and were marked as suspicious */ quarantine: number
  /** Messages that failed and were rejected */ reject: number
}

/** Mail of a host */
export interface DmarcHostFigures {
  /** Confirmed name of the addresses */ host: string
  /** Messages that receivers reported */ email_count: number
  /** Addresses */ ip_count: number
  /** Messages that passed */ pass: number
  /** Messages that failed and were delivered all the same */ fail: number
  /** Messages that failed and were marked as suspicious */ quarantine: number
  /** Messages that failed and were rejected */ reject: number
}

/** Mail of an address */
export interface DmarcOfAddress {
  /** Messages that receivers reported */ email_count: number
  /** Addresses that it came from */ ip_count: number
  /** Messages without aligned SPF, of the rows that are kept of each report */ spf_fail_events: number
  /** Messages without aligned DKIM, of those */ dkim_fail_events: number
  /** Messages without either, of those */ auth_fail_events: number
  /** By day in UTC, the oldest first; days without mail are left out */ pfqr_chart: DmarcDay[]
  /** Rows of reports with a failure, most messages first; at most 100 */ auth_events: DmarcAuthEvent[]
  /** Always empty: reports of single messages are not taken */ ruf: string
}

/** Mail of a domain by source */
export interface DmarcOfDomain {
  /** Messages that receivers reported */ email_count: number
  /** Addresses that it came from */ ip_count: number
  /** Messages without aligned SPF, of the rows that are kept of each report */ spf_fail_events: number
  /** Messages without aligned DKIM, of those */ dkim_fail_events: number
  /** Messages without either, of those */ auth_fail_events: number
  /** By day in UTC, the oldest first; days without mail are left out */ pfqr_chart: DmarcDay[]
  /** Rows of reports with a failure, most messages first; at most 100 */ auth_events: DmarcAuthEvent[]
  /** Most messages first */ sources: DmarcSourceFigures[]
}

/** Mail of a host by address */
export interface DmarcOfHost {
  /** Messages that receivers reported */ email_count: number
  /** Addresses that it came from */ ip_count: number
  /** Messages without aligned SPF, of the rows that are kept of each report */ spf_fail_events: number
  /** Messages without aligned DKIM, of those */ dkim_fail_events: number
  /** Messages without either, of those */ auth_fail_events: number
  /** By day in UTC, the oldest first; days without mail are left out */ pfqr_chart: DmarcDay[]
  /** Rows of reports with a failure, most messages first; at most 100 */ auth_events: DmarcAuthEvent[]
  /** Most messages first; at most 1,000 */ ip_addresses: DmarcAddressFigures[]
}

/** Mail of a source by host */
export interface DmarcOfSource {
  /** Messages that receivers reported */ email_count: number
  /** Addresses that it came from */ ip_count: number
  /** Messages without aligned SPF, of the rows that are kept of each report */ spf_fail_events: number
  /** Messages without aligned DKIM, of those */ dkim_fail_events: number
  /** Messages without either, of those */ auth_fail_events: number
  /** By day in UTC, the oldest first; days without mail are left out */ pfqr_chart: DmarcDay[]
  /** Rows of reports with a failure, most messages first; at most 100 */ auth_events: DmarcAuthEvent[]
  /** Most messages first */ hosts: DmarcHostFigures[]
}

/** Mail of one source in a DMARC report */
export interface DmarcReportRow {
  /** Address that the mail came from; other: all further ones */ source_ip: string
  /** Messages */ messages: number
  /** DKIM or SPF passes with alignment */ passed: boolean
  /** What the receiver did */ disposition: 'none' | 'quarantine' | 'reject'
  /** DKIM passes with alignment */ dkim: 'pass' | 'fail'
  /** SPF passes with alignment */ spf: 'pass' | 'fail'
  /** Domain of the header From */ header_from: string
  /** Why the receiver did not follow the policy */ reasons: string[]
  /** Results without alignment */ dkim_results: ({ domain: string; selector: string; result: string })[]
  /** Results without alignment */ spf_results: ({ domain: string; result: string })[]
}

/** Mail of one source */
export interface DmarcSource {
  /** Address that the mail came from; other: all further ones */ source_ip: string
  /** Messages */ messages: number
  /** Messages that passed */ passed: number
  /** Messages that failed */ failed: number
  /** Messages by what receivers did */ dispositions: { none: number; quarantine: number; reject: number }
}

/** Mail of a source */
export interface DmarcSourceFigures {
  /** Registrable domain of the hosts; unknown: without a confirmed name; other: not told apart */ source: string
  /** Messages that receivers reported */ email_count: number
  /** Addresses */ ip_count: number
  /** Messages that passed */ pass: number
  /** Messages that failed and were delivered all the same */ fail: number
  /** Messages that failed and were marked as suspicious */ quarantine: number
  /** Messages that failed and were rejected */ reject: number
}

/** What was written for a domain, or would be */
export interface DnsChange {
  /** Identifier; null: nothing was written */ id: string | null
  /** Domain */ domain: string
  /** Name of the DNS provider */ provider: string
  /** Identifier of the change that this one took back; null: it wrote the records */ undoes: string | null
  /** planned: shown only; unchanged: there is nothing to write; writing: begun, and perhaps broken off; failed: some of it may have been written */ state: 'planned' | 'unchanged' | 'writing' | 'done' | 'failed' | 'undone'
  /** Names exactly these changes */ digest: string
  /** By record */ entries: ({ purpose: 'dkim' | 'spf' | 'tracking' | 'mx' | 'return-path-spf' | 'return-path-mx' | 'mta-sts' | 'mta-sts-host' | 'dmarc' | 'tls-rpt'; name: string; type: 'A' | 'AAAA' | 'CNAME' | 'MX' | 'TXT'; action: 'add' | 'change' | 'remove' | 'unchanged' | 'left'; add: string[]; remove: string[]; reason: string; written: boolean | null })[]
  /** Why it failed; null: it did not */ error: string | null
  /** When it was begun; null: nothing was written */ created_at: string | null
}

/** Where records of domains can be written; without its secret */
export interface DnsProvider {
  /** Name */ name: string
  /** What takes the records; rfc2136: a name server with dynamic updates */ kind: 'rfc2136' | 'cloudflare' | 'route53' | 'desec' | 'hetzner'
  /** Of rfc2136: the name server, host or host:port */ server: string | null
  /** Of rfc2136: name of the TSIG key */ key_name: string | null
  /** Of rfc2136: algorithm of the TSIG key */ algorithm: 'hmac-sha256' | 'hmac-sha512' | null
  /** Of route53: id of the access key */ access_key_id: string | null
  /** Another address of the interface, https */ api_url: string | null
  /** When it was made */ created_at: string
  /** When it was changed last */ updated_at: string
}

/** A DNS record to publish, and what DNS had at the last check */
export interface DnsRecord {
  /** Name; not of MX, whose name is the domain */ name?: string
  /** Type */ record_type: 'TXT' | 'CNAME' | 'A' | 'AAAA' | 'MX'
  /** Only of MX */ priority?: string
  /** Value to publish */ value: string
  /** What DNS had at the last check, even if it is wrong */ cached: string[]
  /** Whether DNS had the record at the last check */ valid: 'valid' | 'unknown'
  /** Of a DKIM record: its key signs. All others: true */ is_active: boolean
}

/** A sending domain */
export interface Domain {
  /** 24 hex digits */ id: string
  /** Host name */ name: string
  /** Sandbox domains are made by the service and reach few recipients */ type: 'custom' | 'sandbox'
  /** Only active domains send */ state: 'active' | 'unverified' | 'disabled'
  /** What happens to spam */ spam_action: 'disabled' | 'tag' | 'block'
  /** Accept mail for subdomains too */ wildcard: boolean
  /** The service keeps and rotates the keys */ use_automatic_sender_security: boolean
  /** Scheme of tracking links */ web_scheme: 'http' | 'https'
  /** First label of the tracking host */ web_prefix: string
  /** Host of return paths; bounces are sent to its MX (domains.md rule 16) */ mailfrom_host?: string
  /** Seconds; 0: the default of the service */ message_ttl: number
  /** Deliver over TLS only */ require_tls: boolean
  /** Do not verify certificates */ skip_verification: boolean
  /** Bulk mail asks receivers for complaints by fbl@ (RFC 9477) */ cfbl_address: boolean
  /** Bulk mail has Gmail's Feedback-ID */ feedback_id: boolean
  /** http(s) URL that gets a copy of delivered mail; empty or absent: none */ archive_to?: string
  /** Hours in which mail is sent, such as `Mon-Fri 09:00-17:00 Europe/Berlin`; empty or absent: at any time */ send_window?: string
  /** MTA-STS policy that is published for the domain: its mail hosts for testing or to be enforced, none, or no policy (domains.md rule 28) */ mta_sts?: 'off' | 'testing' | 'enforce' | 'none'
  /** Seconds for which senders keep that policy */ mta_sts_max_age?: number
  /** Is stored and has no effect; cannot be undone */ encrypt_incoming_message: boolean
  /** Domain whose keys are to sign */ dkim_host?: string
  /** When it was added */ created_at: string
  /** Whether the state is disabled */ is_disabled: boolean
  /** Login for SMTP submission: postmaster at the domain */ smtp_login: string
  /** Host of tracking links: web_prefix and name */ tracking_host: string
  /** The account of the domain; only if that is a subaccount */ subaccount_id?: string
  /** Why nothing can be sent; only if the domain is disabled */ disabled?: { code: string; note: string; reason: string; permanently: boolean; until?: string }
  /** The pod that has it; `default` where there are none */ pod?: string
}

/** TLS settings, in both public forms */
export interface DomainConnection {
  /** Deliver over TLS only */ require_tls: boolean
  /** Do not verify certificates */ skip_verification: boolean
  /** The same */ connection: { require_tls: boolean; skip_verification: boolean }
}

/** What DNS had at the last check, and what to change */
export interface DomainDns {
  /** Every record of the domain */ records: ExplainedRecord[]
  /** Advice about DMARC; the state does not depend on it */ dmarc: { record?: { purpose: 'dmarc'; name: string; type: 'TXT'; value: string }; asked: string; server: string; found: string[]; valid: 'valid' | 'unknown'; sentence: string; checked_at?: string }
  /** Faults of the operator's own records, which those of the domain refer to */ service: OwnRecordFault[]
}

/** A domain with the lists that have it */
export interface DomainHealth {
  /** Id of the account */ account_id: string
  /** Name of the domain */ domain: string
  /** When it was looked up last; before that, when it was added */ updated_at: string
  /** `unknown`: no list has answered usably yet */ state: 'healthy' | 'listed' | 'unknown'
  /** Lists that have it */ listed: ListedDomain[]
}

/** Where the figures of a domain put it */
export interface DomainHealthCheck {
  /** Band */ pool: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new'
  /** Each figure alone; a rate without mail to divide by is 0 */ results: { bounce_rate: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' }; complaint_rate: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' }; processed_count: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' } }
}

/** A DKIM key without its private part */
export interface DomainKey {
  /** The domain in whose name the key signs */ signing_domain: string
  /** Selector */ selector: string
  /** Its record */ dns_record: { name: string; record_type: 'TXT' | 'CNAME' | 'A' | 'AAAA' | 'MX'; priority?: string; value: string; cached: string[]; valid: 'valid' | 'unknown'; is_active: boolean }
}

/** A page, by authority and selector */
export interface DomainKeyPage {
  /** The items of this page */ items: ListedDomainKey[]
  paging: Paging
  /** All that match, not only those of this page */ total_count: number
}

/** What a receiver reports about a domain */
export interface DomainReport {
  /** Identifier of the report */ id: string
  /** Type of report */ type: 'dmarc' | 'tls' | 'complaint'
  /** Domain of the header From of the report; of a posted one the address of the client, of a complaint the provider */ sender: string
  /** SPF or DKIM proved the sender */ authenticated: boolean
  /** Name of the receiver, as it says */ organization: string
  /** Address of the receiver, as it says */ contact: string
  /** Identifier of the report at its sender */ report_id: string
  /** Begin of the reported period */ begin: string
  /** End of the reported period */ end: string
  /** When it arrived */ received_at: string
  /** Messages, or sessions, that passed */ passed: number
  /** Messages or sessions that failed, or complaints */ failed: number
  /** Number of rows of the report */ row_count: number
  /** The 20 rows with the most messages or sessions; of a complaint none */ rows: (DmarcReportRow | TlsReportRow)[]
}

/** Totals, and a page of reports */
export interface DomainReportPage {
  /** The items of this page */ items: DomainReport[]
  paging: Paging
  /** Begin of the first period */ from: string
  /** Begin of the last period */ to: string
  /** Sums of whole days in UTC, of authenticated reports only */ totals: { dmarc?: { messages: number; passed: number; failed: number; dispositions: { none: number; quarantine: number; reject: number }; sources: DmarcSource[] }; tls?: { sessions: number; passed: number; failed: number; failures: ({ result_type: string; sessions: number })[] }; complaint?: { complaints: number; providers: ({ provider: string; complaints: number })[] } }
  /** Where reports go */ addresses: { dmarc: string; tls: string }
  /** DNS records that say so */ records: ({ name: string; type: 'TXT'; value: string })[]
}

/** What people choose from behind unsubscribe links */
export interface DomainTopics {
  /** Unsubscribe links lead to a page of topics, and one click leaves the topic of a mail */ active: boolean
  /** Tags that are topics, at most 20 */ topics: Topic[]
  /** Stored template of the pages behind unsubscribe links; absent: the built-in pages */ page_template?: string
  /** Mailing lists of the domain that are topics */ lists: ({ address: string; title: string })[]
}

/** URLs by type; a type without URLs is absent */
export interface DomainWebhooks {
  accepted?: WebhookUrls
  clicked?: WebhookUrls
  opened?: WebhookUrls
  unsubscribed?: WebhookUrls
  delivered?: WebhookUrls
  permanent_fail?: WebhookUrls
  temporary_fail?: WebhookUrls
  complained?: WebhookUrls
}

/** Addresses of a band */
export interface DynamicPool {
  /** Id of the account that has it */ account_id: string
  /** Id */ id: string
  /** Band */ name: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new'
  /** Always true */ enabled: boolean
  /** Addresses */ ips: string[]
}

/** A change of the band of a domain */
export interface DynamicPoolHistoryRecord {
  /** Id */ id: string
  /** Id of the account that has the pools */ owning_account_id: string
  /** Id of the account of the domain */ account_id: string
  /** Name of that account */ account_name: string
  /** Id of the domain */ domain_id: string
  /** Name of the domain */ domain_name: string
  /** Band after it; empty: the domain has left */ new_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''
  /** Band before it; empty: the domain was not enrolled */ prev_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''
  /** Why */ reason: string
  /** Bounced of processed messages, a fraction; null: nothing was processed */ bounce_rate: number | null
  /** Complaints of delivered messages, a fraction; null: nothing was delivered */ complaint_rate: number | null
  /** Processed messages; null: not known */ processed_count: number | null
  /** Id of a user or key, or system for a check */ initiated_by: string
  /** When */ timestamp: string
}

/** Links to pages */
export interface DynamicPoolPaging {
  /** Address of the next page; absent: there is none */ Next?: string
  /** Address of the previous page; absent: there is none */ Previous?: string
  /** Address of the first page; absent: there is none */ First?: string
  /** Address of the last page; absent: there is none */ Last?: string
}

/** A domain that sends from a dynamic pool */
export interface EnrolledDomain {
  /** Id of the domain */ id: string
  /** Id of the account of the domain */ account_id: string
  /** Name of the account */ account_name: string
  /** Name of the domain */ name: string
  /** When it was enrolled */ registered_at: string
  /** Band */ pool: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new'
  /** Whether it stays in the band whatever its checks say */ override: boolean
  /** Bounced of processed messages, a fraction; null: nothing was processed */ bounce_rate: number | null
  /** Complaints of delivered messages, a fraction; null: nothing was delivered */ complaint_rate: number | null
  /** Processed messages of the last check */ processed_count: number
}

/** Final failures by one receiver, filter or list */
export interface EntityBounces {
  /** Who refused: a receiver, a filter or a list */ 'entity-id': string
  /** Its name */ 'entity-name': string
  /** Final failures */ bounced: { total: number }
}

/** What happened to a message or a list upload; `event` names the type. New members may be added. */
export type Event = AcceptedEvent | DeliveredEvent | FailedEvent | RejectedEvent | OpenedEvent | ClickedEvent | UnsubscribedEvent | ComplainedEvent | StoredEvent | ListMemberUploadedEvent | ListMemberUploadErrorEvent | ListUploadedEvent

/** The account that the event is of */
export interface EventAccount {
  /** Id of the account */ id: string
  /** Id of its parent; present for a subaccount */ 'parent-id'?: string
}

/** An attachment of the message */
export interface EventAttachment {
  /** Name of the file */ filename: string
  /** Content type */ 'content-type': string
  /** Size; bytes */ size: number
}

/** The mailing list whose member the recipient is */
export interface EventMailingList {
  /** Address of the list */ address: string
  /** Id of the list */ 'list-id': string
  /** Id of the member */ sid?: string
}

/** The message that the event is about */
export interface EventMessage {
  headers: EventMessageHeaders
  /** Attachments */ attachments: EventAttachment[]
  /** Size of the message; bytes */ size: number
}

/** Headers as people read them */
export interface EventMessageHeaders {
  /** To */ to: string
  /** From */ from: string
  /** Subject */ subject: string
  /** Message-Id without angle brackets */ 'message-id': string
}

/** A page: `next` continues in the direction of the list, until a page is empty */
export interface EventPage {
  /** The items of this page */ items: Event[]
  paging: Paging
}

/** A route that matched received mail */
export interface EventRoute {
  /** Id of the route */ id: string
  /** Its priority */ priority: number
  /** Its description; long ones are cut */ description: string
  /** Its expression; long ones are cut */ expression: string
  /** Its actions, without passwords */ actions: string[]
  /** What it matched */ match: { recipient: string }
}

/** Where events are sent; without its secret */
export interface EventSink {
  /** Name */ name: string
  /** Where events go */ kind: 'http' | 's3' | 'syslog' | 'stdout' | 'nats' | 'amqp' | 'kafka'
  /** Of http: where batches are posted. Of s3: the endpoint */ url?: string
  /** Of http: the form of a batch */ format?: 'json-lines' | 'json-array' | 'elasticsearch-bulk'
  /** Of http: whether batches are compressed. Default: unless the receiver is on this machine */ gzip?: boolean
  /** Of s3: the bucket */ bucket?: string
  /** Of s3: the region */ region?: string
  /** Of s3: what the names of objects begin with */ prefix?: string
  /** Of s3: id of the access key */ access_key_id?: string
  /** Of nats and kafka: the first servers to ask. Of amqp and syslog: one server */ servers?: string[]
  /** Of syslog, nats, amqp and kafka: whether connections are TLS */ tls?: boolean
  /** Of kafka: the topic. Of amqp: the exchange. Of nats: what subjects begin with, before the type of the event */ topic?: string
  /** Of amqp: the virtual host */ vhost?: string
  /** Of nats, amqp and kafka: the name that the secret is for */ user?: string
  /** Of kafka: how the secret is proven */ mechanism?: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  /** Whether it takes nothing until this is false */ paused?: boolean
  /** Only events of these accounts */ accounts?: string[]
  /** Only events of these sending domains */ domains?: string[]
  /** Only events of these types */ events?: string[]
  /** How far it may fall behind: events older than this are skipped while it takes nothing, and counted. Retention keeps events for it that long; seconds */ behind_max_seconds?: number
  /** What is unsafe about it, such as a password that is sent without TLS; null: nothing */ warning: string | null
  /** Age of the oldest event that it has not taken; 0: it has all; seconds */ behind_seconds: number
  /** Events that it has taken */ sent: number
  /** When it took the last ones */ sent_at: string | null
  /** Events that it missed, because it had taken nothing for too long */ skipped: number
  /** When the first of these happened */ skipped_from: string | null
  /** When the last of these happened */ skipped_to: string | null
  /** Since when it takes nothing; null: it does */ failing_since: string | null
  /** Why */ last_error: string | null
  /** When it was made */ created_at: string
  /** When it was changed last */ updated_at: string
}

/** Where the message can be read while it is kept */
export interface EventStorage {
  /** Key of the stored message */ key: string
  /** Address of the message (messages.md M3) */ url: string
  /** Always default */ region: string
  /** Always production */ env: string
}

/** The template of the message */
export interface EventTemplate {
  /** Name of the template */ name: string
  /** Tag of the version */ version: string
  /** The text part was made from the rendered HTML */ 'is-text': boolean
}

/** A record with the last look at it */
export interface ExplainedRecord {
  /** What to publish */ record: { purpose: 'dkim' | 'spf' | 'tracking' | 'mx' | 'return-path-spf' | 'return-path-mx' | 'mta-sts' | 'mta-sts-host'; name: string; type: 'TXT' | 'CNAME' | 'A' | 'AAAA' | 'MX'; value: string; priority?: number; is_active: boolean }
  /** The query; empty before the first check */ asked: string
  /** Address and port of the server that answered; empty: none was asked */ server: string
  /** What DNS had */ found: string[]
  /** Whether DNS had the record at the last check */ valid: 'valid' | 'unknown'
  /** The question, the answer, and what to change */ sentence: string
  /** When; absent before the first check */ checked_at?: string
}

/** A list that is written into a file */
export interface Export {
  /** Id */ id: string
  /** How far it is; the file can be read when it is complete */ status: 'requested' | 'processing' | 'complete' | 'failed'
  /** The list, as given */ url: string
  /** When it was asked for */ created_at: string
  /** When it is removed */ expires_at: string
  /** Size of the file as stored, so far; bytes */ size: number
  /** Why it failed; present then */ message?: string
}

/** An attempt failed */
export interface FailedEvent {
  /** Type of the event */ event: 'failed'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'warn' | 'error'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  message: EventMessage
  storage: EventStorage
  envelope: AttemptEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  flags: AttemptFlags
  'delivery-status': DeliveryStatus
  'content-check'?: ContentCheckNote
  /** Name of the DKIM key that signed it; if it was signed */ 'primary-dkim'?: string
  /** `temporary`: another attempt follows */ severity: 'temporary' | 'permanent'
  /** bounce, generic, espblock, blacklisted, greylisted, old, suppress-bounce, suppress-unsubscribe, suppress-complaint or loop */ reason: string
  /** Rule that classified the reply; present if a server replied */ 'i-classification-rule-id'?: string
}

/** An attempt failed */
export interface FailedWebhook {
  /** Type of the event */ event: 'failed'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'warn' | 'error'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  message: EventMessage
  storage: EventStorage
  envelope: AttemptEnvelope
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  'mailing-list'?: EventMailingList
  /** Delivered at the best time of the recipient */ 'i-delivery-optimizer'?: 'send-time'
  flags: AttemptFlags
  'delivery-status': DeliveryStatus
  'content-check'?: ContentCheckNote
  /** Name of the DKIM key that signed it; if it was signed */ 'primary-dkim'?: string
  /** `temporary`: another attempt follows */ severity: 'temporary' | 'permanent'
  /** bounce, generic, espblock, blacklisted, greylisted, old, suppress-bounce, suppress-unsubscribe, suppress-complaint or loop */ reason: string
  /** Rule that classified the reply; present if a server replied */ 'i-classification-rule-id'?: string
  /** The domain of the message */ domain: { name: string }
}

/** Failures of one class at a provider */
export interface FailureClass {
  /** Category of the failures */ class: string
  /** Id of the rule that classified them */ rule: string
  /** What it means */ explanation: string
  /** Failed attempts that are repeated */ temporary: number
  /** Failures for good */ permanent: number
  /** The most frequent reply */ reply: { text: string; count: number }
  /** The newest delivery that got the reply */ sample: { domain: string; failed_at: string; sending_ip: string | null; event_id: string | null; message_id: string | null; recipient: string | null }
}

/** A feature of a subaccount: `{enabled}` */
export interface FeatureSwitch {
  /** It is on */ enabled: boolean
}

/** Where the client is, by its address; Unknown: not known */
export interface Geolocation {
  /** Two letters */ country: string
  /** Region */ region: string
  /** City */ city: string
  /** Time zone of IANA */ timezone: string
}

/** How Gmail Postmaster Tools are read */
export interface GoogleReputationSource {
  /** jwt_bearer: a service account; refresh_token: an account of a person */ grant: 'jwt_bearer' | 'refresh_token'
  /** Address of the service account (`client_email`), or the OAuth client */ client_id: string
  /** User whom the service account acts for; null: for itself */ subject: string | null
  /** Where access tokens come from, https */ token_url: string
  /** Where the API is, https */ api_url: string
  /** A private key or client secret is stored */ has_client_secret: boolean
  /** A refresh token is stored */ has_refresh_token: boolean
  /** When it was stored */ created_at: string
  /** When it was stored last */ updated_at: string
  /** When everything was read; null: not yet */ last_read_at: string | null
  /** When it is read next */ next_read_at: string
  /** Reads in a row that failed */ failures: number
  /** Why the last read failed; null: it did not */ error: string | null
  /** When that was */ error_at: string | null
  /** Since when reads have failed; null: the last one did not */ failing_since: string | null
  /** Domains of this service that Postmaster Tools list */ domains: ({ name: string; read_through: string | null; error: string | null })[]
}

/** What Gmail says of a domain on a day */
export interface GptDomain {
  /** Account of the domain */ account_id: string
  /** Domain */ name: string
  /** Mail that users call spam, from 0 to 1; 0 also where Gmail names none */ user_reported_spam_ratio: number
  /** Mail that passed SPF */ spf_success_ratio: number
  /** Mail that passed DKIM */ dkim_success_ratio: number
  /** Mail that passed DMARC */ dmarc_success_ratio: number
  /** Mail that came by TLS */ inbound_encryption_ratio: number
  /** Mail that was refused or deferred */ delivery_error_ratio: number
  /** By reason */ delivery_errors: ({ error_class: string; error_type: string; error_ratio: number })[]
  /** Always 0, unknown: version 2 of the API has no reputation */ reputation: number
  /** Begin of the day */ date: string
  /** Always empty, as for `reputation` */ ip_counts: ({ reputation: number; total: number })[]
  /** By the identifier of Feedback-ID */ feedback_loops: ({ id: string; spam_ratio: number })[]
}

/** Score of the last 30 days */
export interface HealthScore {
  /** 100: nothing is wrong; 0: everything is; points */ score: number
  /** What takes points off; with the score they add up to 100 */ rates: { bounce_rate: number; complaint_rate: number; trap_rate: number; full_mailbox_rate: number; bad_failure_rate: number }
  /** Counts of the time */ counters: { delivered: number }
}

/** Score of a group */
export interface HealthScoreGroup {
  /** The domain, address, account or day */ group_key: string
  /** The account; absent for days and addresses */ account_id?: string
  /** 100: nothing is wrong; 0: everything is; points */ score: number
  /** What takes points off; with the score they add up to 100 */ rates: { bounce_rate: number; complaint_rate: number; trap_rate: number; full_mailbox_rate: number; bad_failure_rate: number }
  /** Counts of the time */ counters: { delivered: number }
}

/** The MTA-STS policy that is published for a domain */
export interface HostedPolicy {
  /** As the setting `mta_sts` of the domain */ mode: 'off' | 'testing' | 'enforce' | 'none'
  /** Seconds for which senders keep it */ max_age: number
  /** Where senders fetch it */ url: string
  /** The file; null: off */ policy: string | null
  /** Its id in the record; null: off */ id: string | null
  /** Whether DNS had the record of the host at the last check */ host_record: 'valid' | 'unknown'
  /** Whether DNS had the record with this id at the last check */ policy_record: 'valid' | 'unknown'
  /** Whether DNS had each of the mail hosts as MX at the last check */ mx_records: 'valid' | 'unknown'
  /** State of the certificate of the host; null: none was ordered yet */ certificate: 'processing' | 'active' | 'expired' | 'error' | null
  /** Why the last order failed; null: it did not */ certificate_error: string | null
}

/** Which mail programs show the HTML of a captured message */
export interface HtmlCheck {
  /** Share of programs that show what is used, over all features; 100: all show all; % */ score: number
  /** Features of HTML, CSS and images that are used and known */ features: number
  /** Features that some programs do not show, the worst first */ findings: ({ feature: string; url: string; uses: number; supported: number; partly: number; unsupported: number; unknown: number; partly_in: string[]; unsupported_in: string[] })[]
  /** Programs in the table; mail programs */ clients: number
  /** Date of the table */ data_of: string
  /** False: the HTML is too long or too deep, and only its beginning was read */ complete: boolean
}

/** A reply on demand of the built-in inbox */
export interface InboxFault {
  /** Address, * stands for anything; at connect only * */ recipient: string
  /** When it is sent */ stage: 'connect' | 'mail' | 'rcpt' | 'data' | 'dot'
  /** Reply line; empty: only the delay */ reply: string
  /** Share of the cases in which it is sent */ probability: number
  /** Wait before it; milliseconds */ delay_ms: number
}

/** An address of the installation, for the operator */
export interface InstalledIpAddress {
  /** Address */ ip: string
  /** Whether one account alone has it; a shared one serves all */ dedicated: boolean
  /** Its account; null: shared, or not given to anybody */ account_id: string | null
  /** Whether it is switched on */ enabled: boolean
  /** Also named by the configuration of a process in the last 3 hours, and confirmed where that is required */ usable: boolean
  /** Whether the configuration of this process names it */ configured_here: boolean
  /** Address of the machine that NAT makes it of; null: none is configured here */ local_ip: string | null
  /** Proxy that connections leave through, without its login; null: none is configured here */ proxy: string | null
  /** The pool that it is in */ pool_id: string | null
  /** Whether it is on warm-up */ is_on_warmup: boolean
  /** Providers that block it */ blocked_by: IpBlock[]
  /** Result of the hourly check */ check: { checked_at: string | null; bound: boolean | null; dns_agrees: boolean | null; rdns: string; fault: string }
}

/** An address that mail is sent from */
export interface IpAddress {
  /** Address */ ip: string
  /** The confirmed reverse name; empty without one */ rdns: string
  /** Whether one account alone has it; a shared one serves all */ dedicated: boolean
}

/** An address with its settings */
export interface IpAddressDetails {
  /** Address */ ip: string
  /** The confirmed reverse name; empty without one */ rdns: string
  /** Whether one account alone has it; a shared one serves all */ dedicated: boolean
  /** Whether mail may leave from it */ enabled: boolean
  /** Whether it is on warm-up */ is_on_warmup: boolean
  /** Id of the pool that it is in; absent: in none */ pool_id?: string
  /** Domains of the account that send from it */ domains_count: number
}

/** A provider that refuses mail from an address */
export interface IpBlock {
  /** The destination, as in the names of lanes */ site: string
  /** Name of the provider */ provider: string
  /** `closed` until the time of `until`; then `probing`: single messages find out; `listed`: a blocklist that the provider uses has it, and it is left while others of the set are open */ state: 'closed' | 'probing' | 'listed'
  /** The reply that closed it, or the lists */ reply: string
  /** Pauses in a row */ times: number
  /** When it was closed first, or listed */ since: string
  /** End of the pause; of a listing, unless the lists confirm it */ until: string
}

/** A domain with its addresses */
export interface IpDomain {
  /** Name of the domain */ domain: string
  /** Addresses that it sends from */ ips: string[]
}

/** Links to pages */
export interface IpPaging {
  /** Address of the first page */ first: string
  /** Address of the next page; the one after the last is empty */ next: string
}

/** Dedicated addresses that domains are linked to */
export interface IpPool {
  /** Id of a pool */ pool_id: string
  /** Name */ name: string
  /** Description; may be empty */ description: string
  /** Its addresses, by the time they were added */ ips: string[]
  /** Whether a domain is linked to it now */ is_linked: boolean
  /** Whether it belongs to the parent, which lets this account use it */ is_inherited: boolean
  /** Names of linked domains, at most 1000; only where one pool is read */ linked_domains?: string[]
  /** Further facts */ metadata: { assignments: Record<string, { linked_at: string }> }
}

/** A pool that a subaccount may use */
export interface IpPoolDelegation {
  /** Id of a pool */ pool_id: string
  /** Id of the subaccount */ subaccount_id: string
}

/** A domain */
export interface IpPoolDomain {
  /** Id */ id: string
  /** Name */ name: string
}

/** State of a warm-up; several values have an older and a newer name */
export interface IpWarmup {
  /** Whole percent of the limit that was sent in the present 24 hours */ sent_within_stage: string
  /** Messages of this hour that were kept away from the address; percent */ throttle: number
  /** Number of the stage, from 1 */ stage_number: number
  /** Messages sent from the address before the stage */ stage_start_volume: number
  /** When the stage began */ stage_start_time: string
  /** Most messages of the stage in 24 hours */ stage_volume_limit: number
  /** The same as stage_number */ stage: number
  /** The same as stage_start_volume */ start_volume: number
  /** The same as stage_volume_limit */ stage_limit: number
  /** The same as stage_start_time */ stage_started_at: string
  /** Most messages in an hour: a 24th of the limit, rounded up */ hourly_limit: number
  /** Beginning of the hour that `throttle` counts */ hour_started_at: string
  /** When the warm-up began */ plan_started_at: string
  /** When a stage was last judged */ plan_last_updated_at: string
  /** Stages of the plan */ total_stages: number
  /** Completed stages, the oldest first */ stage_history: IpWarmupStage[]
}

/** An address on warm-up */
export interface IpWarmupItem {
  /** Address */ ip: string
  /** Whole percent of the limit that was sent in the present 24 hours */ sent_within_stage: string
  /** Messages of this hour that were kept away from the address; percent */ throttle: number
  /** Number of the stage, from 1 */ stage_number: number
  /** Messages sent from the address before the stage */ stage_start_volume: number
  /** When the stage began */ stage_start_time: string
  /** Most messages of the stage in 24 hours */ stage_volume_limit: number
}

/** A warm-up in all, and by provider */
export interface IpWarmupProgress {
  /** Address */ ip: string
  /** Since when it is paused; null: it is not */ paused_at: string | null
  /** Stages of the plan */ total_stages: number
  /** Number of the stage, from 1 */ stage_number: number
  /** When the stage began */ stage_start_time: string
  /** Most messages of the stage in 24 hours */ stage_volume_limit: number
  /** Most messages in an hour: a 24th of the limit, rounded up */ hourly_limit: number
  /** Whole percent of the limit that was sent in the present 24 hours */ sent_within_stage: string
  /** Messages of this hour that were kept away from the address; percent */ throttle: number
  /** Providers that the address has sent to */ providers: IpWarmupProvider[]
}

/** The warm-up of an address with a provider */
export interface IpWarmupProvider {
  /** A site that the shaping names, or * for all others together */ provider: string
  /** Number of the stage, from 1 */ stage_number: number
  /** When the stage began */ stage_start_time: string
  /** Most messages of the stage in 24 hours */ stage_volume_limit: number
  /** Most messages in an hour: a 24th of the limit, rounded up */ hourly_limit: number
  /** Whole percent of the limit that was sent in the present 24 hours */ sent_within_stage: string
  /** Messages of this hour that were kept away from the address; percent */ throttle: number
  /** Messages sent to the provider since the warm-up began */ sent: number
}

/** A completed stage */
export interface IpWarmupStage {
  /** When it began */ first_updated_at: string
  /** When it was completed */ completed_at: string
  /** Most messages of the stage in 24 hours */ limit: number
}

/** A call of an API key, without its body and secrets */
export interface KeyRequest {
  /** Identifier, ordered by time */ id: string
  /** When it was answered */ created_at: string
  /** Method */ method: string
  /** Path; a part that could be an address is its name in braces */ path: string
  /** Operation, as in `/openapi.json` */ operation: string
  /** HTTP status of the answer */ status: number
  /** The error in words, with names in braces in place of given values; null: none */ error: string | null
  /** From the arrival of the request to its answer; milliseconds */ duration_ms: number
  /** Declared parameters by name; null: the value is not kept, because it could be an address or a secret */ params: Record<string, unknown>
  /** From where it came */ remote_address: string
  /** The request, as in the log and in the answer */ request_id: string
  /** The subaccount that the key acted for */ acted_for: string | null
  /** The call as a command, with `$API_KEY` and names in braces for what is not kept */ curl: string
}

/** A page of calls of a key, newest first */
export interface KeyRequestPage {
  /** The items of this page */ items: KeyRequest[]
  paging: Paging
}

/** How far automatic sender security is */
export interface KeyRotation {
  /** wait_verify: on, but its records are not found yet */ state: 'disabled' | 'wait_verify' | 'enabled'
  /** Selector that signs; null: none yet */ active_selector: string | null
  /** Keys are rotated from time to time */ rotation_enabled: boolean
  /** Days or hours between rotations */ rotation_interval: string
  /** When the next rotation is due; null: none is planned, or one has just begun */ next_at: string | null
  /** A rotation in progress; null: none */ in_progress: { phase: 'publishing' | 'retiring'; selector: string; until: string } | null
}

/** What waits from one source address to one site */
export interface Lane {
  /** Source and site */ lane: string
  /** Source address; any: the system chooses it; none: there is none to use now */ source: string
  /** Name of the mail hosts that share limits */ site: string
  /** Display name of the provider */ provider: string
  /** Deliveries that wait */ queued: number
  /** Those of them whose time has come */ due: number
  /** Those that were tried before */ deferred: number
  /** Those that are paused */ paused: number
  /** Connections open now */ connections: number
  /** Limits now */ limits: { connections: number | null; messages_per_connection: number | null; messages_per_second: number | null }
  /** Limits of the shaping; null: the lane is not in use */ set_limits: { connections: number; messages_per_connection: number; messages_per_second: number | null } | null
  /** Until when it is slower than its limits; null: it is not */ backed_off_until: string | null
  /** The reply that slowed it down; only its codes for accounts other than the first */ backed_off_why: string | null
  /** The provider blocks the source address; null: it does not */ blocked: { site: string; provider: string; state: 'closed' | 'probing' | 'listed'; reply: string; times: number; since: string; until: string } | null
  override: SiteOrder | null
  /** Since when the oldest is due; null: none is */ oldest_due: string | null
}

/** The links and images of a captured message, called */
export interface LinkCheck {
  /** Up to 50 of them */ items: ({ url: string; kind: 'link' | 'image'; state: 'ok' | 'failed' | 'not called'; status: number | null; reason: string | null; redirects: string[] })[]
  /** Further ones, which were not called */ left_out: number
}

/** How people come onto a mailing list */
export interface ListConsent {
  /** What people call the list; empty: it is no topic of the preference page */ title: string
  /** Language of the confirmation mail */ language: 'en' | 'de' | 'fr' | 'es' | 'it' | 'nl' | 'pl' | 'pt'
  /** Added members are asked first, unless the call says otherwise */ confirm: boolean
  /** Anybody may ask for a confirmation mail by the hosted form */ form: boolean
  /** Address of the form; absent: it is off */ form_url?: string
  /** The form as HTML for other sites; absent: it is off */ form_html?: string
  /** Where the form leads; absent: to a page of the service */ redirect_url?: string
  /** Stored template of the confirmation mail; absent: the built-in text */ template?: string
  /** Stored template of the list's pages; absent: the built-in pages */ page_template?: string
  /** Days for which a member may confirm */ expire_days: number
}

/** A member of an upload was refused */
export interface ListMemberUploadErrorEvent {
  /** Type of the event */ event: 'list_member_upload_error'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'error'
  account?: EventAccount
  /** Id of the upload */ 'task-id': string
  /** The list */ 'mailing-list': { address: string }
  /** Format of the upload */ format: 'json' | 'csv'
  /** The member as given */ 'member-description': string
  /** Why */ error: { message: string }
}

/** A member was added to a list or changed */
export interface ListMemberUploadedEvent {
  /** Type of the event */ event: 'list_member_uploaded'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Id of the upload */ 'task-id': string
  /** The list */ 'mailing-list': { address: string }
  /** The member */ member: { address: string; name: string; subscribed: boolean }
}

/** An upload to a list has ended */
export interface ListUploadedEvent {
  /** Type of the event */ event: 'list_uploaded'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Id of the upload */ 'task-id': string
  /** The list */ 'mailing-list': { address: string }
  /** Format of the upload */ format: 'json' | 'csv'
  /** Whether the members get mail */ subscribed: boolean
  /** Whether members that were there are changed */ 'is-upsert': boolean
  /** Members that were added or changed */ 'upserted-count': number
  /** Members that were refused */ 'failed-count': number
}

/** A blocklist that has an address */
export interface ListedAddress {
  /** Zone of the list, without a key */ list: string
  /** Name of the list */ name: string
  /** When it was found there first */ first_seen: string
  /** When it was found there last */ last_seen: string
  /** Nobody asks for removal here */ delist_requested_at: '0001-01-01T00:00:00Z'
  /** Where an entry is looked up and removed */ comments: string[]
}

/** A blocklist that has a domain */
export interface ListedDomain {
  /** Zone of the list, without a key */ list: string
  /** Name of the list */ name: string
  /** When it was found there first */ first_seen: string
  /** When it was found there last */ last_seen: string
  /** Where an entry is looked up and removed */ comments: string[]
}

/** A DKIM key in a list */
export interface ListedDomainKey {
  /** The domain in whose name the key signs */ signing_domain: string
  /** Selector */ selector: string
  /** Its record */ dns_record: { name: string; record_type: 'TXT' | 'CNAME' | 'A' | 'AAAA' | 'MX'; priority?: string; value: string; cached: string[]; valid: 'VALID' | 'UNKNOWN'; is_active: boolean }
}

/** An event; it has the members that apply */
export interface LogItem {
  /** Unique for ever */ id: string
  /** Type of the event */ event: 'accepted' | 'delivered' | 'failed' | 'rejected' | 'opened' | 'clicked' | 'unsubscribed' | 'complained' | 'stored' | 'list_member_uploaded' | 'list_member_upload_error' | 'list_uploaded'
  /** When it happened, to the millisecond */ '@timestamp': string
  /** How serious it is */ 'log-level': 'info' | 'warn' | 'error'
  /** Whose it is */ account: { id: string; 'parent-id'?: string }
  /** The domain */ domain: { name: string }
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message as JSON, at most 4 KB */ 'user-variables': string
  /** How the message was given: HTTP or SMTP */ method?: string
  /** Address of the sender */ 'originating-ip'?: string
  /** Id of the API key or SMTP credential */ 'api-key-id'?: string
  /** Parameters, and header fields under the prefix, that were not understood; present if there were any */ ignored?: string[]
  /** When delivery ends; Unix seconds */ 'deliver-by'?: number
  /** When the message was delivered; Unix seconds */ 'delivered-at'?: number
  /** Address of the recipient */ recipient?: string
  /** Its domain */ 'recipient-domain'?: string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider'?: string
  /** Of a failure; temporary: another attempt follows */ severity?: 'temporary' | 'permanent'
  /** Why it failed or was rejected */ reason?: string
  /** Why it was rejected */ reject?: { reason: string; description: string }
  /** Rule that classified the reply */ 'i-classification-rule-id'?: string
  'delivery-status'?: DeliveryStatus
  /** send-time: delivered at the best time of the recipient */ 'i-delivery-optimizer'?: string
  /** Name of the DKIM key that signed it */ 'primary-dkim'?: string
  /** Envelope */ envelope?: { sender?: string; targets?: string; transport?: 'smtp' | 'http'; 'sending-ip'?: string; 'i-ip-pool-id'?: string; 'i-ip-pool-name'?: string }
  /** The message */ message?: { headers: { 'message-id': string; to?: string; from?: string; subject?: string }; attachments?: EventAttachment[]; recipients?: string[]; size?: number; 'scheduled-for'?: number }
  /** Where the message can be read while it is kept */ storage?: { key: string; url: string[]; region: string; env: string }
  /** Kind of the message and of the attempt */ flags?: { 'is-authenticated'?: boolean; 'is-routed'?: boolean; 'is-big'?: boolean; 'is-system-test'?: boolean; 'is-test-mode'?: boolean; 'is-delayed-bounce'?: boolean; 'is-callback'?: boolean }
  template?: EventTemplate
  /** The batch that the message is of */ batch?: { id: string }
  /** The mailing list */ 'mailing-list'?: { address: string; 'list-id'?: string; sid?: string }
  /** Routes that matched received mail */ routes?: EventRoute[]
  /** Target of the link */ url?: string
  /** Address of the client */ ip?: string
  'client-info'?: ClientInfo
  geolocation?: Geolocation
  /** Id of an upload of members */ 'task-id'?: string
  /** Format of the upload */ format?: 'json' | 'csv'
  /** The member */ member?: { address: string; name: string; subscribed: boolean }
  /** The refused member as given */ 'member-description'?: string
  /** Why it was refused */ error?: { message: string }
  /** Whether the members get mail */ subscribed?: boolean
  /** Whether members that were there are changed */ 'is-upsert'?: boolean
  /** Members that were added or changed */ 'upserted-count'?: number
  /** Members that were refused */ 'failed-count'?: number
}

/** A page, with tokens of the pages around it */
export interface LogsResult {
  /** As given, else RFC 2822 */ start: string
  /** As given, else RFC 2822 */ end: string
  /** The events of this page */ items: LogItem[]
  /** Tokens */ pagination: { previous?: string; first?: string; next?: string; last?: string; total?: number }
  /** Counts; empty without include_totals */ aggregates: { all?: number; metrics?: Record<string, number>; partial?: true }
}

/** A mailing list */
export interface MailingList {
  /** Address of the list */ address: string
  /** Display name; may be empty */ name: string
  /** What the list is for; may be empty */ description: string
  /** Who may post */ access_level: 'readonly' | 'members' | 'everyone'
  /** Where replies go; readonly lists always act as sender */ reply_preference: 'sender' | 'list'
  /** When it was created */ created_at: string
  /** Number of members, unsubscribed ones included */ members_count: number
}

/** A member of a mailing list */
export interface MailingListMember {
  /** Address of the member */ address: string
  /** Name of the member; may be empty */ name: string
  /** Variables for posts */ vars: Record<string, unknown>
  /** The member gets copies */ subscribed: boolean
  /** It was asked and has not confirmed yet; absent otherwise */ pending?: true
}

/** A page of members by address */
export interface MailingListMemberPage {
  /** The items of this page */ items: MailingListMember[]
  paging: Paging
}

/** A page of lists by address */
export interface MailingListPage {
  /** The items of this page */ items: MailingList[]
  paging: Paging
}

/** What was done, or what is wrong */
export interface Message {
  /** The text */ message: string
}

/** One check of a message */
export interface MessageCheck {
  /** Name */ name: string
  /** Result */ state: 'ok' | 'warning' | 'failed'
  /** What is so, and what to change */ sentence: string
  /** What the sentence is about, by name */ figures: Record<string, string | number | boolean | null | string[] | Record<string, string[]>>
}

/** The checks of a message */
export interface MessageChecks {
  /** The worst of the checks */ state: 'ok' | 'warning' | 'failed'
  /** In the order of acceptance, authentication, content, spam */ checks: MessageCheck[]
}

/** Kind of the message */
export interface MessageFlags {
  /** Sent in test mode: nothing is delivered */ 'is-test-mode': boolean
}

/** The monthly limit and its use */
export interface MessageLimit {
  /** Recipients per calendar month in UTC */ limit: number
  /** Recipients accepted in this month (accounts.md section 5), those of subaccounts included */ current: number
  /** A calendar month */ period: '1m'
}

/** Figures of one combination of values */
export interface MetricsItem {
  /** The values, in the order of the request */ dimensions: ({ dimension: 'time' | 'domain' | 'subaccount' | 'ip' | 'ip_pool' | 'tag' | 'recipient_domain' | 'recipient_provider' | 'country' | 'device' | 'bot'; value: string; display_value: string })[]
  /** By name of metric */ metrics: Record<string, number | string | null>
}

/** One item for each combination of values with data */
export interface MetricsResult {
  /** Start of the first interval */ start: string
  /** Start of the last interval, which is included */ end: string
  /** Length of the intervals */ resolution: 'hour' | 'day' | 'month'
  /** As asked, else in days */ duration: string
  /** As asked */ dimensions: string[]
  /** The page */ pagination: { sort: string; skip: number; limit: number; total: number }
  /** The items of this page */ items: MetricsItem[]
  /** The same over all items */ aggregates: { metrics: Record<string, number | string | null> }
}

/** A domain that is looked up in blocklists */
export interface MonitoredDomain {
  /** Id of the account */ acid: string
  /** When it was added; Unix seconds */ created_at: number
  /** Name of the domain */ name: string
  /** By service, whether it is on */ services: Record<string, boolean>
  /** The TXT record of the domain that verifies it; empty for a sending domain */ txt_record: string
  /** Whether it is looked up */ verified: { status: 'sending' | 'inbox_ready' | 'pending' | 'failed'; verified_at: number }
}

/** A page, by name */
export interface MonitoredDomains {
  /** The items of this page */ items: MonitoredDomain[]
  paging: Paging
}

/** An address that is looked up in blocklists */
export interface MonitoredIp {
  /** Address */ ip: string
  /** As the account says; may be empty */ ip_pool: string
  /** As the account says; may be empty */ description: string
  /** `unknown`: no list has answered usably yet */ state: 'healthy' | 'listed' | 'unknown'
  /** Lists that have it */ listed: ListedAddress[]
}

/** An API key with its secret */
export interface NewApiKey {
  /** Identifier, also the end of the secret */ id: string
  /** Free text; empty if none was given */ description: string
  /** `domain` sends for one domain, `web` is of a user and short-lived */ kind: 'domain' | 'user' | 'web'
  /** Rights */ role: 'admin' | 'basic' | 'sending' | 'developer' | 'support'
  /** When it was created, UTC: `2026-01-31T12:00:00` */ created_at: string
  /** Last change, UTC */ updated_at: string
  /** When it expires, UTC; absent: never */ expires_at?: string
  /** Whether it is refused */ is_disabled: boolean
  /** Why; only if it is disabled */ disabled_reason?: string
  /** The domain that a key of kind `domain` sends for */ domain_name: string | null
  /** Mail address that was given with it */ requestor: string | null
  /** Free text */ user_name: string | null
  /** The pod that has the key; only where there are pods */ pod?: string
  /** Shown once */ secret: string
}

/** A process on the database */
export interface Node {
  /** Identifier */ id: string
  /** It is the one that answers this call */ answers: boolean
  /** Host that it runs on */ host: string
  /** What it does */ roles: ('api' | 'smtp' | 'delivery' | 'jobs')[]
  /** Addresses that it can send from */ addresses: string[]
  /** Version of Sendwright */ version: string
  /** Whether it is about to end */ state: 'running' | 'stopping'
  /** Its start */ started_at: string
  /** Its last sign of life */ last_seen_at: string
  /** How long ago that was */ silent_seconds: number
}

/** How opens are tracked */
export interface OpenTracking {
  /** Opens are tracked */ active: boolean
  /** The pixel is at the beginning of the html */ place_at_the_top: boolean
}

/** The message was opened */
export interface OpenedEvent {
  /** Type of the event */ event: 'opened'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': ClientInfo
  geolocation: Geolocation
  /** When the message was delivered; if known; Unix seconds */ 'delivered-at'?: number
}

/** The message was opened */
export interface OpenedWebhook {
  /** Type of the event */ event: 'opened'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': WebhookClientInfo
  geolocation: WebhookGeolocation
  /** When the message was delivered; if known; Unix seconds */ 'delivered-at'?: number
  /** The domain of the message */ domain: { name: string }
}

/** An alert of the service that lasts */
export interface OwnAlert {
  /** Which check */ name: string
  /** What `dimension_value` is; absent: the whole service */ dimension?: string
  /** Which one is at fault; present with `dimension` */ dimension_value?: string
  /** Last value */ latest_value: string
  /** When it began */ since: string
  /** What to do */ advice: string
}

/** The own user */
export interface OwnProfile {
  /** Identifier */ id: string
  /** Mail address, which the user signs in with */ email: string
  /** Shown in lists */ name: string
  /** Rights */ role: 'basic' | 'billing' | 'support' | 'developer' | 'admin'
  /** With a password, or with the OpenID Connect provider */ sign_in: 'password' | 'oidc'
  /** When it was set; null: there is none */ password_updated_at: string | null
  /** Since when; null: no authenticator app */ totp_created_at: string | null
  /** How many there are */ passkeys: number
  /** Those that were not used yet */ recovery_codes_left: number
  /** Of dates; null: English */ language: string | null
  /** Of dates; null: as the browser has it */ time_zone: string | null
}

/** What is wrong with a record of the service */
export interface OwnRecordFault {
  /** What to publish; the first is enough */ records: ({ purpose: 'host' | 'mx-target' | 'tracking-target' | 'spf-include'; name: string; type: 'A' | 'AAAA' | 'CNAME' | 'TXT'; value: string | null })[]
  /** missing: there is none that can be used; elsewhere: it leads to other addresses */ state: 'missing' | 'elsewhere' | 'unanswered'
  /** What DNS had */ found: string[]
  /** What is wrong and which record to make */ sentence: string
}

/** Links to the pages around this one */
export interface Paging {
  /** Address of the previous page */ previous: string
  /** Address of the first page */ first: string
  /** Address of the next page */ next: string
  /** Address of the last page */ last: string
}

/** A passkey of a user */
export interface Passkey {
  /** Identifier */ id: string
  /** As its owner calls it */ name: string
  /** When it was added */ created_at: string
  /** When it was last used; null: never */ last_used_at: string | null
}

/** What the browser makes a passkey with */
export interface PasskeyCreation {
  /** Whom it is for */ rp: { id: string; name: string }
  /** Whose it is */ user: { id: string; name: string; displayName: string }
  /** To be signed, valid once within five minutes */ challenge: string
  /** Kinds of keys */ pubKeyCredParams: ({ type: 'public-key'; alg: number })[]
  /** For how long the browser may ask */ timeout: number
  /** Nobody asks for the make */ attestation: 'none'
  /** Those that the user has */ excludeCredentials: ({ type: 'public-key'; id: string; transports: string[] })[]
  /** What it should be able to do */ authenticatorSelection: { residentKey: 'preferred'; userVerification: 'preferred' }
}

/** What the browser asks a passkey for */
export interface PasskeyRequest {
  /** To be signed, valid once within five minutes */ challenge: string
  /** Host that the passkey belongs to */ rpId: string
  /** For how long the browser may ask */ timeout: number
  /** Whether a PIN, finger or face is needed */ userVerification: 'required' | 'preferred'
  /** Those that may sign; empty: any of the host */ allowCredentials: ({ type: 'public-key'; id: string; transports: string[] })[]
}

/** A periodic job */
export interface PeriodicJob {
  /** Name */ name: string
  /** From one run to the next */ interval_seconds: number
  /** It runs now */ running: boolean
  /** Null: not yet */ last_started_at: string | null
  /** Null: not yet */ last_ended_at: string | null
  /** Of the last run, if it failed */ last_error: string | null
}

/** Entries of a store */
export interface PersonCount {
  /** That name the person */ found: number
  /** Of those, in the archive */ exported?: number
  /** Of those, removed */ erased?: number
  /** Of those, changed: a pseudonym stands for the address */ pseudonymised?: number
  /** Of those, unchanged; the report says why */ kept?: number
}

/** What became of the data of a person, signed */
export interface PersonReport {
  /** What is signed */ report: { id: string; kind: 'export' | 'erase'; dry_run: boolean; address_hash: string; scope: 'account' | 'service'; created_at: string; finished_at: string; counts: Record<string, PersonCount>; kept: ({ store: string; why: string })[]; backups: ({ kind: 'backup' | 'copy before an upgrade'; made_at: string })[]; left: string[] }
  /** Of the report */ signature: { algorithm: 'hmac-sha256'; key: 'http_signing_key'; value: string }
}

/** An export or an erasure of what is stored about a person */
export interface PersonTask {
  /** Id */ id: string
  /** What is done */ kind: 'export' | 'erase'
  /** It only counts */ dry_run: boolean
  /** Stands for the address: the same for the same address */ address_hash: string
  /** How far it is */ state: 'queued' | 'running' | 'done' | 'failed'
  /** By store; stores without an entry are left out */ counts: Record<string, PersonCount>
  /** When it was asked for */ created_at: string
  /** When it ended */ finished_at: string | null
  /** When the archive is removed; present while there is one */ download_until?: string
  /** Why it failed; present then */ error?: string
}

/** How many copies are where */
export interface PlacementCounts {
  /** Copies that arrived */ delivered: number
  /** Copies that did not arrive in time */ missing: number
  /** Copies that are waited for */ pending: number
  /** Copies among spam */ spam: number
  /** Copies that arrived elsewhere than among spam */ inbox: number
  /** All copies */ total: number
  /** The provider, or all */ provider: string
  /** By category; primary, promotions and updates are always present */ categories: Record<string, number>
}

/** Where the copies of a test were seen */
export interface PlacementResult {
  /** Identifier of the result */ Id: string
  /** Identifier of the result */ rid: string
  /** Identifier of the result */ result_id: string
  /** The account; empty in a shared result */ AccountID: string
  /** Identifier of the list */ KeyBoxID: string
  /** Address of the list; empty: it was deleted */ keybox_email: string
  /** Subject of the message */ subject: string
  /** Address of the author */ sender: string
  /** Name of the list; empty: it was deleted */ seedlist_name: string
  /** How far the test is */ status: 'processing' | 'completed'
  /** When it was created */ created_at: string
  /** When it was last changed */ updated_at: string
  /** Always empty */ attributes: Record<string, never>
  /** Always empty */ campaign_id: string
  /** The result can be seen without a key */ sharing_enabled: boolean
  /** Identifier of the link */ sharing_id: string
  /** When the link ends */ sharing_expires_at: string
  /** The list */ Box: SeedList | { Id: string; kid: string; created_at: string; updated_at: string; last_result_at: string; Seeds: Seed[] | null }
  /** By seed */ seed_results: ({ email: string; provider: string; destination: string; state: 'pending' | 'delivered' | 'missing'; originating_ip: string; tags: string[]; dkim: string; spf: string; dmarc: string; headers: ({ key: string; value: string })[]; extensions: { category: string; seconds?: number; problem?: string } })[]
  /** The scorer's view of the message; absent without a scorer, a score or seeds */ spamassassin?: { is_spam: boolean; score: number; required?: number; rules: string[] }
  /** By provider */ delivery_stats: Record<string, PlacementCounts>
}

/** A page */
export interface PlacementResultPage {
  /** The items of this page */ items: PlacementResult[]
  paging: Paging
  /** Number of items on all pages */ total: number
}

/** Whether a result can be seen without a key */
export interface PlacementSharing {
  /** Identifier of the result */ result_id: string
  /** When the link ends */ expires_at: string
  /** Shared or not */ enabled: boolean
  /** Identifier of the link */ url_id: string
  /** The link */ url: string
  /** The same as url */ api_url: string
}

/** Figures of a provider */
export interface ProviderReasons {
  /** Name of the mailbox provider */ provider: string
  /** Accepted messages */ accepted: number
  /** Deliveries */ delivered: number
  /** Failed attempts that are repeated */ temporary_failed: number
  /** Failures for good */ permanent_failed: number
  /** Openings */ opened: number
  /** Unique openings */ unique_opened: number
  /** Clicks */ clicked: number
  /** Unique clicks */ unique_clicked: number
  /** Complaints */ complained: number
  /** Classes of failures */ failures: FailureClass[]
}

/** What waits for a domain */
export interface QueueDomain {
  /** Domain name */ domain: string
  /** Deliveries that wait */ queued: number
  /** Those of them that were tried before */ deferred: number
  /** Those that are paused */ paused: number
  /** When the oldest was accepted */ oldest: string | null
}

/** A delivery that is not done */
export interface QueuedDelivery {
  /** Identifier of the delivery */ id: string
  /** Mail address */ recipient: string
  /** Where it is */ state: 'scheduled' | 'queued' | 'sending' | 'delivered' | 'bounced' | 'expired' | 'suppressed' | 'rejected' | 'cancelled'
  /** Attempts so far */ attempts: number
  /** When the message was accepted */ created_at: string
  /** Last change */ updated_at: string
  /** Next attempt; null: it does not wait for one */ next_attempt_at: string | null
  /** When it is given up */ expires_at: string
  /** Why it has not been sent yet, or how it ended */ reason: { code: string; sentence: string }
  /** Last lane of mail from this domain to this destination; null: none is known */ lane: string | null
  /** Last reply of a server; null: there was none */ last_reply: { code: number; text: string } | null
  /** Whose it is */ account_id: string
  /** Sending domain */ domain: string
  /** Message-Id without angle brackets */ message_id: string
}

/** A page of deliveries that are not done, oldest first */
export interface QueuedDeliveryPage {
  /** The items of this page */ items: QueuedDelivery[]
  paging: Paging
}

/** What the lists of an account say of an address */
export interface Recipient {
  /** The address, in lower case */ address: string
  /** Suppressions and entries of the allowlist, of all domains; up to 1,000 */ suppressions: RecipientSuppression[]
  /** Mailing lists; up to 1,000 */ lists: RecipientMembership[]
}

/** A mailing list that an address is on */
export interface RecipientMembership {
  /** Address of the list */ address: string
  /** Name of the list; may be empty */ title: string
  /** Name of the member; may be empty */ member_name: string
  /** The member gets copies */ subscribed: boolean
  /** It was asked and has not confirmed yet */ pending: boolean
}

/** A record of an address in a list of a domain */
export interface RecipientSuppression {
  /** Sending domain */ domain: string
  /** The list */ kind: 'bounces' | 'complaints' | 'unsubscribes' | 'whitelists'
  /** SMTP code of a bounce; else empty */ code: string
  /** Error text of a bounce, reason of an entry of the allowlist; else empty */ detail: string
  /** Tags that an unsubscribe is for; * is all mail */ tags: string[]
  /** When it was added */ created_at: string
  /** When it ends; null: never */ expires_at: string | null
}

/** The message was accepted, and refused before delivery */
export interface RejectedEvent {
  /** Type of the event */ event: 'rejected'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'warn'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  message: EventMessage
  storage?: EventStorage
  /** Why */ reject: { reason: string; description: string }
  flags: MessageFlags
}

/** A server that takes mail for others */
export interface Relay {
  /** Name, part of the names of its lanes */ name: string
  /** It comes from SENDWRIGHT_DELIVERY, and is changed there */ from_setting: boolean
  /** Host name or address */ host: string
  /** Port */ port: number
  /** STARTTLS, TLS from the first byte, or none */ tls: 'starttls' | 'implicit' | 'none'
  /** Its certificate need not verify */ allow_unverified: boolean
  /** Login; null: none */ login: { mechanism: 'auto' | 'plain' | 'login' | 'cram-md5' | 'xoauth2' | 'oauthbearer'; username: string; has_password: boolean; oauth: { token_url: string; client_id: string; scope: string | null; grant: 'client_credentials' | 'refresh_token' | 'jwt_bearer'; client_auth: 'body' | 'basic'; has_client_secret: boolean; has_refresh_token: boolean; expires_at: string | null; error: string | null; error_at: string | null } | null } | null
  /** Limits */ limits: { connections: number | null; messages_per_connection: number | null; messages_per_second: number | null; messages_per_day: number | null; max_message_size: number | null }
  /** What it changes in messages */ alters: { return_path: boolean; message_id: boolean }
  /** Envelope sender of all its mail; null: a return path for each delivery */ return_path: string | null
  /** Accounts whose messages may ask for it with o:relay; the first account always may */ offered_to: 'all' | string[]
  /** Whether it is used */ state: { word: 'open' | 'closed' | 'probing'; why: string | null; since: string | null; until: string | null; times: number }
  /** It gets no mail; null: it is not paused */ pause: { reason: string; since: string; until: string | null } | null
  /** Messages of this day (UTC); null: they are not limited */ used_today: number | null
  /** Of this process */ since_start: { accepted: number; failed: number }
  /** When it was made; null: it comes from the setting */ created_at: string | null
  /** When it was changed last; null: it comes from the setting */ updated_at: string | null
}

/** Which relays take which mail */
export interface RelayRule {
  /** All that is given must hold; empty: any mail */ match: { domain?: string; pool?: string; account_id?: string; provider?: string; recipient_domain?: string }
  /** In order: the next level is used while no relay of this one is */ levels: (({ relay: string; weight?: number })[])[]
}

/** What a relay has answered to one message */
export interface RelayTest {
  /** It has accepted the message */ accepted: boolean
  /** Its last reply, or why there is none */ result: string
  /** The connection had TLS */ tls: boolean
  /** Its certificate was valid */ verified: boolean
  /** The dialogue, without secrets */ lines: ({ ms: number; direction: 'sent' | 'received'; line: string })[]
}

/** A captured message that was released */
export interface ReleasedMail {
  /** Recipients that the server took it for */ accepted: number
  /** What the server said for each */ recipients: ({ address: string; accepted: boolean; reply: string })[]
}

/** The rendered parts, or what is wrong with them */
export interface RenderedTemplate {
  /** The Subject header; null: the template has none */ subject: string | null
  /** The headers that the template has */ headers: Record<string, string>
  /** HTML part; empty after an error */ html: string
  /** Text part, made from the HTML */ text: string
  /** Variables that had no value */ missing: string[]
  /** Variables that content and headers use; names of blocks count, whatever is shown */ variables: ({ path: string[]; kind: 'text' | 'list' | 'condition' })[]
  /** What is wrong; empty: nothing */ errors: string[]
}

/** What a source has answered now */
export interface ReputationSourceTest {
  /** It could be read */ ok: boolean
  /** What it has answered, or why it could not be read */ result: string
}

/** How long data of a kind is kept */
export interface Retention {
  /** Kind of data */ kind: string
  /** The kind in plain words */ title: string
  /** Personal data in it; null: none */ personal: string | null
  /** Tables of the database that hold it */ tables: string[]
  /** Days that it is kept, a fraction where message_ttl is not of whole days; 0: no longer than until it is finished; null: until somebody removes it */ days: number | null
  /** Since when the days count */ since: string
  /** Who says so */ source: 'fixed' | 'service' | 'account' | 'domain' | 'message_ttl'
  /** Setting of the operator; null: none */ setting: string | null
  /** What this account, or this domain, has set; null: nothing */ own_days: number | null
  /** The least that may be set; null: it cannot be set */ min_days: number | null
  /** The most that may be set; null: it cannot be set */ max_days: number | null
}

/** Automatic sender security of a domain */
export interface RotationDomain {
  /** Identifier of the domain */ id: string
  /** Account of the domain */ account_id: string
  /** Label of the domain in the DKIM zone */ sid: string
  /** Name of the domain */ name: string
  /** wait_verify: on, but its records are not found yet */ state: 'disabled' | 'wait_verify' | 'enabled'
  /** Selector that signs; absent: none yet */ active_selector?: string
  /** Keys are rotated from time to time; as text */ rotation_enabled: 'true' | 'false'
  /** Days or hours between rotations */ rotation_interval: string
  /** CNAME records to publish */ records: ({ name: string; type: 'CNAME'; identifier: 'DKIM'; value: string; comment: string })[]
}

/** What is done with received mail of a kind */
export interface Route {
  /** 24 hex digits */ id: string
  /** Routes are evaluated from the lowest number to the highest */ priority: number
  /** For people */ description: string
  /** Which mail */ expression: string
  /** What is done, in this order */ actions: string[]
  /** When it was made */ created_at: string
}

/** Routes in the order of evaluation */
export interface RouteList {
  /** Number of all routes of the account */ total_count: number
  /** The routes asked for */ items: Route[]
}

/** Final failures by one rule */
export interface RuleBounces {
  /** Rule that matched */ 'rule-id': string
  /** Category of the rule */ category: 'BOUNCE' | 'ESPBLOCK' | 'BLACKLISTED' | 'CONTENT' | 'AUTHENTICATION' | 'RATELIMIT' | 'GREYLISTED' | 'MAILBOXFULL' | 'TECHNICAL' | 'GENERIC'
  /** Only final failures are counted */ severity: 'PERMANENT'
  /** The newest reply that matched, with addresses masked, or one that would match */ 'sample-text'?: string
  /** What the failure means, and what to do */ explanation: string
  /** Final failures */ bounced: { total: number }
}

/** An address that sandbox domains may send to */
export interface SandboxRecipient {
  /** Mail address */ email: string
  /** Its owner has agreed */ activated: boolean
}

/** A scanner of mail */
export interface Scanner {
  /** Which */ scanner: 'rspamd' | 'spamd' | 'clamd'
  /** Mail that it scans */ directions: ('outbound' | 'inbound')[]
  /** Answers since the start */ answered: number
  /** Questions without one */ failed: number
  /** Null: not yet */ last_answered_at: string | null
  /** Null: not yet */ last_failed_at: string | null
  /** Of the last failure */ last_error: string | null
}

/** Mail that is not due yet */
export interface ScheduledMessage {
  /** Message-Id without angle brackets */ message_id: string
  /** Its key, to read it */ storage_key: string
  /** Sending domain */ domain: string
  /** When the first copy is due */ deliverytime: string
  /** When it was accepted */ accepted_at: string
  /** Header field */ from: string
  /** Header field */ to: string
  /** Header field */ subject: string
  /** Tags */ tags: string[]
  /** Copies that still wait */ recipients: number
}

/** Mail that is not due yet, by due time */
export interface ScheduledPage {
  /** The items of this page */ items: ScheduledMessage[]
  /** Links */ paging: { first: string; next: string }
}

/** A test mailbox at a receiver */
export interface Seed {
  /** The account; empty in a shared result */ AccountID: string
  /** Its address in lower case */ id: string
  /** Its address */ email: string
  /** Domain of the receiver */ provider: string
  /** When the file of seeds last changed */ created_at: string
  /** The same as created_at */ updated_at: string
  /** The same as created_at */ max_email_count_hit_at: string
  /** Further properties */ attributes: { region: string }
  /** Newest test of the list; without one the same as created_at */ last_sent_to_at: string
  /** The same as last_sent_to_at */ last_delivered_at: string
  /** Whether the copy was seen */ sync_state?: 'pending' | 'delivered' | 'missing'
}

/** A list of test mailboxes */
export interface SeedList {
  /** Identifier of the list */ Id: string
  /** Identifier of the list */ kid: string
  /** When it was created */ created_at: string
  /** When it was last changed */ updated_at: string
  /** Newest test; without one the same as created_at */ last_result_at: string
  /** Identifier of the list */ ID: string
  /** The account; empty in a shared result */ AccountID: string
  /** Shown name */ name: string
  /** Address that names the list; it receives no mail */ target_email: string
  /** Domains that send to the list */ sending_domains: string[]
  /** Addresses of seeds, separated by commas; empty: all */ seed_filter: string
  /** Providers of seeds, separated by commas; empty: all */ provider_filter: string
  /** Always empty */ mailing_list: string
  /** A test was made with it */ has_results: boolean
  /** Null: there are none, or results in pages do not show them */ Seeds: Seed[] | null
  /** Further properties */ tags: { remote_id?: string }
  /** Copies of the newest test */ delivery_stats: { all: PlacementCounts }
  /** Number of seeds */ SeedQuality: number
  /** The list of all seeds, which the service makes */ is_auto_generated: boolean
}

/** A page */
export interface SeedListPage {
  /** The items of this page */ items: SeedList[]
  paging: Paging
  /** Number of items on all pages */ total: number
}

/** A provider that has seeds */
export interface SeedProvider {
  /** Domain of the receiver */ domain: string
  /** Shown name */ display_name: string
  /** Region; may be empty */ region: string
  /** When the file of seeds last changed */ created_at: string
  /** The same as created_at */ updated_at: string
}

/** A rule, and whether the domain follows it */
export interface SenderRuleFinding {
  /** The rule */ rule: 'spf' | 'dkim' | 'dmarc' | 'spam-rate' | 'one-click-unsubscribe' | 'reply-address' | 'list-hygiene' | 'bimi'
  /** Who has to follow it */ required_of: 'everybody' | 'bulk senders' | 'nobody'
  /** Whose rule it is */ required_by: ('gmail' | 'yahoo' | 'microsoft')[]
  /** The domain follows it; null: it cannot be said */ passed: boolean | null
  /** What was found, and what to change */ sentence: string
  /** What was measured, with four decimals; only for spam-rate and list-hygiene */ figure?: string
  /** What the figure must be below; only for spam-rate and list-hygiene */ limit?: string
}

/** How much a domain sends to one provider */
export interface SenderRuleProvider {
  /** Gmail; Yahoo with AOL; Outlook.com with Hotmail and Live */ provider: 'gmail' | 'yahoo' | 'microsoft'
  /** More than 5,000 messages on the busiest day */ is_bulk_sender: boolean
  /** Messages for it on the busiest of the last 30 days */ busiest_day: number
}

/** A finding for each rule */
export interface SenderRules {
  /** A bulk sender for one of the providers */ is_bulk_sender: boolean
  /** The greatest figure of the providers */ busiest_day: number
  /** All providers, each judged by its own mail */ providers: SenderRuleProvider[]
  /** All rules */ rules: SenderRuleFinding[]
}

/** What was sent, and what came of it */
export interface SendingFigures {
  /** Messages delivered or refused for good */ sent: number
  /** Hard bounces */ bounced: number
  /** Those of them that say that there is no such user */ unknown_users: number
  /** Complaints */ complained: number
  /** Messages delivered to spam traps */ spam_trap_hits: number
  /** Messages that the outbound check has judged */ checked: number
  /** Those of them with bad content */ bad_content: number
}

/** One of the queues of a domain */
export interface SendingQueue {
  /** It takes no mail now */ is_disabled: boolean
  /** Empty texts where it is not disabled */ disabled: { until: string; reason: string }
}

/** The queues of a domain */
export interface SendingQueues {
  regular: SendingQueue
  scheduled: SendingQueue
}

/** Limits by provider in force */
export interface Shaping {
  /** Version of the table */ version: string
  /** Path of the operator's file; null: there is none */ file: string | null
  /** When it was read */ loaded_at: string
  /** What is wrong with the newest file, if it is not in force */ faults: string[]
  /** Where no provider is known */ default: { prefer: 'ipv4' | 'ipv6' | 'ipv4-only' | 'ipv6-only' | null; connections: number; messages_per_connection: number; messages_per_second: number | null; recovery_seconds: number; blocked_pause_seconds: number; blocked_pause_max_seconds: number; replies: ({ code: string; patterns: string[]; action: 'slow-down' | 'fewer-connections' | 'ignore' | 'block' })[] }
  /** Providers */ providers: ({ site: string; mx: string[]; prefer: 'ipv4' | 'ipv6' | 'ipv4-only' | 'ipv6-only' | null; connections: number; messages_per_connection: number; messages_per_second: number | null; recovery_seconds: number; blocked_pause_seconds: number; blocked_pause_max_seconds: number; replies: ({ code: string; patterns: string[]; action: 'slow-down' | 'fewer-connections' | 'ignore' | 'block' })[] })[]
  /** What is ordered over them */ overrides: SiteOrder[]
}

/** A link that shows one figure */
export interface SharedFigure {
  /** Id of the link */ id: string
  /** Heading of its page */ title: string
  /** Key that made it, or session of a user or the operator */ key_id: string
  /** User of that key or session, with whose rights it ends */ user_id: string | null
  /** What is counted, as it was given */ query: Record<string, unknown>
  /** When it was made */ created_at: string
  /** Until when it is valid */ expires_at: string
}

/** What is ordered for a site */
export interface SiteOrder {
  /** The site, or the domain of recipients */ site: string
  /** Nothing is sent; null: it is */ pause: { reason: string; since: string; until: string | null } | null
  /** Limits in place of those of the shaping; null: none are ordered */ limits: { connections: number | null; rate: string | null; until: string | null } | null
}

/** A channel of Slack */
export interface SlackChannel {
  /** Id */ id: string
  /** Name */ name: string
  /** Nobody can write to it */ is_archived: boolean
}

/** A login for SMTP */
export interface SmtpCredential {
  /** Full address */ mailbox: string
  /** Full address */ login: string
  /** When it was made */ created_at: string
  /** Always null */ size_bytes: null
}

/** What Microsoft says of an address on a day */
export interface SndsAddress {
  /** Address */ ip_address: string
  /** Begin of the day */ date: string
  /** Recipients at Outlook.com */ recipients: number
  /** `GREEN`, `YELLOW` or `RED`: less than 10 %, up to 90 %, more are spam */ filter_result: string
  /** As Microsoft writes it */ complaint_rate: string
  /** Messages to spam traps */ trap_hits: number
  /** From when to when; empty: none */ trap_message_period: string
  /** Of the recipients, from 0 to 100 */ trap_percentage: number
  /** The address is blocked now */ is_blocked: boolean
  /** Why; empty: it is not */ block_text: string
}

/** How Microsoft SNDS is read */
export interface SndsReputationSource {
  /** The folder of data.aspx and ipStatus.aspx, https */ api_url: string
  /** When it was stored */ created_at: string
  /** When it was stored last */ updated_at: string
  /** When everything was read; null: not yet */ last_read_at: string | null
  /** When it is read next */ next_read_at: string
  /** Reads in a row that failed */ failures: number
  /** Why the last read failed; null: it did not */ error: string | null
  /** When that was */ error_at: string | null
  /** Since when reads have failed; null: the last one did not */ failing_since: string | null
  /** Newest day that was read; null: none yet */ read_through: string | null
}

/** A topic of Amazon SNS whose notifications are taken */
export interface SnsTopic {
  /** Its Amazon Resource Name */ arn: string
  /** URL to subscribe to it; keep it to yourself */ endpoint: string
  /** When the subscription was confirmed; null: there is none */ confirmed_at: string | null
  /** When it was named */ created_at: string
}

/** An address that only senders with a bad list write to */
export interface SpamTrap {
  /** In lower case */ address: string
  /** Free text */ note: string
  /** When it was named */ created_at: string
}

/** An account or a domain that is stopped */
export interface Standing {
  /** Its account */ account_id: string
  /** The domain; absent: the account as a whole */ domain?: string
  /** warned: it goes on as before */ state: 'warned' | 'slowed' | 'held'
  /** Which figure is too high */ code: 'spam-traps' | 'complaints' | 'bounces' | 'unknown-users' | 'bad-content'
  /** The same in words, with the figure and its limit */ reason: string
  figures: SendingFigures
  /** What it may send while it is slowed */ messages_per_minute?: number
  /** When it was stopped */ since: string
  /** When it is released by itself */ until: string
  /** Addresses of admins that a mail has gone to */ told: string[]
}

/** Figures that stop a sender; 0: not judged */
export interface StandingLimits {
  /** Hard bounces; percent */ bounce_percent: number
  /** No such user; percent */ unknown_user_percent: number
  /** Complaints; percent */ complaint_percent: number
  /** Bad content, of what the outbound check has judged; percent */ bad_content_percent: number
  /** Messages delivered to spam traps */ spam_trap_hits: number
  /** Time that is judged; hours */ window_hours: number
  /** Percentages of fewer messages are not judged */ min_messages: number
  /** What is left of the rate of a slowed sender; percent */ slow_percent: number
  /** How long a sender stays slowed or held; hours */ hold_hours: number
}

/** The policy of all accounts without one of their own */
export interface StandingPolicy {
  /** Which figures stop a sender */ policy: 'off' | 'standard' | 'strict' | 'custom'
  limits?: StandingLimits
  /** Messages on the first day of a new subaccount; 0: no budget */ new_account_daily: number
}

/** Statistics by interval or group */
export interface Stats {
  /** Start of the first interval */ start: string
  /** Start of the last interval, which is included */ end: string
  /** Length of the intervals */ resolution: 'hour' | 'day' | 'month'
  /** One entry per interval, also where nothing happened; or one per group */ stats: StatsEntry[]
}

/** Counts of an interval, or of a group */
export interface StatsEntry {
  /** Start of the interval */ time: string
  /** Messages taken in */ accepted?: { incoming: number; outgoing: number; total: number }
  /** Deliveries */ delivered?: { smtp: number; http: number; optimized: number; total: number }
  /** Failures */ failed?: { temporary: { espblock: number; total: number }; permanent: { 'suppress-bounce': number; 'suppress-unsubscribe': number; 'suppress-complaint': number; bounce: number; 'delayed-bounce': number; webhook: number; optimized: number; total: number } }
  /** Openings */ opened?: { total: number; unique: number }
  /** Clicks */ clicked?: { total: number; unique: number }
  /** Unsubscribes */ unsubscribed?: { total: number }
  /** Complaints */ complained?: { total: number }
  /** Stored messages */ stored?: { total: number }
  /** The group; only in grouped statistics */ type?: { type: string; key: string }
}

/** Counts of 30 days */
export interface StatsSums {
  /** Accepted messages */ accepted: number
  /** Deliveries */ delivered: number
  /** Openings */ opened: number
  /** Clicks */ clicked: number
  /** Unique openings */ unique_opened: number
  /** Unique clicks */ unique_clicked: number
  /** Unsubscribes */ unsubscribed: number
  /** Complaints */ complained: number
}

/** What takes the space */
export interface StorageUse {
  /** When it was measured */ measured_at: string
  /** The disk */ disk: { free_bytes: number; reserved_bytes: number; growth_bytes_per_day: number | null; full_at: string | null }
  /** The largest first */ kinds: ({ kind: 'messages' | 'events' | 'metrics' | 'webhooks' | 'dialogues' | 'tracking' | 'inbox' | 'audit' | 'suppressions' | 'validation' | 'reports' | 'lists' | 'templates' | 'settings' | 'files'; bytes: number; rows: number; growth_bytes_per_day: number | null; kept_days: number | null; limit_bytes: number | null })[]
}

/** A route stored received mail */
export interface StoredEvent {
  /** Type of the event */ event: 'stored'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  message: StoredEventMessage
  storage: EventStorage
  flags: MessageFlags
}

/** The message that was stored */
export interface StoredEventMessage {
  headers: EventMessageHeaders
  /** Attachments */ attachments: EventAttachment[]
  /** Size of the message; bytes */ size: number
  /** Addresses that the sender gave */ recipients: string[]
}

/** A file of a stored message */
export interface StoredFile {
  /** File name */ name: string
  /** Media type */ 'content-type': string
  /** Size; bytes */ size: number
  /** Address of its bytes, for calls with a key */ url: string
}

/** A stored message; what it lacks is an empty text */
export interface StoredMessage {
  /** Header field; empty where the message has none */ 'Content-Transfer-Encoding': string
  /** Header field; empty where the message has none */ 'Content-Type': string
  /** Header field */ From: string
  /** With its angle brackets */ 'Message-Id': string
  /** Header field; empty where the message has none */ 'Mime-Version': string
  /** Header field */ Subject: string
  /** Header field */ To: string
  /** Tags, separated by commas */ 'X-Service-Tag': string
  /** Name of the template */ 'X-Service-Template-Name': string
  /** Variables of the template, as JSON */ 'X-Service-Template-Variables': string
  /** Bare address of the envelope */ sender: string
  /** Header field */ from: string
  /** Header field */ subject: string
  /** Bare addresses, separated by commas */ recipients: string
  /** HTML part */ 'body-html': string
  /** Text part; made from the HTML where there is none */ 'body-plain': string
  /** HTML without what it quotes */ 'stripped-html': string
  /** Text without what it quotes, and without the signature */ 'stripped-text': string
  /** Signature of the text */ 'stripped-signature': string
  /** Header fields in their order */ 'message-headers': ([string, string])[]
  /** Attached files */ attachments: StoredFile[]
  /** Inline files by Content-ID, in angle brackets */ 'content-id-map': Record<string, StoredFile>
}

/** A stored message as MIME, for `Accept: message/rfc2822` */
export interface StoredMime {
  /** Bare addresses, separated by commas */ recipients: string
  /** The first of them */ recipient: string
  /** Bare address of the envelope */ sender: string
  /** Header field */ from: string
  /** Header field */ subject: string
  /** The whole message */ 'body-mime': string
}

/** An account as its parent sees it */
export interface Subaccount {
  /** Identifier */ id: string
  /** Unique among the subaccounts of the parent that are not closed */ name: string
  /** `disabled`: it may not send; `closed`: for good */ status: 'open' | 'disabled' | 'closed'
  /** When it was created */ created_at: string
  /** Last change */ updated_at: string
  /** Its features */ features: { email_preview: FeatureSwitch; inbox_placement: FeatureSwitch; sending: FeatureSwitch; validations: FeatureSwitch; validations_bulk: FeatureSwitch }
  /** The pod that has it; only where there are pods */ pod?: string
  /** Why; only while it is disabled */ disabled?: { reason: string; note: string }
}

/** When bounces of a domain suppress */
export interface SuppressionPolicy {
  /** Hard bounces within the window that suppress an address; 0: never */ hard_bounces_to_suppress: number
  /** The same for final failures other than hard bounces; 0: never */ soft_bounces_to_suppress: number
  /** Days in which bounces are counted */ window_days: number
  /** Days until an automatically added bounce expires; 0: never */ lifetime_days: number
}

/** The installation */
export interface System {
  /** Version of Sendwright */ version: string
  /** How mail leaves */ mode: 'capture' | 'direct' | 'relay'
  /** Captured mail may be released to real addresses */ inbox_release: boolean
  /** Kind of the database */ database: 'sqlite' | 'postgres'
  /** Since the start of the process */ uptime_seconds: number
  /** Deliveries that are not done: the account's own, for the first account all */ queue: { scheduled: number; queued: number; sending: number }
  /** What the service's own checks find wrong now; for the first account */ alerts?: OwnAlert[]
  /** For admins of the first account; null: not measured yet */ storage?: StorageUse | null
  /** Periodic jobs; for admins of the first account */ jobs?: PeriodicJob[]
  /** Scanners of mail that this process asks; for admins of the first account */ scanners?: Scanner[]
  /** Processes on the database; for admins of the first account */ nodes?: Node[]
}

/** What a check of the machine found */
export interface SystemCheck {
  /** Which check */ name: string
  /** Whether something is wrong; `skipped`: nothing was asked */ state: 'ok' | 'warning' | 'failed' | 'skipped'
  /** For a person: what was found and, if something is wrong, what to do */ sentence: string
  /** When it was made */ checked_at: string
}

/** A tag of a domain */
export interface Tag {
  /** The tag as it was first spelled */ tag: string
  /** Its description; may be empty */ description: string
  /** When a message first carried it; absent: none has */ 'first-seen'?: string
  /** When a message last carried it, at most an hour late; absent: none has */ 'last-seen'?: string
}

/** A page, by name */
export interface TagPage {
  /** The items of this page */ items: Tag[]
  paging: Paging
}

/** Statistics of a tag */
export interface TagStats {
  /** The tag as it was first spelled */ tag: string
  /** Its description; may be empty */ description: string
  /** Start of the first interval */ start: string
  /** Start of the last interval, which is included */ end: string
  /** Length of the intervals */ resolution: 'hour' | 'day' | 'month'
  /** One entry per interval, also where nothing happened; or one per group */ stats: StatsEntry[]
}

/** A template of a domain or of the account */
export interface Template {
  /** Name in lower case, unique in the domain or account */ name: string
  /** Free text, up to 4,000 characters */ description: string
  /** When it was stored */ createdAt: string
  /** Who made it, as given */ createdBy: string
  /** Id of the template */ id: string
}

/** A page of templates by name */
export interface TemplatePage {
  /** The templates of this page */ items: Template[]
  paging: Paging
}

/** A version with its content */
export interface TemplateVersion {
  /** Tag of the version, in lower case */ tag: string
  /** Engine of the content; MJML is compiled when it is stored */ engine: 'handlebars'
  /** MJML source of the content; empty: there is none */ mjml: string
  /** When it was stored */ createdAt: string
  /** Comment on the version */ comment: string
  /** Whether it is used when a message names no version */ active: boolean
  /** Id of the version */ id: string
  /** Always null */ parsedhandlebar: null
  /** Content: HTML with Handlebars */ template: string
  /** From, Subject and Reply-To, as far as given */ headers?: Record<string, string>
  /** Variables for previews, as far as given */ sample?: Record<string, unknown>
}

/** A copied version */
export interface TemplateVersionCopy {
  /** Tag of the version, in lower case */ tag: string
  /** Content: HTML with Handlebars */ template: string
  /** Engine of the content; MJML is compiled when it is stored */ engine: 'handlebars'
  /** When it was stored */ createdAt: string
  /** Comment on the version */ comment: string
  /** Id of the version */ id: string
}

/** A page of versions, oldest first */
export interface TemplateVersionPage {
  /** The template */ template: { name: string; description: string; createdAt: string; createdBy: string; id: string; versions: TemplateVersionSummary[] }
  paging: Paging
}

/** A version without its content */
export interface TemplateVersionSummary {
  /** Tag of the version, in lower case */ tag: string
  /** Engine of the content; MJML is compiled when it is stored */ engine: 'handlebars'
  /** MJML source of the content; empty: there is none */ mjml: string
  /** When it was stored */ createdAt: string
  /** Comment on the version */ comment: string
  /** Whether it is used when a message names no version */ active: boolean
  /** Id of the version */ id: string
  /** Always null */ parsedhandlebar: null
}

/** A template and one of its versions */
export interface TemplateWithVersion {
  /** Name in lower case, unique in the domain or account */ name: string
  /** Free text, up to 4,000 characters */ description: string
  /** When it was stored */ createdAt: string
  /** Who made it, as given */ createdBy: string
  /** Id of the template */ id: string
  version?: TemplateVersion
}

/** Failures of one type in a TLS report */
export interface TlsReportRow {
  /** Type of failure */ result_type: string
  /** Sessions that failed */ sessions: number
  /** sts, tlsa or no-policy-found */ policy_type: string
  /** Address of the sender; may be empty */ sending_ip: string
  /** Host of the receiver; may be empty */ receiving_host: string
  /** What the receiver says of it; may be empty */ reason: string
}

/** A topic */
export interface Topic {
  /** Tag of messages on the topic */ tag: string
  /** What people call it */ title: string
}

/** What is tracked for a domain */
export interface Tracking {
  open: OpenTracking
  click: ClickTracking
  unsubscribe: UnsubscribeTracking
  /** Scheme of tracking links */ web_scheme: 'http' | 'https'
}

/** A tracking host's certificate */
export interface TrackingCertificate {
  /** processing: it is being ordered */ status: 'processing' | 'active' | 'expired' | 'error'
  /** Why the last order failed; null: it did not */ error: string | null
  /** Chain in PEM; absent while the first one is ordered, null: none */ certificate?: string | null
}

/** The SMTP dialogue of an attempt, without secrets */
export interface Transcript {
  /** Number of the attempt, from 1 */ attempt: number
  /** When it began */ started_at: string
  /** The server; null: none was reached */ mx_host: string | null
  /** What was said */ lines: ({ ms: number; direction: 'sent' | 'received'; line: string })[]
}

/** A reply that no rule knows */
export interface UnknownReply {
  /** Reply, with # for words that have digits */ text: string
  /** How often */ count: number
  /** One as it was, with addresses masked */ sample: string
  /** When it was last received */ last_at: string
}

/** An address that wants no more mail */
export interface Unsubscribe {
  /** Mail address in lower case */ address: string
  /** Tags of the mail that is not wanted; * is all mail */ tags: string[]
  /** When it was added */ created_at: string
}

/** A page, by address */
export interface UnsubscribePage {
  /** The items of this page */ items: Unsubscribe[]
  paging: Paging
}

/** How mail can be unsubscribed from */
export interface UnsubscribeTracking {
  /** Mail gets footers and List-Unsubscribe */ active: boolean
  /** Footer of the html part; may be empty */ html_footer: string
  /** Footer of the text part; may be empty */ text_footer: string
  /** False: bulk mail gets no List-Unsubscribe of its own; absent: it does */ on_bulk?: boolean
}

/** The recipient unsubscribed */
export interface UnsubscribedEvent {
  /** Type of the event */ event: 'unsubscribed'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account?: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': ClientInfo
  geolocation: Geolocation
}

/** The recipient unsubscribed */
export interface UnsubscribedWebhook {
  /** Type of the event */ event: 'unsubscribed'
  /** 22 URL-safe characters; the same in repeats of a webhook */ id: string
  /** When it happened, with microseconds; Unix seconds */ timestamp: number
  /** How serious it is */ 'log-level': 'info'
  account: EventAccount
  /** Tags of the message */ tags: string[]
  /** Always empty */ campaigns: string[]
  /** Variables of the message (v:name), as given */ 'user-variables': Record<string, unknown>
  /** Address of the recipient */ recipient: string
  /** Domain of the recipient */ 'recipient-domain': string
  /** Mailbox provider by its MX hosts, or Other */ 'recipient-provider': string
  'mailing-list'?: EventMailingList
  message: VisitedMessage
  /** Address of the client */ ip: string
  'client-info': WebhookClientInfo
  geolocation: WebhookGeolocation
  /** The domain of the message */ domain: { name: string }
}

/** A limit of what is no mail */
export interface UsageLimit {
  /** UUID */ id: string
  /** Parent of the subaccount; present for its alerts */ parent_account_id?: string
  /** The subaccount; present for its alerts */ subaccount_id?: string
  /** Free text */ account_group?: string
  /** Unique in the account */ name: string
  /** Free text */ description: string
  /** What is limited */ metric: 'email_preview_success_count' | 'seed_test_count'
  /** Whether the limit names what is too much or what is allowed */ comparator: '=' | '!=' | '<' | '<=' | '>' | '>='
  /** domain: each domain has the limit; else each account */ dimension: 'domain' | 'ip' | 'ip_pool' | 'recipient_provider' | 'subaccount'
  /** Whole number */ limit: string
  /** All must be true */ filters: AlertFilter[]
  /** Time that is judged, 1h to 30d */ period: string
  /** When it was made */ created_at: string
  /** When it last changed */ updated_at: string
  /** When a use was last compared with it; absent: never */ last_checked?: string
}

/** A user of an account */
export interface User {
  /** Identifier */ id: string
  /** Has chosen a password, or signs in with the OpenID Connect provider */ activated: boolean
  /** Shown in lists */ name: string
  /** May not sign in */ is_disabled: boolean
  /** Mail address, which the user signs in with */ email: string
  /** The address in its parts */ email_details: { address: string; is_valid: boolean; parts: { domain: string; local_part: string; display_name: string } }
  /** Rights */ role: 'basic' | 'billing' | 'support' | 'developer' | 'admin'
  /** The account that the user belongs to */ account_id: string
  /** Address from which the invitation was accepted; empty before */ opened_ip: string
  /** The first admin who accepted an invitation, who stays an admin */ is_master: boolean
  /** Always empty */ metadata: Record<string, never>
  /** Signs in with an authenticator app or passkey besides the password */ tfa_enabled: boolean
  /** The same as tfa_enabled */ tfa_active: boolean
  /** Since when, UTC; null: no authenticator app */ tfa_created_at: string | null
  /** When it was set, UTC: `2022-12-20T16:52:01.892000`; null: there is none */ password_updated_at: string | null
  /** How the user reads */ preferences: { time_zone: string; time_format: string; programming_language: string }
  /** How the user signs in */ auth: { method: 'password' | 'oidc' }
  /** Always null */ github_user_id: null
  /** Always null */ salesforce_user_id: null
  /** Always done */ migration_status: string
}

/** How many addresses have which result and risk */
export interface ValidationCounts {
  /** By result */ result: { catch_all: number; deliverable: number; do_not_send: number; undeliverable: number; unknown: number }
  /** By risk */ risk: { high: number; low: number; medium: number; unknown: number }
}

/** The validation of a list of addresses */
export interface ValidationJob {
  /** Name of the list; the address, if it is a mailing list */ id: string
  /** When it was created, whole seconds; Unix seconds */ created_at: number
  /** Number of rows */ quantity: number
  /** Distinct addresses that are done; null while the file is read */ records_processed: number | null
  /** How far it is */ status: 'created' | 'processing' | 'uploaded' | 'failed' | 'canceled'
  /** Links to the results, for 24 hours, without a key; only once the status is uploaded */ download_url?: { csv: string; json: string }
  summary?: ValidationCounts
}

/** A page of jobs, newest first */
export interface ValidationJobPage {
  /** The jobs of this page */ jobs: ValidationJob[]
  /** Number of jobs on all pages */ total: number
  /** Links to the pages around this one */ paging: { previous: string; first: string; next: string; last: string; prev: string }
}

/** The validation of a sample of a list */
export interface ValidationPreview {
  /** Name of the list; the address, if it is a mailing list */ id: string
  /** The file could be read and the preview is complete */ valid: boolean
  /** How far it is */ status: 'preview_processing' | 'preview_complete'
  /** Number of rows */ quantity: number
  /** When it was created, whole seconds; Unix seconds */ created_at: number
  summary: ValidationShares
}

/** What is known of an address */
export interface ValidationResult {
  /** As given */ address: string
  /** The address that was probably meant; absent: none is known */ did_you_mean?: string
  /** The domain gives out addresses for a short time */ is_disposable_address: boolean
  /** The address belongs to a role, such as postmaster */ is_role_address: boolean
  /** What led to the result; may be empty */ reason: string[]
  /** Whether mail would arrive */ result: 'catch_all' | 'deliverable' | 'do_not_send' | 'undeliverable' | 'unknown'
  /** Risk of sending to it */ risk: 'high' | 'low' | 'medium' | 'unknown'
  /** The mailbox behind an alias; absent: it is the address */ root_address?: string
  /** Last delivery of the account, whole seconds; absent if unknown, and for a public key; Unix seconds */ last_seen?: number
  /** From openings and clicks of the mail of the account; absent without any, and for a public key */ engagement?: { engaging: boolean; is_bot: boolean }
}

/** Which share of the addresses has which result and risk */
export interface ValidationShares {
  /** By result */ result: { catch_all: number; deliverable: number; do_not_send: number; undeliverable: number; unknown: number }
  /** By risk */ risk: { high: number; low: number; medium: number; unknown: number }
}

/** The message that was read */
export interface VisitedMessage {
  /** Its headers */ headers: { 'message-id': string }
}

/** Openings and clicks */
export interface Visits {
  /** Openings */ opened: number
  /** Unique openings */ unique_opened: number
  /** Clicks */ clicked: number
  /** Unique clicks */ unique_clicked: number
}

/** A blocklist that is watched */
export interface WatchedList {
  /** Zone of the list, without a key */ list: string
  /** Name of the list */ name: string
  /** Where an entry is looked up and removed; may be empty */ page: string
  /** What its test entries said */ tests: ({ kind: 'ipv4' | 'ipv6' | 'domain'; usable: boolean; fault: string; checked_at: string })[]
  /** Destinations that refuse mail by it */ used_by: ({ site: string; provider: string; seen_at: string | null })[]
  /** Addresses or domains that are looked up in it */ looked_up: number
  /** Addresses or domains that it has */ listed: ({ subject: string; code: string; since: string; last_seen: string })[]
}

/** An attempt to deliver a webhook */
export interface WebhookAttempt {
  /** Id of the attempt */ id: string
  /** Id of the event */ event_id: string
  /** Type of the webhook */ event: 'accepted' | 'clicked' | 'opened' | 'unsubscribed' | 'delivered' | 'permanent_fail' | 'temporary_fail' | 'complained'
  /** Domain of the event */ domain: string
  /** Recipient that the webhook names, masked where it masks it */ recipient?: string
  /** Subject of the message, as in the webhook; its beginning */ subject?: string
  /** URL; its password is masked */ url: string
  /** Number of the attempt, from 1 */ attempt: number
  /** failing: another attempt follows */ status: 'ok' | 'failing' | 'given-up'
  /** Status of the response; absent: there was none */ status_code?: number
  /** Why there was no response */ error?: string
  /** Beginning of the response */ response: string
  /** Duration; milliseconds */ duration_ms: number
  /** When it was made */ created_at: string
  /** When the next one follows; absent: none does */ next_attempt_at?: string
}

/** A page of attempts, newest first */
export interface WebhookAttemptPage {
  /** The items of this page */ items: WebhookAttempt[]
  paging: Paging
  /** With `search`: the page ends here though there may be more; `next` goes on */ partial?: true
}

/** The client by its User-Agent */
export interface WebhookClientInfo {
  /** Name */ 'client-name': string
  /** Operating system */ 'client-os': string
  /** `browser`, `mobile browser`, `email client`, `library`, `robot`, `feed reader`, `other` or `unknown` */ 'client-type': string
  /** `desktop`, `mobile`, `tablet`, `other` or `unknown` */ 'device-type': string
  /** User-Agent as sent; absent without personal data */ 'user-agent'?: string
  /** `apple`, `gmail` or `generic`: not a person; else empty */ bot: string
}

/** An event with its account and domain; `event` names the type. New members may be added. */
export type WebhookEvent = AcceptedWebhook | DeliveredWebhook | FailedWebhook | OpenedWebhook | ClickedWebhook | UnsubscribedWebhook | ComplainedWebhook

/** Where the client is; without personal data only its country */
export interface WebhookGeolocation {
  /** Two letters */ country: string
  /** Region */ region?: string
  /** City */ city?: string
  /** Time zone of IANA */ timezone?: string
}

/** The URLs of a type */
export interface WebhookUrls {
  /** At most three */ urls: string[]
}

/** The body of a success, by method and path. */
export interface Answers {
  'DELETE /sendwright/v1/accounts/{}/rate-limits/{}': AccountRateLimit
  'DELETE /sendwright/v1/accounts/{}/standing/policy': AccountStandingPolicy
  'DELETE /sendwright/v1/content-holds/{}': { messages: number }
  'DELETE /sendwright/v1/dns-providers/{}': { message: string }
  'DELETE /sendwright/v1/event-sinks/{}': { message: string }
  'DELETE /sendwright/v1/inbox': { message: string }
  'DELETE /sendwright/v1/inbox/{}': { message: string }
  'DELETE /sendwright/v1/ips/{}/blocks/{}': { message: string }
  'DELETE /sendwright/v1/me/passkeys/{}': { message: string }
  'DELETE /sendwright/v1/me/sessions': { message: string }
  'DELETE /sendwright/v1/me/sessions/{}': { message: string }
  'DELETE /sendwright/v1/me/totp': { message: string }
  'DELETE /sendwright/v1/relays/{}': { message: string }
  'DELETE /sendwright/v1/relays/{}/pause': Relay
  'DELETE /sendwright/v1/reputation-sources/google': { message: string }
  'DELETE /sendwright/v1/reputation-sources/snds': { message: string }
  'DELETE /sendwright/v1/scheduled/{}': { message: string }
  'DELETE /sendwright/v1/session': { message: string; logout_redirect_url?: string }
  'DELETE /sendwright/v1/sessions': { message: string; count: number }
  'DELETE /sendwright/v1/sessions/{}': { message: string }
  'DELETE /sendwright/v1/shaping/{}/limits': { message: string }
  'DELETE /sendwright/v1/shaping/{}/pause': { message: string }
  'DELETE /sendwright/v1/shared-figures/{}': { items: SharedFigure[] }
  'DELETE /sendwright/v1/sns/topics/{}': { message: string }
  'DELETE /sendwright/v1/spam-traps/{}': { message: string }
  'DELETE /sendwright/v1/users/{}/totp': User
  'DELETE /v1/alerts/settings/events/{}': { message: string }
  'DELETE /v1/alerts/settings/slack': { message: string }
  'DELETE /v1/alerts/slack/oauth': { message: string }
  'DELETE /v1/analytics/tags': { message: string }
  'DELETE /v1/dkim/keys': { message: string }
  'DELETE /v1/dynamic_pools/domains/{}/override': { message: string }
  'DELETE /v1/inboxready/domains': { message: string }
  'DELETE /v1/inboxready/ip_addresses/{}': undefined
  'DELETE /v1/keys/{}': { message: string }
  'DELETE /v1/thresholds/alerts/send/{}': { message: string }
  'DELETE /v1/thresholds/limits/{}': { message: string }
  'DELETE /v1/webhooks': undefined
  'DELETE /v1/webhooks/{}': undefined
  'DELETE /v2/ip_whitelist': { addresses: CallerAddress[] }
  'DELETE /v3/domains/{}': { message: string }
  'DELETE /v3/domains/{}/credentials': { message: string; count: number }
  'DELETE /v3/domains/{}/credentials/{}': { message: string; spec: string }
  'DELETE /v3/domains/{}/dynamic_pools': { message: string }
  'DELETE /v3/domains/{}/ips/{}': { message: string }
  'DELETE /v3/domains/{}/webhooks/{}': { message: string; webhook: WebhookUrls }
  'DELETE /v3/dynamic_pools/all': { message: string }
  'DELETE /v3/ip_pools/{}': { message: string; reference_id: string }
  'DELETE /v3/ip_pools/{}/delegate': { message: string; reference_id: string }
  'DELETE /v3/ip_pools/{}/ips/{}': { message: string; reference_id: string }
  'DELETE /v3/ip_warmups/{}': { message: string }
  'DELETE /v3/ips/{}/domains': { message: string; reference_id: string }
  'DELETE /v3/lists/{}': { address: string; message: string }
  'DELETE /v3/lists/{}/members/{}': { member: { address: string }; message: string }
  'DELETE /v3/lists/{}/validate': { message: string }
  'DELETE /v3/routes/{}': { message: string; id: string }
  'DELETE /v3/{}/bounces': { message: string }
  'DELETE /v3/{}/bounces/{}': { message: string; address: string }
  'DELETE /v3/{}/complaints': { message: string }
  'DELETE /v3/{}/complaints/{}': { message: string; address: string }
  'DELETE /v3/{}/envelopes': { message: string }
  'DELETE /v3/{}/tag': { message: string }
  'DELETE /v3/{}/tags/{}': { message: string }
  'DELETE /v3/{}/templates': { message: string }
  'DELETE /v3/{}/templates/{}': { message: string; template: { name: string } }
  'DELETE /v3/{}/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'DELETE /v3/{}/unsubscribes': { message: string }
  'DELETE /v3/{}/unsubscribes/{}': { message: string; address: string }
  'DELETE /v3/{}/whitelists': { message: string }
  'DELETE /v3/{}/whitelists/{}': { message: string; value: string }
  'DELETE /v4/address/validate/bulk/{}': { message: string }
  'DELETE /v4/address/validate/preview/{}': undefined
  'DELETE /v4/domains/{}/webhooks': { webhooks: DomainWebhooks }
  'DELETE /v4/inbox/results/{}': { Message: string }
  'DELETE /v4/inbox/seedlists/{}': { message: string }
  'DELETE /v4/templates': { message: string }
  'DELETE /v4/templates/{}': { message: string; template: { name: string } }
  'DELETE /v4/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'DELETE /v5/accounts/limit/custom/monthly': { success: true }
  'DELETE /v5/accounts/subaccounts': { message: string }
  'DELETE /v5/accounts/subaccounts/{}/ip_pool': { message: string; reference_id: string }
  'DELETE /v5/accounts/subaccounts/{}/limit/custom/monthly': { success: true }
  'DELETE /v5/sandbox/auth_recipients/{}': { message: string }
  'DELETE /v5/users/{}': { message: string }
  'GET /health/live': { status: 'ok' }
  'GET /health/ready': { status: 'ok' }
  'GET /openapi.json': Record<string, unknown>
  'GET /sendwright/v1/accounts/{}/rate-limits': { items: AccountRateLimit[] }
  'GET /sendwright/v1/accounts/{}/standing': AccountStanding
  'GET /sendwright/v1/alerts': { items: ({ name: string; description: string; metric: string; comparator: '=' | '!=' | '<' | '<=' | '>' | '>='; limit: string; dimension?: string; interval_seconds: number; hits: AlertHit[] })[] }
  'GET /sendwright/v1/audit': AuditPage
  'GET /sendwright/v1/audit/actions': { items: string[] }
  'GET /sendwright/v1/backups/{}': Backup
  'GET /sendwright/v1/blocklists': { items: WatchedList[] }
  'GET /sendwright/v1/content-holds': { items: ContentHold[] }
  'GET /sendwright/v1/deliveries/{}/transcript': { items: Transcript[] }
  'GET /sendwright/v1/delivery-reasons': DeliveryReasons
  'GET /sendwright/v1/dns-providers': { items: DnsProvider[] }
  'GET /sendwright/v1/dns-providers/{}': DnsProvider
  'GET /sendwright/v1/domains/{}/dns': DomainDns
  'GET /sendwright/v1/domains/{}/dns-changes': { items: DnsChange[] }
  'GET /sendwright/v1/domains/{}/dns-link': { provider: string | null; url: string | null; reason: string }
  'GET /sendwright/v1/domains/{}/key-rotation': KeyRotation
  'GET /sendwright/v1/domains/{}/mta-sts': HostedPolicy
  'GET /sendwright/v1/domains/{}/reports': DomainReportPage
  'GET /sendwright/v1/domains/{}/retention': { items: Retention[] }
  'GET /sendwright/v1/domains/{}/sender-rules': SenderRules
  'GET /sendwright/v1/domains/{}/suppression-policy': SuppressionPolicy
  'GET /sendwright/v1/domains/{}/topics': DomainTopics
  'GET /sendwright/v1/event-sinks': { items: EventSink[] }
  'GET /sendwright/v1/event-sinks/{}': EventSink
  'GET /sendwright/v1/inbox': CapturedMailPage
  'GET /sendwright/v1/inbox/faults': InboxFault[]
  'GET /sendwright/v1/inbox/{}': CapturedMessage
  'GET /sendwright/v1/inbox/{}/authentication': MessageChecks
  'GET /sendwright/v1/inbox/{}/html-check': HtmlCheck
  'GET /sendwright/v1/ip-warmups/{}': IpWarmupProgress
  'GET /sendwright/v1/ips': { items: InstalledIpAddress[] }
  'GET /sendwright/v1/keys/{}/requests': KeyRequestPage
  'GET /sendwright/v1/lists/{}/consent': ListConsent
  'GET /sendwright/v1/me': OwnProfile
  'GET /sendwright/v1/me/passkeys': { origin: string | null; items: Passkey[] }
  'GET /sendwright/v1/me/sessions': { total_count: number; items: BrowserSession[] }
  'GET /sendwright/v1/messages/{}/deliveries': DeliveryPage
  'GET /sendwright/v1/people/tasks': { items: PersonTask[] }
  'GET /sendwright/v1/people/tasks/{}': PersonTask
  'GET /sendwright/v1/people/tasks/{}/report': PersonReport
  'GET /sendwright/v1/people/{}': Recipient
  'GET /sendwright/v1/people/{}/consent': { items: ConsentChange[] }
  'GET /sendwright/v1/queue/deliveries': QueuedDeliveryPage
  'GET /sendwright/v1/queue/domains': { sending: QueueDomain[]; recipient: QueueDomain[] }
  'GET /sendwright/v1/queue/lanes': { items: Lane[] }
  'GET /sendwright/v1/relay-rules': { items: RelayRule[] }
  'GET /sendwright/v1/relays': { items: Relay[] }
  'GET /sendwright/v1/relays/{}': Relay
  'GET /sendwright/v1/reputation-sources/google': GoogleReputationSource
  'GET /sendwright/v1/reputation-sources/snds': SndsReputationSource
  'GET /sendwright/v1/retention': { items: Retention[] }
  'GET /sendwright/v1/scheduled': ScheduledPage
  'GET /sendwright/v1/session': CallerIdentity
  'GET /sendwright/v1/sessions': { total_count: number; items: BrowserSession[] }
  'GET /sendwright/v1/shaping': Shaping
  'GET /sendwright/v1/shared-figures': { items: SharedFigure[] }
  'GET /sendwright/v1/sign-in-methods': { password: boolean; oidc: { label: string } | null; passkey: { origin: string } | null }
  'GET /sendwright/v1/sns/topics': { items: SnsTopic[] }
  'GET /sendwright/v1/spam-traps': { items: SpamTrap[] }
  'GET /sendwright/v1/standing': { policy: StandingPolicy; items: Standing[] }
  'GET /sendwright/v1/system': System
  'GET /sendwright/v1/system/checks': { items: SystemCheck[] }
  'GET /sendwright/v1/unknown-replies': { days: number; rules: string; items: UnknownReply[]; partial?: boolean }
  'GET /sendwright/v1/webhooks/attempts': WebhookAttemptPage
  'GET /sendwright/v1/webhooks/attempts/{}': { id: string; event_id: string; event: 'accepted' | 'clicked' | 'opened' | 'unsubscribed' | 'delivered' | 'permanent_fail' | 'temporary_fail' | 'complained'; domain: string; recipient?: string; subject?: string; url: string; attempt: number; status: 'ok' | 'failing' | 'given-up'; status_code?: number; error?: string; response: string; duration_ms: number; created_at: string; next_attempt_at?: string; 'event-data': WebhookEvent | null }
  'GET /v1/alerts': { events: ('send_alert' | 'validation_job' | 'validation_preview' | 'ip_listed' | 'ip_delisted' | 'domain_listed' | 'domain_delisted' | 'sender_stopped' | 'sender_released')[] }
  'GET /v1/alerts/settings': { events: AlertSetting[]; webhooks: { signing_key: string }; slack: { token?: string; team_id?: string | null; team_name?: string | null; scope?: string | null } }
  'GET /v1/alerts/slack/channels': { items: SlackChannel[]; paging: { first: string; last: string; next: string; previous: string } }
  'GET /v1/alerts/slack/channels/{}': SlackChannel
  'GET /v1/analytics/tags/limits': { limit: number; count: number; limit_reached: boolean }
  'GET /v1/bounce-classification/config/entities': Record<string, { name: string }>
  'GET /v1/bounce-classification/config/rules': Record<string, BounceRule>
  'GET /v1/bounce-classification/domains': { items: ({ domain: { name: string }; bounced: { total: number } })[]; total: number; req: Record<string, never> }
  'GET /v1/bounce-classification/domains/{}/entities': { items: EntityBounces[] }
  'GET /v1/bounce-classification/domains/{}/entities/{}/rules': { items: RuleBounces[] }
  'GET /v1/bounce-classification/stats': { items: BounceGroup[] | null; _duration: string }
  'GET /v1/dkim/keys': DomainKeyPage
  'GET /v1/dmarc/domains': { domains: DmarcDomain[]; pfqr_chart: DmarcDay[] }
  'GET /v1/dmarc/domains/{}': DmarcOfDomain
  'GET /v1/dmarc/domains/{}/s/{}': DmarcOfSource
  'GET /v1/dmarc/domains/{}/s/{}/h/{}': DmarcOfHost
  'GET /v1/dmarc/domains/{}/s/{}/h/{}/ip/{}': DmarcOfAddress
  'GET /v1/dmarc/records/{}': { entry: string; current: string; configured: boolean }
  'GET /v1/dmarc/setup': { InstanceID: string; CreatedAt: string; UpdatedAt: string; LastAccessed: string }
  'GET /v1/dynamic_pools/domains': { items: EnrolledDomain[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/dynamic_pools/domains/{}/history': { items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging } | { id: string; owning_account_id: string; account_id: string; account_name: string; domain_id: string; domain_name: string; new_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''; prev_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''; reason: string; bounce_rate: number | null; complaint_rate: number | null; processed_count: number | null; initiated_by: string; timestamp: string; items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/dynamic_pools/domains/{}/preview': DomainHealthCheck
  'GET /v1/dynamic_pools/history': { items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/inboxready/domains': MonitoredDomains
  'GET /v1/inboxready/ip_addresses': { items: MonitoredIp[] }
  'GET /v1/inboxready/ip_addresses/{}': MonitoredIp
  'GET /v1/keys': { total_count: number; items: ApiKey[] }
  'GET /v1/maverick-score/grouped': { items: HealthScoreGroup[]; total: number }
  'GET /v1/maverick-score/total': HealthScore
  'GET /v1/monitoring/domains': { domains: DomainHealth[] }
  'GET /v1/monitoring/domains/events': { events: BlocklistEvent[]; paging: Paging }
  'GET /v1/monitoring/domains/{}/blocklists': { blocklists: ListedDomain[] }
  'GET /v1/monitoring/domains/{}/events': { events: BlocklistEvent[]; paging: Paging }
  'GET /v1/reputationanalytics/gpt/addresses': { address: string; data: ({ address: string; domain_name: string; reputation: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/addresses/{}': { address: string; data: ({ address: string; domain_name: string; reputation: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/addresses_list': { data: ({ address: string; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domains': { domain: string; data: GptDomain[]; total: number; compliance?: ({ requirement: string; status: string })[]; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domains/{}': { domain: string; data: GptDomain[]; total: number; compliance?: ({ requirement: string; status: string })[]; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domains/{}/addresses': { domain: string; data: ({ address: string; domain_name: string; reputation: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domains_list': { data: ({ name: string; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domainsfbl': { data: ({ name: string; id: string; ratio: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/domainsfbl/{}': { data: ({ name: string; id: string; ratio: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/summary': { domains: number; days: number; user_reported_spam_ratio: number; spf_success_ratio: number; dkim_success_ratio: number; dmarc_success_ratio: number; inbound_encryption_ratio: number; delivery_error_ratio: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/summary/addresses': { data: ({ address: string; domain_name: string; reputation: number; date: string })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/summary/domains': { data: ({ name: string; days: number; date: string; user_reported_spam_ratio: number; spf_success_ratio: number; dkim_success_ratio: number; dmarc_success_ratio: number; inbound_encryption_ratio: number; delivery_error_ratio: number; reputation: number; compliance: ({ requirement: string; status: string })[] })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/gpt/summary/errors': { data: ({ error_class: string; error_type: string; error_ratio: number })[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/snds': { summary: SndsAddress[]; total: number; configured: boolean }
  'GET /v1/reputationanalytics/snds/{}': { summary: SndsAddress[]; total: number; configured: boolean }
  'GET /v1/spamtraps': { items: ({ date: string; domain?: string; subject?: string; ip?: string; from?: string; pristine: number; recycled: number; typo: number; harvested: number; total: number })[]; paging: Paging }
  'GET /v1/thresholds/alerts/send': { items: Alert[]; total: number }
  'GET /v1/thresholds/alerts/send/{}': Alert
  'GET /v1/thresholds/hits': { items: AlertHit[]; total: number }
  'GET /v1/thresholds/limits': { items: UsageLimit[]; total: number }
  'GET /v1/thresholds/limits/{}': UsageLimit
  'GET /v1/webhooks': { webhooks: AccountWebhook[] }
  'GET /v1/webhooks/{}': AccountWebhook
  'GET /v2/bounce-classification/config/groups/{}': { id: string; entity_id: string; class: 'BOUNCE' | 'ESPBLOCK' | 'BLACKLISTED' | 'CONTENT' | 'AUTHENTICATION' | 'RATELIMIT' | 'GREYLISTED' | 'MAILBOXFULL' | 'TECHNICAL' | 'GENERIC'; 'sample-text'?: string; explanation: string; 'short-explanation': string; 'entity-name': string }
  'GET /v2/ip_whitelist': { addresses: CallerAddress[] }
  'GET /v2/spamtraps': { items: ({ dimension: string; pristine: number; recycled: number; typo: number; harvested: number; total: number })[]; paging: Paging }
  'GET /v2/x509/{}/status': TrackingCertificate
  'GET /v3/domains/dynamic_pools/assignable': { items: AssignableDomain[] }
  'GET /v3/domains/{}/connection': DomainConnection
  'GET /v3/domains/{}/credentials': { items: SmtpCredential[]; total_count: number }
  'GET /v3/domains/{}/ips': { items: string[]; total_count: number }
  'GET /v3/domains/{}/limits/tag': { id: string; limit: number; count: number }
  'GET /v3/domains/{}/messages/{}': StoredMessage | StoredMime
  'GET /v3/domains/{}/sending_queues': SendingQueues
  'GET /v3/domains/{}/tag/countries': { items: string[] }
  'GET /v3/domains/{}/tag/devices': { items: string[] }
  'GET /v3/domains/{}/tag/providers': { items: string[] }
  'GET /v3/domains/{}/tracking': { tracking: Tracking }
  'GET /v3/domains/{}/webhooks': { webhooks: DomainWebhooks }
  'GET /v3/domains/{}/webhooks/{}': { webhook: WebhookUrls }
  'GET /v3/dynamic_pools': { new_senders: string[]; good_reputation: string[]; poor_reputation: string[]; pools: DynamicPool[] }
  'GET /v3/exports': { items: Export[] }
  'GET /v3/exports/{}': Export
  'GET /v3/ip_pools': { ip_pools: IpPool[]; message: string }
  'GET /v3/ip_pools/{}': { pool_id: string; name: string; description: string; ips: string[]; is_linked: boolean; is_inherited: boolean; linked_domains?: string[]; metadata: { assignments: Record<string, { linked_at: string }> }; details: IpPool; message: string }
  'GET /v3/ip_pools/{}/domains': { domains: IpPoolDomain[]; paging: IpPaging }
  'GET /v3/ip_warmups': { items: IpWarmupItem[]; paging: IpPaging }
  'GET /v3/ip_warmups/{}': { details: IpWarmup }
  'GET /v3/ips': { items: string[]; details: ({ ip: string; is_on_warmup?: boolean })[]; assignable_to_pools: string[]; total_count: number }
  'GET /v3/ips/details/all': { items: IpAddressDetails[]; total_count: number }
  'GET /v3/ips/request/new': { allowed: { dedicated: number; shared: number } }
  'GET /v3/ips/{}': IpAddress
  'GET /v3/ips/{}/domains': { items: IpDomain[]; total_count: number }
  'GET /v3/lists': { total_count: number; items: MailingList[] }
  'GET /v3/lists/pages': MailingListPage
  'GET /v3/lists/{}': { list: MailingList }
  'GET /v3/lists/{}/members': { total_count: number; items: MailingListMember[] }
  'GET /v3/lists/{}/members/pages': MailingListMemberPage
  'GET /v3/lists/{}/members/{}': { address: string; name: string; vars: Record<string, unknown>; subscribed: boolean; pending?: true; member: MailingListMember }
  'GET /v3/lists/{}/validate': ValidationJob
  'GET /v3/routes': RouteList
  'GET /v3/routes/match': { route: Route }
  'GET /v3/routes/{}': { route: Route }
  'GET /v3/stats/filter': Stats
  'GET /v3/stats/total': Stats
  'GET /v3/stats/total/domains': Stats
  'GET /v3/{}/aggregates/countries': { countries: Record<string, StatsSums> }
  'GET /v3/{}/aggregates/devices': { devices: Record<string, StatsSums> }
  'GET /v3/{}/aggregates/providers': { providers: Record<string, StatsSums> }
  'GET /v3/{}/bounces': BouncePage
  'GET /v3/{}/bounces/{}': Bounce
  'GET /v3/{}/complaints': ComplaintPage
  'GET /v3/{}/complaints/{}': Complaint
  'GET /v3/{}/events': EventPage
  'GET /v3/{}/events/{}': EventPage
  'GET /v3/{}/stats/total': Stats
  'GET /v3/{}/tag': Tag
  'GET /v3/{}/tag/stats': TagStats
  'GET /v3/{}/tag/stats/aggregates': { tag: string; country?: Record<string, StatsSums>; device?: Record<string, StatsSums>; provider?: Record<string, StatsSums> }
  'GET /v3/{}/tags': TagPage
  'GET /v3/{}/tags/{}': Tag
  'GET /v3/{}/tags/{}/stats': TagStats
  'GET /v3/{}/tags/{}/stats/aggregates/{}': { tag: string; country?: Record<string, StatsSums>; device?: Record<string, StatsSums>; provider?: Record<string, StatsSums> }
  'GET /v3/{}/templates': TemplatePage
  'GET /v3/{}/templates/{}': { template: TemplateWithVersion }
  'GET /v3/{}/templates/{}/versions': TemplateVersionPage
  'GET /v3/{}/templates/{}/versions/{}': { template: TemplateWithVersion }
  'GET /v3/{}/unsubscribes': UnsubscribePage
  'GET /v3/{}/unsubscribes/{}': Unsubscribe
  'GET /v3/{}/whitelists': AllowlistPage
  'GET /v3/{}/whitelists/{}': AllowlistEntry
  'GET /v4/address/validate': ValidationResult
  'GET /v4/address/validate/bulk': ValidationJobPage
  'GET /v4/address/validate/bulk/{}': ValidationJob
  'GET /v4/address/validate/bulk/{}/download': ValidationResult[]
  'GET /v4/address/validate/preview': { previews: ValidationPreview[] }
  'GET /v4/address/validate/preview/{}': { preview: ValidationPreview }
  'GET /v4/domains': { total_count: number; items: Domain[] }
  'GET /v4/domains/{}': { domain: Domain; receiving_dns_records?: DnsRecord[]; sending_dns_records?: DnsRecord[] }
  'GET /v4/domains/{}/keys': { items: ListedDomainKey[] }
  'GET /v4/inbox/providers': { items: SeedProvider[] }
  'GET /v4/inbox/results': PlacementResultPage
  'GET /v4/inbox/results/_filters': { supported_filters: { filters: ({ parameter: string; description: string })[] } }
  'GET /v4/inbox/results/a': { items: { attribute: string; values: string[] } }
  'GET /v4/inbox/results/a/{}': { items: { attribute: string; values: string[] } }
  'GET /v4/inbox/results/{}': { result: PlacementResult }
  'GET /v4/inbox/seedlists': SeedListPage
  'GET /v4/inbox/seedlists/_filters': { supported_filters: { filters: ({ parameter: string; description: string })[] } }
  'GET /v4/inbox/seedlists/a': { items: { attribute: string; values: string[] } }
  'GET /v4/inbox/seedlists/a/{}': { items: { attribute: string; values: string[] } }
  'GET /v4/inbox/seedlists/{}': { seedlist: SeedList }
  'GET /v4/inbox/sharing/public/{}': { result: PlacementResult }
  'GET /v4/inbox/sharing/{}': { sharing: PlacementSharing }
  'GET /v4/templates': TemplatePage
  'GET /v4/templates/{}': { template: TemplateWithVersion }
  'GET /v4/templates/{}/versions': TemplateVersionPage
  'GET /v4/templates/{}/versions/{}': { template: TemplateWithVersion }
  'GET /v5/accounts/http_signing_key': { message: string; http_signing_key: string }
  'GET /v5/accounts/limit/custom/monthly': MessageLimit
  'GET /v5/accounts/subaccounts': { subaccounts: Subaccount[]; total: number }
  'GET /v5/accounts/subaccounts/ip_pools/all': { items: IpPoolDelegation[]; total_count: number }
  'GET /v5/accounts/subaccounts/{}': { subaccount: Subaccount }
  'GET /v5/accounts/subaccounts/{}/limit/custom/monthly': MessageLimit
  'GET /v5/sandbox/auth_recipients': { recipients: SandboxRecipient[] }
  'GET /v5/users': { users: User[]; total: number }
  'GET /v5/users/me': User
  'GET /v5/users/{}': User
  'PATCH /sendwright/v1/scheduled/{}': { message: string }
  'PATCH /v3/dynamic_pools/{}': { message: string }
  'PATCH /v3/ip_pools/{}': { message: string }
  'POST /mcp': unknown | undefined
  'POST /sendwright/v1/accounts/{}/standing/release': AccountStanding
  'POST /sendwright/v1/admins': User
  'POST /sendwright/v1/backups': Backup
  'POST /sendwright/v1/content-holds/{}/release': { messages: number }
  'POST /sendwright/v1/domains/{}/disable': { name: string; is_disabled: boolean }
  'POST /sendwright/v1/domains/{}/dns-changes': DnsChange
  'POST /sendwright/v1/domains/{}/dns-changes/{}/undo': DnsChange
  'POST /sendwright/v1/domains/{}/enable': { name: string; is_disabled: boolean }
  'POST /sendwright/v1/domains/{}/messages/check': MessageChecks
  'POST /sendwright/v1/inbox/{}/link-check': LinkCheck
  'POST /sendwright/v1/inbox/{}/release': ReleasedMail
  'POST /sendwright/v1/invitations/accept': { message: string }
  'POST /sendwright/v1/ip-warmups/{}/pause': { message: string }
  'POST /sendwright/v1/ip-warmups/{}/resume': { message: string }
  'POST /sendwright/v1/login-links': { url: string }
  'POST /sendwright/v1/me/passkeys': { passkey: Passkey; recovery_codes: string[] | null }
  'POST /sendwright/v1/me/passkeys/options': PasskeyCreation
  'POST /sendwright/v1/me/proof': { message: string }
  'POST /sendwright/v1/me/proof/options': { passkey: PasskeyRequest | null }
  'POST /sendwright/v1/me/recovery-codes': { recovery_codes: string[] }
  'POST /sendwright/v1/me/totp': { secret: string; otpauth_url: string }
  'POST /sendwright/v1/messages/check': MessageChecks
  'POST /sendwright/v1/oidc/sign-ins': { url: string }
  'POST /sendwright/v1/passkeys/sign-ins': PasskeyRequest
  'POST /sendwright/v1/password-resets': { message: string }
  'POST /sendwright/v1/password-resets/redeem': { message: string }
  'POST /sendwright/v1/people/erase': { task: PersonTask }
  'POST /sendwright/v1/people/export': { task: PersonTask }
  'POST /sendwright/v1/queue/actions': { matched: number; changed: number }
  'POST /sendwright/v1/relays': Relay
  'POST /sendwright/v1/relays/{}/test': RelayTest
  'POST /sendwright/v1/reputation-sources/google/test': ReputationSourceTest
  'POST /sendwright/v1/reputation-sources/snds/test': ReputationSourceTest
  'POST /sendwright/v1/session': { message: string }
  'POST /sendwright/v1/shared-figures': { id: string; title: string; key_id: string; user_id: string | null; query: Record<string, unknown>; created_at: string; expires_at: string; url: string }
  'POST /sendwright/v1/sns/notifications/{}': { message: string }
  'POST /sendwright/v1/spam-traps': SpamTrap
  'POST /sendwright/v1/templates/render': RenderedTemplate
  'POST /sendwright/v1/tls-reports/{}': { message: string }
  'POST /sendwright/v1/users/{}/invitation': User
  'POST /sendwright/v1/users/{}/password': User
  'POST /sendwright/v1/webhooks/attempts/{}/replay': { message: string; event_id: string }
  'POST /sendwright/v1/webhooks/replay': { events: number; queued: number }
  'POST /v1/alerts/email/test': { message: string }
  'POST /v1/alerts/settings/events': AlertSetting
  'POST /v1/alerts/slack/test': { message: string }
  'POST /v1/alerts/webhooks/test': { message: string }
  'POST /v1/analytics/logs': LogsResult
  'POST /v1/analytics/metrics': MetricsResult
  'POST /v1/analytics/tags': AccountTagPage
  'POST /v1/analytics/usage/metrics': MetricsResult
  'POST /v1/dkim/keys': DomainKey
  'POST /v1/dkim_management/domains/{}/rotate': { message: string }
  'POST /v1/dmarc/referral': { referral_uri: string }
  'POST /v1/inboxready/domains': { domain: MonitoredDomain; message: string }
  'POST /v1/inboxready/ip_addresses': MonitoredIp
  'POST /v1/keys': { message: string; key: NewApiKey }
  'POST /v1/keys/public': { key: string; message: string }
  'POST /v1/thresholds/alerts/send': Alert
  'POST /v1/thresholds/limits': UsageLimit
  'POST /v1/webhooks': { webhook_id: string }
  'POST /v2/bounce-classification/metrics': { start: string; end: string; resolution: 'day' | 'hour'; duration?: string; dimensions: ('entity-name' | 'domain.name' | 'envelope.sending-ip' | 'account.name' | 'envelope.i-ip-pool-name' | 'tags' | 'tag' | 'recipient-domain' | 'group-id' | 'criticality' | 'severity' | 'category' | 'timestamp')[]; pagination: { sort: string; skip: number; limit: number; total: number }; items: BounceMetrics[] }
  'POST /v2/ip_whitelist': { addresses: CallerAddress[] }
  'POST /v2/x509/{}': { message: string; location: string }
  'POST /v3/domains': { message: string; domain: Domain; receiving_dns_records: DnsRecord[]; sending_dns_records: DnsRecord[] }
  'POST /v3/domains/all/dynamic_pools/enroll': { message: string }
  'POST /v3/domains/{}/credentials': { message: string; note?: string; credentials?: Record<string, string> }
  'POST /v3/domains/{}/dynamic_pools': { message: string }
  'POST /v3/domains/{}/ips': { message: string }
  'POST /v3/domains/{}/messages/{}': AcceptedMessage
  'POST /v3/domains/{}/webhooks': { message: string; webhook: WebhookUrls }
  'POST /v3/dynamic_pools/all': { message: string; new_senders: string[]; good_reputation: string[]; poor_reputation: string[] }
  'POST /v3/dynamic_pools/{}/{}': { message: string }
  'POST /v3/exports': Export
  'POST /v3/ip_pools': { message: string; pool_id: string }
  'POST /v3/ip_pools/{}/ips.json': { message: string; reference_id: string }
  'POST /v3/ip_warmups/{}': { message: string }
  'POST /v3/ips/request/new': { message: string }
  'POST /v3/ips/{}/domains': { message: string; reference_id: string }
  'POST /v3/ips/{}/ip_band': { message: string }
  'POST /v3/lists': { message: string; list: MailingList }
  'POST /v3/lists/{}/members': { member: MailingListMember; message: string }
  'POST /v3/lists/{}/members.csv': { list: MailingList; 'task-id': string; message: string }
  'POST /v3/lists/{}/members.json': { list: MailingList; 'task-id': string; message: string }
  'POST /v3/lists/{}/validate': { id: string; message: string }
  'POST /v3/routes': { message: string; route: Route }
  'POST /v3/{}/bounces': { message: string; address: string } | { message: string }
  'POST /v3/{}/bounces/import': { message: string }
  'POST /v3/{}/complaints': { message: string; address: string } | { message: string }
  'POST /v3/{}/complaints/import': { message: string }
  'POST /v3/{}/messages': AcceptedMessage
  'POST /v3/{}/messages.mime': AcceptedMessage
  'POST /v3/{}/templates': { message: string; template: TemplateWithVersion }
  'POST /v3/{}/templates/{}/versions': { message: string; template: TemplateWithVersion }
  'POST /v3/{}/unsubscribes': { message: string; address: string } | { message: string }
  'POST /v3/{}/unsubscribes/import': { message: string }
  'POST /v3/{}/whitelists': { message: string; type: 'address' | 'domain'; value: string } | { message: string }
  'POST /v3/{}/whitelists/import': { message: string }
  'POST /v4/address/validate': ValidationResult
  'POST /v4/address/validate/bulk/{}': { id: string; message: string }
  'POST /v4/address/validate/preview/{}': { id: string; message: string }
  'POST /v4/domains': { message: string; domain: Domain; receiving_dns_records: DnsRecord[]; sending_dns_records: DnsRecord[] }
  'POST /v4/domains/{}/webhooks': { webhooks: DomainWebhooks }
  'POST /v4/inbox/seedlists': SeedList
  'POST /v4/inbox/tests': { result_id: string; links: { results: string } }
  'POST /v4/templates': { message: string; template: TemplateWithVersion }
  'POST /v4/templates/{}/versions': { message: string; template: TemplateWithVersion }
  'POST /v5/accounts/http_signing_key': { message: string; http_signing_key: string }
  'POST /v5/accounts/resend_activation_email': { success: boolean }
  'POST /v5/accounts/subaccounts': { subaccount: Subaccount }
  'POST /v5/accounts/subaccounts/{}/disable': { subaccount: Subaccount }
  'POST /v5/accounts/subaccounts/{}/enable': { subaccount: Subaccount }
  'POST /v5/sandbox/auth_recipients': { recipient: SandboxRecipient }
  'POST /v5/users': User
  'PUT /sendwright/v1/accounts/{}/rate-limits/{}': AccountRateLimit
  'PUT /sendwright/v1/accounts/{}/shared-ips': { account_id: string; allowed: boolean }
  'PUT /sendwright/v1/accounts/{}/standing/policy': AccountStandingPolicy
  'PUT /sendwright/v1/dns-providers/{}': DnsProvider
  'PUT /sendwright/v1/domains/{}/retention': { items: Retention[] }
  'PUT /sendwright/v1/domains/{}/suppression-policy': SuppressionPolicy
  'PUT /sendwright/v1/domains/{}/topics': DomainTopics
  'PUT /sendwright/v1/event-sinks/{}': EventSink
  'PUT /sendwright/v1/inbox/faults': InboxFault[]
  'PUT /sendwright/v1/inbox/{}/tags': CapturedMail
  'PUT /sendwright/v1/ips/{}': InstalledIpAddress
  'PUT /sendwright/v1/lists/{}/consent': ListConsent
  'PUT /sendwright/v1/me': OwnProfile
  'PUT /sendwright/v1/me/passkeys/{}': Passkey
  'PUT /sendwright/v1/me/password': { message: string }
  'PUT /sendwright/v1/me/totp': { recovery_codes: string[] }
  'PUT /sendwright/v1/relay-rules': { items: RelayRule[] }
  'PUT /sendwright/v1/relays/{}': Relay
  'PUT /sendwright/v1/relays/{}/pause': Relay
  'PUT /sendwright/v1/reputation-sources/google': GoogleReputationSource
  'PUT /sendwright/v1/reputation-sources/snds': SndsReputationSource
  'PUT /sendwright/v1/retention': { items: Retention[] }
  'PUT /sendwright/v1/shaping/{}/limits': SiteOrder
  'PUT /sendwright/v1/shaping/{}/pause': SiteOrder
  'PUT /sendwright/v1/sns/topics/{}': SnsTopic
  'PUT /sendwright/v1/standing/policy': StandingPolicy
  'PUT /v1/alerts/settings/events/{}': { message: string; id: string; event_type: 'send_alert' | 'validation_job' | 'validation_preview' | 'ip_listed' | 'ip_delisted' | 'domain_listed' | 'domain_delisted' | 'sender_stopped' | 'sender_released'; channel: 'email' | 'slack' | 'webhook'; settings: AlertChannelSettings }
  'PUT /v1/alerts/settings/slack': { message: string }
  'PUT /v1/alerts/settings/webhooks/signing_key': { signing_key: string }
  'PUT /v1/analytics/tags': { message: string }
  'PUT /v1/dkim_management/domains/{}/rotation': { domain: RotationDomain }
  'PUT /v1/dynamic_pools/domains/{}/override': { message: string }
  'PUT /v1/inboxready/domains/verify': { message: string }
  'PUT /v1/inboxready/ip_addresses/{}': MonitoredIp
  'PUT /v1/thresholds/alerts/send/{}': { message: string }
  'PUT /v1/thresholds/limits/{}': { message: string }
  'PUT /v1/webhooks/{}': undefined
  'PUT /v2/ip_whitelist': { addresses: CallerAddress[] }
  'PUT /v2/x509/{}': { message: string; location: string }
  'PUT /v3/domains/{}/connection': { message: string; require_tls: boolean; skip_verification: boolean; 'require-tls': boolean; 'skip-verification': boolean }
  'PUT /v3/domains/{}/credentials/{}': { message: string; note?: string; credentials?: Record<string, string> }
  'PUT /v3/domains/{}/dkim_authority': { message: string; changed: boolean; sending_dns_records: DnsRecord[] }
  'PUT /v3/domains/{}/dkim_selector': { message: string }
  'PUT /v3/domains/{}/mailfrom_host': { message: string }
  'PUT /v3/domains/{}/message_ttl': { message: string }
  'PUT /v3/domains/{}/tracking/click': { message: string; click: ClickTracking }
  'PUT /v3/domains/{}/tracking/open': { message: string; open: OpenTracking }
  'PUT /v3/domains/{}/tracking/unsubscribe': { message: string; unsubscribe: UnsubscribeTracking }
  'PUT /v3/domains/{}/web_prefix': { message: string }
  'PUT /v3/domains/{}/webhooks/{}': { message: string; webhook: WebhookUrls }
  'PUT /v3/domains/{}/webhooks/{}/test': { code: number; message: string }
  'PUT /v3/ip_pools/{}/delegate': { message: string; reference_id: string }
  'PUT /v3/ip_pools/{}/ips/{}': { message: string; reference_id: string }
  'PUT /v3/lists/{}': { message: string; list: MailingList }
  'PUT /v3/lists/{}/members/{}': { member: MailingListMember; message: string }
  'PUT /v3/routes/{}': { message: string; route: Route; id: string; priority: number; description: string; expression: string; actions: string[]; created_at: string }
  'PUT /v3/{}/tag': { message: string }
  'PUT /v3/{}/tags/{}': { message: string }
  'PUT /v3/{}/templates/{}': { message: string; template: { name: string } }
  'PUT /v3/{}/templates/{}/rename/{}': { message: string; template: { name: string } }
  'PUT /v3/{}/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'PUT /v3/{}/templates/{}/versions/{}/copy/{}': { message: string; version: TemplateVersionCopy; template: TemplateVersionCopy }
  'PUT /v4/address/validate/preview/{}': { message: string }
  'PUT /v4/domains/{}': { message: string; domain: Domain; receiving_dns_records: DnsRecord[]; sending_dns_records: DnsRecord[] }
  'PUT /v4/domains/{}/keys/{}/activate': { message: string; authority: string; selector: string; active: boolean }
  'PUT /v4/domains/{}/keys/{}/deactivate': { message: string; authority: string; selector: string; active: boolean }
  'PUT /v4/domains/{}/verify': { message: string; domain: Domain; receiving_dns_records: DnsRecord[]; sending_dns_records: DnsRecord[] }
  'PUT /v4/domains/{}/webhooks': { webhooks: DomainWebhooks }
  'PUT /v4/inbox/seedlists/{}': SeedList
  'PUT /v4/inbox/sharing/{}': { sharing: PlacementSharing }
  'PUT /v4/templates/{}': { message: string; template: { name: string } }
  'PUT /v4/templates/{}/copy': { message: string; failed_copies: ({ account_id: string; name: string; domain?: string; error: string })[] }
  'PUT /v4/templates/{}/rename/{}': { message: string; template: { name: string } }
  'PUT /v4/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'PUT /v4/templates/{}/versions/{}/copy/{}': { message: string; version: TemplateVersionCopy; template: TemplateVersionCopy }
  'PUT /v5/accounts': { message: string }
  'PUT /v5/accounts/features': { success: boolean }
  'PUT /v5/accounts/limit/custom/enable': { success: true }
  'PUT /v5/accounts/limit/custom/monthly': { success: true }
  'PUT /v5/accounts/subaccounts/{}/features': { features: { email_preview?: FeatureSwitch; inbox_placement?: FeatureSwitch; sending?: FeatureSwitch; validations?: FeatureSwitch; validations_bulk?: FeatureSwitch } }
  'PUT /v5/accounts/subaccounts/{}/ip_pool': { message: string; reference_id: string }
  'PUT /v5/accounts/subaccounts/{}/limit/custom/monthly': { success: true }
  'PUT /v5/users/{}': User
}
