/** The pages of webhooks in a real browser: registrations, attempts, what was posted, replays. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, LOOKS, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
let receiver: Receiver
before(async (t) => {
  receiver = await createReceiver()
  ;(t as TestContext).after(() => receiver.close())
  dashboard = await startDashboard(t as TestContext, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' })
})
afterEach(() => dashboard.tidy())

const registered = async () =>
  (await dashboard.service.call('GET', `/v3/domains/${dashboard.service.domain}/webhooks`)).body.webhooks

test('by keyboard: a webhook is added, its events change, it is deleted and brought back', async () => {
  const { service } = dashboard
  const url = `${receiver.url}/keyboard`
  const page = await dashboard.open(`/webhooks?domain=${service.domain}`)
  await page.getByText(`No webhook for ${service.domain}`).waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Add a webhook' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Add a webhook' })
  await form.getByLabel('URL').waitFor()
  await typeText(page, 'ftp://nowhere.example')
  await press(page, 'Enter')
  await form.getByText('invalid URL scheme').waitFor()
  await dashboard.sound(page)
  await form.getByLabel('URL').fill(url)
  await press(page, 'Enter')
  await page.getByText('Webhook added').waitFor()
  assert.deepEqual(Object.keys(await registered()).sort(), ['delivered', 'permanent_fail'])
  await page.getByRole('button', { name: `Change ${url}` }).press('Enter')
  await page.getByRole('dialog').getByLabel('Failed for good').press('Space')
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByText('Webhook saved').waitFor()
  assert.deepEqual(await registered(), { delivered: { urls: [url] } })
  await page.getByRole('button', { name: `Test ${url}` }).press('Enter')
  await page.getByText(`${url} answered 200`).waitFor()
  await page.getByRole('button', { name: `Delete ${url}` }).press('Enter')
  await page.getByText('Webhook deleted').waitFor()
  assert.deepEqual(await registered(), {})
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByRole('button', { name: `Test ${url}` }).waitFor()
  assert.deepEqual(await registered(), { delivered: { urls: [url] } })
})

test('by touch on a phone: an attempt, what was posted, and replays', async () => {
  const { service } = dashboard
  const url = `${receiver.url}/touch`
  const created = await service.call('POST', '/v1/webhooks', { form: { url, event_types: 'accepted' } })
  assert.equal(created.status, 200, created.text)
  await service.send({ to: 'posted@example.org' })
  await eventually('posted', async () => receiver.posts.find(({ path }) => path === '/touch') ?? null)
  const attempts = `/sendwright/v1/webhooks/attempts?url=${encodeURIComponent(url)}`
  const count = async () => (await service.call('GET', attempts)).body.items.length
  await eventually('logged', async () => (await count()) === 1 || null)
  const page = await dashboard.open('/webhooks', { look: PHONE })
  await page.getByRole('link', { name: url }).tap()
  await page.getByText('posted@example.org').waitFor()
  const search = page.getByRole('textbox', { name: 'Part of a recipient or subject' })
  await search.fill('nobody@')
  await page.getByText('No attempt matches').waitFor()
  await search.fill('OSTED@exam')
  await page.waitForURL(/search=OSTED/)
  await page.getByRole('link', { name: 'Accepted' }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Accepted' }).tap()
  await page.getByText('posted@example.org').first().waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Replay' }).tap()
  await page.getByText('Queued again').waitFor()
  await eventually('replayed', async () => (await count()) === 2 || null)
  await page.getByRole('link', { name: 'Attempts' }).first().tap()
  await page.getByRole('button', { name: 'Replay a period' }).tap()
  const form = page.getByRole('dialog', { name: 'Replay a period' })
  await form.getByLabel('Event').selectOption('accepted')
  await form.getByLabel('URL').fill(url)
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Replay the events' }).tap()
  await page.getByText('1 event found, 1 request queued').waitFor()
  await eventually('replayed by time', async () => (await count()) === 3 || null)
})

test('attempts by status in the URL; a reader sees no button that changes anything', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  for (const look of LOOKS) {
    const page = await dashboard.open('/webhooks/attempts?status=given-up', { look, key: body.key.secret })
    await page.getByText('No attempt matches').waitFor()
    assert.equal(await page.getByLabel('Status').inputValue(), 'given-up')
    assert.equal(await page.getByRole('button', { name: 'Replay a period' }).count(), 0)
    await dashboard.sound(page)
    await page.goto(`${dashboard.service.url}/webhooks?add=yes`)
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    assert.equal(await page.getByRole('dialog').count(), 0)
    await dashboard.sound(page)
  }
})
