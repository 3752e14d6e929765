/** Made by `node scripts/api-types.ts` from the API description: what the service returns. */

/** Stored and queued */
export interface AcceptedMessage {
  /** Message-Id in angle brackets */ id: string
  /** What was done */ message: unknown
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

/** A domain that is not enrolled */
export interface AssignableDomain {
  /** Id of the account of the domain */ account_id: string
  /** Id of the domain */ id: string
  /** Name of the domain */ name: string
}

/** An address to which mail could not be delivered */
export interface Bounce {
  /** Mail address in lower case */ address: string
  /** SMTP code */ code: string
  /** Error text of the receiving server */ error: string
  /** When it was added */ created_at: string
}

/** A page, by address */
export interface BouncePage {
  /** The items of this page */ items: Bounce[]
  paging: Paging
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

/** Where the figures of a domain put it */
export interface DomainHealthCheck {
  /** Band */ pool: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new'
  /** Each figure alone; a rate without mail to divide by is 0 */ results: { bounce_rate: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' }; complaint_rate: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' }; processed_count: { value: number; band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' } }
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

/** An address of the installation, for the operator */
export interface InstalledIpAddress {
  /** Address */ ip: string
  /** Whether one account alone has it; a shared one serves all */ dedicated: boolean
  /** Its account; null: shared, or not given to anybody */ account_id: string | null
  /** Whether it is switched on */ enabled: boolean
  /** Whether it is also in use by some process, and confirmed where that is required */ usable: boolean
  /** Whether the configuration of this process names it */ configured_here: boolean
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
  /** closed until the time of until; then probing: single messages find out */ state: 'closed' | 'probing'
  /** The reply that closed it */ reply: string
  /** Pauses in a row */ times: number
  /** When it was closed first */ since: string
  /** End of the pause */ until: string
}

/** A domain with its addresses */
export interface IpDomain {
  /** Name */ domain: string
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
  /** Whether it is the parent’s, who lets this account use it */ is_inherited: boolean
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
  /** Beginning of the hour that throttle counts */ hour_started_at: string
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

/** Links to the pages around this one */
export interface Paging {
  /** Address of the previous page */ previous: string
  /** Address of the first page */ first: string
  /** Address of the next page */ next: string
  /** Address of the last page */ last: string
}

/** The rendered parts, or what is wrong with them */
export interface RenderedTemplate {
  /** The Subject header; null: the template has none */ subject: string | null
  /** The headers that the template has */ headers: Record<string, string>
  /** HTML part; empty after an error */ html: string
  /** Text part, made from the HTML */ text: string
  /** Variables that had no value */ missing: string[]
  /** What is wrong; empty: nothing */ errors: string[]
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
  /** Header fields in their order */ 'message-headers': (unknown[])[]
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

/** A template of a domain or of the account */
export interface Template {
  /** Name in lower case, unique in the domain or account */ name: string
  /** Description */ description: string
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
  /** Of the content; MJML is compiled when it is stored */ engine: 'handlebars'
  /** MJML source of the content; empty: there is none */ mjml: string
  /** When it was stored */ createdAt: string
  /** Comment on the version */ comment: string
  /** Whether it is used when a message names no version */ active: boolean
  /** Id of the version */ id: string
  /** Always null */ parsedhandlebar: null
  /** Content: HTML with Handlebars */ template: string
  /** From, Subject and Reply-To, as far as given */ headers?: Record<string, string>
}

/** A copied version */
export interface TemplateVersionCopy {
  /** Tag of the version, in lower case */ tag: string
  /** Content: HTML with Handlebars */ template: string
  /** Of the content; MJML is compiled when it is stored */ engine: 'handlebars'
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
  /** Of the content; MJML is compiled when it is stored */ engine: 'handlebars'
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
  /** Description */ description: string
  /** When it was stored */ createdAt: string
  /** Who made it, as given */ createdBy: string
  /** Id of the template */ id: string
  version?: TemplateVersion
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

/** The validation of a list of addresses */
export interface ValidationJob {
  /** Name of the list; the address, if it is a mailing list */ id: string
  /** When it was created, whole seconds; seconds */ created_at: number
  /** Number of rows */ quantity: number
  /** Distinct addresses that are done; null while the file is read */ records_processed: number | null
  /** How far it is */ status: 'created' | 'processing' | 'uploaded' | 'failed' | 'canceled'
  /** Links to the results, for 24 hours, without a key; only once the status is uploaded */ download_url?: { csv: string; json: string }
  /** How many addresses have which result */ summary?: { result: { catch_all: number; deliverable: number; do_not_send: number; undeliverable: number; unknown: number }; risk: { high: number; low: number; medium: number; unknown: number } }
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
  /** When it was created, whole seconds; seconds */ created_at: number
  /** Which share of the addresses has which result */ summary: { result: { catch_all: number; deliverable: number; do_not_send: number; undeliverable: number; unknown: number }; risk: { high: number; low: number; medium: number; unknown: number } }
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
  /** Last delivery of the account, whole seconds; absent if unknown, and for a public key; seconds */ last_seen?: number
  /** From openings and clicks of the mail of the account */ engagement?: { engaging: boolean; is_bot: boolean }
}

/** The body of a success, by method and path. */
export interface Answers {
  'DELETE /sendwright/v1/ips/{}/blocks/{}': { message: string }
  'DELETE /sendwright/v1/scheduled/{}': { message: string }
  'DELETE /v1/dynamic_pools/domains/{}/override': { message: string }
  'DELETE /v1/ip_pools/{}': { message: string; reference_id: string }
  'DELETE /v1/ip_pools/{}/delegate': { message: string; reference_id: string }
  'DELETE /v1/ip_pools/{}/ips/{}': { message: string; reference_id: string }
  'DELETE /v3/domains/{}/dynamic_pools': { message: string }
  'DELETE /v3/domains/{}/ips/{}': { message: string }
  'DELETE /v3/domains/{}/pool/{}': { message: string }
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
  'DELETE /v3/{}/allowlists': { message: string }
  'DELETE /v3/{}/allowlists/{}': { message: string; value: string }
  'DELETE /v3/{}/bounces': { message: string }
  'DELETE /v3/{}/bounces/{}': { message: string; address: string }
  'DELETE /v3/{}/complaints': { message: string }
  'DELETE /v3/{}/complaints/{}': { message: string; address: string }
  'DELETE /v3/{}/envelopes': { message: string }
  'DELETE /v3/{}/templates': { message: string }
  'DELETE /v3/{}/templates/{}': { message: string; template: { name: string } }
  'DELETE /v3/{}/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'DELETE /v3/{}/unsubscribes': { message: string }
  'DELETE /v3/{}/unsubscribes/{}': { message: string; address: string }
  'DELETE /v3/{}/whitelists': { message: string }
  'DELETE /v3/{}/whitelists/{}': { message: string; value: string }
  'DELETE /v4/address/validate/bulk/{}': { message: string }
  'DELETE /v4/domains/{}/ips/{}': { message: string }
  'DELETE /v4/templates': { message: string }
  'DELETE /v4/templates/{}': { message: string; template: { name: string } }
  'DELETE /v4/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'DELETE /v5/accounts/limit/custom/monthly': { success?: boolean }
  'DELETE /v5/accounts/subaccounts/{}/ip_pool': { message: string; reference_id: string }
  'DELETE /v5/accounts/subaccounts/{}/limit/custom/monthly': { success?: boolean }
  'GET /health': { status: 'ok' }
  'GET /health/live': { status: 'ok' }
  'GET /health/ready': { status: 'ok' }
  'GET /openapi.json': Record<string, unknown>
  'GET /sendwright/v1/inbox/faults': ({ recipient?: string; stage: 'connect' | 'mail' | 'rcpt' | 'data' | 'dot'; reply?: string; probability?: number; delay_ms?: number })[]
  'GET /sendwright/v1/ip-warmups/{}': IpWarmupProgress
  'GET /sendwright/v1/ips': { items: InstalledIpAddress[] }
  'GET /sendwright/v1/scheduled': ScheduledPage
  'GET /v1/dynamic_pools/domains': { items: EnrolledDomain[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/dynamic_pools/domains/{}/history': { items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging } | { id: string; owning_account_id: string; account_id: string; account_name: string; domain_id: string; domain_name: string; new_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''; prev_band: 'dynamic_good' | 'dynamic_poor' | 'dynamic_new' | ''; reason: string; bounce_rate: number | null; complaint_rate: number | null; processed_count: number | null; initiated_by: string; timestamp: string; items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/dynamic_pools/domains/{}/preview': DomainHealthCheck
  'GET /v1/dynamic_pools/history': { items: DynamicPoolHistoryRecord[]; total_items: number; paging: DynamicPoolPaging }
  'GET /v1/ip_pools': { ip_pools: IpPool[]; message: string }
  'GET /v1/ip_pools/{}': { pool_id: string; name: string; description: string; ips: string[]; is_linked: boolean; is_inherited: boolean; linked_domains?: string[]; metadata: { assignments: Record<string, { linked_at: string }> }; details: IpPool; message: string }
  'GET /v1/ip_pools/{}/domains': { domains: IpPoolDomain[]; paging: IpPaging }
  'GET /v3/domains/dynamic_pools/assignable': { items: AssignableDomain[] }
  'GET /v3/domains/{}/ips': { items: string[]; total_count: number }
  'GET /v3/domains/{}/messages/{}': StoredMessage | StoredMime
  'GET /v3/domains/{}/sending_queues': SendingQueues
  'GET /v3/dynamic_pools': { new_senders: string[]; good_reputation: string[]; poor_reputation: string[]; pools: DynamicPool[] }
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
  'GET /v3/lists/{}/members/{}': { address: string; name: string; vars: Record<string, unknown>; subscribed: boolean; member: MailingListMember }
  'GET /v3/lists/{}/validate': ValidationJob
  'GET /v3/routes': RouteList
  'GET /v3/routes/match': { route: Route }
  'GET /v3/routes/{}': { route: Route }
  'GET /v3/{}/allowlists': AllowlistPage
  'GET /v3/{}/allowlists/{}': AllowlistEntry
  'GET /v3/{}/bounces': BouncePage
  'GET /v3/{}/bounces/{}': Bounce
  'GET /v3/{}/complaints': ComplaintPage
  'GET /v3/{}/complaints/{}': Complaint
  'GET /v3/{}/events': { items: object[]; paging: Record<string, string> }
  'GET /v3/{}/events/{}': { items: object[]; paging: Record<string, string> }
  'GET /v3/{}/sending_queues': SendingQueues
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
  'GET /v4/domains/{}/ips': { items: string[]; total_count: number }
  'GET /v4/templates': TemplatePage
  'GET /v4/templates/{}': { template: TemplateWithVersion }
  'GET /v4/templates/{}/versions': TemplateVersionPage
  'GET /v4/templates/{}/versions/{}': { template: TemplateWithVersion }
  'GET /v5/accounts/limit/custom/monthly': { limit: number; current: number; period: '1m' }
  'GET /v5/accounts/subaccounts/ip_pools/all': { items: IpPoolDelegation[]; total_count: number }
  'GET /v5/accounts/subaccounts/{}/limit/custom/monthly': { limit: number; current: number; period: '1m' }
  'GET /v5/sandbox/auth_recipients': { recipients?: ({ email: string; activated: boolean })[] }
  'PATCH /sendwright/v1/scheduled/{}': { message: string }
  'PATCH /v1/ip_pools/{}': { message: string }
  'PATCH /v3/dynamic_pools/{}': { message: string }
  'PATCH /v3/ip_pools/{}': { message: string }
  'POST /sendwright/v1/domains/{}/messages/check': { state: 'ok' | 'warning' | 'failed'; checks: ({ name: string; state: 'ok' | 'warning' | 'failed'; sentence: string; figures: object })[] }
  'POST /sendwright/v1/ip-warmups/{}/pause': { message: string }
  'POST /sendwright/v1/ip-warmups/{}/resume': { message: string }
  'POST /sendwright/v1/messages/check': { state: 'ok' | 'warning' | 'failed'; checks: ({ name: string; state: 'ok' | 'warning' | 'failed'; sentence: string; figures: object })[] }
  'POST /sendwright/v1/templates/render': RenderedTemplate
  'POST /v1/analytics/logs': { start: string; end: string; items: object[]; pagination: object; aggregates: object }
  'POST /v1/ip_pools': { message: string; pool_id: string }
  'POST /v1/ip_pools/{}/ips.json': { message: string; reference_id: string }
  'POST /v3/domains/all/dynamic_pools/enroll': { message: string }
  'POST /v3/domains/{}/dynamic_pools': { message: string }
  'POST /v3/domains/{}/ips': { message: string }
  'POST /v3/domains/{}/messages/{}': AcceptedMessage
  'POST /v3/dynamic_pools/all': { message: string; new_senders: string[]; good_reputation: string[]; poor_reputation: string[] }
  'POST /v3/dynamic_pools/{}/{}': { message: string }
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
  'POST /v3/{}/allowlists': { message: string; type: 'address' | 'domain'; value: string } | { message: string }
  'POST /v3/{}/allowlists/import': { message: string }
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
  'POST /v4/domains/{}/ips': { message: string }
  'POST /v4/templates': { message: string; template: TemplateWithVersion }
  'POST /v4/templates/{}/versions': { message: string; template: TemplateWithVersion }
  'POST /v5/sandbox/auth_recipients': { recipient?: { email: string; activated: boolean } }
  'PUT /sendwright/v1/accounts/{}/shared-ips': { account_id: string; allowed: boolean }
  'PUT /sendwright/v1/inbox/faults': ({ recipient?: string; stage: 'connect' | 'mail' | 'rcpt' | 'data' | 'dot'; reply?: string; probability?: number; delay_ms?: number })[]
  'PUT /sendwright/v1/ips/{}': InstalledIpAddress
  'PUT /v1/dynamic_pools/domains/{}/override': { message: string }
  'PUT /v1/ip_pools/{}/delegate': { message: string; reference_id: string }
  'PUT /v1/ip_pools/{}/ips/{}': { message: string; reference_id: string }
  'PUT /v3/ip_pools/{}/delegate': { message: string; reference_id: string }
  'PUT /v3/ip_pools/{}/ips/{}': { message: string; reference_id: string }
  'PUT /v3/lists/{}': { message: string; list: MailingList }
  'PUT /v3/lists/{}/members/{}': { member: MailingListMember; message: string }
  'PUT /v3/routes/{}': { message: string; route: Route; id: string; priority: number; description: string; expression: string; actions: string[]; created_at: string }
  'PUT /v3/{}/templates/{}': { message: string; template: { name: string } }
  'PUT /v3/{}/templates/{}/rename/{}': { message: string; template: { name: string } }
  'PUT /v3/{}/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'PUT /v3/{}/templates/{}/versions/{}/copy/{}': { message: string; version: TemplateVersionCopy; template: TemplateVersionCopy }
  'PUT /v4/address/validate/preview/{}': { message: string }
  'PUT /v4/templates/{}': { message: string; template: { name: string } }
  'PUT /v4/templates/{}/copy': { message: string; failed_copies: ({ account_id: string; name: string; domain?: string; error: string })[] }
  'PUT /v4/templates/{}/rename/{}': { message: string; template: { name: string } }
  'PUT /v4/templates/{}/versions/{}': { message: string; template: { name: string; version: { tag: string } } }
  'PUT /v4/templates/{}/versions/{}/copy/{}': { message: string; version: TemplateVersionCopy; template: TemplateVersionCopy }
  'PUT /v5/accounts/limit/custom/enable': { success?: boolean }
  'PUT /v5/accounts/limit/custom/monthly': { success?: boolean }
  'PUT /v5/accounts/subaccounts/{}/ip_pool': { message: string; reference_id: string }
  'PUT /v5/accounts/subaccounts/{}/limit/custom/monthly': { success?: boolean }
}
