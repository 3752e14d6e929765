/**
 * Metrics over classified failures (bounce-classification.md section 3): the database groups failures; the deliveries of
 * the same groups are counted from the events, so that nothing is written for a delivery.
 *
 * Cost (SQLite, CPU of all threads): a microsecond a failure; for each delivered event of the range 0.2 µs in all,
 * 0.5 by domain or time (the index alone is read), 1.5 by tag or recipient domain, 3 by sending address (JSON), up to
 * DELIVERED_MAX of them. Above that, and for groups that deliveries do not have, their number and the rates are null.
 */
import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { SAME_TIME } from '../../watching/events/kept/time-parts.ts'
import { conditionSql, isDenied, isPart, matches } from '../../watching/metrics/filter.ts'
import { comparing, pageOf } from '../../watching/metrics/order.ts'
import type { Attribute, Condition, Dimension, Metric, MetricsQuery } from './metrics-query.ts'
import { ENTITY_NAMES, entityName, type RuleSet, UNCLASSIFIED } from './rules.ts'
import type { BOUNCE_METRICS } from './shapes.ts'
import { accountsOf, accountsSql, type Scope } from './statistics.ts'

/** Delivered events that one query counts: it occupies a reader for a second or two at most. */
const DELIVERED_MAX = 500_000
/** Groups held in memory for sorting, about 20 MB. */
const GROUPS_MAX = 20_000

/** SQL of what is grouped and filtered: text or null; `timestamp` in milliseconds. */
type Columns = Partial<Readonly<Record<Dimension, string>>>

/** No pool is recorded yet. */
const NO_POOL = 'CAST(NULL AS TEXT)'

const FAILURES: Columns = {
  'entity-name': 'entity',
  'domain.name': 'domain_name',
  'envelope.sending-ip': 'sending_ip',
  'account.name': 'account_id',
  'envelope.i-ip-pool-name': NO_POOL,
  tags: 'tags_json',
  tag: 'tags_json',
  'recipient-domain': 'recipient_domain',
  'group-id': 'rule_id',
  criticality: `CASE WHEN critical = 1 THEN 'critical' ELSE 'non_critical' END`,
  severity: 'severity',
  category: 'category',
  timestamp: 'failed_at',
}

/** Columns of events joined with their domains. Time and domain are in the index, the others in the event's row. */
const DELIVERIES: Readonly<Record<Store['kind'], Columns>> = {
  sqlite: deliveryColumns(`json_extract(payload_json, '$.envelope."sending-ip"')`, 'instr'),
  postgres: deliveryColumns(`(payload_json::json -> 'envelope' ->> 'sending-ip')`, 'strpos'),
}
const IN_ROW: ReadonlySet<Dimension> = new Set(['envelope.sending-ip', 'tag', 'tags', 'recipient-domain'])

function deliveryColumns(sendingIp: string, find: string): Columns {
  return {
    'domain.name': 'domains.name',
    'envelope.sending-ip': sendingIp,
    'account.name': 'domains.account_id',
    'envelope.i-ip-pool-name': NO_POOL,
    tags: 'events.tags_json',
    tag: 'events.tags_json',
    'recipient-domain': `substr(recipient, ${find}(recipient, '@') + 1)`,
    timestamp: '(event_keys.timestamp_us / 1000)',
  }
}

/** One group: the values of its dimensions (null: has none), and its counts. */
interface Entry {
  values: readonly (string | null)[]
  counts: Counts
  sampleId: number
}

type Counts = [criticalBounces: number, bounces: number, criticalDelays: number, delays: number]

interface MetricsAnswer {
  items: Of<typeof BOUNCE_METRICS>[]
  total: number
}

/** @throws BadRequest when the dimensions yield too many groups */
export async function readMetrics(
  store: Store,
  rules: RuleSet,
  scope: Scope,
  query: MetricsQuery,
): Promise<MetricsAnswer> {
  const { dimensions, sort } = query
  const entries = await failuresOf(store, rules, scope, query)
  const delivered = entries.length > 0 ? await deliveredOf(store, rules, scope, query) : null
  const names = await accountNames(store, scope, query)
  const counted = entries.map((entry) => {
    const deliveries = delivered === null ? null : (delivered.get(keyOf(entry.values)) ?? 0)
    return { ...entry, metrics: metricsOf(entry.counts, deliveries) }
  })
  const by =
    dimensions.find((name) => name === sort.column) ??
    (({ metrics }: (typeof counted)[number]) => metrics[sort.column as Metric] ?? -1)
  const { rows, total } = pageOf(counted, comparing(dimensions, by, sort.descending), query)
  const samples = dimensions.includes('group-id') ? await samplesOf(store, rows) : null
  return { items: rows.map((entry) => itemOf(dimensions, entry, names, rules, samples)), total }
}

const keyOf = (values: Entry['values']) => JSON.stringify(values)

/** Columns `g0`, `g1` ... of the dimensions. */
const groupsOf = ({ dimensions, unitMs }: MetricsQuery, columns: Columns): string =>
  dimensions
    .map((name, at) => {
      const column = columns[name] as string
      return `, ${name === 'timestamp' ? `${column} - ${column} % ${unitMs}` : column} AS g${at}`
    })
    .join('')

const groupBy = ({ dimensions }: MetricsQuery): string =>
  dimensions.length > 0 ? `GROUP BY ${dimensions.map((_, at) => `g${at}`)}` : ''

const countOf = (severity: string, critical: number) =>
  `sum(CASE WHEN severity = '${severity}' AND critical = ${critical} THEN 1 ELSE 0 END)`

async function failuresOf(store: Store, rules: RuleSet, scope: Scope, query: MetricsQuery): Promise<Entry[]> {
  const accounts = accountsSql(scope)
  const conditions = query.filter.map((one) => conditionOf(one, FAILURES, store.kind, rules))
  const rows = await store.read({
    sql: `SELECT ${countOf('PERMANENT', 1)} AS c0, ${countOf('PERMANENT', 0)} AS c1, ${countOf('TEMPORARY', 1)} AS c2,
        ${countOf('TEMPORARY', 0)} AS c3, max(id) AS newest ${groupsOf(query, FAILURES)}
      FROM classified_failures
      WHERE account_id IN (${accounts.sql}) AND failed_at >= ? AND failed_at < ?
        ${conditions.map(({ sql }) => `AND ${sql}`).join(' ')}
      ${groupBy(query)} LIMIT ${GROUPS_MAX + 1}`,
    values: [
      ...[...accounts.values, query.start, query.end + query.unitMs],
      ...conditions.flatMap(({ values }) => values),
    ],
  })
  if (rows.length > GROUPS_MAX) throw tooManyGroups()
  const entries = new Map<string, Entry>()
  for (const row of rows) {
    const counts = [row['c0'], row['c1'], row['c2'], row['c3']].map(Number) as Counts
    for (const values of valuesOf(query.dimensions, row)) {
      const key = keyOf(values)
      const found = entries.get(key)
      const newest = Number(row['newest'])
      if (!found) {
        entries.set(key, { values, counts: [...counts], sampleId: newest })
        continue
      }
      found.sampleId = Math.max(found.sampleId, newest)
      found.counts = found.counts.map((sum, index) => sum + (counts[index] as number)) as Counts
    }
  }
  if (entries.size > GROUPS_MAX) throw tooManyGroups()
  // Without dimensions the database returns one row even if nothing matches.
  return [...entries.values()].filter(({ counts }) => counts.some((count) => count > 0))
}

const tooManyGroups = () =>
  new BadRequest(`more than ${GROUPS_MAX} items: ask for fewer dimensions, a shorter time or a filter`)

/** The values of a row; one list for each tag where tags are split. A message without tags is in the group without a tag. */
function valuesOf(dimensions: readonly Dimension[], row: Record<string, unknown>): Entry['values'][] {
  const values = dimensions.map((dimension, at) => shownValue(dimension, row[`g${at}`] ?? null))
  const at = dimensions.indexOf('tag')
  if (at < 0) return [values]
  const tags = tagsIn(row[`g${at}`] ?? null)
  return (tags.length > 0 ? [...new Set(tags)] : [null]).map((tag) => values.with(at, tag))
}

const tagsIn = (raw: unknown) => (raw === null ? [] : (JSON.parse(String(raw)) as string[]))

function shownValue(dimension: Dimension, raw: unknown): string | null {
  if (raw === null) return null
  if (dimension === 'tags') return tagsIn(raw).join(', ')
  return dimension === 'entity-name' ? entityName(String(raw)) : String(raw)
}

/**
 * Deliveries of each group, by the key of its values; null: not counted. Mail of a former owner of a domain name is older
 * than the domain, so no row has to be read for its account.
 */
async function deliveredOf(store: Store, rules: RuleSet, scope: Scope, query: MetricsQuery) {
  if (query.dimensions.some((dimension) => DELIVERIES[store.kind][dimension] === undefined)) return null
  const found = new Map<string, number>()
  let all = 0
  for (const row of await store.read(deliveredQuery(store, rules, scope, query))) {
    const total = Number(row['total'])
    all += total
    for (const values of valuesOf(query.dimensions, row)) {
      const key = keyOf(values)
      found.set(key, (found.get(key) ?? 0) + total)
    }
  }
  return all > DELIVERED_MAX ? null : found
}

/** Rows of `total` and the values of the groups. Conditions that deliveries do not have are left out. */
export function deliveredQuery(store: Store, rules: RuleSet, scope: Scope, query: MetricsQuery): Statement {
  const columns = DELIVERIES[store.kind]
  const accounts = accountsSql(scope)
  const filter = query.filter.filter(({ attribute }) => columns[attribute] !== undefined)
  const conditions = filter.map((one) => conditionOf(one, columns, store.kind, rules))
  const named = [...query.dimensions, ...filter.map(({ attribute }) => attribute)]
  const rows = named.some((dimension) => IN_ROW.has(dimension))
    ? `JOIN events ON events.seq = event_keys.seq ${SAME_TIME[store.kind]}`
    : ''
  return {
    sql: `SELECT count(*) AS total ${query.dimensions.map((_, at) => `, g${at}`).join('')}
      FROM (SELECT 1 AS one ${groupsOf(query, columns)} FROM domains JOIN event_keys
          ON event_keys.domain_name = domains.name AND event_keys.event = 'delivered'
          AND event_keys.timestamp_us >= domains.created_at * 1000
          AND event_keys.timestamp_us >= ? AND event_keys.timestamp_us < ? ${rows}
        WHERE domains.account_id IN (${accounts.sql}) ${conditions.map(({ sql }) => `AND ${sql}`).join(' ')}
        LIMIT ${DELIVERED_MAX + 1}) AS delivered
      ${groupBy(query)}`,
    values: [
      ...[query.start * 1000, (query.end + query.unitMs) * 1000, ...accounts.values],
      ...conditions.flatMap(({ values }) => values),
    ],
  }
}

/** The condition on the column of its attribute, or on what stands for it there. */
function conditionOf(condition: Condition, columns: Columns, kind: Store['kind'], rules: RuleSet) {
  const column = columns[condition.attribute] as string
  const stored = STORED[condition.attribute]?.(condition, rules) ?? condition
  const text =
    condition.attribute === 'account.name'
      ? `(SELECT name FROM accounts WHERE accounts.id = ${column})`
      : column
  return conditionSql(`lower(coalesce(${text}, ''))`, stored, kind)
}

/** Conditions on attributes that are stored in another form. */
const STORED: Partial<Record<Attribute, (condition: Condition, rules: RuleSet) => Condition>> = {
  'entity-name': (condition, { rules }) => {
    const known = new Set([...Object.keys(ENTITY_NAMES), ...rules.map(({ entity }) => entity)])
    const named = { ...condition, comparator: isPart(condition) ? 'contains' : '=' } as const
    const ids = [...known].filter((id) => matches(named, entityName(id)))
    return { ...condition, comparator: isDenied(condition) ? '!=' : '=', values: ids.length > 0 ? ids : [''] }
  },
  // One element of the JSON list, whole or with the value in it.
  tag: (condition) => ({
    ...condition,
    comparator: isDenied(condition) ? 'not contains' : 'contains',
    values: condition.values.map((value) =>
      isPart(condition) ? JSON.stringify(value).slice(1, -1) : JSON.stringify(value),
    ),
  }),
  tags: (condition) =>
    isPart(condition)
      ? condition
      : { ...condition, values: condition.values.map((value) => JSON.stringify(value.split(', '))) },
}

/** Rule 2: whole percent of all attempts; null without a number of deliveries. */
function metricsOf(counts: Counts, delivered: number | null): Record<Metric, number | null> {
  const [criticalBounces, bounces, criticalDelays, delays] = counts
  const classified = counts.reduce((sum, count) => sum + count, 0)
  const rate = (count: number) =>
    delivered === null ? null : Math.round((100 * count) / (classified + delivered))
  return {
    critical_bounce_count: criticalBounces,
    non_critical_bounce_count: bounces,
    critical_delay_count: criticalDelays,
    non_critical_delay_count: delays,
    classified_failures_count: classified,
    delivered_smtp_count: delivered,
    critical_bounce_rate: rate(criticalBounces),
    non_critical_bounce_rate: rate(bounces),
    critical_delay_rate: rate(criticalDelays),
    non_critical_delay_rate: rate(delays),
  }
}

async function accountNames(
  store: Store,
  scope: Scope,
  { dimensions }: MetricsQuery,
): Promise<Map<string, string>> {
  if (!dimensions.includes('account.name')) return new Map()
  const rows = await store.db
    .selectFrom('accounts')
    .where('id', 'in', accountsOf(store.db, scope))
    .select(['id', 'name'])
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

async function samplesOf(store: Store, page: readonly Entry[]): Promise<Map<number, string>> {
  if (page.length === 0) return new Map()
  const ids = page.map(({ sampleId }) => sampleId)
  const rows = await store.db
    .selectFrom('classified_failures')
    .where('id', 'in', ids)
    .select(['id', 'sample'])
    .execute()
  return new Map(rows.map(({ id, sample }) => [Number(id), sample]))
}

/** Every member is present, null unless requested; the names contain dots and are not nested. */
function itemOf(
  dimensions: readonly Dimension[],
  { values, sampleId, metrics }: Entry & { metrics: Record<Metric, number | null> },
  accounts: ReadonlyMap<string, string>,
  rules: RuleSet,
  samples: ReadonlyMap<number, string> | null,
): Of<typeof BOUNCE_METRICS> {
  const value = (dimension: Dimension) => values[dimensions.indexOf(dimension)] ?? null
  const accountId = value('account.name')
  const time = value('timestamp')
  const rule = value('group-id')
  return {
    'account.id': accountId,
    'account.name': accountId === null ? null : (accounts.get(accountId) ?? accountId),
    'entity-name': value('entity-name'),
    'recipient-provider': null,
    'recipient-domain': value('recipient-domain'),
    'domain.name': value('domain.name'),
    'envelope.i-ip-pool-id': null,
    'envelope.i-ip-pool-name': value('envelope.i-ip-pool-name'),
    'envelope.sending-ip': value('envelope.sending-ip'),
    timestamp: time === null ? null : formatRfc2822(new Date(Number(time))),
    tags: value('tags'),
    tag: value('tag'),
    criticality: value('criticality'),
    severity: value('severity'),
    category: value('category'),
    'group-id': rule,
    'sample-text': samples?.get(sampleId) ?? null,
    explanation: rule === null ? null : (rules.byId.get(rule) ?? UNCLASSIFIED).explanation,
    metrics,
  }
}
