/**
 * Every table of the database: which kind of data it belongs to, and what keeps it from growing for ever. A table that
 * is missing here fails a test.
 */

/**
 * `age`: rows are removed when they are old. `work`: when what they stand for is done. `owned`: when somebody deletes
 * what they belong to, such as a domain, a list or a user; their number is chosen by people. `fixed`: a few rows.
 */
type Bound = 'age' | 'work' | 'owned' | 'fixed'

export const TABLE_KINDS = {
  messages: {
    messages: 'age',
    deliveries: 'age',
    past_messages: 'age',
    past_deliveries: 'age',
    delivery_reports: 'age',
    list_expansions: 'age',
    archive_outbox: 'work',
    route_posts: 'work',
  },
  events: {
    events: 'age',
    event_tags: 'age',
    event_index: 'age',
    event_segments: 'age',
    event_index_place: 'fixed',
    event_followers: 'fixed',
  },
  metrics: {
    figures: 'age',
    figure_packs: 'age',
    figure_scopes: 'owned',
    figure_places: 'fixed',
    counted_visits: 'age',
    classified_failures: 'age',
    tags: 'owned',
    account_tags: 'owned',
    removed_usage: 'age',
    feature_usage: 'owned',
  },
  webhooks: {
    outgoing_posts: 'work',
    outgoing_leases: 'work',
    webhook_attempts: 'age',
    domain_webhooks: 'owned',
    account_webhooks: 'owned',
    webhook_changes: 'fixed',
  },
  dialogues: { transcripts: 'age', tls_results: 'age' },
  tracking: { tracking_links: 'age' },
  inbox: { inbox: 'age', inbox_faults: 'fixed' },
  audit: { audit: 'age' },
  suppressions: {
    suppressions: 'owned',
    unsubscribe_tags: 'owned',
    suppression_policies: 'owned',
    counted_bounces: 'age',
    suppression_imports: 'work',
  },
  validation: {
    validation_jobs: 'age',
    validation_addresses: 'age',
    validation_probes: 'age',
    seed_lists: 'owned',
    placement_tests: 'age',
    placement_seeds: 'age',
  },
  reports: {
    domain_reports: 'age',
    domain_report_totals: 'age',
    tls_reports: 'age',
    gmail_days: 'age',
    gmail_domains: 'owned',
    snds_days: 'age',
    snds_blocks: 'age',
  },
  lists: { lists: 'owned', list_members: 'owned', list_uploads: 'age' },
  templates: { templates: 'owned', template_versions: 'owned' },
  settings: {
    exports: 'age',
    account_changes: 'work',
    account_rate_limits: 'owned',
    account_settings: 'owned',
    accounts: 'owned',
    acme_accounts: 'fixed',
    acme_challenges: 'work',
    alert_hits: 'age',
    alert_notices: 'age',
    alert_settings: 'owned',
    alert_slack: 'owned',
    usage_limits: 'owned',
    usage_hours: 'age',
    alerts: 'owned',
    api_keys: 'owned',
    caller_addresses: 'owned',
    certificates: 'owned',
    credentials: 'owned',
    delivery_overrides: 'owned',
    disabled_queues: 'owned',
    dkim_keys: 'owned',
    domain_deletions: 'work',
    domain_dns: 'owned',
    domain_ips: 'owned',
    domains: 'owned',
    dynamic_pool_domains: 'owned',
    dynamic_pool_history: 'age',
    dynamic_pool_members: 'owned',
    dynamic_pool_tasks: 'work',
    dynamic_pools: 'owned',
    forwarded_copies: 'age',
    greylist: 'age',
    idempotency_keys: 'age',
    installation: 'fixed',
    ip_blocks: 'age',
    ip_changes: 'fixed',
    ip_names: 'fixed',
    ip_pool_delegations: 'owned',
    ip_pool_members: 'owned',
    ip_pools: 'owned',
    ip_tasks: 'work',
    ip_warmup_providers: 'owned',
    ip_warmups: 'owned',
    ips: 'owned',
    jobs: 'fixed',
    login_links: 'age',
    login_places: 'age',
    message_limits: 'owned',
    mta_sts_policies: 'age',
    nodes: 'work',
    oidc_sign_ins: 'age',
    public_keys: 'owned',
    rate_buckets: 'work',
    recovery_codes: 'owned',
    relay_days: 'age',
    relay_rules: 'fixed',
    relay_tokens: 'owned',
    relays: 'owned',
    reputation_sources: 'fixed',
    routes: 'owned',
    sandbox_mails: 'age',
    sandbox_recipients: 'owned',
    sender_security: 'owned',
    sessions: 'age',
    shared_ip_exclusions: 'owned',
    size_samples: 'age',
    sns_topics: 'owned',
    tracking_settings: 'owned',
    user_identities: 'owned',
    user_places: 'age',
    user_tokens: 'age',
    users: 'owned',
  },
} as const satisfies Record<string, Record<string, Bound>>

/** `files`: bytes too large for the database. */
export type StoredKind = keyof typeof TABLE_KINDS | 'files'
export const STORED_KINDS = [...Object.keys(TABLE_KINDS), 'files'] as StoredKind[]
/** `free`: room for more. */
export type SizeKind = StoredKind | 'free'

const KIND_OF: ReadonlyMap<string, SizeKind> = new Map(
  Object.entries(TABLE_KINDS).flatMap(([kind, tables]) =>
    Object.keys(tables).map((table) => [table, kind as SizeKind]),
  ),
)

/** Tables of a newer version count as settings. */
export const kindOf = (table: string): SizeKind => KIND_OF.get(table) ?? 'settings'
