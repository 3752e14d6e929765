/** The results of the statistics operations, summed up. */
import assert from 'node:assert/strict'
import { STATS_EVENTS } from '../../src/watching/metrics/stats/stats-query.ts'
import { eventually, type TestService } from './service.ts'

/** Members by path, such as `failed.permanent.bounce`, without zeros. */
export type Figures = Record<string, number>

const ALL = STATS_EVENTS.map((name) => `event=${name}`).join('&')

/** `path`: of an operation, such as `/v3/stats/total`; with a query or without. */
export async function figuresOf(service: TestService, path: string): Promise<Figures> {
  const { status, text, body } = await service.call('GET', `${path}${path.includes('?') ? '&' : '?'}${ALL}`)
  assert.equal(status, 200, text)
  const figures: Figures = {}
  for (const { time, ...events } of body.stats) {
    assert.equal(new Date(time).toUTCString().replace('GMT', 'UTC'), time)
    assert.deepEqual(Object.keys(events), [...STATS_EVENTS])
    addUp(figures, events, '')
  }
  return Object.fromEntries(Object.entries(figures).filter(([, count]) => count > 0))
}

function addUp(figures: Figures, members: Record<string, unknown>, path: string): void {
  for (const [name, value] of Object.entries(members)) {
    if (typeof value === 'object' && value !== null)
      addUp(figures, value as Record<string, unknown>, `${path}${name}.`)
    else {
      assert.ok(Number.isSafeInteger(value), `${path}${name}: ${value}`)
      figures[path + name] = (figures[path + name] ?? 0) + (value as number)
    }
  }
}

/** Counts are updated some seconds after the events. */
export async function assertFigures(service: TestService, path: string, expected: Figures): Promise<void> {
  const sorted = (figures: Figures) => JSON.stringify(Object.entries(figures).sort())
  let found: Figures = {}
  await eventually(`the figures of ${path}`, async () => {
    found = await figuresOf(service, path)
    return sorted(found) === sorted(expected)
  }).catch((error: unknown) => {
    assert.deepEqual(found, expected)
    throw error
  })
}
