/** The picture of a simulated month: what each address sent by day, and the limits of its stages, as SVG. */
import type { DayFigures } from './warmup-month.ts'

const [WIDTH, HEIGHT] = [760, 380]
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 20, 40, 40]
/** Distinct without colours as well: by the dashes. */
const LINES = [
  { label: 'cold 1', colour: '#1f6feb', dash: '', at: 0 },
  { label: 'cold 2', colour: '#0a7f5a', dash: '6 3', at: 1 },
  { label: 'warm 1', colour: '#b35900', dash: '', at: 2 },
  { label: 'warm 2', colour: '#8a3ffc', dash: '6 3', at: 3 },
] as const

export function monthPicture(days: readonly DayFigures[]): string {
  const most = Math.max(...days.flatMap(({ sent }) => sent), 1)
  const step = stepOf(most)
  const top = Math.ceil(most / step) * step
  const x = (day: number) => LEFT + ((day - 1) / Math.max(1, days.length - 1)) * (WIDTH - LEFT - RIGHT)
  const y = (count: number) => HEIGHT - BOTTOM - (Math.min(count, top) / top) * (HEIGHT - TOP - BOTTOM)
  const path = (points: readonly [number, number][]) =>
    points
      .map(([day, count], at) => `${at === 0 ? 'M' : 'L'}${x(day).toFixed(1)} ${y(count).toFixed(1)}`)
      .join(' ')
  const grid = Array.from({ length: Math.round(top / step) + 1 }, (_, at) => at * step).map(
    (count) =>
      `<line x1="${LEFT}" y1="${y(count).toFixed(1)}" x2="${WIDTH - RIGHT}" y2="${y(count).toFixed(1)}" stroke="#d0d7de"/>` +
      `<text x="${LEFT - 8}" y="${(y(count) + 4).toFixed(1)}" text-anchor="end">${count.toLocaleString('en')}</text>`,
  )
  const ticks = days
    .filter(({ day }) => day === 1 || day % 5 === 0)
    .map(
      ({ day }) =>
        `<text x="${x(day).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${day}</text>`,
    )
  // Beyond the scale the limit says nothing about what was sent.
  const limits = days.flatMap(({ day, limits: [limit] }): [number, number][] =>
    limit == null || limit > top ? [] : [[day, limit]],
  )
  const lines = LINES.map(
    ({ colour, dash, at }) =>
      `<path d="${path(days.map(({ day, sent }) => [day, sent[at] ?? 0]))}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`,
  )
  const legend = LINES.map(
    ({ label, colour, dash }, at) =>
      `<line x1="${LEFT + at * 110}" y1="20" x2="${LEFT + at * 110 + 26}" y2="20" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>` +
      `<text x="${LEFT + at * 110 + 32}" y="24">${label}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#24292f">
<title>Messages a day from each address over a month</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
${grid.join('\n')}
${ticks.join('\n')}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">day</text>
<path d="${path(limits)}" fill="none" stroke="#57606a" stroke-width="1" stroke-dasharray="2 3"/>
${lines.join('\n')}
${legend.join('\n')}
<line x1="${LEFT + 440}" y1="20" x2="${LEFT + 466}" y2="20" stroke="#57606a" stroke-dasharray="2 3"/><text x="${LEFT + 472}" y="24">limit of the stage</text>
</svg>
`
}

/** Between lines of the grid: 1, 2 or 5 times a power of ten, at most ten lines. */
function stepOf(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 5))
  return [1, 2, 5, 10].map((times) => times * power).find((step) => most / step <= 8) ?? 10 * power
}
