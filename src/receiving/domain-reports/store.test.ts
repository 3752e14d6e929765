/** Bounds of what is kept, on both databases. */
import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import {
  type KeptReport,
  keepReport,
  listReports,
  readTotals,
  removeOldReports,
  removeReportsBeyond,
  removeReportsOf,
} from './store.ts'
import type { Sums } from './summary.ts'

const DAY = Date.UTC(2026, 5, 1)
const ALL = { type: undefined, from: 0, to: DAY + 10 * DAY_MS }

const sums = (passed: number): Sums => ({ passed, failed: 0, quarantined: 0, rejected: 0 })

function report(
  reportId: string,
  more: Partial<KeptReport> = {},
  names: [string, number][] = [],
): KeptReport {
  const total = sums(names.reduce((sum, [, count]) => sum + count, 0))
  return {
    id: newId(DAY),
    domain: { id: 'd1', accountId: 'a1' },
    sender: 'receiver.example',
    authenticated: true,
    receivedAt: DAY,
    summary: {
      ...{ type: 'dmarc', organization: 'o', contact: 'c', reportId, beginAt: DAY, endAt: DAY + DAY_MS },
      ...{ total, rowCount: 0, rows: [], names: new Map(names.map(([name, count]) => [name, sums(count)])) },
    },
    ...more,
  }
}

eachStore('a day keeps 50 reports that prove no sender, and they keep no other out', async (store) => {
  const forged = (at: number) => keepReport(store, report(`f${at}`, { authenticated: false }))
  for (let at = 0; at < 50; at++) assert.equal(await forged(at), true)
  assert.equal(await forged(50), false)
  // Even one with the id of a genuine report.
  assert.equal(await keepReport(store, report('f0')), true)
  assert.equal(await keepReport(store, report('f0')), false)
  const other = report('f0', { domain: { id: 'd2', accountId: 'a1' } })
  assert.equal(await keepReport(store, other), true)
})

eachStore(
  'a day names 200 sources, the first report those with the most messages; the rest is "other"',
  async (store) => {
    const names = (from: number) =>
      Array.from({ length: 150 }, (_, at): [string, number] => [`ip${from + at}`, from + at + 1])
    await keepReport(store, report('r1', {}, names(0)))
    await keepReport(store, report('r2', {}, names(100)))
    await keepReport(
      store,
      report('r3', {}, [
        ['', 5],
        ['ip1', 7],
      ]),
    )
    const totals = await readTotals(store, 'd1', 'dmarc', ALL, 1_000)
    const of = (name: string) => totals.find((one) => one.name === name)?.passed
    const sum = (from: number) => names(from).reduce((total, [, count]) => total + count, 0)
    assert.equal(of(''), sum(0) + sum(100) + 12)
    // 150 of the first, 50 more of the second, all, and the others.
    assert.equal(totals.length, 202)
    assert.equal(of('ip120'), 242)
    assert.equal(of('ip1'), 9)
    assert.equal(of('ip249'), 250)
    assert.equal(
      totals.slice(1).reduce((total, { passed }) => total + passed, 0),
      of(''),
    )
  },
)

eachStore('old reports and those of a deleted domain are removed with their totals', async (store) => {
  const { signal } = new AbortController()
  await keepReport(store, report('r1', {}, [['ip', 1]]))
  const other = { domain: { id: 'd2', accountId: 'a1' } }
  await keepReport(store, report('r1', other, [['ip', 1]]))
  await removeOldReports(store, DAY, signal)
  const page = { name: 'first' } as const
  assert.equal((await listReports(store, 'd1', ALL, page, 10)).length, 1)
  await removeReportsOf(store, 'd1')
  assert.deepEqual(await listReports(store, 'd1', ALL, page, 10), [])
  assert.deepEqual(await readTotals(store, 'd1', 'dmarc', ALL, 10), [])
  assert.equal((await readTotals(store, 'd2', 'dmarc', ALL, 10)).length, 2)
  await removeOldReports(store, DAY + 1, signal)
  assert.deepEqual(await listReports(store, 'd2', ALL, page, 10), [])
  assert.deepEqual(await readTotals(store, 'd2', 'dmarc', ALL, 10), [])
})

eachStore('beyond the space that reports may take the oldest go, and their totals stay', async (store) => {
  for (let at = 0; at < 3; at++) await keepReport(store, report(`r${at}`, {}, [['ip', 1]]))
  const page = { name: 'first' } as const
  await removeReportsBeyond(store, null)
  assert.equal((await listReports(store, 'd1', ALL, page, 10)).length, 3)
  const before = await readTotals(store, 'd1', 'dmarc', ALL, 10)
  await removeReportsBeyond(store, 1)
  assert.deepEqual(await listReports(store, 'd1', ALL, page, 10), [])
  assert.deepEqual(await readTotals(store, 'd1', 'dmarc', ALL, 10), before)
})
