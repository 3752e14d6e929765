/** Judges the pages of the dashboard as those meet them who see, hear or move less. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DESK, PHONE, startDashboard } from './dashboard.ts'
import { startStates } from './page-states.ts'

const TABS = 12 // past the frame, into the page

/**
 * Defines the test of a third of the pages (a file has not the time for all): WCAG 2.2 A and AA and best practices by axe-core,
 * in both themes and widths; the first elements by keyboard; the page on paper, and twice as large.
 */
export function accessTest(third: 0 | 1 | 2): void {
  test('axe-core finds nothing, the focus shows, nothing is cut off twice as large or on paper', async (t) => {
    const { dashboard, states } = await startStates(t as TestContext, startDashboard)
    const { page } = states
    await states.onEachPage(async (path) => {
      await page.setViewportSize({ width: 1280, height: 860 })
      await states.visit(path)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await states.settled()
      await states.inFocus(TABS)
      await page.emulateMedia({ media: 'print' })
      assert.equal(await page.evaluate<number>(NOT_PRINTED), 0, 'pixels that are not printed')
      await page.emulateMedia({ media: 'screen' })
      for (const { viewport } of [DESK, PHONE]) {
        await page.setViewportSize(viewport ?? { width: 360, height: 740 })
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          await dashboard.sound(page, true)
        }
      }
      // As large as a window of 1280 by 860 pixels is at 200 %.
      await page.setViewportSize({ width: 640, height: 430 })
      await dashboard.steady(page)
    }, third)
  })
}

/** What scrolls within the window is cut off on paper. */
const NOT_PRINTED = `[...document.querySelectorAll('main')].reduce(
  (sum, main) => sum + Math.max(0, main.scrollHeight - main.clientHeight - 1), 0)`
