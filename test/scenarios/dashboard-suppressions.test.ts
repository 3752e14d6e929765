/** The pages of suppressions, validation and inbox placement in a real browser. Suppressions: search, add, remove and back, import and export, by keyboard and by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, before, type TestContext, test } from 'node:test'
import {
  chooseOption,
  type Dashboard,
  LOOKS,
  PHONE,
  press,
  startDashboard,
  typeText,
  windowHasFocus,
} from '../support/dashboard.ts'
import { type GmailServer, startGmailServer } from '../support/gmail-server.ts'
import { ownAddress } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

let dashboard: Dashboard
let gmail: GmailServer
before(async (t) => {
  const context = t as TestContext
  gmail = await startGmailServer(ownAddress(), 'promotions')
  const { host, port } = gmail
  const seeds = [
    { address: 'seed@gmail.example', host, port, tls: 'none', user: 'seed', password: 'x', name: 'Gmail' },
    { address: 'seed@locked.example', host, port, tls: 'starttls', user: 'seed', password: 'x' },
  ]
  const file = join(await temporaryFolder(context), 'seeds.json')
  await writeFile(file, JSON.stringify(seeds))
  dashboard = await startDashboard(context, { SENDWRIGHT_PLACEMENT_SEEDS: file })
  context.after(() => gmail.close())
})
afterEach(() => dashboard.tidy())

const listed = async (kind: string) =>
  (await dashboard.service.call('GET', `/v3/${dashboard.service.domain}/${kind}?limit=1000`)).body
    .items as Record<string, unknown>[]

test('by keyboard: an address is added, searched for, removed and put back as it was', async () => {
  const page = await dashboard.open('/sending/suppressions')
  await page.getByText('No bounces').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Add', exact: true }).first().press('Enter')
  await page.getByRole('dialog').getByLabel('Address').waitFor()
  await typeText(page, 'not an address')
  await press(page, 'Enter')
  await page.getByText('Invalid format for parameter address', { exact: false }).waitFor()
  await press(page, 'Control+a')
  await typeText(page, 'bob@example.com')
  await page.getByRole('dialog').getByLabel('Reason').fill('no such user')
  await press(page, 'Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'no such user' }).waitFor()
  const [before] = await listed('bounces')
  await page.getByRole('button', { name: 'Remove bob@example.com' }).press('Enter')
  await page.getByText('No bounces').waitFor()
  assert.deepEqual(await listed('bounces'), [])
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByRole('cell', { name: 'no such user' }).waitFor()
  assert.deepEqual(await listed('bounces'), [before])
  await press(page, '/')
  await typeText(page, 'alice')
  await page.getByText('No address on this list begins with “alice”.').waitFor()
  assert.match(page.url(), /q=alice/)
  await dashboard.sound(page)
})

test('on a phone: an import of CSV with a bad line, paging, an export, and clearing after the name is typed', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/sending/suppressions?kind=unsubscribes&open=import', { look: PHONE })
  const lines = Array.from(
    { length: 120 },
    (_, at) => `user${String(at).padStart(3, '0')}@example.com,"news,offers"`,
  )
  const csv = ['address,tags', ...lines, 'nobody,'].join('\n')
  await page
    .getByLabel('File (CSV or JSON)')
    .setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
  await page.getByText('121 addresses found').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Import 121 addresses' }).tap()
  await page.getByText('120 addresses imported').waitFor()
  await page.getByText('No. 121').waitFor()
  await dashboard.sound(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().tap()
  assert.equal((await listed('unsubscribes')).length, 120)
  await page.getByText('user000@example.com').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Next' }).tap()
  await page.getByText('user050@example.com').waitFor()
  await page.reload()
  await page.getByText('user050@example.com').waitFor()
  await page.getByRole('button', { name: 'Next' }).tap()
  await page.getByText('user119@example.com').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Next' }).isEnabled(), false)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export CSV' }).tap()
  const file = await (await download).path()
  const exported = (await readFile(file, 'utf8')).trimEnd().split('\r\n')
  assert.equal(exported.length, 121)
  assert.match(exported[1] ?? '', /^user000@example\.com,"news,offers",/)
  await page.getByRole('button', { name: 'Clear the list' }).tap()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(`Type ${service.domain} to confirm`).fill(service.domain)
  await dialog.getByRole('button', { name: 'Clear the list' }).tap()
  await page.getByText('list cleared').waitFor()
  assert.deepEqual(await listed('unsubscribes'), [])
})

test('a role that reads the allowlist only sees nothing else', async () => {
  const { service } = dashboard
  await service.call('POST', `/v3/${service.domain}/whitelists`, {
    form: { domain: 'staff.example', reason: 'own' },
  })
  const { body } = await service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open('/sending/suppressions', { key: body.key.secret })
  await page.getByText('staff.example').waitFor()
  assert.equal(await page.getByText('Bounces', { exact: true }).count(), 0)
  for (const name of ['Add', 'Import', 'Remove staff.example', 'Clear the list'])
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name)
  await dashboard.sound(page)
})

test('validation: an address at once, a file with progress and results, and the job is deleted', async () => {
  const page = await dashboard.open('/sending/validation')
  await page.getByText('No lists yet').waitFor()
  await dashboard.sound(page)
  await page.getByRole('textbox', { name: 'Address' }).fill('nobody')
  await page.getByRole('textbox', { name: 'Address' }).press('Enter')
  await page.getByText('malformed address; missing @ sign').waitFor()
  await page.getByText('Undeliverable').waitFor()
  await page.getByRole('button', { name: 'Validate a file' }).first().press('Enter')
  const dialog = page.getByRole('dialog')
  const upload = async (text: string, name: string) =>
    dialog.getByLabel('File').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })
  await upload('a,b\n1,2\n', 'spring.csv')
  await dialog.getByRole('button', { name: 'Validate', exact: true }).press('Enter')
  await dialog.getByText('missing email or email_address column').waitFor()
  await dashboard.sound(page)
  await upload('email\nnobody\nann@\n', 'spring.csv')
  await dialog.getByRole('button', { name: 'Validate', exact: true }).press('Enter')
  await page.getByRole('heading', { level: 1, name: 'spring' }).waitFor()
  await page.getByRole('link', { name: 'Download CSV' }).waitFor()
  assert.match(await page.getByRole('table', { name: 'Result' }).innerText(), /Undeliverable\s+2/)
  await dashboard.sound(page)
  const saved = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download CSV' }).press('Enter')
  const [header, first] = (await readFile(await (await saved).path(), 'utf8')).split(/\r?\n/)
  assert.match(`${header}|${first}`, /^\uFEFFaddress,result,.*\|nobody,undeliverable,high,/)
  await page.goBack()
  await page.getByRole('link', { name: 'spring' }).waitFor()
  await page.goForward()
  await page.getByRole('button', { name: 'Delete this list' }).press('Enter')
  await dialog.getByRole('button', { name: 'Delete this list' }).press('Enter')
  await page.getByText('spring deleted').waitFor()
  await page.getByText('No lists yet').waitFor()
})

test('inbox placement: a list of seeds, a test of it, where its copies lie, and a link to share', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/sending/placement', { look: PHONE })
  await page.getByText('No tests yet').waitFor()
  await page.getByText('Seed lists', { exact: true }).tap()
  await page.getByRole('button', { name: 'New seed list' }).first().tap()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').waitFor()
  await windowHasFocus(page)
  await dialog.getByLabel('Name').fill('Both')
  await dialog.getByLabel('Providers').fill('gmail.example,locked.example')
  await dialog.getByRole('button', { name: 'Create' }).tap()
  await page.getByText('Both', { exact: true }).waitFor()
  await dashboard.sound(page)
  await page.getByText('Tests', { exact: true }).tap()
  await page.getByRole('button', { name: 'Run a test' }).first().tap()
  await dialog.getByLabel('From').waitFor()
  await windowHasFocus(page)
  await dialog.getByLabel('From').fill('a@foreign.example')
  await dialog.getByLabel('Subject').fill('Spring')
  await dialog.getByLabel('Content (HTML)').fill('<p>Hello</p>')
  await chooseOption(dialog.getByLabel('Seed list'), 'Both')
  await dialog.getByRole('button', { name: 'Send the test' }).tap()
  await dialog.getByText('Domain not found: foreign.example').waitFor()
  await dialog.getByLabel('From').fill('')
  await dialog.getByRole('button', { name: 'Send the test' }).tap()
  await page.getByRole('heading', { level: 1, name: 'Spring' }).waitFor()
  await page.getByText('Inbox, promotions').waitFor()
  await page.getByText('does not offer STARTTLS', { exact: false }).waitFor()
  await page.getByRole('switch', { name: 'Shared by a link' }).tap()
  await page.getByRole('button', { name: 'Copy the link' }).waitFor()
  await dashboard.sound(page)
  const { body } = await service.call('GET', '/v4/inbox/results')
  assert.equal(body.items[0].sharing_enabled, true)
  for (const look of LOOKS) {
    const list = await dashboard.open('/sending/placement', { look })
    await list.getByRole('link', { name: 'Spring' }).waitFor()
    await dashboard.sound(list)
  }
  await page.getByRole('button', { name: 'Delete this test' }).tap()
  await dialog.getByRole('button', { name: 'Delete this test' }).tap()
  await page.getByText('Test deleted').waitFor()
  await page.getByText('No tests yet').waitFor()
})

test('receivers: rules with what to change, reports or how to get them, at both widths', async () => {
  const { service } = dashboard
  for (const look of LOOKS) {
    const page = await dashboard.open(`/domains/${service.domain}`, { look })
    await page.getByRole('link', { name: 'Receivers' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Receivers' }).waitFor()
    await page.getByText('Subscribed mail needs one-click unsubscribe', { exact: false }).waitFor()
    await page.getByRole('heading', { name: 'Gmail Postmaster Tools' }).waitFor()
    assert.equal(await page.getByText('stored no credentials', { exact: false }).count(), 2)
    await page.getByText('No reports yet').waitFor()
    await page.getByRole('combobox', { name: 'Type' }).selectOption('tls')
    await page.getByText(`tls-reports@${service.domain}`, { exact: false }).waitFor()
    assert.match(page.url(), /receivers\?type=tls$/)
    await dashboard.sound(page)
  }
})
