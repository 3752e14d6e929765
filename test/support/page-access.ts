/** Judges the pages of the dashboard as those meet them who see, hear or move less. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { DESK, PHONE, startDashboard } from './dashboard.ts'
import { type Part, startStates } from './page-states.ts'

const TABS = 12 // past the frame, into the page
/** A window of 1280 by 860 pixels at 200 %. */
const TWICE_AS_LARGE = { width: 640, height: 430 }

/**
 * Defines the test of a part of the pages: WCAG 2.2 A and AA and best practices by axe-core,
 * once on a wide light page and once on a narrow dark one; the first elements by keyboard; the page on paper, and twice as large.
 */
export function accessTest(part: Part): void {
  test('axe-core finds nothing, the focus shows, nothing is cut off twice as large or on paper', async (t) => {
    const { dashboard, states } = await startStates(t as TestContext, startDashboard)
    const { page } = states
    await states.onEachPage(async (path) => {
      await look(page, DESK)
      await states.visit(path)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await states.settled()
      await dashboard.sound(page)
      await states.inFocus(TABS)
      await page.emulateMedia({ media: 'print' })
      assert.equal(await page.evaluate<number>(NOT_PRINTED), 0, 'pixels that are not printed')
      await page.emulateMedia({ media: 'screen' })
      await look(page, PHONE)
      await dashboard.sound(page)
      await page.setViewportSize(TWICE_AS_LARGE)
      await dashboard.steady(page)
    }, part)
  })
}

async function look(page: Page, { viewport, colorScheme }: BrowserContextOptions): Promise<void> {
  if (viewport) await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme: colorScheme ?? null })
}

/** What scrolls within the window is cut off on paper. */
const NOT_PRINTED = `[...document.querySelectorAll('main')].reduce(
  (sum, main) => sum + Math.max(0, main.scrollHeight - main.clientHeight - 1), 0)`
