/** The overview in a real browser: the first steps tick themselves off, and what needs a hand has its button. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { FILLED_ENV, setFaults } from '../support/fill-account.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext, { ...FILLED_ENV, SENDWRIGHT_WEBHOOK_SCHEDULE: '1h' })
  await setFaults(dashboard.service)
})
afterEach(() => dashboard.tidy())

test('the first steps tick themselves off, by keyboard alone from the first to the last', async (t) => {
  const { service } = dashboard
  const page = await dashboard.open('/overview')
  const steps = page.getByRole('region', { name: 'Getting started' })
  await steps.getByText('0 of 4 done').waitFor()
  await page.getByText('No mail in the last 60 days').waitFor()
  await page.getByText('Nothing needs a hand now.').waitFor()
  await dashboard.sound(page)
  await steps.getByRole('link', { name: 'Add a domain' }).focus()
  await press(page, 'Enter')
  await page.getByLabel('Domain name').waitFor()
  await typeText(page, 'mail.first.example')
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'mail.first.example' }).waitFor()
  await press(page, 'g', 'o')
  await steps.getByText('1 of 4 done').waitFor()
  const hand = page.getByRole('region', { name: 'Needs attention' })
  await hand.getByText('DNS records of mail.first.example are missing or wrong').waitFor()
  await hand.getByRole('link', { name: 'Show the records: mail.first.example' }).waitFor()

  await service.send({ to: 'alice@example.org' })
  const hook = await createReceiver()
  t.after(() => hook.close())
  await service.call('POST', '/v1/webhooks', { form: { url: `${hook.url}/all`, event_types: 'delivered' } })
  await eventually('the figures have the mail', async () => {
    const json = { duration: '1d', metrics: ['delivered_count'] }
    const { body } = await service.call('POST', '/v1/analytics/metrics', { json })
    return body.items[0].metrics.delivered_count >= 1
  })
  await page.reload()
  await steps.getByText('3 of 4 done').waitFor()
  const counts = page.getByRole('group', { name: 'Last 30 days' })
  await counts.getByRole('button', { name: /^Delivered 1/ }).waitFor()
  await counts.getByRole('button', { name: /^Accepted/ }).focus()
  await press(page, 'Enter')
  await page.waitForURL('**/overview?curve=accepted')
  const curve = page.getByRole('slider', { name: /^Accepted, last 30 days/ })
  await curve.focus()
  await press(page, 'ArrowLeft', 'End')
  assert.match((await curve.getAttribute('aria-valuetext')) ?? '', /Last 30 days 1, 30 days before 0$/)
  await page.getByRole('button', { name: 'Show as table' }).click()
  const table = page.getByRole('region', { name: 'Accepted, last 30 days' })
  await table.getByRole('cell', { name: '1', exact: true }).waitFor()
  await dashboard.sound(page)
  await steps.getByRole('button', { name: 'Hide' }).click()
  await page.reload()
  await counts.waitFor()
  assert.equal(await steps.count(), 0)
})

test('a webhook that fails is mended by touch, and the provider that refuses is explained', async (t) => {
  const { service } = dashboard
  const hook = await createReceiver()
  t.after(() => hook.close())
  hook.answer = 500
  const form = { url: `${hook.url}/broken`, event_types: 'permanent_fail' }
  await service.call('POST', '/v1/webhooks', { form })
  for (let n = 0; n < 25; n += 1) await service.send({ to: `p${n}@refusing.example.org`, subject: 'Refused' })
  await eventually('the endpoint was tried for each', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/webhooks/attempts?status=failing&limit=100')
    // The first ones may have a second attempt by now.
    return new Set(body.items.map(({ event_id }: { event_id: string }) => event_id)).size === 25
  })
  await eventually('the figures have the failures', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/delivery-reasons')
    return body.providers[0]?.permanent_failed >= 25
  })
  const page = await dashboard.open('/overview', { look: PHONE })
  const hand = page.getByRole('region', { name: 'Needs attention' })
  await hand.getByText(`${hook.url}/broken did not take 25 events`).waitFor()
  await hand.getByText('It last answered: 500').waitFor()
  const providers = page.getByRole('region', { name: 'Providers, last 7 days' })
  await providers.getByText(/^Other refuses \d+\.\d% of your mail$/).waitFor()
  await providers.getByText('550 5.1.1 no such user').waitFor()
  await dashboard.sound(page)
  hook.answer = 200
  await hand.getByRole('button', { name: 'Send them again' }).tap()
  await page.getByText('25 events are being sent again').waitFor()
  await hand.getByText('did not take').waitFor({ state: 'detached' })
  await providers.getByRole('link', { name: 'See an example' }).tap()
  await page.getByRole('heading', { level: 1, name: 'Refused' }).waitFor()
  await dashboard.sound(page)
})

test('a provider that was stopped is shown with why, and resumed with a way back', async () => {
  const { service } = dashboard
  const form = { reason: 'They asked us to' }
  assert.equal((await service.call('PUT', '/sendwright/v1/shaping/google/pause', { form })).status, 200)
  const pause = async () => (await service.call('GET', '/sendwright/v1/shaping')).body.overrides[0]?.pause
  const page = await dashboard.open('/overview')
  const item = page
    .getByRole('listitem')
    .filter({ hasText: 'All mail to Gmail and Google Workspace is stopped' })
  await item.getByText('They asked us to · 0 messages wait').waitFor()
  await dashboard.sound(page)
  await item.getByRole('button', { name: 'Resume mail to Gmail and Google Workspace' }).press('Enter')
  await item.waitFor({ state: 'detached' })
  assert.equal(await pause(), undefined)
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await item.waitFor()
  assert.equal((await pause()).reason, 'They asked us to')
})

test('a reader sees figures and no first steps', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open('/overview', { key: body.key.secret })
  await page.getByRole('group', { name: 'Last 30 days' }).waitFor()
  await page.getByRole('region', { name: 'Needs attention' }).waitFor()
  assert.equal(await page.getByRole('region', { name: 'Getting started' }).count(), 0)
  assert.equal(await page.getByRole('button', { name: /^Resume/ }).count(), 0)
  await dashboard.sound(page)
})
