/** The counts of the last 30 days beside the 30 before; the chosen one as a curve. */
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { LineChart } from '../shared/charts/line-chart.tsx'
import { type Figures, figure } from '../shared/charts/metrics-api.ts'
import { changeOf, intervalName, intervalsOf, percent, sumOf, valuesAt } from '../shared/charts/spans.ts'
import { EmptyState, Failure } from '../shared/page/states.tsx'
import { daysQuery, SPAN_DAYS, todayQuery } from './overview-queries.ts'
import { COUNTS, type CountId } from './overview-search.ts'
import { COUNT_LABELS, SHARE_LABELS, TEXT } from './text.ts'

export function Counts({ curve, onCurve }: { curve: CountId; onCurve: (id: CountId) => void }) {
  const days = useQuery(daysQuery)
  const today = useQuery(todayQuery)
  if (days.error !== null && days.data === undefined)
    return <Failure title={TEXT.cannotRead} error={days.error} retry={() => days.refetch()} />
  if (days.data === undefined) return <Skeleton height={430} radius="lg" role="status" aria-label="Loading" />
  const { items, startMs, nowMs } = days.data
  const starts = intervalsOf(startMs, nowMs, 'day')
  const points = starts.slice(SPAN_DAYS)
  const halves = (metric: string) => {
    const values = valuesAt(items, metric, starts)
    return { before: values.slice(0, SPAN_DAYS), last: values.slice(SPAN_DAYS) }
  }
  const shown = COUNTS.find(({ id }) => id === curve) ?? COUNTS[0]
  const { before, last } = halves(shown.metric)
  const sums = sumsOf((metric) => sumOf(halves(metric).last))
  const isEmpty = items.every(({ metrics }) => COUNTS.every(({ metric }) => figure(metrics, metric) === 0))
  return (
    <section className="panel" aria-label={TEXT.figures}>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of buttons, not of a form */}
      <div className="count-cards" role="group" aria-label={TEXT.figures}>
        {COUNTS.map(({ id, metric, color, good }) => (
          <CountCard
            key={id}
            id={id}
            color={color}
            isGood={good}
            isShown={id === shown.id}
            now={sums[metric] ?? 0}
            before={sumOf(halves(metric).before)}
            today={today.data && figure(today.data, metric)}
            share={shareOf(id, sums)}
            onShow={() => onCurve(id)}
          />
        ))}
      </div>
      <div className="panel-body">
        {isEmpty ? (
          <EmptyState icon="chart" title={TEXT.noFigures}>
            {TEXT.noFiguresWhy}
          </EmptyState>
        ) : (
          <LineChart
            label={`${COUNT_LABELS[shown.id]}, ${TEXT.last.toLowerCase()}`}
            points={points.map((at) => intervalName(at, 'day'))}
            series={[
              {
                id: 'last',
                label: TEXT.last,
                values: last,
                total: sumOf(last),
                color: shown.color,
                isFilled: true,
              },
              {
                id: 'before',
                label: TEXT.before,
                values: before,
                total: sumOf(before),
                color: 8,
                isDashed: true,
              },
            ]}
            isRunning
          />
        )}
      </div>
    </section>
  )
}

const sumsOf = (sum: (metric: string) => number): Figures =>
  Object.fromEntries(
    [...COUNTS.map(({ metric }) => metric as string), 'permanent_failed_count'].map((metric) => [
      metric,
      sum(metric),
    ]),
  )

/** The share that a count has of what it is a part of. */
function shareOf(id: CountId, sums: Figures): string | undefined {
  const of = (metric: string) => figure(sums, metric)
  const outcomes = of('delivered_count') + of('permanent_failed_count')
  if (id === 'delivered') return percent(of('delivered_count'), outcomes)
  if (id === 'bounced') return percent(of('bounced_count'), outcomes)
  if (id === 'complained') return percent(of('complained_count'), of('delivered_count'), 2)
  if (id === 'opened') return percent(of('unique_opened_count'), of('delivered_count'))
  if (id === 'clicked') return percent(of('unique_clicked_count'), of('delivered_count'))
  return undefined
}

function CountCard(props: {
  id: CountId
  color: number
  isGood: boolean
  isShown: boolean
  now: number | string
  before: number
  today: number | undefined
  share: string | undefined
  onShow: () => void
}) {
  const { id, color, isGood, isShown, before, today, share, onShow } = props
  const now = Number(props.now)
  const change = changeOf(now, before)
  const tone =
    change === undefined || change.direction === 0
      ? 'even'
      : (change.direction === 1) === isGood
        ? 'good'
        : 'bad'
  return (
    <button type="button" className="count-card" aria-pressed={isShown} data-color={color} onClick={onShow}>
      <span className="count-name">{COUNT_LABELS[id]}</span>
      <span className="count-line">
        <strong>{now.toLocaleString('en')}</strong>
        {change && (
          <span
            className="count-change"
            data-tone={tone}
            title={`${before.toLocaleString('en')} in the ${TEXT.before}`}
          >
            {change.text}
          </span>
        )}
      </span>
      <span className="count-small">
        {share === undefined ? TEXT.inSpan : `${share} ${SHARE_LABELS[id]}`}
      </span>
      <span className="count-small">
        {today === undefined ? '–' : today.toLocaleString('en')} {TEXT.today}
      </span>
    </button>
  )
}
