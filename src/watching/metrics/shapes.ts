/** Answers of the operations on metrics and statistics (metrics-logs.md, tags-stats.md). */
import {
  either,
  flag,
  integer,
  list,
  mailDate,
  map,
  media,
  named,
  nothingNull,
  object,
  oneOf,
  optional,
  text,
  utcDate,
} from '../../base/shape.ts'
import { DIMENSIONS, type MetricSet } from './figures.ts'
import { COMPARATORS } from './filter.ts'
import { UNITS } from './intervals.ts'

export const CSV = media('text/csv', 'The same as a file, for `Accept: text/csv`')

const TOTAL = integer('All of them')
const VISITS = {
  total: TOTAL,
  unique: integer('The first of each message, recipient and client in seven days'),
}
const ONLY_TOTAL = { total: TOTAL }

/** A member is there where `event` asks for it. */
export const STATS_ENTRY = named('StatsEntry', 'Counts of an interval, or of a group', {
  time: utcDate('Start of the interval'),
  accepted: optional(
    object('Messages taken in', {
      incoming: integer('Routed mail, and copies of mailing lists'),
      outgoing: integer('All others'),
      total: TOTAL,
    }),
  ),
  delivered: optional(
    object('Deliveries', {
      smtp: integer('By SMTP'),
      http: integer('By a POST request of a route'),
      optimized: integer('At the best time; part of smtp'),
      total: TOTAL,
    }),
  ),
  failed: optional(
    object('Failures', {
      temporary: object('Failed attempts that are repeated', {
        espblock: integer('With the reason espblock'),
        total: TOTAL,
      }),
      permanent: object('Failures for good; the parts need not add up', {
        'suppress-bounce': integer('The address had bounced before'),
        'suppress-unsubscribe': integer('The recipient had unsubscribed'),
        'suppress-complaint': integer('The recipient had complained'),
        bounce: integer('With the reason bounce, not delayed'),
        'delayed-bounce': integer('Reported by a returned message'),
        webhook: integer('Of a POST request of a route'),
        optimized: integer('Sent at the best time'),
        total: TOTAL,
      }),
    }),
  ),
  opened: optional(object('Openings', VISITS)),
  clicked: optional(object('Clicks', VISITS)),
  unsubscribed: optional(object('Unsubscribes', ONLY_TOTAL)),
  complained: optional(object('Complaints', ONLY_TOTAL)),
  stored: optional(object('Stored messages', ONLY_TOTAL)),
  type: optional(
    object('The group; only in grouped statistics', {
      type: text('What is grouped by', { example: 'domain' }),
      key: text('The value', { example: 'example.com' }),
    }),
  ),
})

export const STATS = named('Stats', 'Statistics by interval or group', {
  start: utcDate('Start of the first interval'),
  end: utcDate('Start of the last interval, which is included'),
  resolution: oneOf('Length of the intervals', UNITS),
  stats: list('One entry per interval, also where nothing happened; or one per group', STATS_ENTRY),
})
export const TAG_STATS = named('TagStats', 'Statistics of a tag', {
  tag: text('The tag as it was first spelled'),
  description: text('Its description; may be empty'),
  ...STATS.fields,
})

const SUMS = named('StatsSums', 'Counts of 30 days', {
  accepted: integer('Accepted messages'),
  delivered: integer('Deliveries'),
  opened: integer('Openings'),
  clicked: integer('Clicks'),
  unique_opened: integer('Unique openings'),
  unique_clicked: integer('Unique clicks'),
  unsubscribed: integer('Unsubscribes'),
  complained: integer('Complaints'),
})
const SUMS_BY_VALUE = map('Sums of the last 30 days, by value', SUMS)
export const sumsBy = (name: string) => object(`Sums by value of ${name}`, { [name]: SUMS_BY_VALUE })
export const TAG_SUMS = object('Sums of a tag; one of the three, as it was asked for', {
  tag: text('The tag as it was first spelled'),
  country: optional(SUMS_BY_VALUE),
  device: optional(SUMS_BY_VALUE),
  provider: optional(SUMS_BY_VALUE),
})
export const KNOWN_VALUES = object('All of them', { items: list('Values', text('Value')) })

export const METRIC_VALUES = map(
  'By name of metric',
  either(
    'A count, a rate with four decimals, or null',
    integer('Count'),
    text('Rate', { example: '0.0123' }),
    nothingNull('Accepted mail by address or provider: neither is known then'),
  ),
)

export const METRICS_ITEM = named('MetricsItem', 'Figures of one combination of values', {
  dimensions: list(
    'The values, in the order of the request',
    object('A value', {
      dimension: oneOf('Dimension', DIMENSIONS),
      value: text('Value; a time in RFC 2822'),
      display_value: text('The name that is shown for it'),
    }),
  ),
  metrics: METRIC_VALUES,
})

export const METRICS_RESULT = named('MetricsResult', 'One item for each combination of values with data', {
  start: mailDate('Start of the first interval'),
  end: mailDate('Start of the last interval, which is included'),
  resolution: oneOf('Length of the intervals', UNITS),
  duration: text('As asked, else in days', { example: '7d' }),
  dimensions: list('As asked', text('Dimension')),
  pagination: object('The page', {
    sort: text('As asked'),
    skip: integer('Items that were left out'),
    limit: integer('Page size'),
    total: integer('Items on all pages'),
  }),
  items: list('The items of this page', METRICS_ITEM),
  aggregates: object('The same over all items', {
    metrics: METRIC_VALUES,
  }),
})

/** `{ AND: [{ attribute, comparator, values }] }` */
export const filterShape = (attributes: readonly string[], comparators: readonly string[]) =>
  object('Conditions, all of which must match', {
    AND: optional(
      list(
        'Conditions, at most 20',
        object('Condition', {
          attribute: oneOf('What is compared', attributes),
          comparator: oneOf('How', comparators),
          values: list(
            'Values, one of which must match; as text they are accepted too',
            object('Value', { label: optional(text('Ignored')), value: text('Value') }),
          ),
        }),
      ),
    ),
  })

export const metricsQuery = (set: MetricSet, attributes: readonly string[]) =>
  object('What to count; every member may be left out', {
    start: optional(text('RFC 2822 or Unix seconds; default 7 days before end')),
    end: optional(text('RFC 2822 or Unix seconds; default now; the interval that contains it is included')),
    resolution: optional(oneOf('Length of the intervals', UNITS, { default: 'day' })),
    duration: optional(text('Hours, days or calendar months before end, such as 24h, 30d, 3m')),
    dimensions: optional(
      list('What to count by', oneOf('Dimension', set.dimensions), { only: { maxItems: 3 } }),
    ),
    metrics: optional(list('What to count; default all', oneOf('Metric', set.names))),
    filter: optional(filterShape(attributes, COMPARATORS)),
    include_subaccounts: optional(flag('Count subaccounts as well', { default: false })),
    include_aggregates: optional(flag('Sum up over all items', { default: false })),
    pagination: optional(
      object('The page', {
        sort: optional(text('`<dimension or metric>:<asc|desc>`')),
        skip: optional(integer('Items to leave out', { default: 0 })),
        limit: optional(integer('Page size, 1 to 1000; with the dimension time 1 to 1500')),
      }),
    ),
  })
