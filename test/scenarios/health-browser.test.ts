/** The pages of health in a real browser: one list of steps from what other pages say. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, LOOKS, startDashboard } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  // No name server answers there.
  dashboard = await startDashboard(t as TestContext, { SENDWRIGHT_DNS: '127.0.0.1:1' })
})
afterEach(() => dashboard.tidy())

test('the account and a domain have one list of steps, which lead to where they are done', async () => {
  const { service } = dashboard
  await service.call('POST', '/v4/domains', { form: { name: 'shop.example' } })
  const faults = [{ recipient: '*@gone.example.org', stage: 'rcpt', reply: '550 5.1.1 no such user' }]
  await service.call('PUT', '/sendwright/v1/inbox/faults', { json: faults })
  for (const to of ['a@example.org', 'b@gone.example.org']) await service.send({ to })
  await eventually('the score falls', async () => {
    const { body } = await service.call('GET', '/v1/maverick-score/total')
    return body.score < 100 && body.counters.delivered > 0
  })
  for (const look of LOOKS) {
    const page = await dashboard.open('/overview/health', { look })
    await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor()
    const steps = page.locator('.health-step')
    await steps.filter({ hasText: 'Verify shop.example' }).waitFor()
    await steps.filter({ hasText: 'Fewer bounces' }).waitFor()
    assert.match((await steps.first().textContent()) ?? '', /^NowVerify shop\.example/)
    await page.getByRole('link', { name: service.domain }).waitFor()
    await dashboard.sound(page)
    await page.getByRole('link', { name: 'Open: Verify shop.example' }).click()
    await page.getByRole('heading', { level: 1, name: 'shop.example' }).waitFor()
    await page.getByRole('navigation', { name: 'Pages of this domain' }).getByText('Health').click()
    await page.waitForURL(/\/domains\/shop\.example\/health$/)
    await page.getByText('Rules of receivers').waitFor()
    await steps.filter({ hasText: 'Verify shop.example' }).waitFor()
    const area = (name: string, state: RegExp) =>
      page.locator('.health-areas > div', { hasText: name }).locator('dd', { hasText: state }).waitFor()
    await area('SPF, DKIM and DMARC', /^1 step$/)
    // Nothing was sent.
    await area('Bounces', /^Not known$/)
    await area('Standing of the account', /^All right$/)
    await page.getByText('No mail in the last 30 days').waitFor()
    await dashboard.sound(page)
  }
})

test('a role without a right sees what it may', async () => {
  const { service } = dashboard
  const { body } = await service.call('POST', '/v1/keys', { form: { role: 'support' } })
  const page = await dashboard.open(`/domains/${service.domain}/health`, { key: body.key.secret })
  await page.getByRole('heading', { name: 'What to do next' }).waitFor()
  await page.getByText('Blocklists').waitFor()
  await dashboard.sound(page)
})
