/**
 * Every store of the service, and what is done there with the data of one person (decision 222). A table of the database
 * that is missing here fails a test, whose message says what to add. `docs/api/people.md` has the same as a table.
 */

/**
 * `none`: no person's address can be there; not looked at. `kept`: looked at, counted and kept, for the reason given.
 * `erased`: rows that name the person are removed. `pseudonymised`: rows that name the person stay, with a pseudonym for
 * the address; those whose column `of` is the address are removed.
 */
export type Does = 'none' | 'kept' | 'erased' | 'pseudonymised'

export interface StoreRule {
  does: Does
  /** What it holds, and why it is treated so. */
  why: string
  /** Column with one address: the row belongs to the person. */
  of?: string
  /** Condition for the rows of some accounts, `ACCOUNTS` in place of their list; default: by `account_id`. Null: the operator's. */
  scope?: string | null
  /** Names and notes in the same JSON object as the address are about the person, and go with it. */
  takesNotes?: true
  /** Columns that are changed; the others are kept. Default: all with text. */
  only?: readonly string[]
  /** Columns that give rows an order, where that is not the primary key. */
  key?: readonly string[]
  /** Rows come at the end of the key, and only an erasure changes them: a further pass reads what is new. */
  grows?: true
  /** Rows looked at in one read; default 1,000. */
  portion?: number
}

const none = (why: string): StoreRule => ({ does: 'none', why })
const kept = (why: string, more: Partial<StoreRule> = {}): StoreRule => ({ does: 'kept', why, ...more })
const erased = (why: string, more: Partial<StoreRule> = {}): StoreRule => ({ does: 'erased', why, ...more })
const renamed = (why: string, more: Partial<StoreRule> = {}): StoreRule => ({
  ...{ does: 'pseudonymised', why },
  ...more,
})

const BY_DOMAIN = 'domain_id IN (SELECT id FROM domains WHERE account_id IN ACCOUNTS)'
const BY_DOMAIN_NAME = 'domain_name IN (SELECT name FROM domains WHERE account_id IN ACCOUNTS)'
const BY_FIGURE_SCOPE = 'scope IN (SELECT no FROM figure_scopes WHERE account_id IN ACCOUNTS)'
const STAFF = 'people who operate the service: removed with the user or key'
const SETTING = 'what the operator has written as a setting'
const FIGURES = 'figures'

/** In the order in which they are worked on: what makes further data first, then what it has made. */
export const STORES: Readonly<Record<string, StoreRule>> = {
  list_members: erased(
    'members of mailing lists, with names and variables; of others, what names the person',
    {
      of: 'address_key',
      scope: 'list_id IN (SELECT id FROM lists WHERE account_id IN ACCOUNTS)',
    },
  ),
  consent_trail: renamed(
    'how and when the address came onto lists or left them: removed; that of others stays',
    {
      of: 'address_key',
    },
  ),
  confirmation_mails: erased('when a list has asked the address', {
    of: 'address_key',
    scope: 'list_id IN (SELECT id FROM lists WHERE account_id IN ACCOUNTS)',
  }),
  list_uploads: renamed('members that were uploaded, with names and variables', { takesNotes: true }),
  list_expansions: renamed('posts to lists that are being copied to members'),
  suppressions: renamed(
    'the address becomes a keyed hash, the reason is removed: the person is not written to again; an entry of the allowlist is removed',
    { portion: 500 },
  ),
  unsubscribe_tags: renamed('as above', { scope: BY_DOMAIN }),
  suppression_imports: renamed('files that are being imported, with zeros for the address'),
  counted_bounces: erased('bounces that were counted', { of: 'address', scope: BY_DOMAIN }),
  validation_jobs: renamed('uploaded lists that are being validated, with zeros for the address'),
  validation_addresses: erased('addresses of lists that were validated', {
    of: 'address',
    scope: 'job_id IN (SELECT id FROM validation_jobs WHERE account_id IN ACCOUNTS)',
  }),
  validation_probes: erased('what servers said about an address', { scope: null }),
  sandbox_recipients: erased('who agreed to get mail of the sandbox', { of: 'address' }),
  sandbox_mails: erased('when mail was sent to them', {
    of: 'address',
    key: ['account_id', 'address', 'sent_at'],
  }),
  spam_traps: erased('addresses that the operator watches', { of: 'address', scope: null }),
  deliveries: renamed('mail to the person, queued and scheduled too: removed without an event', {
    of: 'recipient',
  }),
  past_deliveries: renamed('facts about deliveries, for late bounces', { of: 'recipient' }),
  messages: renamed(
    'mail to the person alone, or received from the person: removed with its files. Mail shared with others loses the address in recipients, fields and texts; other attached files of it are kept. Mail between others is searched where its text is stored plain',
    { portion: 50, grows: true },
  ),
  past_messages: renamed('subject and recipients of removed messages: as messages'),
  inbox: renamed('captured mail, as messages', { portion: 50 }),
  inbox_words: renamed('words of captured mail, for searches: as captured mail', {
    scope: 'inbox_id IN (SELECT id FROM inbox WHERE account_id IN ACCOUNTS)',
  }),
  route_posts: erased('received mail that is still to be posted', { of: 'recipient' }),
  archive_outbox: renamed('copies that are still to be archived'),
  transcripts: erased('SMTP dialogues', { portion: 500 }),
  classified_failures: renamed('replies of servers, with their counts by rule'),
  tracking_links: renamed('targets of links too long for a link'),
  outgoing_posts: renamed('queued posts; those about removed events are not sent'),
  webhook_attempts: renamed(
    'attempts of webhooks: removed for events of the person; else what was answered loses the address',
    { of: 'recipient' },
  ),
  idempotency_keys: erased('answers kept for repeated requests, sealed: they are opened and looked at'),
  exports: erased('files of lists, kept for a day: the whole file is removed'),
  person_tasks: erased('archives of earlier exports of the person; the task itself keeps a keyed hash'),
  domain_reports: renamed('reports of receivers'),
  placement_tests: renamed('tests of placement'),
  tags: renamed('tags that are or contain the address', { of: 'tag_key' }),
  account_tags: renamed('as above', { of: 'tag_key' }),
  figures: renamed('counts by tag', { scope: BY_FIGURE_SCOPE }),
  figure_packs: renamed('the same, packed: they are packed again', { scope: BY_FIGURE_SCOPE, portion: 200 }),
  shared_figures: renamed('titles and queries of figures that are shown to others'),
  key_requests: renamed('calls of keys, with the values of some parameters'),
  audit: renamed(
    'the person as object of a change: a pseudonym, without names and notes. As actor: see users',
    {
      takesNotes: true,
    },
  ),
  events: renamed(
    'events of the person, also as member of a list: removed. Those of others lose the address',
    {
      of: 'recipient',
      key: ['seq'],
      portion: 2_000,
      grows: true,
    },
  ),
  event_tags: renamed('tags of events', {
    of: 'tag',
    scope: BY_DOMAIN_NAME,
    key: ['domain_name', 'tag', 'event', 'timestamp_us', 'seq'],
  }),

  retention_settings: none('settings in numbers'),
  event_sinks: renamed(`${SETTING}: kept; the last error loses the address`, {
    scope: null,
    only: ['last_error'],
  }),
  passkeys: none('keys of users: removed with the user'),
  met_challenges: none('digests'),
  event_index: none('numbers and hashes of events, removed with them'),
  event_segments: none('times of events'),
  event_index_place: none('a place'),
  event_followers: none('places'),
  delivery_reports: none('ids of deliveries that were reported'),
  content_checks: none(FIGURES),
  content_decisions: none('digests of content'),
  content_holds: none('ids and digests of content'),
  figure_scopes: none(FIGURES),
  figure_places: none(FIGURES),
  counted_visits: none('keyed digests'),
  removed_usage: none(FIGURES),
  feature_usage: none(FIGURES),
  usage_hours: none(FIGURES),
  outgoing_leases: none('leases'),
  webhook_changes: none('a version'),
  tls_results: none('sessions by domain and host'),
  tls_reports: none('reports to other domains, of counts'),
  dmarc_policies: none('policies of domains'),
  dmarc_results: none('results by domain and network'),
  dmarc_reports: none('reports to other domains, of counts'),
  suppression_policies: none('settings in numbers'),
  inbox_faults: kept(SETTING, { scope: null }),
  domain_report_totals: none(FIGURES),
  gmail_days: none(FIGURES),
  gmail_domains: none(FIGURES),
  snds_days: none(FIGURES),
  snds_blocks: none('networks'),
  placement_seeds: kept('test mailboxes of the operator', {
    scope: 'test_id IN (SELECT id FROM placement_tests WHERE account_id IN ACCOUNTS)',
  }),
  seed_lists: kept('test mailboxes of the operator'),
  lists: kept('addresses and descriptions of mailing lists'),
  templates: kept('texts that the account has written'),
  template_versions: renamed('texts that the account has written: kept; sample data lose the address', {
    ...{ only: ['sample_json'], takesNotes: true },
    scope: 'template_id IN (SELECT id FROM templates WHERE account_id IN ACCOUNTS)',
    portion: 50,
  }),
  domain_webhooks: kept(SETTING),
  account_webhooks: kept(SETTING),
  routes: kept(`${SETTING}; actions are sealed and not searched`),
  account_changes: none('ids of accounts'),
  account_rate_limits: none('settings in numbers'),
  account_settings: none('settings in numbers'),
  accounts: kept('names of accounts', { scope: 'id IN ACCOUNTS' }),
  acme_accounts: kept(SETTING, { scope: null }),
  acme_challenges: none('tokens of certificates'),
  alert_hits: kept('alerts about domains and addresses of machines'),
  alert_notices: kept('notices to those who operate the service, until they are sent'),
  alert_settings: none('whom to alert, sealed and not searched: a setting'),
  alert_slack: none('sealed: a setting'),
  usage_limits: kept(SETTING),
  alerts: kept(SETTING),
  api_keys: kept(STAFF),
  blocklist_checks: none('names of domains and machines'),
  blocklist_events: none('names of domains and machines'),
  blocklist_states: none('names of lists'),
  blocklist_users: none('sites of receivers'),
  caller_addresses: kept('networks of callers, with a description'),
  certificates: none('names of hosts'),
  credentials: kept(`${STAFF}: logins of SMTP`),
  delivery_overrides: kept(SETTING, { scope: null }),
  disabled_queues: none('settings in numbers'),
  dkim_keys: none('keys of domains'),
  domain_deletions: none('names of domains'),
  domain_dns: none('records of domains'),
  domain_ips: none('addresses of machines'),
  domains: kept(SETTING),
  dynamic_pool_domains: none('names of domains'),
  dynamic_pool_history: kept(`${STAFF}: who has moved a domain`, { scope: null }),
  dynamic_pool_members: none('addresses of machines'),
  dynamic_pool_tasks: none('ids'),
  dynamic_pools: none('ids'),
  dns_changes: none('records of domains'),
  dns_providers: kept(SETTING),
  removed_files: none('names of removed files, for a month'),
  form_mails: none('keyed digests, for a day'),
  forwarded_copies: none('digests'),
  greylist: none('networks and digests'),
  installation: none('marks'),
  ip_blocks: kept('replies of receivers about addresses of machines', { scope: null }),
  ip_changes: none('a version'),
  ip_names: none('addresses of machines'),
  ip_pool_delegations: none('ids'),
  ip_pool_members: none('addresses of machines'),
  ip_pools: kept(SETTING),
  ip_tasks: none('addresses of machines'),
  ip_warmup_providers: none(FIGURES),
  ip_warmups: none(FIGURES),
  ips: none('addresses of machines'),
  jobs: none('names of jobs'),
  login_links: none('digests'),
  login_places: none('logins and networks: removed with the login'),
  message_limits: none(FIGURES),
  monitored_domains: none('names of domains'),
  monitored_ips: none('addresses of machines'),
  mta_sts_policies: none('policies of domains'),
  nodes: none('processes'),
  oidc_sign_ins: none('digests'),
  public_keys: none('keys'),
  rate_buckets: none('counters'),
  recovery_codes: none('digests'),
  account_days: none(FIGURES),
  relay_days: none(FIGURES),
  standing_counts: none(FIGURES),
  standing_policies: none('settings in numbers'),
  standings: kept('reasons in numbers'),
  relay_rules: kept(SETTING, { scope: null }),
  relay_tokens: kept(SETTING, { scope: null }),
  relays: kept(SETTING, { scope: null }),
  reputation_sources: kept(SETTING, { scope: null }),
  sender_security: none('keys of domains'),
  sessions: none('sessions of users: removed with the user'),
  shared_ip_exclusions: none('ids'),
  size_samples: none(FIGURES),
  sns_topics: none('topics'),
  tracking_settings: kept(SETTING),
  user_identities: none('subjects of sign-in: removed with the user'),
  user_places: none('networks of users: removed with the user'),
  user_tokens: none('digests'),
  users: kept(STAFF),
  schema_versions: none('migrations'),
}

/** What is no table. */
export const OTHER_STORES: Readonly<Record<string, StoreRule>> = {
  'files of messages and captured mail': renamed(
    'with their rows: removed, or zeros for the address in texts',
  ),
  'unused pages and log of SQLite': erased(
    'freed pages are returned to the disk and the log is emptied at the end; content is overwritten when it is deleted',
  ),
  'dead rows of PostgreSQL': erased(
    'each changed table is vacuumed at the end; the log (WAL) passes by your settings',
  ),
  'memory of running processes': none('passes with the message'),
  'log lines on standard output': kept('your log system keeps them: their retention is its own'),
  'copy before an upgrade': kept(
    'a file before-upgrade-to-*.db in the data folder: listed in the report, delete it',
  ),
  backups: kept('they still hold the person: listed with their dates in the report'),
  'what was sent elsewhere': kept('webhooks, archives and forwarded mail are with those who got them'),
}

/** What is looked at. */
export const WALKED = Object.keys(STORES).filter((name) => STORES[name]?.does !== 'none')
