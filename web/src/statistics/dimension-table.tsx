import { NativeSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type Figures, figure, isKnown, type MetricsPage } from '../shared/charts/metrics-api.ts'
import { changeOf, intervalName } from '../shared/charts/spans.ts'
import { Count } from '../shared/copyable.tsx'
import { type Column, DataTable } from '../shared/page/data-table.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { figuresQuery } from './statistics-queries.ts'
import {
  type Change,
  DIMENSIONS,
  type Dimension,
  ROWS_MAX,
  ROWS_SHOWN,
  type Span,
  type StatisticsSearch,
  sortOf,
  spanBefore,
  TABLE_COUNTS,
  tableQuery,
} from './statistics-search.ts'
import { DIMENSION_LABELS, SHOWN_LABELS, TEXT } from './text.ts'

interface Row {
  /** Undefined: the sums of all rows. */
  value: string | undefined
  shown: string
  figures: Figures
  /** Figures of the span before, if compared. */
  before: Figures | undefined
}

export function DimensionTable(props: { span: Span; search: StatisticsSearch; change: Change }) {
  const { span, search, change } = props
  const { by = 'recipient_provider' } = search
  const navigate = useNavigate({ from: '/statistics' })
  const isCompared = search.compare === 'yes' && by !== 'time'
  const now = useQuery(figuresQuery(tableQuery(span, search)))
  const before = useQuery({
    ...figuresQuery(tableQuery(spanBefore(span), search, ROWS_MAX)),
    enabled: isCompared,
  })
  const rows = now.data && rowsOf(now.data, isCompared ? before.data : undefined, by, span)
  const skip = Number(search.at ?? 0)
  const total = now.data?.pagination.total ?? 0
  const links = {
    ...(skip > 0 && { previous: String(Math.max(0, skip - ROWS_SHOWN)) }),
    ...(skip + ROWS_SHOWN < total && { next: String(skip + ROWS_SHOWN) }),
  }
  const [sortColumn, direction] = sortOf(search).split(':')
  const sortBy = (metric: string) =>
    change({ sort: `${metric}:${sortColumn === metric && direction === 'desc' ? 'asc' : 'desc'}` })
  const columns: Column<Row>[] = [
    { header: DIMENSION_LABELS[by], cell: (row) => <Value row={row} by={by} /> },
    ...TABLE_COUNTS.map(
      ({ id, metric, good }): Column<Row> => ({
        header: SHOWN_LABELS[id],
        align: 'end',
        wideOnly: ['accepted', 'unsubscribed', 'deferred'].includes(id),
        cell: ({ figures, before: earlier }) => (
          <Cell figures={figures} before={earlier} metric={metric} isGood={good} share={SHARES[id]} />
        ),
        onSort: () => sortBy(metric),
        ...(sortColumn === metric && { sorted: direction === 'asc' ? 'ascending' : 'descending' }),
      }),
    ),
  ]
  return (
    <section className="panel" aria-label={TEXT.table}>
      <header className="panel-header">
        <h2>{TEXT.by}</h2>
        <NativeSelect
          size="sm"
          aria-label={TEXT.by}
          value={by}
          data={DIMENSIONS.map((value) => ({ value, label: DIMENSION_LABELS[value] }))}
          onChange={(event) => change({ by: event.currentTarget.value as Dimension, sort: undefined })}
        />
        <span className="grow" />
        <span className="dimmed">{TEXT.utc}</span>
      </header>
      {now.data && !isKnown(now.data.aggregates.metrics, 'accepted_count') && (
        <p className="dimmed table-note">{TEXT.acceptedUnknown}</p>
      )}
      <DataTable
        label={TEXT.table}
        columns={columns}
        rows={rows}
        rowKey={({ value }) => value ?? ' total'}
        error={now.error}
        retry={now.refetch}
        isStale={now.isPlaceholderData}
        links={links}
        onPage={(at) => void navigate({ search: { ...search, at } })}
        empty={
          <EmptyState icon="chart" title={TEXT.none}>
            {TEXT.noneWhy}
          </EmptyState>
        }
      />
    </section>
  )
}

function rowsOf(page: MetricsPage, before: MetricsPage | undefined, by: Dimension, span: Span): Row[] {
  const earlier = new Map(before?.items.map(({ dimensions, metrics }) => [dimensions[0]?.value, metrics]))
  const rows = page.items.map(({ dimensions, metrics }): Row => {
    const value = dimensions[0]?.value ?? ''
    const shown =
      by === 'time'
        ? intervalName(Date.parse(value), span.resolution)
        : (dimensions[0]?.display_value ?? value)
    return { value, shown, figures: metrics, before: before && (earlier.get(value) ?? {}) }
  })
  if (rows.length < 2) return rows
  return [
    {
      value: undefined,
      shown: TEXT.total,
      figures: page.aggregates.metrics,
      before: before?.aggregates.metrics,
    },
    ...rows,
  ]
}

/** Where the mail of a value can be seen. */
const ACTIVITY_FIELDS: Partial<Record<Dimension, 'provider' | 'domain' | 'tag'>> = {
  recipient_provider: 'provider',
  domain: 'domain',
  tag: 'tag',
}

function Value({ row, by }: { row: Row; by: Dimension }) {
  const { value, shown } = row
  const field = ACTIVITY_FIELDS[by]
  if (value === undefined) return <strong>{shown}</strong>
  if (field === undefined) return <bdi className="statistics-value">{shown || '–'}</bdi>
  const search = field === 'tag' ? { by: 'tag' as const, q: value } : { [field]: value }
  return (
    <Link className="row-link" to="/activity" search={{ ...search, span: '30d' }}>
      <bdi className="breakable">{shown}</bdi>
    </Link>
  )
}

/** The rate that is shown under a count. */
const SHARES: Partial<Record<string, string>> = { delivered: 'delivered_rate', bounced: 'bounce_rate' }

/** Accepted mail by what is known from its first attempt on. */
const Unknown = () => (
  <span className="dimmed" title={TEXT.acceptedUnknown}>
    <span aria-hidden="true">–</span>
    <span className="visually-hidden">{TEXT.unknown}</span>
  </span>
)

function Cell(props: {
  figures: Figures
  before: Figures | undefined
  metric: string
  isGood: boolean
  share: string | undefined
}) {
  const { figures, before, metric, isGood, share } = props
  if (!isKnown(figures, metric)) return <Unknown />
  const value = figure(figures, metric)
  const change = before && changeOf(value, figure(before, metric))
  const tone =
    change && change.direction !== 0 ? ((change.direction === 1) === isGood ? 'good' : 'bad') : 'even'
  return (
    <span className="figure-cell">
      <Count value={value} />
      {change ? (
        <span className="figure-change" data-tone={tone}>
          {change.text}
        </span>
      ) : (
        share !== undefined && (
          <span className="figure-share">{`${(figure(figures, share) * 100).toFixed(1)}%`}</span>
        )
      )}
    </span>
  )
}
