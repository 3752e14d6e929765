/**
 * Metrics over classified failures (bounce-classification.md section 3): the database groups failures; the deliveries of
 * the same groups are counted from the events, so that nothing is written for a delivery.
 *
 * Cost (SQLite, CPU of all threads): a microsecond a failure; for each delivered event of the range 0.2 µs in all,
 * 0.5 by domain or time (the index alone is read), 1.5 by tag or recipient domain, 3 by sending address (JSON), up to
 * DELIVERED_MAX of them. Above that, and for groups that deliveries do not have, their number and the rates are null.
 */
import { type RawBuilder, sql } from 'kysely'
import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import type { Store } from '../../platform/store/store.ts'
import { SAME_TIME } from '../../watching/events/kept/time-parts.ts'
import type { Attribute, Condition, Dimension, Metric, MetricsQuery } from './metrics-query.ts'
import { ENTITY_NAMES, entityName, type RuleSet, UNCLASSIFIED } from './rules.ts'
import type { BOUNCE_METRICS } from './shapes.ts'
import { accountsOf, type Scope } from './statistics.ts'

/** Delivered events that one query counts: it occupies a reader for a second or two at most. */
const DELIVERED_MAX = 500_000
/** Groups held in memory for sorting, about 20 MB. */
const GROUPS_MAX = 20_000

/** What an event of a delivery does not have. */
const FAILURE_ONLY: ReadonlySet<Dimension> = new Set([
  'entity-name',
  'group-id',
  'criticality',
  'severity',
  'category',
])

/** SQL of each value that can be grouped by or filtered; all return text or null, `time` milliseconds. */
interface Columns {
  account: RawBuilder<unknown>
  domain: RawBuilder<unknown>
  ip: RawBuilder<unknown>
  tags: RawBuilder<unknown>
  recipientDomain: RawBuilder<unknown>
  time: RawBuilder<unknown>
}

const FAILURE_COLUMNS: Columns = {
  account: sql.ref('account_id'),
  domain: sql.ref('domain_name'),
  ip: sql.ref('sending_ip'),
  tags: sql.ref('tags_json'),
  recipientDomain: sql.ref('recipient_domain'),
  time: sql.ref('failed_at'),
}

/** Of events joined with their domains. Time and domain are in the index, the others in the event's row. */
const DELIVERED: Omit<Columns, 'ip' | 'recipientDomain'> = {
  account: sql.ref('domains.account_id'),
  domain: sql.ref('domains.name'),
  tags: sql.ref('events.tags_json'),
  time: sql`(event_keys.timestamp_us / 1000)`,
}
const IN_ROW: ReadonlySet<Dimension> = new Set(['envelope.sending-ip', 'tag', 'tags', 'recipient-domain'])

const DELIVERED_COLUMNS: Readonly<Record<Store['kind'], Columns>> = {
  sqlite: {
    ...DELIVERED,
    ip: sql`json_extract(payload_json, '$.envelope."sending-ip"')`,
    recipientDomain: sql`substr(recipient, instr(recipient, '@') + 1)`,
  },
  postgres: {
    ...DELIVERED,
    ip: sql`(payload_json::json -> 'envelope' ->> 'sending-ip')`,
    recipientDomain: sql`substr(recipient, strpos(recipient, '@') + 1)`,
  },
}

/** One group: the values of its dimensions (null: has none), and its counts. */
interface Entry {
  values: Map<Dimension, string | null>
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
  const entries = await failuresOf(store, rules, scope, query)
  const delivered = await deliveredOf(store, scope, query, entries.length > 0)
  const names = await accountNames(store, scope, query)
  const counted = entries.map((entry) => ({
    ...entry,
    metrics: metricsOf(entry.counts, delivered === null ? null : (delivered.get(keyOf(entry.values)) ?? 0)),
  }))
  counted.sort(comparing(query))
  const page = counted.slice(query.skip, query.skip + query.limit)
  const samples = query.dimensions.includes('group-id') ? await samplesOf(store, page) : null
  const items = page.map((entry) => itemOf(entry, entry.metrics, names, rules, samples))
  return { items, total: counted.length }
}

const keyOf = (values: ReadonlyMap<Dimension, string | null>) => JSON.stringify([...values.values()])

/** Columns that a dimension is grouped by. */
function groupingOf(dimension: Dimension, columns: Columns, unitMs: number): RawBuilder<unknown> | null {
  switch (dimension) {
    case 'entity-name':
      return sql.ref('entity')
    case 'domain.name':
      return columns.domain
    case 'envelope.sending-ip':
      return columns.ip
    case 'account.name':
      return columns.account
    case 'tags':
    case 'tag':
      return columns.tags
    case 'recipient-domain':
      return columns.recipientDomain
    case 'group-id':
      return sql.ref('rule_id')
    case 'criticality':
      return sql.ref('critical')
    case 'severity':
      return sql.ref('severity')
    case 'category':
      return sql.ref('category')
    case 'timestamp': {
      const unit = sql.lit(unitMs)
      return sql`(${columns.time} - ${columns.time} % ${unit})`
    }
    case 'envelope.i-ip-pool-name':
      // No pool is recorded yet: every value is null.
      return null
  }
}

function groupColumns({ dimensions, unitMs }: MetricsQuery, columns: Columns) {
  const chosen = dimensions.flatMap((dimension) => {
    const column = groupingOf(dimension, columns, unitMs)
    return column ? [{ dimension, column, name: `g${dimensions.indexOf(dimension)}` }] : []
  })
  return {
    select: sql.join(
      chosen.map(({ column, name }) => sql`, ${column} AS ${sql.ref(name)}`),
      sql``,
    ),
    by: chosen.length === 0 ? sql`` : sql`GROUP BY ${sql.join(chosen.map(({ name }) => sql.ref(name)))}`,
    chosen,
  }
}

async function failuresOf(store: Store, rules: RuleSet, scope: Scope, query: MetricsQuery): Promise<Entry[]> {
  const { select, by } = groupColumns(query, FAILURE_COLUMNS)
  const count = (severity: string, critical: number) =>
    sql`sum(CASE WHEN severity = ${sql.lit(severity)} AND critical = ${sql.lit(critical)} THEN 1 ELSE 0 END)`
  const { rows } = await sql<Record<string, unknown>>`
    SELECT ${count('PERMANENT', 1)} AS c0, ${count('PERMANENT', 0)} AS c1, ${count('TEMPORARY', 1)} AS c2,
      ${count('TEMPORARY', 0)} AS c3, max(id) AS newest ${select}
    FROM classified_failures
    WHERE account_id IN (${accountsOf(store.db, scope)})
      AND failed_at >= ${query.start} AND failed_at < ${query.end + query.unitMs}
      ${conditionsSql(query.filter, FAILURE_COLUMNS, store, scope, rules)}
    ${by} LIMIT ${GROUPS_MAX + 1}`.execute(store.db)
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

/** The values of a row; one set for each tag where tags are split. */
function valuesOf(
  dimensions: readonly Dimension[],
  row: Record<string, unknown>,
): Map<Dimension, string | null>[] {
  let sets: Map<Dimension, string | null>[] = [new Map()]
  for (const [index, dimension] of dimensions.entries()) {
    const raw = row[`g${index}`] ?? null
    const values = dimension === 'tag' ? splitTags(raw) : [dimensionValue(dimension, raw)]
    sets = sets.flatMap((set) => values.map((value) => new Map(set).set(dimension, value)))
  }
  return sets
}

const tagList = (raw: unknown) => (raw === null ? [] : (JSON.parse(String(raw)) as string[]))

/** A message without tags is in the group without a tag. */
function splitTags(raw: unknown): (string | null)[] {
  const tags = [...new Set(tagList(raw))]
  return tags.length > 0 ? tags : [null]
}

function dimensionValue(dimension: Dimension, raw: unknown): string | null {
  if (dimension === 'tags') return raw === null ? null : tagList(raw).join(', ')
  if (raw === null) return null
  if (dimension === 'entity-name') return entityName(String(raw))
  if (dimension === 'criticality') return Number(raw) === 1 ? 'critical' : 'non_critical'
  return String(raw)
}

/**
 * Deliveries of each group, by the key of its values; null: not counted. Mail of a former owner of a domain name is older
 * than the domain, so no row has to be read for its account.
 */
async function deliveredOf(
  store: Store,
  scope: Scope,
  query: MetricsQuery,
  wanted: boolean,
): Promise<Map<string, number> | null> {
  if (!wanted || query.dimensions.some((dimension) => FAILURE_ONLY.has(dimension))) return null
  const { rows } = await deliveredQuery(store, scope, query).execute(store.db)
  const found = new Map<string, number>()
  let all = 0
  for (const row of rows) {
    const total = Number(row['total'])
    all += total
    for (const values of valuesOf(query.dimensions, row)) {
      const key = keyOf(values)
      found.set(key, (found.get(key) ?? 0) + total)
    }
  }
  return all > DELIVERED_MAX ? null : found
}

/** Rows of `total` and the values of the groups. */
export function deliveredQuery(store: Store, scope: Scope, query: MetricsQuery) {
  const columns = DELIVERED_COLUMNS[store.kind]
  const { select, by, chosen } = groupColumns(query, columns)
  const conditions = query.filter.filter(({ attribute }) => !FAILURE_ONLY.has(attribute))
  const named = [...query.dimensions, ...conditions.map(({ attribute }) => attribute)]
  const row = named.some((dimension) => IN_ROW.has(dimension))
    ? sql`JOIN events ON events.seq = event_keys.seq ${sql.raw(SAME_TIME[store.kind])}`
    : sql``
  return sql<Record<string, unknown>>`
    SELECT count(*) AS total ${sql.join(
      chosen.map(({ name }) => sql`, ${sql.ref(name)}`),
      sql``,
    )}
    FROM (SELECT 1 AS one ${select} FROM domains JOIN event_keys ON event_keys.domain_name = domains.name
        AND event_keys.event = 'delivered' AND event_keys.timestamp_us >= domains.created_at * 1000
        AND event_keys.timestamp_us >= ${query.start * 1000}
        AND event_keys.timestamp_us < ${(query.end + query.unitMs) * 1000} ${row}
      WHERE domains.account_id IN (${accountsOf(store.db, scope)})
        ${conditionsSql(conditions, columns, store, scope, null)}
      LIMIT ${DELIVERED_MAX + 1}) AS delivered
    ${by}`
}

function conditionsSql(
  conditions: readonly Condition[],
  columns: Columns,
  store: Store,
  scope: Scope,
  rules: RuleSet | null,
): RawBuilder<unknown> {
  return sql.join(
    conditions.map((condition) => sql` AND ${conditionSql(condition, columns, store, scope, rules)}`),
    sql``,
  )
}

function conditionSql(
  { attribute, comparator, values }: Condition,
  columns: Columns,
  store: Store,
  scope: Scope,
  rules: RuleSet | null,
): RawBuilder<unknown> {
  const negated = comparator === '!=' || comparator === 'not contains'
  const isPart = comparator === 'contains' || comparator === 'not contains'
  const any = (test: (value: string) => RawBuilder<unknown>) =>
    sql`(${sql.join(values.map(test), sql` OR `)})`
  const textTest = (column: RawBuilder<unknown>) =>
    any((value) =>
      isPart
        ? sql`lower(coalesce(${column}, '')) LIKE ${`%${likeText(value)}%`} ESCAPE '\\'`
        : sql`lower(coalesce(${column}, '')) = ${value}`,
    )
  const passes = (text: string) =>
    values.some((value) => (isPart ? text.toLowerCase().includes(value) : text.toLowerCase() === value))
  const test = (): RawBuilder<unknown> => {
    switch (attribute) {
      case 'entity-name': {
        const known = [
          ...new Set([...Object.keys(ENTITY_NAMES), ...(rules?.rules ?? []).map(({ entity }) => entity)]),
        ]
        const ids = known.filter((id) => passes(entityName(id)))
        return ids.length === 0 ? sql`1 = 0` : sql`entity IN (${sql.join(ids)})`
      }
      case 'criticality':
        return sql`(${sql.lit(passes('critical') ? 1 : 0)} = 1 AND critical = 1
          OR ${sql.lit(passes('non_critical') ? 1 : 0)} = 1 AND critical = 0)`
      case 'account.name':
        return sql`${columns.account} IN (SELECT id FROM accounts WHERE id IN
          (${accountsOf(store.db, scope)}) AND ${textTest(sql.ref('name'))})`
      case 'envelope.i-ip-pool-name':
        return passes('') ? sql`1 = 1` : sql`1 = 0`
      case 'tag':
        return any((value) => tagSql(columns.tags, value, isPart))
      case 'tags':
        return isPart
          ? textTest(columns.tags)
          : any((value) => sql`coalesce(${columns.tags}, '[]') = ${JSON.stringify(value.split(', '))}`)
      default:
        return textTest(TEXT_COLUMNS[attribute](columns))
    }
  }
  return negated ? sql`NOT (${test()})` : test()
}

const TEXT_COLUMNS: Readonly<
  Record<
    Exclude<
      Attribute,
      'entity-name' | 'criticality' | 'account.name' | 'envelope.i-ip-pool-name' | 'tag' | 'tags'
    >,
    (columns: Columns) => RawBuilder<unknown>
  >
> = {
  'domain.name': ({ domain }) => domain,
  'envelope.sending-ip': ({ ip }) => ip,
  'recipient-domain': ({ recipientDomain }) => recipientDomain,
  'group-id': () => sql.ref('rule_id'),
  severity: () => sql.ref('severity'),
  category: () => sql.ref('category'),
}

/** One element of the JSON array of tags, whole or with the value in it. */
function tagSql(tags: RawBuilder<unknown>, value: string, isPart: boolean): RawBuilder<unknown> {
  const text = likeText(JSON.stringify(value).slice(1, -1))
  const pattern = isPart ? `%${text}%` : `%"${text}"%`
  return sql`coalesce(${tags}, '[]') LIKE ${pattern} ESCAPE '\\'`
}

const likeText = (text: string) => text.replaceAll(/[\\%_]/g, '\\$&')

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

type Counted = Entry & { metrics: Record<Metric, number | null> }

function comparing({ sort, dimensions }: MetricsQuery): (a: Counted, b: Counted) => number {
  const { column, descending } = sort
  const byMetric = ({ metrics }: Counted) => metrics[column as Metric] ?? -1
  const asMetric = !(dimensions as readonly string[]).includes(column)
  return (a, b) => {
    const order = asMetric ? byMetric(a) - byMetric(b) : compareValues(a, b, column as Dimension)
    if (order !== 0) return descending ? -order : order
    for (const dimension of dimensions) {
      const tie = compareValues(a, b, dimension)
      if (tie !== 0) return tie
    }
    return 0
  }
}

function compareValues(a: Counted, b: Counted, dimension: Dimension): number {
  const [one, other] = [a.values.get(dimension) ?? '', b.values.get(dimension) ?? '']
  if (dimension === 'timestamp') return Number(one) - Number(other)
  return one < other ? -1 : one > other ? 1 : 0
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
  { values, sampleId }: Entry,
  metrics: Record<Metric, number | null>,
  accounts: ReadonlyMap<string, string>,
  rules: RuleSet,
  samples: ReadonlyMap<number, string> | null,
): Of<typeof BOUNCE_METRICS> {
  const value = (dimension: Dimension) => values.get(dimension) ?? null
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
