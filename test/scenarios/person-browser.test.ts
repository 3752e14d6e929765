/** The page of one person in a real browser: what is known of the address, the ways to it, export and erasure. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, DESK, LOOKS, PHONE, startDashboard } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
  const { service } = dashboard
  const form = async (path: string, fields: Record<string, string>) => {
    const answer = await service.call('POST', path, { form: fields })
    assert.equal(answer.status, 200, answer.text)
  }
  const list = `news@${service.domain}`
  await form('/v3/lists', { address: list, name: 'News' })
  await form(`/v3/lists/${list}/members`, { address: ADDRESS, name: 'Alice' })
  await service.send({ to: ADDRESS, subject: 'Your order' })
  await eventually('the delivery', async () => (await service.events('?event=delivered')).length > 0)
  await form(`/v3/${service.domain}/complaints`, { address: ADDRESS })
})
afterEach(() => dashboard.tidy())

const ADDRESS = 'alice@example.org'
const PATH = `/people/${encodeURIComponent(ADDRESS)}`

test('what was sent, the lists, suppressions and consent of an address', async () => {
  const { service } = dashboard
  for (const look of LOOKS) {
    const page = await dashboard.open(PATH, { look })
    await page.getByRole('heading', { level: 1, name: ADDRESS }).waitFor()
    const panel = (name: string) => page.getByRole('region', { name, exact: true })
    await panel('What happened').getByText('All events that are kept.').waitFor()
    await panel('Suppressions').getByText('Complaint').waitFor()
    await panel('Mailing lists').getByRole('link', { name: 'News' }).waitFor()
    await panel('Consent').getByText('Added').waitFor()
    await panel('Events').getByText('Your order').first().waitFor()
    await dashboard.sound(page)
    await panel('Events').getByRole('link', { name: 'Delivered' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Your order' }).waitFor()
    await page.getByRole('link', { name: 'All about this address' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: ADDRESS }).waitFor()
    await panel('Suppressions')
      .getByRole('link', { name: `for ${service.domain}` })
      .press('Enter')
    await page.getByRole('link', { name: `History of ${ADDRESS}` }).press('Enter')
    await page.getByRole('heading', { level: 1, name: ADDRESS }).waitFor()
    await panel('Mailing lists').getByRole('link', { name: 'News' }).press('Enter')
    await page.getByRole('link', { name: `All about ${ADDRESS}` }).press('Enter')
    await panel('Events').getByText('Your order').first().waitFor()
  }
})

test('an event leads to the person; a reload finds the page; an address without anything says so', async () => {
  const page = await dashboard.open('/activity', { look: PHONE })
  await page
    .getByRole('link', { name: `All about ${ADDRESS}` })
    .first()
    .tap()
  await page.waitForURL(/\/people\/alice(?:@|%40)example\.org/)
  await page.reload()
  await page.getByRole('heading', { level: 1, name: ADDRESS }).waitFor()
  await page.goto(`${dashboard.service.url}/people/nobody%40example.org`)
  await page.getByText('No events of this address').waitFor()
  await page.getByText('On no mailing list.').waitFor()
  await page.getByText('Not suppressed for any domain.').waitFor()
  await page.getByText('Nothing is recorded.').waitFor()
  await dashboard.sound(page)
})

test('a developer sees the page without export and erasure', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'developer' } })
  const page = await dashboard.open(PATH, { look: DESK, key: body.key.secret })
  await page.getByText('All events that are kept.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Erase' }).count(), 0)
  assert.equal(await page.getByRole('button', { name: 'Export' }).count(), 0)
})

test('an export is collected and downloaded; an erasure counts first, and removes after the address was typed', async () => {
  const { service } = dashboard
  for (const [no, look] of LOOKS.entries()) {
    const address = `erased${no}@example.org`
    const complaint = await service.call('POST', `/v3/${service.domain}/complaints`, { form: { address } })
    assert.equal(complaint.status, 200)
    const page = await dashboard.open(`/people/${encodeURIComponent(address)}`, { look })
    await page.getByRole('button', { name: 'Export' }).press('Enter')
    const exporting = page.getByRole('dialog', { name: 'Everything about this address' })
    const link = exporting.getByRole('link', { name: 'Download the archive' })
    await link.waitFor()
    await dashboard.sound(page)
    const archive = await service.call('GET', String(await link.getAttribute('href')))
    assert.equal(archive.status, 200)
    await exporting.getByRole('button', { name: 'Close' }).last().press('Enter')
    await exporting.waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Erase' }).press('Enter')
    const erasing = page.getByRole('dialog', { name: 'Erase this person' })
    await erasing.getByText('1 suppression: kept with a pseudonym for the address').waitFor()
    const submit = erasing.getByRole('button', { name: 'Erase', exact: true })
    assert.equal(await submit.isDisabled(), true)
    await erasing.getByLabel(/^Type/).fill('bob@example.org')
    assert.equal(await submit.isDisabled(), true)
    await dashboard.sound(page)
    const stored = async () => (await service.call('GET', `/v3/${service.domain}/complaints`)).text
    assert.ok((await stored()).includes(address), 'nothing is removed before the address was typed')
    await erasing.getByLabel(/^Type/).fill(address)
    await submit.press('Enter')
    const report = erasing.getByRole('link', { name: 'Download the report' })
    await report.waitFor()
    await dashboard.sound(page)
    const { body } = await service.call('GET', String(await report.getAttribute('href')))
    assert.deepEqual([body.report.kind, body.report.dry_run], ['erase', false])
    assert.ok(!(await stored()).includes(address))
  }
})
