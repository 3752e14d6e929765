/** The pages of settings in a real browser: keys, users, audit log, system. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { afterEach, before, type TestContext, test } from 'node:test'
import {
  chooseOption,
  type Dashboard,
  LOOKS,
  PHONE,
  press,
  startDashboard,
  typeText,
} from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

interface ListedKey {
  description: string
  role: string
}

const keys = async () => (await dashboard.service.call('GET', '/v1/keys')).body.items as ListedKey[]

test('by keyboard: a key is created, its secret is shown once and works, and it is deleted', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/settings')
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  await dashboard.sound(page)
  await press(page, 'j', 'Enter')
  await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
  await page.getByRole('button', { name: 'Create a key' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Create a key' })
  await form.getByLabel('What is it for').waitFor()
  await typeText(page, 'Shop')
  await press(page, 'Tab')
  await form.getByLabel('Role').selectOption('basic')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await form.getByRole('button', { name: 'Create the key' }).press('Enter')
  const shown = page.getByRole('dialog', { name: 'The key' })
  const secret = await shown.locator('code').textContent()
  await dashboard.sound(page)
  assert.equal((await service.call('GET', '/v4/domains', { key: secret })).status, 200)
  await shown.getByRole('button', { name: 'I have copied it' }).press('Enter')
  await page.getByText('Shop').waitFor()
  assert.equal((await page.content()).includes(String(secret)), false)
  await page.getByRole('button', { name: 'Delete the key Shop' }).press('Enter')
  await page
    .getByRole('dialog', { name: 'Delete this key?' })
    .getByRole('button', { name: 'Delete' })
    .waitFor()
  await dashboard.sound(page)
  await press(page, 'Enter')
  assert.equal(
    (await keys()).some(({ description }) => description === 'Shop'),
    true,
    'its name is typed first',
  )
  await typeText(page, 'Shop')
  await press(page, 'Enter')
  await page.getByText('Key deleted').waitFor()
  assert.deepEqual(
    (await keys()).filter(({ description }) => description === 'Shop'),
    [],
  )
})

test('by touch on a phone: a sending key for one domain', async () => {
  const page = await dashboard.open('/settings/keys', { look: PHONE })
  await page.getByRole('button', { name: 'Create a key' }).tap()
  const form = page.getByRole('dialog', { name: 'Create a key' })
  await form.getByLabel('What is it for').fill('Printer')
  await form.getByLabel('Role').selectOption('sending')
  await chooseOption(form.getByLabel('Domain'), dashboard.service.domain)
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Create the key' }).tap()
  await page.getByRole('button', { name: 'I have copied it' }).tap()
  await page.getByText(`sending, ${dashboard.service.domain}`).waitFor()
  await dashboard.sound(page)
  assert.equal((await keys()).find(({ description }) => description === 'Printer')?.role, 'sending')
})

test('the calls of a key are listed with errors in words, and copied as curl', async () => {
  const { service } = dashboard
  const made = await service.call('POST', '/v1/keys', { form: { role: 'basic', description: 'Newsletter' } })
  const { id, secret } = made.body.key
  await service.call('GET', '/v4/domains?limit=3', { key: secret })
  await service.call('DELETE', '/v1/keys/absent', { key: secret })
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/keys', { look })
    await page.getByRole('link', { name: 'Newsletter' }).click()
    await page.getByRole('heading', { level: 1, name: 'Calls: Newsletter' }).waitFor()
    await page.getByText('the role basic has no right to write here').waitFor()
    await page.getByText('GET /v4/domains').waitFor()
    await dashboard.sound(page)
    await page.getByText('With an error', { exact: true }).click()
    await page.getByText('GET /v4/domains').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    assert.match(copied, /^curl -s --user "api:\$API_KEY" -X DELETE 'http.*\/v1\/keys\/absent'$/)
    assert.equal(new URL(page.url()).pathname, `/settings/keys/${id}`)
  }
  await service.call('DELETE', `/v1/keys/${id}`)
})

test('a user is invited, gets another role with a way back, and is removed', async () => {
  const { service } = dashboard
  const user = async () => (await service.call('GET', '/v5/users')).body.users.at(-1)
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/users?add=yes', { look })
    const form = page.getByRole('dialog', { name: 'Invite a user' })
    await form.getByLabel('Email address').fill('not an address')
    await form.getByLabel('Name').fill('Grace')
    await form.getByLabel('Email address').fill('grace@example.org')
    await dashboard.sound(page)
    await form.getByRole('button', { name: 'Send the invitation' }).press('Enter')
    await page.getByText('Invitation sent to grace@example.org').waitFor()
    assert.equal((await user()).role, 'basic')
    await page.getByLabel('Role of grace@example.org').selectOption('support')
    await page.getByText('grace@example.org is support now').waitFor()
    assert.equal((await user()).role, 'support')
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('grace@example.org is basic now').waitFor()
    assert.equal((await user()).role, 'basic')
    await dashboard.sound(page)
    await page.getByRole('button', { name: 'Remove grace@example.org' }).press('Enter')
    const ask = page.getByRole('dialog', { name: 'Remove this user?' })
    await ask.getByRole('textbox').fill('grace@example.org')
    await ask.getByRole('button', { name: 'Remove' }).press('Enter')
    await page.getByText('grace@example.org removed').waitFor()
    await page.getByText('No users').waitFor()
  }
})

test('the audit log filters and pages by its URL', async () => {
  const { service } = dashboard
  for (let n = 0; n < 60; n += 1)
    await service.call('POST', `/v3/${service.domain}/unsubscribes`, {
      form: { address: `a${n}@example.org` },
    })
  await service.call('POST', '/v4/domains', { form: { name: 'audited.example' } })
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/audit', { look })
    await page.getByText('audited.example').first().waitFor()
    await page.getByText('key, admin').first().waitFor()
    await dashboard.sound(page)
    await page.getByRole('button', { name: 'Next' }).press('Enter')
    await page.waitForURL(/at=/)
    await page.getByText('audited.example').first().waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('button', { name: 'Previous' }).press('Enter')
    await page.getByText('audited.example').first().waitFor()
    await page.getByRole('link', { name: 'from the configuration' }).first().press('Enter')
    await page.waitForURL(/key_id=/)
    await page.getByLabel('What was changed, such as a domain').fill('audited.example')
    await page.waitForURL(/subject=audited\.example/)
    await page.getByRole('table').getByText('domain.create').waitFor()
    await page.getByRole('combobox', { name: 'Action' }).selectOption('unsubscribes.add')
    await page.getByText('Nothing matches these filters').waitFor()
    await dashboard.sound(page)
    await page.getByRole('textbox', { name: 'What was changed, such as a domain' }).fill('')
    await page.getByRole('table').getByText('unsubscribes.add').first().waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV file' }).press('Enter')
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\r\n')
    assert.equal(lines.length, 61)
    assert.match(lines[1] ?? '', /^[^,]+,unsubscribes\.add,/)
    await page.getByLabel('From').fill('2020-01-01')
    await page.getByLabel('To', { exact: true }).fill('2020-01-02')
    await page.getByText('Nothing matches these filters').waitFor()
    await dashboard.sound(page)
  }
})

const withAnyFigures = (text: string) =>
  new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll(/\d+/g, '\\d+'))

test('the system: checks with their sentences, and periodic jobs', async () => {
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/system', { look })
    await page.getByRole('heading', { level: 2, name: 'Checks' }).waitFor()
    const { body } = await dashboard.service.call('GET', '/sendwright/v1/system/checks')
    for (const { name, sentence } of body.items.filter(
      ({ name }: { name: string }) => name !== 'open-files',
    )) {
      // Figures change meanwhile, such as the room on the disk.
      await page.getByText(withAnyFigures(sentence)).first().waitFor()
      assert.notEqual(await page.getByTitle(name, { exact: true }).textContent(), name, 'a check has a title')
    }
    await page.getByRole('table', { name: 'Periodic jobs' }).getByText('In order').first().waitFor()
    await dashboard.sound(page)
  }
})

test('a developer reads keys and users, and changes none', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'developer' } })
  const page = await dashboard.open('/settings/keys?add=yes', { key: body.key.secret })
  await page.getByRole('table').getByText('developer').first().waitFor()
  assert.equal(
    await page
      .getByRole('button', { name: /key/i })
      .and(page.getByText(/Create|Delete/))
      .count(),
    0,
  )
  assert.equal(await page.getByRole('dialog').count(), 0)
  await page.goto(`${dashboard.service.url}/settings`)
  await page
    .getByRole('main')
    .getByRole('link', { name: /^Users/ })
    .waitFor()
  assert.equal(
    await page
      .getByRole('main')
      .getByRole('link', { name: /^System/ })
      .count(),
    0,
  )
})
