/** The pages of mailing lists and of scheduled mail in a real browser, by keyboard and by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

test('by keyboard: a list is made, and a member added, changed, removed and put back', async () => {
  const { service } = dashboard
  const address = `news@${service.domain}`
  const page = await dashboard.open('/sending/lists')
  await page.getByText('No mailing lists yet').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'New list' }).first().press('Enter')
  await page.getByRole('dialog').getByLabel('Address').waitFor()
  await typeText(page, address)
  await press(page, 'Enter')
  await page.getByText('No members yet').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Add a member' }).first().press('Enter')
  await page.getByRole('dialog').getByLabel('Address').waitFor()
  await typeText(page, 'bob@example.com')
  await page.getByRole('dialog').getByLabel('Variables').fill('{"plan": "gold"}')
  await page.getByRole('dialog').getByLabel('Name').press('Enter')
  await page.getByText('bob@example.com added').waitFor()
  await page.getByRole('button', { name: 'Edit bob@example.com' }).press('Enter')
  await page.getByRole('dialog').getByLabel('Name').fill('Bob')
  await dashboard.sound(page)
  await page.getByRole('dialog').getByLabel('Name').press('Enter')
  await page.getByRole('cell', { name: 'Bob', exact: true }).waitFor()
  const members = async () => (await service.call('GET', `/v3/lists/${address}/members`)).body.items
  const bob = { address: 'bob@example.com', name: 'Bob', vars: { plan: 'gold' }, subscribed: true }
  assert.deepEqual(await members(), [bob])
  await page.getByRole('button', { name: 'Remove bob@example.com' }).press('Enter')
  await page.getByText('No members yet').waitFor()
  assert.deepEqual(await members(), [])
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByRole('cell', { name: 'Bob', exact: true }).waitFor()
  assert.deepEqual(await members(), [bob])
})

test('on a phone: members are imported with progress, paged, searched for, and the list is deleted', async () => {
  const { service } = dashboard
  const address = `team@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address } })
  const page = await dashboard.open(`/sending/lists/${address}`, { look: PHONE })
  await page.getByRole('button', { name: 'Import' }).first().tap()
  const rows = Array.from(
    { length: 130 },
    (_, at) => `user${String(at).padStart(3, '0')}@example.com,User ${at},no`,
  )
  const csv = ['address,name,subscribed', ...rows, 'nobody,x,yes'].join('\n')
  await page
    .getByLabel('File (CSV or JSON)')
    .setInputFiles({ name: 'members.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
  await page.getByRole('button', { name: 'Import 131 members' }).tap()
  await page.getByText('130 members imported').waitFor()
  await page.getByText('No. 131').waitFor()
  await dashboard.sound(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().tap()
  await page.getByText('user000@example.com').waitFor()
  await page.getByRole('cell', { name: 'Unsubscribed' }).first().waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Next' }).tap()
  await page.getByText('user050@example.com').waitFor()
  await page.getByLabel('Whole address of a member').fill('user129@example.com')
  await page.getByText('User 129').waitFor()
  await page.getByRole('button', { name: 'Delete this list' }).tap()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(`Type ${address} to confirm`).fill(address)
  await dialog.getByRole('button', { name: 'Delete this list' }).tap()
  await page.getByText(`List ${address} deleted`).waitFor()
  assert.equal((await service.call('GET', `/v3/lists/${address}`)).status, 404)
})

test('on a phone: a list asks first and opens its form; who has not confirmed is found, and stays pending when edited', async () => {
  const { service } = dashboard
  const address = `asking@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address } })
  const page = await dashboard.open(`/sending/lists/${address}`, { look: PHONE })
  await page.getByRole('button', { name: 'Consent' }).tap()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Title for people').fill('Weekly letter')
  await dialog.getByLabel('Ask new members first').check()
  await dialog.getByLabel('Open the form').check()
  await dialog.getByLabel('Language of the mail').selectOption('de')
  await dashboard.sound(page)
  await dialog.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Consent settings saved').waitFor()
  const { body } = await service.call('GET', `/sendwright/v1/lists/${address}/consent`)
  assert.deepEqual([body.title, body.confirm, body.form, body.language], ['Weekly letter', true, true, 'de'])
  await page.getByRole('button', { name: 'Consent' }).tap()
  await page.getByRole('dialog').getByText(body.form_url, { exact: true }).waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).tap()
  await page.getByRole('button', { name: 'Add a member' }).first().tap()
  await page.getByRole('dialog').getByLabel('Address').fill('waiting@example.com')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).tap()
  await page.getByRole('cell', { name: 'Not confirmed yet' }).waitFor()
  const added = { address: 'bob@example.com', confirm: 'no' }
  await service.call('POST', `/v3/lists/${address}/members`, { form: added })
  await page.getByRole('button', { name: 'Edit waiting@example.com' }).tap()
  await page.getByRole('dialog').getByLabel('Name').fill('Wanda')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).tap()
  await page.getByRole('cell', { name: 'Wanda' }).waitFor()
  await page.getByLabel('State').selectOption('pending')
  await page.getByText('bob@example.com').waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'Wanda' }).waitFor()
  await dashboard.sound(page)
  await page.getByLabel('State').selectOption('yes')
  await page.getByText('bob@example.com').waitFor()
})

test('on a phone: topics of a domain are switched on and named', async () => {
  const { service } = dashboard
  const page = await dashboard.open(`/domains/${service.domain}/settings`, { look: PHONE })
  await page.getByRole('button', { name: 'Change the topics' }).tap()
  await page.getByLabel('One topic a line').fill('offers = Special offers\n\ntips = Tips')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Special offers, Tips').waitFor()
  await page.getByRole('switch', { name: 'Page of topics' }).press('Space')
  await page.locator('[aria-label="Page of topics"]:checked').waitFor()
  await dashboard.sound(page)
  const { body } = await service.call('GET', `/sendwright/v1/domains/${service.domain}/topics`)
  assert.deepEqual(body.topics, [
    { tag: 'offers', title: 'Special offers' },
    { tag: 'tips', title: 'Tips' },
  ])
})

const HOUR_MS = 3_600_000
const schedule = async (subject: string, inMs: number) => {
  const time = new Date(Date.now() + inMs).toUTCString()
  const form = { from: 'a@example.com', to: 'bob@example.com', subject, text: 'x', 'o:deliverytime': time }
  assert.equal((await dashboard.service.send(form)).status, 200)
}
const waiting = async () =>
  (await dashboard.service.call('GET', '/sendwright/v1/scheduled')).body.items as {
    subject: string
    deliverytime: string
  }[]

test('by keyboard: scheduled mail is moved, moved back, and cancelled', async () => {
  const page = await dashboard.open('/sending/scheduled')
  await page.getByText('Nothing is scheduled').waitFor()
  await dashboard.sound(page)
  await schedule('Offer', 2 * HOUR_MS)
  await page.reload()
  const before = (await waiting())[0]?.deliverytime
  await page.getByRole('button', { name: 'Change time of “Offer”' }).press('Enter')
  await page.getByRole('button', { name: 'Tomorrow, same time' }).press('Enter')
  await dashboard.sound(page)
  await page.getByLabel('New delivery time').press('Enter')
  await page.getByText('Moved to', { exact: false }).waitFor()
  const moved = Date.parse((await waiting())[0]?.deliverytime ?? '') - Date.parse(before ?? '')
  assert.ok(Math.abs(moved - 24 * HOUR_MS) < 60_000, String(moved))
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByText('(in 2 h)').waitFor()
  await page.getByRole('button', { name: 'Cancel “Offer”' }).press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the message' }).press('Enter')
  await page.getByText('Message cancelled').waitFor()
  assert.deepEqual(await waiting(), [])
})

test('on a phone: a time that the service refuses is answered with its sentence, and a filter is in the URL', async () => {
  await schedule('Later', 3 * HOUR_MS)
  const page = await dashboard.open('/sending/scheduled', { look: PHONE })
  await page.getByRole('button', { name: 'Change time of “Later”' }).tap()
  await page.getByLabel('New delivery time').fill('2099-01-01T10:00')
  await page.getByRole('dialog').getByRole('button', { name: 'Change time', exact: true }).tap()
  await page.getByRole('dialog').getByText('deliverytime', { exact: false }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().tap()
  await page.getByLabel('Recipient address').fill('nobody@example.com')
  await page.getByText('No scheduled message matches.').waitFor()
  assert.match(page.url(), /recipient=nobody/)
  await page.getByRole('button', { name: 'Clear filters' }).tap()
  await page.getByText('Later').waitFor()
  await dashboard.sound(page)
})
