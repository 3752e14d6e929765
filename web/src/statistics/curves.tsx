import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { LineChart, type Series } from '../shared/charts/line-chart.tsx'
import { figure, isKnown, type MetricsPage } from '../shared/charts/metrics-api.ts'
import { intervalName, intervalsOf, isRunningAt, valuesAt } from '../shared/charts/spans.ts'
import { Failure } from '../shared/page/states.tsx'
import { figuresQuery } from './statistics-queries.ts'
import {
  type Change,
  curveQuery,
  isRate,
  SHOWN,
  type ShownId,
  type Span,
  type StatisticsSearch,
  shownOf,
  spanBefore,
  toggled,
} from './statistics-search.ts'
import { SHOWN_LABELS, TEXT } from './text.ts'

export function Curves(props: { span: Span; search: StatisticsSearch; change: Change }) {
  const { span, search, change } = props
  const shown = shownOf(search.show)
  const isCompared = search.compare === 'yes'
  const now = useQuery(figuresQuery(curveQuery(span, search)))
  const before = useQuery({ ...figuresQuery(curveQuery(spanBefore(span), search)), enabled: isCompared })
  const starts = intervalsOf(span.startMs, span.endMs, span.resolution)
  const { startMs, endMs } = spanBefore(span)
  const earlier = intervalsOf(startMs, endMs, span.resolution)
  const isUnknown =
    shown.includes('accepted') && now.data && !isKnown(now.data.aggregates.metrics, 'accepted_count')
  const isPercent = shown.some(isRate)
  /** Values of the intervals and the one of the whole span; none for what the filter leaves unknown. */
  const valuesOf = (page: MetricsPage | undefined, metric: string, at: readonly number[]) => {
    if (page === undefined || !isKnown(page.aggregates.metrics, metric))
      return { values: at.map(() => null), total: null }
    const scale = isPercent ? 100 : 1
    const values = valuesAt(page.items, metric, at).map((value) => value * scale)
    return { values, total: figure(page.aggregates.metrics, metric) * scale }
  }
  const series = SHOWN.filter(({ id }) => shown.includes(id)).flatMap(({ id, metric, color }): Series[] => {
    const label = SHOWN_LABELS[id]
    const line = { id, label, color, isFilled: shown.length === 1, ...valuesOf(now.data, metric, starts) }
    if (!isCompared || before.data === undefined) return [line]
    const old = valuesOf(before.data, metric, earlier)
    return [line, { id: `${id} before`, label: TEXT.before(label), color, isDashed: true, ...old }]
  })
  return (
    <section className="panel" aria-label={TEXT.curve}>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of buttons, not of a form */}
      <div className="curve-choice" role="group" aria-label={TEXT.curves}>
        {SHOWN.map(({ id, color }) => (
          <CurveButton
            key={id}
            id={id}
            color={color}
            isShown={shown.includes(id)}
            onToggle={() => change({ show: toggled(shown, id) })}
          />
        ))}
      </div>
      <div className="panel-body">
        {now.error !== null && (
          <Failure title={TEXT.cannotRead} error={now.error} retry={() => now.refetch()} />
        )}
        {isUnknown && <p className="dimmed curve-unknown">{TEXT.acceptedUnknown}</p>}
        {now.data === undefined ? (
          <Skeleton height={286} radius="lg" role="status" aria-label="Loading" />
        ) : (
          <LineChart
            label={TEXT.curveOf(shown.map((id) => SHOWN_LABELS[id]).join(', '))}
            points={starts.map((at) => intervalName(at, span.resolution))}
            series={series}
            isRunning={isRunningAt(span.endMs, span.resolution, Date.now())}
            height={250}
            {...(isPercent && { format: percentOf })}
          />
        )}
      </div>
    </section>
  )
}

const percentOf = (value: number) => `${value.toFixed(value < 1 ? 2 : 1)}%`

function CurveButton(props: { id: ShownId; color: number; isShown: boolean; onToggle: () => void }) {
  const { id, color, isShown, onToggle } = props
  return (
    <button
      type="button"
      className="curve-button"
      aria-pressed={isShown}
      data-color={color}
      onClick={onToggle}
    >
      {SHOWN_LABELS[id]}
    </button>
  )
}
