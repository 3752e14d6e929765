import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { LineChart, type Series } from '../shared/line-chart.tsx'
import { intervalName, intervalsOf, valuesAt } from '../shared/spans.ts'
import { Failure } from '../shared/states.tsx'
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
  const isPercent = shown.some(isRate)
  const scaled = (values: number[]) => (isPercent ? values.map((value) => value * 100) : values)
  const series = SHOWN.filter(({ id }) => shown.includes(id)).flatMap(({ id, metric, color }): Series[] => {
    const label = SHOWN_LABELS[id]
    const values = scaled(valuesAt(now.data?.items ?? [], metric, starts))
    const line = { id, label, values, color, isFilled: shown.length === 1 }
    if (!isCompared || before.data === undefined) return [line]
    const old = scaled(valuesAt(before.data.items, metric, earlier))
    return [line, { id: `${id} before`, label: TEXT.before(label), values: old, color, isDashed: true }]
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
        {now.data === undefined ? (
          <Skeleton height={286} radius="lg" role="status" aria-label="Loading" />
        ) : (
          <LineChart
            label={TEXT.curveOf(shown.map((id) => SHOWN_LABELS[id]).join(', '))}
            points={starts.map((at) => intervalName(at, span.resolution))}
            series={series}
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
