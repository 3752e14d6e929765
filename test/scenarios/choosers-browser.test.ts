/** Fields that find one of many by a part of its name, in a real browser: domains, tags, templates, subaccounts. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { chooseOption, type Dashboard, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { addDomains } from '../support/many-rows.ts'
import { eventually } from '../support/service.ts'

const DOMAINS = 130 // more than one page of the API's list has by default

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
  addDomains(dashboard.service, DOMAINS)
  await dashboard.service.call('POST', '/v4/templates', { form: { name: 'receipt', template: 'Thanks' } })
})
afterEach(() => dashboard.tidy())

test('by keyboard: the oldest of many domains is found, read out, chosen, and another attempt given up', async () => {
  const page = await dashboard.open('/sending/suppressions')
  const field = page.getByRole('combobox', { name: 'Domain', exact: true })
  const value = () => field.inputValue()
  await eventually('the newest is chosen', async () => (await value()) === 'shop-129.example' || undefined)
  await field.focus()
  assert.equal(await field.getAttribute('aria-expanded'), 'false')
  await page.keyboard.type('-000')
  await page.getByRole('option', { name: 'shop-000.example' }).waitFor()
  await page.getByRole('status').getByText('1 found').waitFor({ state: 'attached' })
  const active = await field.getAttribute('aria-activedescendant')
  assert.equal(await page.locator(`[id="${active}"]`).textContent(), 'shop-000.example')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.waitForURL(/domain=shop-000\.example/)
  assert.equal(await value(), 'shop-000.example')
  await page.keyboard.type('nothing like it')
  await page.getByText('Nothing has this name').waitFor()
  await press(page, 'Escape')
  assert.equal(await value(), 'shop-000.example')
  assert.equal(await field.getAttribute('aria-expanded'), 'false')
})

test('the whole list is reached by arrows and by scrolling, a page at a time', async () => {
  const page = await dashboard.open('/sending/suppressions?domain=shop-050.example')
  const field = page.getByRole('combobox', { name: 'Domain', exact: true })
  await field.click()
  const options = page.getByRole('option')
  await page.getByRole('option', { name: 'shop-000.example' }).waitFor()
  const first = await options.count()
  assert.ok(first < DOMAINS, `${first} at once`)
  await press(page, 'ArrowUp')
  await eventually('the next page', async () => (await options.count()) > first || undefined)
  await page.getByRole('listbox', { name: 'Domain' }).hover()
  await eventually('all of them', async () => {
    await page.mouse.wheel(0, 2000)
    return (await options.count()) === DOMAINS + 1 || undefined
  })
})

test('in a window: Escape closes the list and not the window; a free field takes what no option has', async () => {
  const page = await dashboard.open('/settings/keys?add=yes')
  const form = page.getByRole('dialog', { name: 'Create a key' })
  await form.getByLabel('Role').selectOption('sending')
  await form.getByLabel('Domain').click()
  await typeText(page, 'shop-07')
  await page.getByRole('option', { name: 'shop-070.example' }).waitFor()
  await dashboard.sound(page)
  await press(page, 'Escape')
  await page.getByRole('listbox').waitFor({ state: 'detached' })
  await form.waitFor()
  await page.goto(`${dashboard.service.url}/statistics`)
  await page.getByRole('combobox', { name: 'Tag', exact: true }).click()
  await typeText(page, 'never-sent')
  await page.waitForURL(/tag=never-sent/)
})

test('on a phone: by touch, and the list stays within the window', async () => {
  const page = await dashboard.open('/sending/compose?body=template', { look: PHONE })
  await chooseOption(page.getByRole('combobox', { name: 'Send from domain' }), 'shop-001')
  await page.waitForURL(/domain=shop-001\.example/)
  const field = page.getByRole('combobox', { name: 'Template' })
  await field.tap()
  const option = page.getByRole('option', { name: 'receipt' })
  const box = await option.boundingBox()
  assert.ok(box && box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box))
  await dashboard.sound(page)
  await option.tap()
  await page.waitForURL(/template=receipt/)
})
