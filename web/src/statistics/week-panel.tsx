/** A count by hour and weekday, as a table whose cells are the darker the more they hold. Calls POST /v1/analytics/metrics. */
import { Button, NativeSelect, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Failure } from '../shared/page/states.tsx'
import { figuresQuery } from './statistics-queries.ts'
import {
  type Change,
  COUNTS,
  type CountId,
  type Span,
  type StatisticsSearch,
  weekQuery,
} from './statistics-search.ts'
import { SHOWN_LABELS, TEXT } from './text.ts'
import { WEEKDAYS, weekHours } from './week-hours.ts'

const DEFAULT_COUNT: CountId = 'opened'

export function WeekPanel(props: { span: Span; search: StatisticsSearch; change: Change }) {
  const { span, search, change } = props
  const { week, at } = search
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone
  /** The table below stays at its page. */
  const show = (id: CountId | undefined) => change({ week: id, at })
  return (
    <section className="panel" aria-label={TEXT.week}>
      <header className="panel-header">
        <h2>{TEXT.week}</h2>
        {week !== undefined && (
          <NativeSelect
            size="sm"
            aria-label={TEXT.weekMetric}
            value={week}
            data={COUNTS.map(({ id }) => ({ value: id, label: SHOWN_LABELS[id] }))}
            onChange={(event) => show(event.currentTarget.value as CountId)}
          />
        )}
        <span className="grow" />
        <Button
          variant="default"
          size="sm"
          aria-expanded={week !== undefined}
          aria-label={`${week === undefined ? TEXT.weekShow : TEXT.weekHide}: ${TEXT.week}`}
          onClick={() => show(week === undefined ? DEFAULT_COUNT : undefined)}
        >
          {week === undefined ? TEXT.weekShow : TEXT.weekHide}
        </Button>
      </header>
      {week !== undefined && (
        <div className="panel-body">
          <p className="dimmed week-lead">{TEXT.weekLead(zone)}</p>
          <WeekTable span={span} search={search} week={week} zone={zone} />
        </div>
      )}
    </section>
  )
}

function WeekTable(props: { span: Span; search: StatisticsSearch; week: CountId; zone: string }) {
  const { span, search, week, zone } = props
  const query = weekQuery(span, search, Date.now())
  const figures = useQuery({
    ...figuresQuery(query ?? { metrics: [] }),
    enabled: query !== undefined,
  })
  const count = COUNTS.find(({ id }) => id === week) ?? COUNTS[0]
  if (query === undefined) return <p>{TEXT.weekGone}</p>
  if (figures.error !== null && figures.data === undefined)
    return <Failure title={TEXT.cannotRead} error={figures.error} retry={() => figures.refetch()} />
  if (figures.data === undefined)
    return <Skeleton height={290} radius="lg" role="status" aria-label="Loading" />
  const sums = weekHours(figures.data.items, count.metric, zone)
  const most = Math.max(1, ...sums.flat())
  const label = TEXT.weekOf(SHOWN_LABELS[week])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <section className="week-scroll" tabIndex={0} aria-label={label}>
      <table className="week-table" aria-label={label} data-color={count.color}>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">{TEXT.weekday}</span>
            </th>
            {sums[0]?.map((_, hour) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: hours of the day
              <th key={hour} scope="col">
                {String(hour).padStart(2, '0')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {WEEKDAYS.map((day, row) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {sums[row]?.map((sum, hour) => (
                <td
                  // biome-ignore lint/suspicious/noArrayIndexKey: hours of the day
                  key={hour}
                  title={`${day} ${String(hour).padStart(2, '0')}:00: ${sum.toLocaleString('en')}`}
                  style={{ '--share': `${Math.round((sum / most) * SHADE_MAX)}%` } as React.CSSProperties}
                >
                  {shortCount(sum)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

const SHADE_MAX = 45 // percent; text on a darker cell is hard to read

const shortCount = (value: number) =>
  value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: value < 10_000 ? 1 : 0 })
