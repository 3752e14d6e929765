/** The page of retention in a real browser: what is kept of the account and of a domain, a change, and the passage for a policy. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import {
  chooseOption,
  type Dashboard,
  LOOKS,
  pressToCopy,
  startDashboard,
  windowHasFocus,
} from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

test('an admin shortens what a domain keeps, by keyboard, and copies the passage', async () => {
  const { service } = dashboard
  const path = `/sendwright/v1/domains/${service.domain}/retention`
  for (const look of LOOKS) {
    await service.call('PUT', path, { form: { events: 'default' } })
    const page = await dashboard.open('/settings/retention', { look })
    const row = page.getByRole('row').filter({ hasText: 'Events' })
    await row.getByText('30 days').waitFor()
    await row.getByText('SENDWRIGHT_EVENT_RETENTION_DAYS').waitFor()
    await dashboard.sound(page)
    await chooseOption(page.getByLabel('Domain'), service.domain)
    await page.waitForURL(/domain=/)
    await page.getByRole('button', { name: 'Change how long events are kept' }).press('Enter')
    const form = page.getByRole('dialog', { name: 'Events' })
    await windowHasFocus(page)
    await form.getByLabel('Days').fill('2')
    assert.equal(await form.getByRole('button', { name: 'Save' }).isDisabled(), true)
    await form.getByLabel('Days').fill('7')
    await form.getByText('cannot be brought back').waitFor()
    await dashboard.sound(page)
    await form.getByLabel('Days').press('Enter')
    await page.getByText('Events: saved').waitFor()
    await row.getByText('7 days').waitFor()
    await row.getByText('The domain').waitFor()
    await page.getByText(`For mail that we send from ${service.domain}`).waitFor()
    await pressToCopy(page.getByRole('button', { name: 'Copy the passage' }), (button) =>
      button.press('Enter'),
    )
    assert.match(
      await page.evaluate<string>('navigator.clipboard.readText()'),
      /We store it for 7 days after/,
    )
    await dashboard.sound(page)
    const { items } = (await service.call('GET', path)).body
    assert.equal(items.find(({ kind }: { kind: string }) => kind === 'events').days, 7)
  }
})

test('a developer reads the page, and changes nothing', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'developer' } })
  const page = await dashboard.open('/settings/retention', { key: body.key.secret })
  await page.getByRole('row').filter({ hasText: 'Events' }).waitFor()
  assert.equal(await page.getByRole('button', { name: /^Change how long/ }).count(), 0)
})
