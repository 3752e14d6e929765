/** `sendwright top`: what the service does now, drawn again every two seconds. */
import { setTimeout as sleep } from 'node:timers/promises'
import { printableLine } from '../../base/printable.ts'
import type { ServiceClient } from '../local/client.ts'
import { parseFlags } from '../usage.ts'
import { lanesTable } from './queue.ts'
import { COMMON, COMMON_USAGE, clientFor, type Item, itemsOf, print, printJson, when } from './service.ts'

export const usage = `sendwright top [--json]

Shows rates, what waits, the lanes with the most mail and what the service's own checks find wrong, again every two seconds until it
is stopped. Where the output is no terminal, or with --json, once.
${COMMON_USAGE}`

const REFRESH_MS = 2_000
const LANES_SHOWN = 15
/** Lines for all but the lanes. */
const OTHER_LINES = 9
/** Moves to the upper left corner and clears the rest of the screen (ECMA-48, CUP and ED). */
const CLEAR = '\u001b[H\u001b[J'

const RATES = {
  accepted: 'accepted_count',
  delivered: 'delivered_count',
  'failed for now': 'temporary_failed_count',
  'failed for good': 'permanent_failed_count',
} as const

interface Look {
  atMs: number
  system: Item
  lanes: Item[]
  alerts: Item[]
  /** Counts of the day, by name of metric. */
  counts: Record<string, number>
}

export async function run(args: string[]): Promise<void> {
  const values = parseFlags('top', args, COMMON)
  const client = clientFor(values)
  let before = await look(client)
  if (values.json) return printJson({ ...before, atMs: undefined, at: new Date(before.atMs).toISOString() })
  if (!process.stdout.isTTY) return print(screen(before, null, LANES_SHOWN))
  for (;;) {
    await sleep(REFRESH_MS)
    const now = await look(client)
    const rows = (process.stdout.rows ?? 24) - OTHER_LINES
    print(CLEAR + screen(now, before, Math.max(1, Math.min(LANES_SHOWN, rows)), process.stdout.columns))
    before = now
  }
}

async function look(client: ServiceClient): Promise<Look> {
  const atMs = Date.now()
  const start = new Date(atMs).toUTCString()
  const [system, lanes, metrics] = await Promise.all([
    client.call('GET', '/sendwright/v1/system'),
    client.call('GET', '/sendwright/v1/queue/lanes'),
    client.call('POST', '/v1/analytics/metrics', {
      start,
      end: start,
      resolution: 'day',
      metrics: Object.values(RATES),
      include_subaccounts: true,
    }),
  ])
  const [total] = itemsOf(metrics)
  return {
    atMs,
    system,
    lanes: itemsOf(lanes),
    alerts: (system['alerts'] ?? []) as Item[],
    counts: (total?.['metrics'] ?? {}) as Record<string, number>,
  }
}

/** @param before an earlier look, for rates; null: there is none */
function screen(
  now: Look,
  before: Look | null,
  lanesShown: number,
  columns = Number.POSITIVE_INFINITY,
): string {
  const { system, lanes, alerts, counts } = now
  const queue = system['queue'] as Item
  const rates = Object.entries(RATES).map(([word, name]) => {
    const count = counts[name] ?? 0
    const rate =
      before && Math.max(0, count - (before.counts[name] ?? 0)) / ((now.atMs - before.atMs) / 1_000)
    return `${word} ${count.toLocaleString('en')}${rate === null ? '' : ` (${rate.toFixed(1)}/s)`}`
  })
  const busiest = lanes.toSorted((a, b) => Number(b['queued']) - Number(a['queued'])).slice(0, lanesShown)
  const text = [
    `sendwright ${system['version']}  ${system['mode']}  ${when(new Date(now.atMs).toISOString())} UTC`,
    `Today: ${rates.join(', ')}`,
    `Waiting: ${queue['queued']}, being sent: ${queue['sending']}, for later: ${queue['scheduled']}`,
    '',
    lanesTable(busiest).trimEnd(),
    ...(lanes.length > busiest.length ? [`${lanes.length - busiest.length} more lanes`] : []),
    '',
    ...(alerts.length === 0 ? ['No alerts.'] : alerts.map((one) => `! ${one['advice'] ?? one['name']}`)),
  ]
  return text
    .flatMap((block) => block.split('\n'))
    .map((one) => `${printableLine(one).slice(0, columns)}\n`)
    .join('')
}
