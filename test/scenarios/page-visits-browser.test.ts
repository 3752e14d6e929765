/** Ways to visit pages that no page knows of itself: back and forward, two tabs, two clicks where one is meant. */
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, startDashboard } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

test('back and forward show the pages as they were, filters included', async () => {
  const page = await dashboard.open('/domains')
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
  await heading('Domains')
  const navigation = page.getByRole('navigation', { name: 'Sections' })
  await navigation.getByRole('link', { name: 'Activity' }).click()
  await heading('Activity')
  await page.getByRole('combobox', { name: 'Event', exact: true }).selectOption({ label: 'Clicked' })
  await page.waitForURL(/event=clicked/)
  await navigation.getByRole('link', { name: 'Settings' }).click()
  await heading('Settings')
  await page.goBack()
  await heading('Activity')
  assert.equal(await page.getByRole('combobox', { name: 'Event', exact: true }).inputValue(), 'clicked')
  await page.goBack()
  await heading('Domains')
  await page.goForward()
  await heading('Activity')
  await page.goForward()
  await heading('Settings')
  await dashboard.sound(page)
})

test('two tabs: a change made in one is seen in the other when it is loaded anew, and so is the end of the session', async () => {
  const context = await dashboard.signedIn()
  const [one, other] = [await context.newPage(), await context.newPage()]
  for (const page of [one, other]) {
    await page.goto(`${dashboard.service.url}/domains`)
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  }
  await one.getByRole('button', { name: 'Add a domain' }).click()
  await one.getByLabel('Domain name').fill('tabs.example')
  await one.getByRole('button', { name: 'Add the domain' }).click()
  await one.getByRole('heading', { level: 1, name: 'tabs.example' }).waitFor()
  await other.reload()
  await other.getByText('tabs.example').first().waitFor()
  assert.equal((await context.request.delete(`${dashboard.service.url}/sendwright/v1/session`)).ok(), true)
  await other.getByRole('link', { name: 'Settings' }).click()
  await other.reload()
  await other.getByRole('button', { name: 'Sign in', exact: true }).first().waitFor()
  assert.equal(await other.getByRole('navigation').count(), 0)
  await context.close()
})

for (const [path, label, text, button, method, call] of [
  ['/domains?add=yes', 'Domain name', 'twice.example', 'Add the domain', 'POST', '/v4/domains'],
  ['/settings/keys?add=yes', 'What is it for', 'twice', 'Create the key', 'POST', '/v1/keys'],
  ['/sending/templates?add=yes', 'Name', 'twice', 'Create', 'POST', '/v4/templates'],
] as const)
  test(`a double click on "${button}" sends once`, async () => {
    const page = await dashboard.open(path, { own: true })
    let sent = 0
    await page.route(
      (url) => url.pathname === call,
      async (route, request) => {
        if (request.method() === method) sent += 1
        await route.fallback()
      },
    )
    const form = page.getByRole('dialog')
    await form.getByLabel(label, { exact: true }).fill(text)
    await form.getByRole('button', { name: button, exact: true }).dblclick()
    await form.filter({ hasText: button }).waitFor({ state: 'detached' })
    assert.equal(sent, 1)
  })
