/** Pages of the dashboard while their data cannot be had: 500, 503 of a proxy, no network; and when the session has ended. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type Dashboard, startDashboard } from './dashboard.ts'
import { FAILING, type Part, type States, startStates } from './page-states.ts'

/** Defines the tests of a part of the pages. */
export function failuresTests(part: Part): void {
  let dashboard: Dashboard
  let states: States
  before(async (t) => {
    ;({ dashboard, states } = await startStates(t as TestContext, startDashboard))
  })

  test('data that cannot be had: the reason and another attempt, which succeeds', async () => {
    const { page } = states
    let at = 0
    await states.onEachPage(async (path) => {
      await states.answer(FAILING[at++ % FAILING.length] ?? '500')
      const asked = await states.visit(path)
      await page.locator('h1, [role=alert]').first().waitFor()
      await states.settled()
      if (asked.length === 0) return
      await page.getByRole('alert').first().waitFor()
      await dashboard.steady(page)
      await states.answer('normal')
      const again = page.getByRole('button', { name: 'Try again' })
      // One attempt may serve several parts of a page.
      while ((await again.count()) > 0) {
        await again.first().click()
        await states.settled()
      }
      await page.getByRole('alert').first().waitFor({ state: 'detached' })
      await page.getByRole('heading', { level: 1 }).waitFor()
    }, part)
  })

  test('a session that has ended: every page asks to sign in, and shows none of the data', async () => {
    const { page } = states
    await states.answer('401')
    await states.onEachPage(async (path) => {
      await states.visit(path)
      if (path.startsWith('/docs')) return
      await page.getByRole('button', { name: 'Sign in', exact: true }).first().waitFor()
      assert.equal(await page.getByRole('navigation').count(), 0)
    }, part)
  })
}
