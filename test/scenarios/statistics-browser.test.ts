/** Metrics in a real browser: curves and tables by any dimension, compared, filtered, shared and exported. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { afterEach, before, type TestContext, test } from 'node:test'
import { createNoonClock } from '../support/clock.ts'
import { type Dashboard, DESK, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { FILLED_ENV, setFaults } from '../support/fill-account.ts'
import { eventually } from '../support/service.ts'

const DELIVERED = 6
const BOUNCED = 3

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext, FILLED_ENV, { clock: createNoonClock() })
  const { service } = dashboard
  await setFaults(service)
  for (let n = 0; n < DELIVERED; n += 1)
    await service.send({ to: `p${n}@example.org`, 'o:tag': n % 2 === 0 ? 'even' : 'odd' })
  for (let n = 0; n < BOUNCED; n += 1)
    await service.send({ to: `p${n}@refusing.example.org`, 'o:tag': 'bad' })
  await eventually('all of it is counted', async () => {
    const json = { duration: '1d', metrics: ['delivered_count', 'bounced_count'] }
    const { body } = await service.call('POST', '/v1/analytics/metrics', { json })
    const { delivered_count, bounced_count } = body.items[0].metrics
    return delivered_count === DELIVERED && bounced_count === BOUNCED
  })
})
afterEach(() => dashboard.tidy())

test('by keyboard alone: another dimension, another curve, a tag, and the same view by its address', async () => {
  const page = await dashboard.open('/overview')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await press(page, 'g', 'm')
  await page.getByRole('heading', { level: 1, name: 'Metrics' }).waitFor()
  const table = page.getByRole('table', { name: 'Figures' })
  await table.getByRole('row', { name: /^Other not known 6/ }).waitFor()
  await page.getByText('Accepted mail is not counted by provider, IP or pool').waitFor()
  await dashboard.sound(page)
  // Letters choose in a select, as everywhere.
  await page.getByRole('combobox', { name: 'By', exact: true }).focus()
  await page.keyboard.type('Tag')
  await press(page, 'Enter')
  await page.waitForURL('**/statistics?by=tag')
  await table.getByRole('row', { name: /^bad 3 0 0\.0% 0 3/ }).waitFor()
  await table.getByRole('row', { name: /^Total 9 6/ }).waitFor()
  await table.getByRole('button', { name: 'Bounced' }).focus()
  await press(page, 'Enter')
  await page.waitForURL(/sort=bounced_count/)
  await table.locator('th[aria-sort=descending]', { hasText: /^Bounced ↓$/ }).waitFor()
  const curves = page.getByRole('group', { name: 'Curves' })
  await curves.getByRole('button', { name: 'Bounce rate' }).focus()
  await press(page, 'Enter')
  const curve = page.getByRole('slider', { name: /^Bounce rate over time/ })
  await curve.focus()
  await press(page, 'End')
  // The curve's own figures may arrive after the button has changed.
  await page.locator('[role=slider][aria-valuetext$="(so far): Bounce rate 33.3%"]').waitFor()
  await page.getByRole('heading', { level: 1 }).click()
  await press(page, '/')
  await typeText(page, 'even')
  await page.waitForURL(/tag=even/)
  await table.getByRole('row', { name: /^even 3 3/ }).waitFor()
  await dashboard.sound(page)
  const other = await dashboard.open(new URL(page.url()).pathname + new URL(page.url()).search)
  await other
    .getByRole('table', { name: 'Figures' })
    .getByRole('row', { name: /^even 3 3/ })
    .waitFor()
  await other.getByRole('slider', { name: /^Bounce rate over time/ }).waitFor()
  assert.equal(await other.getByLabel('Tag', { exact: true }).inputValue(), 'even')
})

test('on a phone by touch: compare, without machines, the classes of replies, and the file', async () => {
  const page = await dashboard.open('/statistics?by=domain&span=7d', { look: PHONE })
  await page.getByRole('switch', { name: 'Compare with the period before' }).tap()
  await page.getByRole('switch', { name: 'Without machines' }).tap()
  await page.waitForURL(/compare=yes&people=yes|people=yes&compare=yes/)
  const curve = page.getByRole('slider')
  await curve.waitFor()
  await curve.focus()
  await press(page, 'End')
  await page.getByText('Delivered before').first().waitFor()
  assert.match(
    (await curve.getAttribute('aria-valuetext')) ?? '',
    /: Delivered 6, Delivered before 0, Bounced 3, Bounced before 0/,
  )
  const why = page.getByRole('table', { name: 'Why mail failed' })
  await why.getByText('550 5.1.1 no such user').waitFor()
  await dashboard.sound(page)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV file' }).tap()
  const file = await download
  assert.match(file.suggestedFilename(), /^metrics-domain-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/)
  const lines = (await readFile(await file.path(), 'utf8')).trim().split(/\r?\n/)
  assert.match(lines[0] ?? '', /^\W*domain,.*delivered_count/)
  assert.ok(lines[1]?.startsWith(`${dashboard.service.domain},`), lines[1] ?? '')
  assert.equal(lines.length, 2)
  await why
    .getByRole('link', { name: /^Open an example/ })
    .first()
    .tap()
  await page.getByText('It failed for good: 550 "5.1.1 no such user".').waitFor()
  await dashboard.sound(page)
})

test('a span of its own, copied numbers, and a span without mail says what to do', async () => {
  const page = await dashboard.open('/statistics')
  await page.getByRole('combobox', { name: 'Period' }).selectOption('own')
  await page.getByLabel('From').fill('2020-01-01')
  await page.getByLabel('To', { exact: true }).fill('2020-02-01')
  await page.getByText('No mail in this period').waitFor()
  await page.getByText('Nothing failed in this period.').waitFor()
  await dashboard.sound(page)
  await page.getByRole('combobox', { name: 'Period' }).selectOption('24h')
  await page.getByRole('button', { name: '6', exact: true }).first().click()
  await page.getByText('Copied 6').waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), '6')
  await page.getByRole('button', { name: 'Copy link' }).click()
  await page.getByText('The link is copied').waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), page.url())
})

test('a chart has totals, the values of a point, and says that today is unfinished', async () => {
  const page = await dashboard.open('/statistics?span=14d&by=domain')
  const legend = page.locator('.chart-legend li')
  await page.locator('.chart-legend').getByText('6', { exact: true }).waitFor()
  assert.deepEqual(await legend.allInnerTexts(), ['Delivered\n6', 'Bounced\n3', 'Opened\n0'])
  assert.equal(await page.locator('.chart-running').count(), 3)
  const curve = page.getByRole('slider')
  await curve.hover({ position: { x: 60, y: 60 } })
  const values = page.locator('.chart-values')
  await values.getByText('Delivered 0').waitFor()
  assert.deepEqual(await legend.allInnerTexts(), ['Delivered\n6', 'Bounced\n3', 'Opened\n0'])
  await page.mouse.move(0, 0)
  await values.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Complaint rate' }).focus()
  await press(page, 'Tab')
  await press(page, 'Tab')
  await values.getByText('Delivered 6').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Show as table' }).click()
  await page
    .getByRole('row', { name: /\(so far\) 6 3 0$/ })
    .first()
    .waitFor()
  assert.equal(await page.getByRole('row', { name: /\(so far\)/ }).count(), 1)
})

test('the picture by hour and weekday is a table in the zone of the reader, and any days can be chosen', async () => {
  const page = await dashboard.open('/statistics?span=14d')
  const panel = page.getByRole('region', { name: 'By hour and weekday', exact: true })
  await panel.getByRole('button', { name: 'Show: By hour and weekday' }).press('Enter')
  await page.waitForURL(/week=opened/)
  await panel.getByRole('combobox', { name: 'Count' }).selectOption('delivered')
  const table = panel.getByRole('table', { name: 'Delivered by hour and weekday' })
  await table.waitFor()
  await eventually('the table has all of them', async () => {
    const shown = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.week-table td')].map((cell) => cell.innerText)`,
    )
    assert.equal(shown.length, 7 * 24)
    return shown.reduce((sum, text) => sum + Number(text), 0) === DELIVERED
  })
  await dashboard.sound(page)
  const from = page.getByLabel('From')
  const day = await from.inputValue()
  assert.match(day, /^\d{4}-\d\d-\d\d$/)
  await from.fill(new Date(Date.parse(day) - 3 * 86_400_000).toISOString().slice(0, 10))
  await page.waitForURL(/from=\d{4}-\d\d-\d\d&to=/)
  const period = page.getByRole('combobox', { name: 'Period' })
  await eventually('the period is an own one', async () => (await period.inputValue()) === 'own')
})

test('a figure is shared by a link that needs no session, and revoked', async () => {
  const page = await dashboard.open('/statistics?by=domain')
  await page.getByRole('button', { name: 'Share' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Share a figure' })
  await form.getByLabel('Heading of the page').fill('For Ann')
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Make the link' }).press('Enter')
  const made = page.getByRole('dialog', { name: 'The link is made' })
  const url = (await made.locator('code').innerText()).trim()
  await dashboard.sound(page)
  await made.getByRole('button', { name: 'Done' }).press('Enter')
  await made.waitFor({ state: 'detached' })
  const path = new URL(url).pathname
  for (const look of [DESK, PHONE]) {
    const stranger = await dashboard.open(path, { look, key: null })
    await stranger.getByRole('heading', { name: 'For Ann' }).waitFor()
    await stranger.getByRole('row', { name: /\(so far\) 6 3 0$/ }).waitFor()
    await dashboard.sound(stranger)
  }
  await page.getByRole('button', { name: 'Share' }).press('Enter')
  await page.getByRole('button', { name: 'Revoke the link to For Ann' }).press('Enter')
  await page.getByText('The link is revoked').waitFor()
  assert.equal((await fetch(dashboard.service.url + path)).status, 404)
})
