/** The pages of templates in a real browser: make one, see it, send a test, versions side by side, by keyboard and by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

const frameText = "document.querySelector('iframe').srcdoc"

test('make a template and send a test, by keyboard alone', async () => {
  const page = await dashboard.open('/sending/templates')
  await page.getByText('No templates yet').waitFor()
  await dashboard.sound(page)
  await press(page, 'Control+k')
  await typeText(page, 'new templ')
  await press(page, 'Enter')
  await page.getByLabel('Name', { exact: true }).waitFor()
  await typeText(page, 'welcome')
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'welcome' }).waitFor()
  await page.getByLabel('Subject').focus()
  await typeText(page, 'Hi {{name}}')
  await page.getByRole('button', { name: 'Add them' }).press('Enter')
  await page.getByText('Hi name', { exact: true }).waitFor()
  assert.match(await page.evaluate<string>(frameText), /Hello name<\/h1>/)
  await page.getByLabel('Subject').press('Enter')
  await page.getByText('Version initial saved', { exact: false }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Rename' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Name and description' })
  await form.getByLabel('Name', { exact: true }).fill('hello')
  await form.getByLabel('Description').fill('The first mail')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'hello' }).waitFor()
  await page.getByText('The first mail').waitFor()
  await page.getByRole('button', { name: 'Send a test' }).press('Enter')
  await page.getByLabel('To', { exact: true }).waitFor()
  await typeText(page, 'bob@example.com')
  // Nothing is sent before the version has been read again, under its template's new name.
  await page.getByRole('button', { name: 'Send', exact: true }).and(page.locator(':enabled')).waitFor()
  await press(page, 'Enter')
  await page.getByRole('link', { name: 'Open the message' }).waitFor()
  await dashboard.sound(page)
  const { body } = await dashboard.service.call('GET', '/v4/templates/hello?active=yes')
  assert.deepEqual(body.template.version.headers, { Subject: 'Hi {{name}}' })
  const [accepted] = await dashboard.service.events('?event=accepted')
  assert.equal(accepted?.['recipient'], 'bob@example.com')
})

test('a test that is sent while the version is saved has what is saved', async () => {
  const { service } = dashboard
  const path = `/v3/${service.domain}/templates`
  await service.call('POST', path, { form: { name: 'quick', template: '<p>Hello</p>' } })
  const page = await dashboard.open(`/sending/templates/quick?domain=${service.domain}`, { own: true })
  let saveNow = () => {}
  const mayBeSaved = new Promise<void>((resolve) => {
    saveNow = resolve
  })
  await page.route('**/templates/quick/versions/*', async (route) => {
    if (route.request().method() === 'PUT') await mayBeSaved
    await route.continue()
  })
  await page.getByLabel('Subject').fill('Your receipt')
  const saving = page.waitForRequest((request) => request.method() === 'PUT')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await saving
  await page.getByRole('button', { name: 'Send a test' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('To', { exact: true }).fill('quick@example.com')
  const send = form.getByRole('button', { name: 'Send', exact: true })
  await send.and(page.locator('[disabled]')).waitFor()
  saveNow()
  await send.click()
  await page.getByRole('link', { name: 'Open the message' }).waitFor()
  const delivered = await eventually(
    'delivered',
    async () => (await service.events('?event=delivered&recipient=quick@example.com'))[0],
  )
  assert.equal((delivered['message'] as { headers: { subject: string } }).headers.subject, 'Your receipt')
})

test('on a phone: versions, compared, activated with a way back, and deleted after the name is typed', async () => {
  const { service } = dashboard
  const path = `/v3/${service.domain}/templates`
  await service.call('POST', path, { form: { name: 'order', template: '<p>one</p>\n<p>same</p>' } })
  await service.call('POST', `${path}/order/versions`, {
    form: { tag: 'v2', template: '<p>two {{x}}</p>\n<p>same</p>', comment: 'Other words' },
  })
  const page = await dashboard.open(`/sending/templates?domain=${service.domain}`, { look: PHONE })
  await page.getByRole('link', { name: 'order' }).tap()
  await page.getByText('Edit', { exact: true }).waitFor()
  await page
    .getByRole('group', { name: 'Preview' })
    .or(page.getByRole('radiogroup', { name: 'Preview' }))
    .getByText('Phone')
    .tap()
  await page.getByTitle('The template as it is sent').waitFor()
  await page.getByRole('button', { name: 'Check', exact: true }).tap()
  await page.getByText('The subject is empty', { exact: false }).waitFor()
  await dashboard.sound(page)
  await page.getByText('Versions', { exact: true }).tap()
  await page.getByText('Other words').waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Compare' }).tap()
  await page.getByRole('heading', { name: '1 line differs' }).waitFor()
  assert.match(page.url(), /view=compare/)
  await dashboard.sound(page)
  await page.goBack()
  await page.getByRole('button', { name: 'Activate' }).tap()
  await page.getByText('Version v2 is active').waitFor()
  const activeTag = async () =>
    (await service.call('GET', `${path}/order?active=yes`)).body.template.version.tag
  assert.equal(await activeTag(), 'v2')
  await page.getByRole('button', { name: 'Undo' }).tap()
  await page.getByText('Version initial is active').waitFor()
  assert.equal(await activeTag(), 'initial')
  await page.getByRole('button', { name: 'Delete this template' }).tap()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type order to confirm').fill('order')
  await dialog.getByRole('button', { name: 'Delete this template' }).tap()
  await page.getByText('Template order deleted').waitFor()
  assert.equal((await service.call('GET', `${path}/order`)).status, 404)
})

test('MJML, errors that name the line, and changes that are not lost by a slip', async () => {
  const { service } = dashboard
  await service.call('POST', '/v4/templates', { form: { name: 'letter', template: 'Hello {{name}}' } })
  const page = await dashboard.open('/sending/templates/letter')
  const content = page.getByRole('textbox', { name: 'Content', exact: true })
  await content.fill('Hello\n{{#if name}}')
  await page.getByText('line 2', { exact: false }).waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page
    .getByRole('form')
    .getByRole('alert')
    .getByText('Invalid parameter: template', { exact: false })
    .waitFor()
  await page.getByText('MJML', { exact: true }).click()
  await content.fill(
    '<mjml><mj-body><mj-section><mj-column><mj-text>Dear {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>',
  )
  await page.getByTitle('The template as it is sent').waitFor()
  await page.getByRole('textbox', { name: 'Variables for the preview' }).fill('{"name": ')
  await page.getByText('Not valid JSON', { exact: false }).waitFor()
  await page.getByRole('textbox', { name: 'Variables for the preview' }).fill('{"name": "Ada"}')
  await page.frameLocator('iframe').getByText('Dear Ada').waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Templates' }).first().click()
  await page.getByRole('dialog').getByText('What you changed').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Save as a new version' }).click()
  await page.getByRole('dialog').getByLabel('Make it the active version').check()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Active: v2').waitFor()
  const { body } = await service.call('GET', '/v4/templates/letter?active=yes')
  assert.match(body.template.version.mjml, /Dear/)
})

test('a role that may only read sees templates and cannot change them', async () => {
  const { service } = dashboard
  await service.call('POST', '/v4/templates', { form: { name: 'readable', template: 'Hello {{name}}' } })
  const { body } = await service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open('/sending/templates', { key: body.key.secret })
  await page.getByRole('link', { name: 'readable' }).click()
  await page.getByTitle('The template as it is sent').waitFor()
  for (const name of ['Save', 'Send a test', 'Delete this template'])
    assert.equal(await page.getByRole('button', { name }).count(), 0, name)
  await dashboard.sound(page)
})
