/**
 * What becomes of each table when an account moves to another pod (decision 264). A table of the database that is missing
 * here fails a test. Conditions and expressions are SQL about one pod, whose schema is `POD`: on Citus the other one may be on
 * another machine. `ACCOUNT` is the account's id as a literal, `FIRST_ACCOUNT` that of the target's first one, `SCOPES` an
 * object with the target's numbers of scopes by those of the source, `NEW_TX` the number of the transaction.
 */

export type MoveRule =
  /** Rows go to the target and leave the source. */
  | { does: 'moves'; where: string; columns: Readonly<Record<string, MovedColumn>>; order?: string }
  /** All rows go to the target too: they name no account. Those that it has stay as they are. */
  | { does: 'copies'; why: string }
  /** Rows leave the source and are not copied. */
  | { does: 'drops'; where: string; why: string }
  /** With such rows the account cannot move. */
  | { does: 'refuses'; where: string; why: string }
  | { does: 'stays'; why: string }

interface MovedColumn {
  /** What the target gets, computed in the source. */
  becomes?: string
  /** What is compared, in both; null: nothing. Default: the value. */
  compared?: string | null
}

const OWN = 'account_id = ACCOUNT'
const of = (column: string, table: string, key = 'id') =>
  `${column} IN (SELECT ${key} FROM POD.${table} WHERE ${OWN})`
const OF_DOMAIN = of('domain_id', 'domains')
const OF_USER = of('user_id', 'users')

const moves = (where = OWN, columns: Record<string, MovedColumn> = {}, order?: string): MoveRule => ({
  ...{ does: 'moves', where, columns },
  ...(order !== undefined && { order }),
})
const stays = (why: string): MoveRule => ({ does: 'stays', why })
const refuses = (why: string, where = OWN): MoveRule => ({ does: 'refuses', where, why })
const drops = (why: string, where = OWN): MoveRule => ({ does: 'drops', where, why })

/** A scope's number is another one in the target. */
const OF_SCOPE = moves(of('scope', 'figure_scopes', 'no'), {
  scope: {
    becomes: '(SCOPES ->> scope::text)::bigint',
    compared: '(SELECT domain_name FROM POD.figure_scopes WHERE no = scope)',
  },
})

/**
 * Events that the counters of the source have not read are read by those of the target, like new ones. Followers passed the
 * number 0.
 */
const EVENTS = moves(
  OWN,
  {
    tx: {
      becomes: `CASE WHEN (tx, seq) > (SELECT tx, seq FROM POD.event_followers WHERE name = 'counters')
        THEN NEW_TX ELSE 0 END`,
      compared: null,
    },
  },
  'tx, seq',
)

const OPERATOR = "the operator's"
const IPS = 'it has IP addresses or pools of its own: take them from it first'
const PROCESSES = 'of running processes'
const OTHERS = 'about other hosts and domains'
const TASK = 'something is being done with it: start the pod and wait until that is over'

export const MOVE_RULES: Readonly<Record<string, MoveRule>> = {
  // All others of a pod are subaccounts of its first one.
  accounts: moves('id = ACCOUNT', {
    parent_id: { becomes: 'FIRST_ACCOUNT', compared: null },
  }),
  users: moves(),
  api_keys: moves(OWN, {
    user_id: { becomes: `(SELECT id FROM POD.users WHERE users.id = user_id AND users.${OWN})` },
  }),
  public_keys: moves(),
  passkeys: moves(OF_USER),
  recovery_codes: moves(OF_USER),
  user_identities: moves(OF_USER),
  user_places: moves(of('login', 'users', 'email')),
  user_tokens: drops('their links lead to the former pod: they have to be sent again', OF_USER),
  login_links: drops('they lead to the former pod, for minutes'),
  sessions: drops('their cookies lead to the former pod: users sign in again'),
  login_places: moves(of('login', 'credentials', 'login')),
  credentials: moves(),
  caller_addresses: moves(),
  account_settings: moves(),
  account_rate_limits: moves(),
  account_days: moves('name = ACCOUNT'),
  account_tags: moves(),
  account_webhooks: moves(),
  account_changes: refuses(TASK),
  message_limits: moves(),
  usage_limits: moves(),
  standings: moves(),
  standing_counts: moves(),
  standing_policies: moves(),
  sandbox_recipients: moves(),
  sandbox_mails: moves(),
  idempotency_keys: moves(),
  audit: moves(),
  key_requests: moves(),
  shared_figures: drops('their links lead to the former pod: they have to be shared again'),

  domains: moves(),
  domain_dns: moves(OF_DOMAIN),
  domain_deletions: refuses('a domain of it is being deleted: start the pod and wait until it is gone'),
  domain_webhooks: moves(),
  domain_reports: moves(),
  domain_report_totals: moves(),
  dkim_keys: moves(),
  sender_security: moves(),
  dns_providers: moves(),
  dns_changes: moves(),
  certificates: moves(),
  tracking_settings: moves(),
  tracking_links: moves(),
  disabled_queues: moves(OF_DOMAIN),
  retention_settings: moves(),
  monitored_domains: moves(),
  monitored_ips: moves(),
  blocklist_events: moves(),
  gmail_days: moves(OF_DOMAIN),
  gmail_domains: moves(OF_DOMAIN),

  suppressions: moves(),
  suppression_policies: moves(OF_DOMAIN),
  suppression_imports: moves(),
  unsubscribe_tags: moves(OF_DOMAIN),
  counted_bounces: moves(OF_DOMAIN),
  lists: moves(),
  list_members: moves(of('list_id', 'lists')),
  list_uploads: moves(),
  list_expansions: moves(),
  confirmation_mails: moves(of('list_id', 'lists')),
  consent_trail: moves(),
  templates: moves(),
  template_versions: moves(of('template_id', 'templates')),
  routes: moves(),

  messages: moves(),
  deliveries: moves(),
  past_messages: moves(),
  past_deliveries: moves(),
  transcripts: moves(),
  delivery_reports: moves(),
  content_checks: moves(),
  content_decisions: moves(),
  content_holds: moves(),
  route_posts: moves(),
  archive_outbox: moves(),
  outgoing_posts: moves(),
  webhook_attempts: moves(),
  inbox: moves(),
  inbox_words: moves(of('inbox_id', 'inbox')),
  classified_failures: moves(OWN, {}, 'id'),
  tags: moves(),
  events: EVENTS,
  event_tags: stays('written and removed by triggers, with the rows of events'),
  figure_scopes: moves(),
  figures: OF_SCOPE,
  figure_packs: OF_SCOPE,
  usage_hours: moves(),
  feature_usage: moves(),
  removed_usage: moves(),
  counted_visits: { does: 'copies', why: 'digests: which opens and clicks of a week were counted' },
  forwarded_copies: { does: 'copies', why: 'digests: which mails were forwarded within a day' },

  alerts: moves(),
  alert_hits: moves(),
  alert_notices: moves(),
  alert_settings: moves(),
  alert_slack: moves(),
  seed_lists: moves(),
  placement_tests: moves(),
  placement_seeds: moves(of('test_id', 'placement_tests')),
  validation_jobs: moves(),
  validation_addresses: moves(of('job_id', 'validation_jobs')),
  exports: moves(),
  person_tasks: moves(),

  ips: refuses(IPS),
  ip_pools: refuses(IPS),
  ip_pool_delegations: refuses(IPS, 'subaccount_id = ACCOUNT'),
  ip_tasks: refuses(IPS),
  ip_warmups: refuses(IPS),
  domain_ips: refuses(IPS),
  shared_ip_exclusions: refuses(IPS),
  dynamic_pools: refuses(IPS),
  dynamic_pool_domains: refuses(IPS),
  dynamic_pool_tasks: refuses(IPS),
  dynamic_pool_history: stays(OPERATOR),
  dynamic_pool_members: stays(OPERATOR),
  ip_blocks: stays(OPERATOR),
  ip_changes: stays('a version'),
  ip_names: stays(OPERATOR),
  ip_pool_members: stays(OPERATOR),
  ip_warmup_providers: stays(OPERATOR),

  acme_accounts: stays(OPERATOR),
  acme_challenges: stays('for minutes'),
  blocklist_checks: stays(OTHERS),
  blocklist_states: stays(OTHERS),
  blocklist_users: stays(OTHERS),
  delivery_overrides: stays(OPERATOR),
  dmarc_policies: stays(OTHERS),
  dmarc_reports: stays(OTHERS),
  dmarc_results: stays(OTHERS),
  event_followers: stays('places in the events of a pod'),
  event_sinks: stays(OPERATOR),
  figure_places: stays('the same in both pods'),
  form_mails: stays('limits of a day'),
  greylist: stays(OTHERS),
  inbox_faults: stays(OPERATOR),
  installation: stays('marks of a pod'),
  jobs: stays(PROCESSES),
  met_challenges: stays('for minutes'),
  mta_sts_policies: stays(OTHERS),
  nodes: stays(PROCESSES),
  oidc_sign_ins: stays('for minutes'),
  outgoing_leases: stays(PROCESSES),
  relay_days: stays(OPERATOR),
  relay_rules: stays(OPERATOR),
  relay_tokens: stays(OPERATOR),
  relays: stays(OPERATOR),
  removed_files: stays('for the backups of a pod'),
  reputation_sources: stays(OPERATOR),
  size_samples: stays(PROCESSES),
  snds_blocks: stays(OTHERS),
  snds_days: stays(OTHERS),
  sns_topics: stays(OPERATOR),
  spam_traps: stays(OPERATOR),
  tls_reports: stays(OTHERS),
  tls_results: stays(OTHERS),
  validation_probes: stays(OTHERS),
  webhook_changes: stays('a version'),
}

/** Further reasons why an account cannot move: rows of a query, and the sentence. */
export const REFUSALS: readonly (readonly [query: string, why: string])[] = [
  ["SELECT 1 FROM accounts WHERE id = ACCOUNT AND status = 'closed'", 'it is closed'],
  ['SELECT 1 FROM accounts WHERE id = ACCOUNT AND parent_id IS NULL', 'it is the first account of its pod'],
  ['SELECT 1 FROM accounts WHERE parent_id = ACCOUNT', 'it has subaccounts'],
  // Their places are in the events of a pod.
  [`SELECT 1 FROM exports WHERE ${OWN} AND status IN ('requested', 'processing')`, TASK],
  [`SELECT 1 FROM person_tasks WHERE ${OWN} AND state IN ('queued', 'running')`, TASK],
  [
    `SELECT 1 FROM domains WHERE ${OWN} AND (sending_ips_json IS NOT NULL OR sending_pool_id IS NOT NULL OR dynamic_pool_id IS NOT NULL)`,
    IPS,
  ],
  [
    `SELECT 1 FROM domains d JOIN domains o ON o.name IN (d.dkim_authority, d.signing_authority)
      WHERE (d.${OWN}) <> (o.${OWN})`,
    'domains of it sign with keys of another account, or the other way round',
  ],
  [
    `SELECT 1 FROM event_followers f JOIN events e ON e.${OWN} AND (e.tx, e.seq) > (f.tx, f.seq)
      WHERE f.name <> 'counters' LIMIT 1`,
    'a sink of the pod has not sent all of its events: start the pod until it has, or remove the sink',
  ],
]

/** Rows of a query on the target: until they are read, events of the past and new ones cannot be told apart there. */
export const TARGET_REFUSAL = `SELECT 1 FROM event_followers f JOIN events e ON e.tx = 0 AND (e.tx, e.seq) > (f.tx, f.seq) LIMIT 1`
