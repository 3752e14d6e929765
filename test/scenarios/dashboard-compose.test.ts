/** The page that sends a message, in a real browser: from parts by keyboard, from a template by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { chooseOption, type Dashboard, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

const captured = async (to: string) => {
  const { body } = await dashboard.service.call('GET', `/sendwright/v1/inbox?to=${to}`)
  const [item] = body.items as { id: string }[]
  return item && (await dashboard.service.call('GET', `/sendwright/v1/inbox/${item.id}`)).body
}

test('by keyboard: a message with text and a file is sent, and its page is one link away', async () => {
  const page = await dashboard.open('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await press(page, 'Control+k')
  await page.getByRole('combobox').waitFor()
  await typeText(page, 'send a test')
  await page.getByRole('option', { name: /Send a test message/ }).waitFor()
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'Compose' }).waitFor()
  await page.getByText('None leaves the machine').waitFor()
  await page.getByLabel('To', { exact: true }).fill('nobody')
  await page.getByRole('textbox', { name: 'Text' }).fill('Hello Bob')
  await page.getByLabel('Subject').fill('Greetings')
  await page.getByLabel('Attachments').setInputFiles({
    name: 'note.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('a note'),
  })
  await page.getByLabel('Subject').press('Enter')
  await page.getByRole('alert').getByText('to parameter', { exact: false }).waitFor()
  await dashboard.sound(page)
  await page.getByLabel('To', { exact: true }).fill('bob@example.com')
  await page.getByRole('button', { name: 'Check', exact: true }).press('Enter')
  await page
    .getByRole('region', { name: 'Checks before sending' })
    .getByText('The sandbox domain has no')
    .first()
    .waitFor()
  await page.getByText('checks passed').press('Enter')
  await page.getByText('The message would be accepted for delivery.').waitFor()
  await dashboard.sound(page)
  await page.getByLabel('To', { exact: true }).press('Enter')
  await page.getByRole('link', { name: 'Open the message' }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Open the message' }).press('Enter')
  await page.getByText('Greetings').first().waitFor()
  const message = await captured('bob@example.com')
  assert.equal(message.subject, 'Greetings')
  assert.equal(message.text.trim(), 'Hello Bob')
  assert.deepEqual(
    message.attachments.map(({ name }: { name: string }) => name),
    ['note.txt'],
  )
})

test('what is written is not lost by a slip: leaving the page and closing the tab ask first', async () => {
  const page = await dashboard.open('/sending/compose')
  await page.getByLabel('Subject').fill('Half a letter')
  await press(page, 'Escape')
  await page.getByRole('link', { name: 'Domains' }).first().click()
  const asked = page.getByRole('dialog', { name: 'Leave without saving?' })
  await asked.getByRole('button', { name: 'Cancel' }).click()
  assert.equal(await page.getByLabel('Subject').inputValue(), 'Half a letter')
  const [closing] = await Promise.all([page.waitForEvent('dialog'), page.close({ runBeforeUnload: true })])
  assert.equal(closing.type(), 'beforeunload')
  await closing.dismiss()
  await page.getByRole('link', { name: 'Domains' }).first().click()
  await asked.getByRole('button', { name: 'Leave' }).click()
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
})

test('on a phone: a template with variables, whose choice is in the URL; a fault is told at its place', async () => {
  const { service } = dashboard
  const form = { name: 'hello', template: '<p>Dear {{name}}</p>', headers: '{"Subject": "For {{name}}"}' }
  await service.call('POST', '/v4/templates', { form })
  const page = await dashboard.open('/sending/compose?to=ann@example.com', { look: PHONE })
  await page.getByText('Template', { exact: true }).tap()
  await chooseOption(page.getByRole('combobox', { name: 'Template' }), 'hello')
  await page.getByLabel('Variables (JSON)').fill('[')
  await page.getByText('Not valid JSON', { exact: false }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send' }).isEnabled(), false)
  await page.getByLabel('Variables (JSON)').fill('{"name": "Ann"}')
  assert.match(page.url(), /body=template.*template=hello|template=hello.*body=template/)
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Send', exact: true }).tap()
  await page.getByRole('link', { name: 'Open the message' }).waitFor()
  await page.goto(`${service.url}/inbox?to=ann@example.com`)
  await page.getByText('For Ann').first().waitFor()
  const message = await captured('ann@example.com')
  assert.equal(message.subject, 'For Ann')
  assert.match(message.html, /Dear Ann/)
})
