/** 300 texts that run a script where they are not escaped, in everything that the dashboard shows; all its pages are visited. */
import assert from 'node:assert/strict'
import type { DrillReport } from '../../scripts/drill.ts'
import { startHostileVisits } from '../support/hostile-visits.ts'

export const title = 'R43: no text that the dashboard shows runs a script or loads something'

const TEXTS = 300
const PAGES_OF_A_KIND_MAX = 3
const PAGES_MIN = 60
const TABS = {
  activity: ['text', 'headers', 'source', 'files'],
  inbox: ['text', 'amp', 'headers', 'source'],
}

export async function run(report: DrillReport): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    const visits = await startHostileVisits({ after: (end) => ends.unshift(end as () => unknown) }, TEXTS)
    report.note(`${TEXTS} texts are planted, in ${visits.messages.length} messages and other things`)
    const visited = await visits.visitAll(PAGES_OF_A_KIND_MAX)
    const shown = [
      ...visits.messages.map((id) => ({ path: `/activity/${encodeURIComponent(id)}`, tabs: TABS.activity })),
      ...visits.captured.map((id) => ({ path: `/inbox/${encodeURIComponent(id)}`, tabs: TABS.inbox })),
    ]
    for (const { path, tabs } of shown)
      for (const tab of ['', ...tabs.map((name) => `?tab=${name}`)]) {
        const page = await visits.visit(path + tab)
        await page.close()
        visited.push(path + tab)
      }
    report.figure('texts', TEXTS)
    report.figure('pages visited', visited.length)
    await visits.assertNothingRan()
    report.figure('scripts run', 0)
    report.figure('requests elsewhere', 0)
    assert.ok(visited.length >= PAGES_MIN, 'the links lead to fewer pages than there are')
  } finally {
    for (const end of ends) await end()
  }
}
