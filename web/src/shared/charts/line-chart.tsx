/**
 * A small chart of figures over time: lines on an SVG that scales with the page. The legend has the totals. A marker follows the
 * pointer, a finger or the arrow keys, with the values of its point; the same numbers are there as a table. A last point whose
 * period is still running is dashed, because its figures will grow.
 */
import { useEffect, useId, useRef, useState } from 'react'
import { TEXT } from '../text.ts'
import { LEFT, niceTop, RIGHT, ticks } from './chart-scale.ts'

export interface Series {
  id: string
  label: string
  /** One value per point; null: none. */
  values: readonly (number | null)[]
  /** Value for all points together, shown in the legend: the sum of counts, or the rate over the whole span; null: none. */
  total: number | null
  /** Index of the colour, 1 to 8 (dashboard.css). */
  color: number
  /** Drawn in dashes, such as the span compared with. */
  isDashed?: boolean
  /** The area under it is filled. */
  isFilled?: boolean
}

interface LineChartProps {
  /** What the chart shows. */
  label: string
  /** Name of each point, such as a day. */
  points: readonly string[]
  series: readonly Series[]
  /** Whether the period of the last point has not ended. */
  isRunning?: boolean
  /** Pixels. */
  height?: number
  format?: (value: number) => string
}

const HEIGHT = 220
const TOP = 10
const BOTTOM = 22
const MARKER_GAP = 10 // between the marker and its values

const plain = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 2 })

export function LineChart(props: LineChartProps) {
  const { label, points, series, isRunning = false, height = HEIGHT, format = plain } = props
  const [asTable, setAsTable] = useState(false)
  const [at, setAt] = useState<number | null>(null)
  const { box, width } = useWidth()
  const top = niceTop(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))))
  const last = points.length - 1
  const shown = at === null ? last : Math.min(at, last)
  const x = (index: number) => LEFT + (last <= 0 ? 0.5 : index / last) * (width - LEFT - RIGHT)
  const y = (value: number) => TOP + (1 - value / top) * (height - TOP - BOTTOM)
  const nearest = (clientX: number) => {
    const left = box.current?.getBoundingClientRect().left ?? 0
    const share = (clientX - left - LEFT) / Math.max(1, width - LEFT - RIGHT)
    return Math.max(0, Math.min(last, Math.round(share * last)))
  }
  const onKey = (event: React.KeyboardEvent) => {
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    setAt(Math.max(0, Math.min(last, to)))
  }
  const nameOf = (index: number) =>
    `${points[index] ?? ''}${isRunning && index === last ? ` (${TEXT.soFar})` : ''}`
  const readOut = (index: number) =>
    `${nameOf(index)}: ${series.map(({ label: name, values }) => `${name} ${valueText(values[index], format)}`).join(', ')}`
  return (
    <figure className="chart" aria-label={label}>
      <figcaption className="chart-caption">
        <ul className="chart-legend">
          {series.map((one) => (
            <li key={one.id} data-dashed={one.isDashed || undefined} data-color={one.color}>
              {one.label}
              <strong>{valueText(one.total, format)}</strong>
            </li>
          ))}
        </ul>
        <span className="grow" />
        <button type="button" className="chart-toggle" onClick={() => setAsTable(!asTable)}>
          {asTable ? TEXT.showCurve : TEXT.showTable}
        </button>
      </figcaption>
      {asTable ? (
        <ChartTable
          label={label}
          points={points.map((_, index) => nameOf(index))}
          series={series}
          format={format}
        />
      ) : (
        <div
          className="chart-box"
          ref={box}
          style={{ height }}
          role="slider"
          tabIndex={0}
          aria-label={`${label}. ${TEXT.chartHelp}`}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, last)}
          aria-valuenow={Math.max(0, shown)}
          aria-valuetext={last < 0 ? '' : readOut(shown)}
          onKeyDown={onKey}
          onPointerMove={(event) => setAt(nearest(event.clientX))}
          onPointerDown={(event) => setAt(nearest(event.clientX))}
          onPointerLeave={() => setAt(null)}
          onFocus={(event) => event.currentTarget.matches(':focus-visible') && setAt(last)}
          onBlur={() => setAt(null)}
        >
          {width > 0 && last >= 0 && (
            <Curves
              shown={at === null ? null : shown}
              {...{ points, series, isRunning, width, height, top, x, y }}
            />
          )}
          {at !== null && last >= 0 && (
            <div className="chart-values" aria-hidden="true" style={besideMarker(x(shown), width)}>
              <div>{nameOf(shown)}</div>
              {series.map(({ id, label: name, values, color, isDashed }) => (
                <div key={id} data-color={color} data-dashed={isDashed || undefined}>
                  {name} <strong>{valueText(values[shown], format)}</strong>
                </div>
              ))}
            </div>
          )}
        </div>
      )}
    </figure>
  )
}

interface CurvesProps {
  points: LineChartProps['points']
  series: readonly Series[]
  isRunning: boolean
  width: number
  height: number
  /** Value at the upper end of the scale. */
  top: number
  /** Index of the point under the marker; null: there is none. */
  shown: number | null
  x: (index: number) => number
  y: (value: number) => number
}

function Curves({ points, series, isRunning, width, height, top, shown, x, y }: CurvesProps) {
  const last = points.length - 1
  return (
    <svg width={width} height={height} aria-hidden="true">
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <line className="chart-grid" x1={LEFT} x2={width - RIGHT} y1={y(top * share)} y2={y(top * share)} />
          <text className="chart-axis" x={LEFT - 8} y={y(top * share) + 4} textAnchor="end">
            {short(top * share)}
          </text>
        </g>
      ))}
      {ticks(points.length, width).map((index) => (
        <text
          key={index}
          className="chart-axis"
          x={x(index)}
          y={height - 5}
          textAnchor={index === last ? 'end' : index === 0 ? 'start' : 'middle'}
        >
          {points[index]}
        </text>
      ))}
      {series.map((one) => (
        <Line key={one.id} series={one} isRunning={isRunning} x={x} y={y} />
      ))}
      {shown !== null && <Marker shown={shown} {...{ series, height, x, y }} />}
    </svg>
  )
}

type MarkerProps = Pick<CurvesProps, 'series' | 'height' | 'x' | 'y'> & { shown: number }

function Marker({ series, height, shown, x, y }: MarkerProps) {
  return (
    <>
      <line className="chart-marker" x1={x(shown)} x2={x(shown)} y1={TOP} y2={height - BOTTOM} />
      {series.map(({ id, values, color }) =>
        values[shown] == null ? null : (
          <circle
            key={id}
            className="chart-dot"
            data-color={color}
            cx={x(shown)}
            cy={y(values[shown] ?? 0)}
            r={4}
          />
        ),
      )}
    </>
  )
}

interface LineProps {
  series: Series
  isRunning: boolean
  x: (index: number) => number
  y: (value: number) => number
}

function Line({ series, isRunning, x, y }: LineProps) {
  const gradient = useId()
  const known = series.values.flatMap((value, index) =>
    value === null ? [] : [[x(index), y(value)] as const],
  )
  const first = known[0]
  const last = known.at(-1)
  if (first === undefined || last === undefined) return null
  const pathOf = (part: typeof known) =>
    part
      .map(([left, top], index) => `${index === 0 ? 'M' : 'L'}${left.toFixed(1)} ${top.toFixed(1)}`)
      .join('')
  const path = pathOf(known)
  // What is compared with has ended, and is dashed anyway.
  const isCut = isRunning && !series.isDashed && known.length > 1 && series.values.at(-1) != null
  return (
    <g data-color={series.color} className="chart-series">
      {series.isFilled && (
        <>
          <linearGradient id={gradient} x1="0" y1="0" x2="0" y2="1">
            <stop offset="0" stopColor="currentColor" stopOpacity="0.22" />
            <stop offset="1" stopColor="currentColor" stopOpacity="0.02" />
          </linearGradient>
          <path d={`${path}L${last[0]} ${y(0)}L${first[0]} ${y(0)}Z`} fill={`url(#${gradient})`} />
        </>
      )}
      {known.length === 1 && !series.isDashed ? (
        <circle cx={first[0]} cy={first[1]} r={3.5} fill="currentColor" />
      ) : (
        <path
          d={isCut ? pathOf(known.slice(0, -1)) : path}
          fill="none"
          stroke="currentColor"
          strokeWidth="2"
          strokeLinejoin="round"
          {...(series.isDashed && DASHED)}
        />
      )}
      {isCut && (
        <path
          className="chart-running"
          d={pathOf(known.slice(-2))}
          fill="none"
          stroke="currentColor"
          strokeWidth="2"
          {...DASHED}
        />
      )}
    </g>
  )
}

const DASHED = { strokeDasharray: '4 5', opacity: 0.75 }

/** On that side of the marker where there is more room. */
const besideMarker = (left: number, width: number) =>
  left > width / 2 ? { right: width - left + MARKER_GAP } : { left: left + MARKER_GAP }

function ChartTable({
  label,
  points,
  series,
  format,
}: Omit<Required<LineChartProps>, 'height' | 'isRunning'>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <section className="chart-table" tabIndex={0} aria-label={label}>
      <table className="data-table">
        <thead>
          <tr>
            <th scope="col">{TEXT.time}</th>
            {series.map(({ id, label: name }) => (
              <th key={id} scope="col" data-align="end">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map((point, index) => (
            <tr key={point}>
              <th scope="row">{point}</th>
              {series.map(({ id, label: name, values }) => (
                <td key={id} data-label={name} data-align="end">
                  {valueText(values[index], format)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

const valueText = (value: number | null | undefined, format: (value: number) => string) =>
  value == null ? '–' : format(value)

/** "950", "1.2k", "3M". */
function short(value: number): string {
  return value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 })
}

/** Width of an element in pixels, kept up to date. */
function useWidth() {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(element)
    return () => observer.disconnect()
  })
  return { box, width }
}
