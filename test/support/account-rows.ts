/** Rows of tables that take more than a few calls to fill. */

import { DAY_MS } from '../../src/base/time/durations.ts'
import { monthOf } from '../../src/people/message-limits/month.ts'
import type { Schema } from '../../src/platform/store/schema.ts'
import { insert, type Store } from '../../src/platform/store/store.ts'
import { newProvider, newWarmup } from '../../src/sending/ips/warmup/plan.ts'

/** Neither over nor too old. */
const THIS_HOUR = Math.ceil(Date.now() / 3_600_000) * 3_600_000

/**
 * Tables with the account's id that need more than a few calls to fill: expired messages, late reports, certificates,
 * failed imports, warm-ups (which would hold mail back). They get a row as such, and any new table has to be filled or listed here.
 */
export const rowsFor = (accountId: string, domainId: string, domain: string) => ({
  past_messages: {
    ...{ id: `pm-${accountId}`, account_id: accountId, domain_id: domainId, domain_name: domain },
    ...{ message_id: 'm', summary_json: '{}', removed_at: 1 },
  },
  past_deliveries: {
    ...{ id: `pd-${accountId}`, account_id: accountId, domain_id: domainId, message_pk: `pm-${accountId}` },
    ...{ recipient: 'a@b.example', recipient_domain: 'b.example', recipient_header: 'a@b.example' },
    ...{ state: 'delivered', removed_at: 1 },
  },
  delivery_reports: {
    ...{ delivery_id: `d-${accountId}`, kind: 'bounce', status: '5.0.0', account_id: accountId },
    ...{ event_id: 'e', created_at: 1 },
  },
  certificates: {
    ...{ host: `email.${domain}`, account_id: accountId, domain_id: domainId, requested: 0, attempts: 0 },
    ...{ orders_json: '[]', created_at: 1 },
  },
  standing_counts: {
    ...{ account_id: accountId, domain_name: domain, hour_at: THIS_HOUR, sent: 1, bounced: 0 },
    ...{ unknown_users: 0, complained: 0, trapped: 0, first_at: THIS_HOUR },
  },
  standings: {
    ...{ account_id: accountId, domain_name: domain, state: 'warned', code: 'bounces', reason: 'r' },
    ...{
      figures_json: '{}',
      since_at: 1,
      until_at: THIS_HOUR,
      told_json: '[]',
      is_told: 1,
      is_settled: 1,
    },
  },
  shared_figures: {
    ...{ id: `f-${accountId}`, account_id: accountId, digest: accountId, title: 't', query_json: '{}' },
    ...{ key_id: 'k', created_at: 1, expires_at: Date.now() + DAY_MS },
  },
  standing_policies: { account_id: accountId, policy: 'strict', new_account_daily: 0, updated_at: 1 },
  disabled_queues: { domain_id: domainId, queue: 'regular', until: 1 },
  alert_hits: {
    ...{ id: `h-${accountId}`, account_id: accountId, source: 's', name: 'n', metric: 'bounce_rate' },
    ...{ comparator: '>', limit_text: '1', dimension: 'domain', dimension_value: domain, latest_value: '2' },
    ...{ advice: '', triggered: 1, misses: 0, since_at: 1, created_at: 1, updated_at: 1 },
  },
  alert_notices: {
    ...{ id: `n-${accountId}`, account_id: accountId, hit_id: `h-${accountId}`, channel: 'email' },
    ...{ recipient: 'a@b.example', content_json: '{}', due_at: Date.now() + DAY_MS, created_at: Date.now() },
  },
  ip_pool_delegations: { subaccount_id: accountId, pool_id: 'unknown', created_at: 1 },
  dynamic_pools: { id: `p-${accountId}`, account_id: accountId, band: 'dynamic_good' },
  dynamic_pool_members: { ip: `i-${accountId}`, pool_id: `p-${accountId}`, added_at: 1 },
  dynamic_pool_domains: {
    ...{ domain_id: domainId, account_id: accountId, owner_id: 'parent', name: domain, band: 'dynamic_new' },
    ...{ registered_at: 1, is_pinned: 1, next_check_at: 1, clean_checks: 0, processed: 0 },
  },
  dynamic_pool_history: {
    ...{ id: `dh-${accountId}`, owner_id: 'parent', account_id: accountId, account_name: 'n' },
    ...{
      domain_id: domainId,
      domain_name: domain,
      new_band: 'dynamic_new',
      prev_band: '',
      reason: 'enrolled',
    },
    ...{ initiated_by: 'k', at: Date.now() },
  },
  ip_warmups: newWarmup(`w-${accountId}`, accountId, 0, 1),
  ip_warmup_providers: newProvider(`w-${accountId}`, '*', 1),
  domain_reports: {
    ...{
      id: `dr-${accountId}`,
      account_id: accountId,
      domain_id: domainId,
      type: 'dmarc',
      sender: 's.example',
    },
    ...{ authenticated: 1, organization: 'o', contact: 'c', report_id: 'r', begin_at: Date.now() },
    ...{ end_at: Date.now(), received_at: 1, passed: 1, failed: 0, row_count: 0, rows_json: '[]' },
  },
  domain_report_totals: {
    ...{ domain_id: domainId, type: 'dmarc', day_at: Date.now(), name: '', account_id: accountId },
    ...{ passed: 1, failed: 0, quarantined: 0, rejected: 0 },
  },
  route_posts: {
    ...{ id: `rp-${accountId}`, account_id: accountId, domain_id: domainId, message_pk: 'm' },
    ...{ recipient: `a@${domain}`, kind: 'forward', url_sealed: Buffer.from('x'), created_at: 1 },
  },
  removed_usage: { account_id: accountId, domain_id: 'removed', month_at: monthOf(Date.now()), accepted: 1 },
  alert_slack: { account_id: accountId, workspace_sealed: Buffer.from('x'), updated_at: 1 },
  blocklist_events: {
    ...{ id: `be-${accountId}`, account_id: accountId, kind: 'domain', subject: domain, list: 'l' },
    ...{ event: 'listed', created_at: Date.now() },
  },
  exports: {
    ...{ id: `e-${accountId}`, account_id: accountId, url: '/v3/routes', body: '', area: 'routes' },
    ...{ role: 'admin', status: 'complete', next_page: '', records: 0, size_bytes: 0, blobs_json: '[]' },
    ...{ fault: '', tries: 0, lease_until: 0, stepped_at: Date.now(), created_at: Date.now() },
  },
  person_tasks: {
    ...{
      id: `pt-${accountId}`,
      account_id: accountId,
      everywhere: 0,
      kind: 'export',
      dry_run: 1,
      state: 'done',
    },
    ...{ address_sealed: null, address_hash: 'h', position_json: '{}', counts_json: '{}', blobs_json: '[]' },
    ...{ report_json: null, fault: '', tries: 0, lease_token: null, lease_owner: null, lease_until: 0 },
    ...{ stepped_at: Date.now(), created_at: Date.now(), finished_at: Date.now() },
  },
  dns_providers: {
    ...{ account_id: accountId, name: 'own', kind: 'desec', settings_json: '{}' },
    ...{ secret_sealed: Buffer.from('x'), created_at: 1, updated_at: 1 },
  },
  dns_changes: {
    ...{ id: `dc-${accountId}`, account_id: accountId, domain_id: domainId, provider: 'own', state: 'done' },
    ...{ changes_json: '[]', created_at: 1, updated_at: 1 },
  },
  monitored_domains: {
    ...{ account_id: accountId, name: domain, is_removed: 0, txt_record: 't', created_at: 1 },
  },
  monitored_ips: {
    ...{ account_id: accountId, ip: '192.0.2.1', ip_pool: '', description: '', is_removed: 0, created_at: 1 },
  },
  usage_hours: {
    ...{ account_id: accountId, metric: 'seed_test_count', hour_at: THIS_HOUR, domain_name: domain },
    count: 1,
  },
  usage_limits: {
    ...{
      id: `ul-${accountId}`,
      account_id: accountId,
      name: 'n',
      description: '',
      metric: 'seed_test_count',
    },
    ...{ comparator: '>', limit_text: '1', dimension: 'domain', channels_json: '[]', filters_json: '[]' },
    ...{ period: '1h', created_at: 1, updated_at: 1 },
  },
  content_checks: { account_id: accountId, hour: Date.now(), domain_name: domain, checked: 1, bad: 0 },
  content_holds: {
    ...{ message_pk: `ch-${accountId}`, digest: 'd', account_id: accountId, domain_name: domain },
    ...{ reason: 'score 20', held_at: Date.now() },
  },
  content_decisions: {
    ...{ digest: `cd-${accountId}`, account_id: accountId, decision: 'dropped', decided_at: Date.now() },
  },
  sender_security: {
    ...{ domain_id: domainId, account_id: accountId, domain_name: domain, sid: `s-${accountId}` },
    ...{ state: 'off', rotation_enabled: 0, rotation_interval: '120d', rotated_at: 0 },
  },
})

export async function addRows(store: Store, rows: Record<string, object>): Promise<void> {
  for (const [table, row] of Object.entries(rows))
    await store.commit([insert(table as keyof Schema, row as never)])
}
