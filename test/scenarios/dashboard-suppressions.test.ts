/** The page of suppressions in a real browser: search, add, remove and back, import and export, by keyboard and by touch. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, type TestContext, test } from 'node:test'
import { type Dashboard, PHONE, press, startDashboard } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})

const listed = async (kind: string) =>
  (await dashboard.service.call('GET', `/v3/${dashboard.service.domain}/${kind}?limit=1000`)).body
    .items as Record<string, unknown>[]

test('by keyboard: an address is added, searched for, removed and put back as it was', async () => {
  const page = await dashboard.open('/sending/suppressions')
  await page.getByText('No bounces').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Add', exact: true }).first().press('Enter')
  await page.getByRole('dialog').getByLabel('Address').waitFor()
  await page.keyboard.type('not an address')
  await press(page, 'Enter')
  await page.getByText('Invalid format for parameter address', { exact: false }).waitFor()
  await press(page, 'Control+a')
  await page.keyboard.type('bob@example.com')
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
  await page.keyboard.type('alice')
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
