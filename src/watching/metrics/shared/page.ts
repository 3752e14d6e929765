/** The page behind the link to a figure: a chart over time, and a table. HTML of the service itself, without a script. */
import type { Of } from '../../../base/shape.ts'
import { createPages, escapeHtml } from '../../../platform/http/answer/pages.ts'
import { isRate, type Metric } from '../figures.ts'
import { after } from '../intervals.ts'
import type { METRICS_RESULT } from '../shapes.ts'

type MetricsResult = Of<typeof METRICS_RESULT>
type Value = number | string | null

const STYLE = `main{max-width:56rem}
body{place-items:start center}
svg{display:block;width:100%;height:auto;margin:0 0 1.25rem}
.grid{stroke:var(--line)}
text{fill:var(--soft);font-size:12px}
polyline{fill:none;stroke-width:2;stroke-linejoin:round}
.running{stroke-dasharray:4 5}
.c0{stroke:#1d6fb8}
.c1{stroke:#c0392b}
.c2{stroke:#12a594}
.c3{stroke:#b7791f}
.key{display:inline-block;margin:0 1rem .5rem 0;font-size:.9375rem}
.key svg{display:inline-block;width:18px;height:8px;margin:0 .4rem 0 0}
.scroll{overflow-x:auto}
table{width:100%;border-collapse:collapse;margin:0 0 1.25rem;font-size:.9375rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .5rem;border-bottom:1px solid var(--line);text-align:right}
tr>:first-child{text-align:left}`

const { page, policy } = createPages(STYLE)

export const SHARED_PAGE_POLICY = policy()

/** @param now Unix milliseconds; @param expiresAt of the link, likewise */
export function sharedPage(title: string, result: MetricsResult, now: number, expiresAt: number): string {
  const metrics = Object.keys(result.items[0]?.metrics ?? {}) as Metric[]
  const isTime = result.dimensions[0] === 'time'
  const rows = isTime ? intervalRows(result, metrics, now) : valueRows(result, metrics)
  const dates = `${dayOf(Date.parse(result.start))} to ${dayOf(Date.parse(result.end))}`
  return page(escapeHtml(title), [
    `<p class="soft">${dates} (UTC), as of ${dateTime(now)} UTC.</p>`,
    ...(isTime && rows.length > 1 ? [chart(rows, metrics)] : []),
    rows.length === 0 ? '<p>There was no mail in this time.</p>' : table(rows, metrics),
    `<p class="soft">This page shows one figure, to whoever has its link, until ${dateTime(expiresAt)} UTC.</p>`,
  ])
}

interface Row {
  name: string
  values: Value[]
  /** Its period has not ended. */
  isRunning: boolean
}

/** Intervals without data are left out of the result. */
function intervalRows(
  { start, end, resolution, items }: MetricsResult,
  metrics: Metric[],
  now: number,
): Row[] {
  const found = new Map(items.map((item) => [Date.parse(item.dimensions[0]?.value ?? ''), item.metrics]))
  const rows: Row[] = []
  for (let at = Date.parse(start); at <= Date.parse(end); at = after(resolution, at)) {
    const values = metrics.map((name) => found.get(at)?.[name] ?? (found.has(at) ? null : 0))
    const name = resolution === 'hour' ? dateTime(at) : dayOf(at).slice(0, resolution === 'month' ? 7 : 10)
    rows.push({ name, values, isRunning: now < after(resolution, at) && now >= at })
  }
  return metrics.length === 0 ? [] : rows
}

const valueRows = ({ items }: MetricsResult, metrics: Metric[]): Row[] =>
  items.map(({ dimensions, metrics: values }) => ({
    name: dimensions.map(({ display_value }) => display_value).join(', ') || 'All',
    values: metrics.map((name) => values[name] ?? null),
    isRunning: false,
  }))

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const dateTime = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')

/** "Delivered", "Unique opened rate". */
function metricName(metric: Metric): string {
  const words = metric.replace(/_count$/, '').replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function shown(metric: Metric, value: Value): string {
  if (value === null) return '–'
  return isRate(metric) ? `${(Number(value) * 100).toFixed(2)}%` : Number(value).toLocaleString('en')
}

function table(rows: readonly Row[], metrics: readonly Metric[]): string {
  const heads = metrics.map((metric) => `<th scope="col">${escapeHtml(metricName(metric))}</th>`)
  const lines = rows.map(({ name, values, isRunning }) => {
    const cells = values.map((value, at) => `<td>${shown(metrics[at] as Metric, value)}</td>`)
    return `<tr><th scope="row">${escapeHtml(name)}${isRunning ? ' (so far)' : ''}</th>${cells.join('')}</tr>`
  })
  return `<div class="scroll"><table><thead><tr><td></td>${heads.join('')}</tr></thead><tbody>${lines.join('\n')}</tbody></table></div>`
}

const WIDTH = 720
const HEIGHT = 240
const LEFT = 56
const BOTTOM = 24

/** The same figures as in the table. */
function chart(rows: readonly Row[], metrics: readonly Metric[]): string {
  const isPercent = metrics.every(isRate)
  const top = Math.max(...rows.flatMap(({ values }) => values.map(Number)), isPercent ? 0.0001 : 1)
  const x = (at: number) => (LEFT + (at / (rows.length - 1)) * (WIDTH - LEFT - 8)).toFixed(1)
  const y = (value: Value) => (8 + (1 - Number(value) / top) * (HEIGHT - BOTTOM - 8)).toFixed(1)
  const scale = [0, 0.5, 1].map((share) => {
    const label = isPercent ? `${(top * share * 100).toFixed(1)}%` : short(top * share)
    const at = y(top * share)
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - 8}" y1="${at}" y2="${at}"/><text x="${LEFT - 8}" y="${Number(at) + 4}" text-anchor="end">${label}</text>`
  })
  const lines = metrics.map((_, series) => {
    const points = rows.map(({ values }, at) => `${x(at)},${y(values[series] ?? null)}`)
    const isRunning = rows.at(-1)?.isRunning === true
    const line = (of: string[], more: string) =>
      `<polyline class="c${series}${more}" points="${of.join(' ')}"/>`
    return isRunning ? line(points.slice(0, -1), '') + line(points.slice(-2), ' running') : line(points, '')
  })
  const ends = `<text x="${LEFT}" y="${HEIGHT - 4}">${rows[0]?.name}</text><text x="${WIDTH - 8}" y="${HEIGHT - 4}" text-anchor="end">${rows.at(-1)?.name}</text>`
  const keys = metrics.map(
    (metric, series) =>
      `<span class="key"><svg viewBox="0 0 18 8" aria-hidden="true"><polyline class="c${series}" points="0,4 18,4"/></svg>${escapeHtml(metricName(metric))}</span>`,
  )
  return `<div>${keys.join('')}</div><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true">${scale.join('')}${lines.join('')}${ends}</svg>`
}

const short = (value: number) => value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 })
