/** Pages of the dashboard with long names, and with names of both directions, at a desk and on a phone. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DESK, PHONE, startDashboard } from './dashboard.ts'
import { PAGE_TEXT, type Part, RAW_VALUE, startStates } from './page-states.ts'

/** Names that stand beside other text in no element of their own direction, so that their letters turn it. */
const TURNING = `(() => {
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  const found = []
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode
    if (!data.includes('\u202e') || parentElement.closest('pre, code, textarea, option')) continue
    let part = parentElement
    while (getComputedStyle(part).display.startsWith('inline') && getComputedStyle(part).unicodeBidi === 'normal')
      part = part.parentElement
    const isOwn = getComputedStyle(part).unicodeBidi !== 'normal' || part.textContent.trim() === data.trim()
    if (!isOwn) found.push(parentElement.outerHTML.replace(/(?:Unbreakable)+/g, '…').slice(0, 160))
  }
  return found
})()`

/** Defines the test of a part of the pages. */
export function namesTest(part: Part): void {
  test('long names, and names of both directions, make no page too wide and turn no text beside them', async (t) => {
    const { dashboard, states } = await startStates(t as TestContext, startDashboard)
    const { page } = states
    await states.answer('long names')
    await states.onEachPage(async (path) => {
      await page.setViewportSize(DESK.viewport ?? { width: 1280, height: 860 })
      await states.visit(path)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await states.settled()
      await dashboard.steady(page)
      assert.doesNotMatch(await page.evaluate<string>(PAGE_TEXT), RAW_VALUE)
      assert.deepEqual(await page.evaluate<string[]>(TURNING), [], 'turns what is beside it')
      await page.keyboard.press('Shift') // what moves from now on has not jumped
      await page.setViewportSize(PHONE.viewport ?? { width: 360, height: 740 })
      await dashboard.steady(page)
    }, part)
  })
}
