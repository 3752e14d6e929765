/**
 * Thirty days of two cold addresses beside two warm ones, with 200,000 messages a day to four strict providers, at a scale.
 * Writes the table and the picture of docs/warm-up.md if DRILL_WRITE is set. DRILL_SCALE=1 is the full size, which takes
 * hours.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { withStore } from '../support/engine-rig.ts'
import { type DayFigures, FULL_DAY, PROVIDERS, simulateMonth } from '../support/warmup-month.ts'
import { monthPicture } from '../support/warmup-picture.ts'

export const title = 'Warm-up: a simulated month keeps every budget, and all is delivered in time'

/** Ends within a few minutes. */
const DEFAULT_SCALE = 1 / 100
const DAYS = 30
const DOCS = join(import.meta.dirname, '../../docs')
const COLD = [0, 1]

export async function run(report: DrillReport): Promise<void> {
  const scale = Number(process.env['DRILL_SCALE'] ?? DEFAULT_SCALE)
  assert.ok(scale > 0 && scale <= 1, 'DRILL_SCALE is a part of 1')
  await withStore(async (store) => {
    const month = await simulateMonth({ days: DAYS, scale, store, note: report.note })
    const { accepted, delivered, failed, late, overBudget, refused, overPlan, longestMs } = month
    report.figure('scale', `1/${Math.round(1 / scale)}`)
    report.figure('accepted', accepted, 'messages')
    report.figure('delivered', delivered, 'messages')
    report.figure('failed', failed, 'messages')
    report.figure('after their deadline', late, 'messages')
    report.figure('longest wait', longestMs / 60_000, 'minutes of simulated time')
    report.figure('over the budget of a provider', overBudget, 'messages')
    report.figure('above the limit with a provider', overPlan, 'messages')
    report.figure('refused otherwise', refused, 'messages')
    const overLimit = month.days.flatMap(({ sent, limits }) =>
      COLD.filter((at) => (sent[at] ?? 0) > (limits[at] ?? Number.POSITIVE_INFINITY)),
    )
    report.figure('days of an address over its limit', overLimit.length)
    assert.equal(accepted, Math.round(FULL_DAY * scale) * DAYS)
    assert.equal(delivered, accepted, 'all is delivered')
    assert.deepEqual(
      { failed, late, overBudget, overPlan, refused },
      { failed: 0, late: 0, overBudget: 0, overPlan: 0, refused: 0 },
    )
    assert.equal(overLimit.length, 0)
    if (process.env['DRILL_WRITE'] !== undefined) await write(month.days, scale)
  })
}

/** In the full size's numbers. */
async function write(days: readonly DayFigures[], scale: number): Promise<void> {
  const whole = (count: number | null) => (count === null ? null : Math.round(count / scale))
  const full = days.map(({ day, sent, limits, byProvider }) => ({
    day,
    sent: sent.map((count) => Math.round(count / scale)),
    limits: limits.map(whole),
    byProvider: byProvider.map((all) =>
      all.map((one) => ({ sent: Math.round(one.sent / scale), limit: whole(one.limit) })),
    ),
  }))
  await writeFile(join(DOCS, 'images/warm-up-month.svg'), monthPicture(full))
  const page = join(DOCS, 'warm-up.md')
  const text = await readFile(page, 'utf8')
  const table = `<!-- table -->\n\n${tableOf(full)}\n\n<!-- end of table -->`
  await writeFile(page, text.replace(/<!-- table -->.*<!-- end of table -->/s, table))
}

function tableOf(days: readonly DayFigures[]): string {
  const number = (count: number | null | undefined) => (count == null ? '-' : count.toLocaleString('en'))
  const rows = days.map(({ day, sent, limits, byProvider: [first = []] }) =>
    [
      day,
      ...[number(limits[0]), number(sent[0])],
      ...first.map((one) => `${number(one.sent)} of ${number(one.limit)}`),
      ...[number(sent[1]), number(sent[2]), number(sent[3])],
    ].join(' | '),
  )
  const columns = [
    ...['Day', 'limit of the stage', 'cold 1 sent'],
    ...PROVIDERS.map(({ name, part }) => `to ${name} (${part * 100} %)`),
    ...['cold 2 sent', 'warm 1 sent', 'warm 2 sent'],
  ]
  return [
    `| ${columns.join(' | ')} |`,
    `|${columns.map(() => '---|').join('')}`,
    ...rows.map((row) => `| ${row} |`),
  ].join('\n')
}
