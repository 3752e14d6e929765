/**
 * Writes src/platform/store/schema.ts, the types of all rows, from the migrations: `node scripts/store-tables.ts`. A test compares
 * the two, and the columns with those that PostgreSQL has.
 *
 * The migrations run in an empty SQLite database, which then lists tables, columns, types and what may be null. The lists
 * below hold what SQL does not say.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readMigrations } from '../src/platform/store/migrate.ts'

export const SCHEMA_FILE = join(import.meta.dirname, '../src/platform/store/schema.ts')

const HEAD = `// Made by \`node scripts/store-tables.ts\` from the migrations, which document the columns.
// In both databases flags are 0 or 1, times Unix milliseconds, and \`*_json\` JSON text.
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
`

/** Types of columns that hold a few words. */
const WORDS: Readonly<Record<string, string>> = {
  'blocklist_events.event': "'listed' | 'delisted'",
  'blocklist_events.kind': "'ip' | 'domain'",
  'blocklist_states.kind': "'ipv4' | 'ipv6' | 'domain'",
  'classified_failures.severity': "'PERMANENT' | 'TEMPORARY'",
  'consent_trail.action': 'ConsentAction',
  'consent_trail.source': 'ConsentSource',
  'counted_bounces.severity': "'hard' | 'soft'",
  'deliveries.state': 'DeliveryState',
  'delivery_reports.kind': "'bounce' | 'complaint'",
  'domain_report_totals.type': "DomainReportRow['type']",
  'domain_reports.type': "'dmarc' | 'tls' | 'complaint'",
  'domains.mta_sts': "'off' | 'testing' | 'enforce' | 'none'",
  'key_requests.form': "'query' | 'form' | 'multipart' | 'json'",
  'list_expansions.state': "'running' | 'done'",
  'list_members.pending_source': 'ConsentSource',
  'list_uploads.format': "'json' | 'csv'",
  'list_uploads.state': "'running' | 'done'",
  'past_deliveries.state': 'DeliveryState',
  'person_tasks.kind': "'export' | 'erase'",
  'person_tasks.state': "'queued' | 'running' | 'done' | 'failed'",
  'dns_providers.kind': "'rfc2136' | 'cloudflare' | 'route53' | 'desec' | 'hetzner'",
  'dns_changes.state': "'writing' | 'done' | 'failed' | 'undone'",
  'event_sinks.kind': "'http' | 's3' | 'syslog' | 'stdout' | 'nats' | 'amqp' | 'kafka'",
  'relays.tls': "'starttls' | 'implicit' | 'none'",
  'relays.mechanism': "'auto' | 'plain' | 'login' | 'cram-md5' | 'xoauth2' | 'oauthbearer'",
  'placement_seeds.state': "'pending' | 'delivered' | 'missing'",
  'placement_tests.status': "'processing' | 'completed'",
  'suppression_imports.kind': 'SuppressionKind',
  'suppressions.kind': 'SuppressionKind',
  'webhook_attempts.status': "'ok' | 'failing' | 'given-up'",
}

const columns = (table: string, names: string) => names.split(' ').map((name) => `${table}.${name}`)

/** Columns that hold 0 or 1, besides all whose name begins with `is_`. */
const FLAGS: ReadonlySet<string> = new Set([
  ...columns('account_settings', 'webhooks_redact_pii ai_insights'),
  'alert_hits.triggered',
  'certificates.requested',
  'classified_failures.critical',
  ...columns('dkim_keys', 'active activates managed'),
  'domain_reports.authenticated',
  ...columns(
    'domains',
    'wildcard cfbl_address feedback_id require_tls skip_verification use_automatic_sender_security',
  ),
  ...columns('domains', 'encrypt_incoming_message return_path_valid dkim_unverified verified tracking_valid'),
  'dynamic_pool_tasks.with_subaccounts',
  'inbox.restricted',
  'ips.warms_when_assigned',
  ...columns('list_members', 'subscribed by_link'),
  'list_uploads.subscribed',
  ...columns('person_tasks', 'everywhere dry_run'),
  'placement_tests.shared',
  ...columns('relays', 'allow_unverified alters_return_path alters_message_id'),
  'sender_security.rotation_enabled',
  'template_versions.active',
  ...columns('tracking_settings', 'opens opens_at_top unsubscribe unsubscribe_on_bulk'),
  'validation_jobs.dropping',
])

/**
 * Columns that inserts may leave out, besides those that the database numbers or computes. Other defaults fill the rows
 * that were there before the column: inserts must name it, so that the compiler finds those that forget it.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...columns('account_settings', 'webhooks_redact_pii ai_insights'),
  ...columns('accounts', 'status features_json updated_at'),
  'events.tx',
  'figure_scopes.pairs_since',
])

/** Rows whose name is not the singular of their table's. */
const NAMES: Readonly<Record<string, string>> = {
  account_settings: 'AccountSettingsRow',
  domain_dns: 'DomainDnsRow',
  tracking_settings: 'TrackingSettingsRow',
}

/** SQLite does not say which columns of a view may be null; the table whose columns they are does. */
const VIEWS: Readonly<Record<string, string>> = { event_keys: 'events', event_tag_keys: 'event_tags' }

const TYPES: Readonly<Record<string, string>> = {
  TEXT: 'string',
  INTEGER: 'number',
  REAL: 'number',
  BLOB: 'Uint8Array',
}

interface Column {
  name: string
  type: string
  isNullable: boolean
  /** Inserts may leave it out. */
  isOptional: boolean
}

/** Columns of all tables and views by the name of the table, as the migrations make them on SQLite. */
export function readTables(): Map<string, Column[]> {
  const database = new DatabaseSync(':memory:')
  for (const { sql } of readMigrations('sqlite')) database.exec(sql)
  const found =
    database.prepare(`SELECT m.name AS "table", c.* FROM sqlite_schema m, pragma_table_xinfo(m.name) c
    WHERE m.type IN ('table', 'view') ORDER BY m.name, c.cid`)
  const tables = Map.groupBy(found.all(), (row) => String(row['table']))
  for (const [view, table] of Object.entries(VIEWS)) {
    const names = new Set(tables.get(view)?.map(({ name }) => name))
    tables.set(
      view,
      tables.get(table)!.filter(({ name }) => names.has(name)),
    )
  }
  return new Map([...tables].map(([table, rows]) => [table, rows.map((row) => columnOf(table, row))]))
}

/** `hidden`: the column is computed, from others that are not null. */
function columnOf(table: string, { name, type, notnull, pk, hidden }: Record<string, unknown>): Column {
  const path = `${table}.${name}`
  const isFlag = FLAGS.has(path) || String(name).startsWith('is_')
  const isNumbered = type === 'INTEGER' && pk === 1 && notnull === 0
  return {
    name: String(name),
    type: WORDS[path] ?? (isFlag ? 'Flag' : TYPES[String(type)]!),
    isNullable: notnull === 0 && pk === 0 && hidden === 0,
    isOptional: LEFT_OUT.has(path) || isNumbered || hidden !== 0,
  }
}

/** The text of src/platform/store/schema.ts. @throws Error naming a column of the lists that no table has */
export function schemaText(tables: ReadonlyMap<string, readonly Column[]>): string {
  const known = new Set([...tables].flatMap(([table, all]) => all.map(({ name }) => `${table}.${name}`)))
  const unknown = [...Object.keys(WORDS), ...FLAGS, ...LEFT_OUT].find((path) => !known.has(path))
  if (unknown !== undefined)
    throw new Error(`No migration makes ${unknown}, which scripts/store-tables.ts lists`)
  const rows = [...tables].map(([table, all]) => interfaceText(rowName(table), all.map(fieldText)))
  const entries = [...tables].map(([table, all]) => `${table}: ${entryType(table, all)}`)
  return [HEAD, ...rows, '', interfaceText('Schema', entries), ''].join('\n')
}

const fieldText = ({ name, type, isNullable }: Column) => `${name}: ${type}${isNullable ? ' | null' : ''}`

function entryType(table: string, all: readonly Column[]): string {
  const names = all.filter(({ isOptional }) => isOptional).map(({ name }) => `'${name}'`)
  return names.length === 0 ? rowName(table) : `WithDefaults<${rowName(table)}, ${names.join(' | ')}>`
}

/** `ListMemberRow` of `list_members`. */
function rowName(table: string): string {
  const singular = table.replace(/ies$/, 'y').replace(/(?<=ss)es$|(?<!s)s$/, '')
  const words = singular.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return NAMES[table] ?? `${words.join('')}Row`
}

/** Several fields a line, up to 110 characters. */
function interfaceText(name: string, fields: readonly string[]): string {
  const lines = fields.join('; ').replaceAll(/(.{1,108})(?:; |$)/g, '  $1\n')
  return `export interface ${name} {\n${lines}}`
}

if (import.meta.main) writeFileSync(SCHEMA_FILE, schemaText(readTables()))
