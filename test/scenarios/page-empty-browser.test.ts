// By name: it opens every page of the dashboard.
/** Every page of the dashboard whose path names nothing, on a service's first day. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startDashboard } from '../support/dashboard.ts'
import { PAGE_TEXT, RAW_VALUE, startEmptyStates } from '../support/page-states.ts'

/** "Nothing here" says neither why nor what to do. */
const WORDS_MIN = 3

test('an account that has nothing: every list says what to do, and no request fails', async (t) => {
  const { dashboard, states } = await startEmptyStates(t as TestContext, startDashboard)
  const { page } = states
  await states.onEachPage(async (path) => {
    await states.visit(path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await states.settled()
    assert.equal(await page.getByRole('alert').count(), 0, 'refusals')
    assert.doesNotMatch(await page.evaluate<string>(PAGE_TEXT), RAW_VALUE)
    const empty = page.locator('.table-empty, .empty-state').filter({ visible: true })
    for (const text of await empty.allInnerTexts())
      assert.ok(text.trim().split(/\s+/).length >= WORDS_MIN, `says too little: "${text}"`)
    await dashboard.steady(page)
  })
})
