/**
 * Pages of the dashboard, of an account with very many of everything: while their data are on their way, and with them. The
 * router lists the pages (page-states.ts).
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startDashboard } from './dashboard.ts'
import { type Part, startStates } from './page-states.ts'

const NODES_MAX = 6_000 // more than that, and a page of thousands of things shows all of them

/** Defines the test of a part of the pages. */
export function loadingTest(part: Part): void {
  test('while the data are on their way, the page stands and says so; nothing moves when they come', async (t) => {
    const { dashboard, states } = await startStates(t as TestContext, startDashboard)
    const { page } = states
    await states.onEachPage(async (path) => {
      await states.answer('held')
      await states.visit(path)
      await page.locator('h1, main').first().waitFor()
      assert.equal(await page.getByRole('alert').count(), 0)
      assert.deepEqual(await states.moving(), [], 'moves although reduced motion is asked for')
      await states.answer('normal')
      await states.settled()
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, 'headings of level 1')
      const nodes = await page.evaluate<number>('document.querySelectorAll("*").length')
      assert.ok(nodes <= NODES_MAX, `${nodes} elements`)
      await dashboard.steady(page)
    }, part)
  })
}
